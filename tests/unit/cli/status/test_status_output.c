/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of status for invented views, also for views that no daemon should send.
 */
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/text/utf8.h"
#include "cli/status/status_output.h"
#include "support/assert_error.h"
#include "support/failing_allocator.h"
#include "support/views/pool_pictures.h"
#include "view/pool_fingerprint.h"

static void an_empty_pool_is_short(void **state)
{
    (void)state;
    check_picture(view_of(0), narrow, "No devices\nyour own pool\n");
}

static void free_devices_have_no_holders(void **state)
{
    (void)state;
    check_picture(view_of(2), narrow,
                  "2 devices, all free, nobody waits\n"
                  "your own pool, all NVIDIA A100-SXM4-80GB\n"
                  "\n"
                  "DEVICE   MEMORY  STATE\n"
                  "nvidia0  80 GiB  free\n"
                  "nvidia1  80 GiB  free\n");
    check_picture(view_of(1), narrow,
                  "1 device, free, nobody waits\n"
                  "your own pool, NVIDIA A100-SXM4-80GB\n"
                  "\n"
                  "DEVICE   MEMORY  STATE\n"
                  "nvidia0  80 GiB  free\n");
}

/* A pool with some of everything. */
static struct pool_view busy_view(size_t count)
{
    struct pool_view view = view_of(count);
    struct lease_info *lease = view_lease(&view, 12, 0, 2);
    struct slot_info *slots = view.snapshot.slots.items;
    struct claim_info *claim;

    lease->name = view_text("finetune");
    lease->expires = optional_number_of(VIEW_NOW + 110 * DURATION_MINUTE);
    for (uint64_t id = 14; id <= 15; id++) {
        lease = view_lease(&view, id, 2, 3);
        lease->command = view_text("python train.py");
        lease->sharing = SHARING_MPS;
        lease->share = id == 14 ? 250000 : 500000;
    }
    lease->memory = optional_number_of(UINT64_C(8) << 30);
    slots[2].state = SLOT_STATE_SHARED;
    slots[2].sharing = SHARING_MPS;
    slots[3].state = SLOT_STATE_SICK;
    slots[0].device->load.memory_free = load_figure_declared(INT64_C(20) << 30);
    slots[0].device->load.utilization = load_figure_declared(970);
    claim = view_claim(&view, 17, "4 devices",
                       "needs 4: user 0 holds 2 (1h50m left), user 4000000000 holds 1, 1 is sick");
    claim->estimate = optional_number_of(110 * DURATION_MINUTE);
    claim->name = view_text("eval");
    view_claim(&view, 18, "1 device", "needs 1, but user 0 holds 1 of at most 1 device");
    return view;
}

static void holders_and_the_queue_on_a_narrow_terminal(void **state)
{
    (void)state;
    check_picture(
        busy_view(4), narrow,
        "4 devices, none free, 1 with a share left, 2 claims waiting\n"
        "your own pool, all NVIDIA A100-SXM4-80GB\n"
        "\n"
        "DEVICE   UTIL  STATE   LEASE  USER         HELD   LEFT  SHARE       JOB\n"
        "nvidia0   97%  leased     12  4000000000  2h10m  1h50m              finetune\n"
        "nvidia1     -  leased     12  4000000000  2h10m  1h50m              finetune\n"
        "nvidia2     -  mps        14  4000000000  2h10m         0.25        python trai…\n"
        "nvidia2                   15  4000000000  2h10m         0.5, 8 GiB  python trai…\n"
        "nvidia3     -  sick\n"
        "\n"
        "QUEUE  CLAIM  USER        WAITING    STARTS  WANTS      JOB\n"
        "    1     17  4000000001      12m  in 1h50m  4 devices  eval\n"
        "       needs 4: root holds 2 (1h50m left), user 4000000000 holds 1, 1 is sick\n"
        "    2     18  4000000001      12m         -  1 device   -\n"
        "       needs 1, but root holds 1 of at most 1 device\n");
}

static void holders_and_the_queue_without_a_terminal(void **state)
{
    (void)state;
    check_picture(
        busy_view(4), none,
        "4 devices, none free, 1 with a share left, 2 claims waiting\n"
        "your own pool, all NVIDIA A100-SXM4-80GB\n"
        "\n"
        "DEVICE      MEMORY  UTIL  STATE   LEASE  USER         HELD   LEFT  SHARE       JOB\n"
        "nvidia0  60/80 GiB   97%  leased     12  4000000000  2h10m  1h50m              finetune\n"
        "nvidia1   -/80 GiB     -  leased     12  4000000000  2h10m  1h50m              finetune\n"
        "nvidia2   -/80 GiB     -  mps        14  4000000000  2h10m         0.25        python "
        "train.py\n"
        "nvidia2                              15  4000000000  2h10m         0.5, 8 GiB  python "
        "train.py\n"
        "nvidia3   -/80 GiB     -  sick\n"
        "\n"
        "QUEUE  CLAIM  USER        WAITING    STARTS  WANTS      JOB   WHY\n"
        "    1     17  4000000001      12m  in 1h50m  4 devices  eval  needs 4: root holds 2 "
        "(1h50m left), user 4000000000 holds 1, 1 is sick\n"
        "    2     18  4000000001      12m         -  1 device   -     needs 1, but root holds 1 "
        "of at most 1 device\n");
}

static void all_of_it_fits(void **state)
{
    static const size_t counts[] = {1, 8, 64};
    const struct terminal terminals[] = {narrow, wide};

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct pool_view view = counts[i / 2] == 1 ? view_of(1) : busy_view(counts[i / 2]);
        struct text out = picture_of(&view, terminals[i % 2]);

        check_lines(&out, terminals[i % 2].width);
        text_finish(&out);
    }
}

static void hostile_names_are_inert(void **state)
{
    struct pool_view view = busy_view(4);
    struct text out;

    (void)state;
    free(view.snapshot.leases.items[0].name);
    view.snapshot.leases.items[0].name = view_text("\033[31mred\nline\xff\t");
    free(view.snapshot.claims.items[1].why);
    view.snapshot.claims.items[1].why = view_text("\033]0;title\007 because\r\n");
    for (size_t i = 0; i < 4; i++) {
        free(view.snapshot.slots.items[i].device->name);
        view.snapshot.slots.items[i].device->name = view_text(
            "\xe8\xae\xad\xe7\xbb\x83\xe8\xae\xad\xe7\xbb\x83\xe8\xae\xad\033\xe7\xbb\x83");
    }
    out = picture_of(&view, narrow);
    check_lines(&out, 80);
    assert_non_null(strstr(text_string(&out), "because"));
    text_finish(&out);
}

static void colours_only_where_wanted(void **state)
{
    const struct terminal coloured = {.width = 80, .colour = true, .unicode = true};
    struct pool_view view = busy_view(5);
    struct text out = picture_of(&view, coloured);

    (void)state;
    assert_non_null(
        strstr(text_string(&out),
               "\033[1m5 devices, 1 free, 1 with a share left, 2 claims waiting\033[0m"));
    assert_non_null(strstr(text_string(&out), "\033[32mfree\033[0m"));
    assert_non_null(strstr(text_string(&out), "\033[31msick\033[0m"));
    text_finish(&out);
    view = busy_view(5);
    out = picture_of(&view, narrow);
    assert_null(strchr(text_string(&out), '\033'));
    text_finish(&out);
}

static void what_is_unusual_is_noted(void **state)
{
    struct pool_view view = view_of(4);
    struct lease_info *lease = view_lease(&view, 1, 0, 2);

    (void)state;
    lease->replicas = 2;
    lease->end = LEASE_END_EXPIRED;
    lease->pid = 0;
    lease->expires = optional_number_of(1);
    lease = view_lease(&view, 2, 0, 1);
    lease->parent = 1;
    lease->granted = VIEW_NOW + 1;
    lease->opportunistic = true;
    view.snapshot.slots.items[0].state = SLOT_STATE_DRAINING;
    view.snapshot.slots.items[2].state = SLOT_STATE_ELSEWHERE;
    view.snapshot.slots.items[3].device->partitioned = true;
    check_picture(view, none,
                  "3 devices, none free, nobody waits\n"
                  "your own pool, all NVIDIA A100-SXM4-80GB\n"
                  "\n"
                  "DEVICE   MEMORY  STATE         LEASE  USER         HELD  LEFT  REPLICA  NOTE    "
                  "                JOB\n"
                  "nvidia0  80 GiB  draining          1  4000000000  2h10m    0s      1/2  ending: "
                  "the time limit  (reserved)\n"
                  "nvidia0                       2 in 1  4000000000     0s                 "
                  "opportunistic           -\n"
                  "nvidia1  80 GiB  leased            1  4000000000  2h10m    0s      2/2  ending: "
                  "the time limit  (reserved)\n"
                  "nvidia2  80 GiB  elsewhere                                              held by "
                  "another pool\n"
                  "nvidia3  80 GiB  partitioned\n");
}

static void the_pool_is_named(void **state)
{
    static char inventory[] = "/x/machine.yaml";
    struct pool_view view = view_of(0);

    (void)state;
    view.about.inventory = view_text(inventory);
    check_picture(view, narrow, "No devices\npool of /x/machine.yaml\n");
    address.own = false;
    check_picture(view_of(0), narrow, "No devices\npool at /run/somewhere/berth.sock\n");
    address.socket = (char *)"/run/berth/berth.sock";
    check_picture(view_of(0), narrow, "No devices\nthe machine's pool\n");
    address.own = true;
}

static void json_has_the_members_of_the_contract(void **state)
{
    (void)state;
    check_json(view_of(0),
               "{\"schema\":\"berth.status/1\",\"pool\":{\"capacity\":0,\"pending\":0,");
    check_json(view_of(0), "\"devices\":[],\"leases\":[],\"queue\":[],\"problems\":[]}\n");
    check_json(busy_view(4), "\"capacity\":4,\"pending\":2,\"socket\":\"");
    check_json(
        busy_view(4),
        "\"leased\":true,\"sharing\":\"exclusive\",\"state\":\"leased\","
        "\"leases\":[12],\"squatters\":[],\"lingering\":[],\"drain\":null,\"name_held_by\":null}");
    check_json(busy_view(4), "\"leased\":true,\"sharing\":\"mps\",\"state\":\"shared\",\"leases\":["
                             "14,15],\"squatters\":[],");
    check_json(busy_view(4), "\"leased\":false,\"sharing\":null,\"state\":\"sick\",\"leases\":[],");
    check_json(busy_view(4),
               "{\"id\":12,\"name\":\"finetune\",\"user\":\"4000000000\",\"uid\":4000000000,"
               "\"pid\":77,\"command\":null,\"devices\":[{\"id\":\"nvidia0\",\"share\":1,"
               "\"memory\":null},{\"id\":\"nvidia1\",\"share\":1,\"memory\":null}]");
    check_json(busy_view(4), "[{\"id\":\"nvidia2\",\"share\":0.5,\"memory\":8589934592}]");
    check_json(busy_view(4), "\"granted_at\":\"2026-11-16T09:50:00.000Z\","
                             "\"expires_at\":\"2026-11-16T13:50:00.000Z\",\"idle_s\":null,"
                             "\"idle_warned\":false,\"adopted\":false,\"preparing\":false,");
    check_json(busy_view(4), "\"priority\":\"normal\",\"opportunistic\":false,");
    check_json(busy_view(4), "\"queue\":[{\"id\":17,\"position\":1,\"name\":\"eval\",");
    check_json(busy_view(4), "\"since\":\"2026-11-16T11:48:00.000Z\"");
    check_json(busy_view(4), "\"estimate_s\":6600,");
    check_json(busy_view(4), "\"estimate_s\":null,");
}

static void json_of_nonsense_is_a_document(void **state)
{
    struct pool_view view = busy_view(4);

    (void)state;
    view.snapshot.slots.items[0].state = (enum slot_state)99;
    view.snapshot.time = INT64_MIN;
    view.snapshot.leases.items[0].expires = optional_number_of(UINT64_MAX);
    view.snapshot.leases.items[0].granted = INT64_MAX;
    view.snapshot.claims.items[0].estimate = optional_number_of(UINT64_MAX);
    check_json(view, "\"state\":null,\"leases\":[12],\"squatters\":[],\"lingering\":[],\"drain\":"
                     "null,\"name_held_by\":null}");
}

static void pages_come_together(void **state)
{
    struct pool_view all = {0};
    struct pool_view one = busy_view(4);
    struct pool_view other = view_of(2);
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    assert_int_equal(pool_view_add_page(&all, &other.snapshot, &error), 0);
    assert_int_equal(pool_view_add_page(&all, &one.snapshot, &error), 0);
    assert_int_equal(all.snapshot.slots.count, 6);
    assert_int_equal(all.snapshot.leases.count, 3);
    assert_int_equal(all.snapshot.claims.count, 2);
    assert_int_equal(all.snapshot.capacity, 4);
    assert_int_equal(one.snapshot.slots.count + other.snapshot.slots.count, 0);
    pool_view_finish(&one);
    pool_view_finish(&other);
    pool_view_finish(&all);
}

static void a_slot_without_a_device_is_refused(void **state)
{
    struct pool_view all = {0};
    struct pool_view page = view_of(1);
    struct device *device = page.snapshot.slots.items[0].device;
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    page.snapshot.slots.items[0].device = NULL;
    assert_fails(pool_view_add_page(&all, &page.snapshot, &error), BERTH_ERROR_SYNTAX, &error,
                 "cannot read the pool: a slot has no device");
    page.snapshot.slots.items[0].device = device;
    pool_view_finish(&page);
}

static void the_fingerprint_tells_changes(void **state)
{
    struct pool_view one = busy_view(4);
    struct pool_view other = busy_view(4);

    (void)state;
    other.snapshot.time += DURATION_HOUR;
    other.snapshot.slots.items[0].device->load.utilization = load_figure_declared(1);
    assert_true(pool_fingerprint_events(&one) == pool_fingerprint_events(&other));
    other.snapshot.slots.items[3].state = SLOT_STATE_FREE;
    assert_false(pool_fingerprint_events(&one) == pool_fingerprint_events(&other));
    pool_view_finish(&one);
    pool_view_finish(&other);
}

static struct pool_view busy_view_of_four(void)
{
    return busy_view(4);
}

static void without_memory_the_text_is_failed(void **state)
{
    (void)state;
    check_without_memory(busy_view_of_four);
}

static void users_have_names_or_numbers(void **state)
{
    struct user_names users = {0};

    (void)state;
    assert_string_equal(user_names_find(&users, 0), "root");
    assert_string_equal(user_names_find(&users, 4000000000), "4000000000");
    assert_string_equal(user_names_find(&users, 0), "root");
    assert_int_equal(users.count, 2);
    user_names_finish(&users);
}

/* A pool of hardware with problems. */
static struct pool_view troubled_view(void)
{
    struct pool_view view = view_of(4);

    view.snapshot.slots.items[0].device->asleep = true;
    view.snapshot.slots.items[0].state = SLOT_STATE_ASLEEP;
    view.snapshot.slots.items[1].device->health = HEALTH_SICK;
    view.snapshot.slots.items[1].device->health_reason = view_text("it fell off the bus");
    view.snapshot.slots.items[1].state = SLOT_STATE_SICK;
    view.snapshot.slots.items[2].device->old = true;
    view_lease(&view, 1, 3, 4);
    view.snapshot.slots.items[3].device->old = true;
    assert_int_equal(
        machine_report_add_problem(&view.snapshot.problems, "nvidia", "expected an answer"), 0);
    assert_int_equal(
        machine_report_add_problem(&view.snapshot.problems, "amd", "no\x1b[31m such file"), 0);
    return view;
}

static void what_is_wrong_with_the_hardware_is_said(void **state)
{
    (void)state;
    check_picture(troubled_view(), none,
                  "4 devices, 2 free, nobody waits\n"
                  "your own pool, all NVIDIA A100-SXM4-80GB\n"
                  "\n"
                  "DEVICE   MEMORY  STATE   LEASE  USER         HELD  NOTE                 JOB\n"
                  "nvidia0  80 GiB  asleep\n"
                  "nvidia1  80 GiB  sick                              it fell off the bus\n"
                  "nvidia2  80 GiB  free                              does not answer now\n"
                  "nvidia3  80 GiB  leased      1  4000000000  2h10m  does not answer now  -\n"
                  "\n"
                  "nvidia: expected an answer\n"
                  "amd: no\xEF\xBF\xBD[31m such file\n");
    check_json(troubled_view(),
               "\"problems\":[{\"backend\":\"nvidia\",\"message\":\"expected an answer\"},");
}

static void problems_come_with_the_last_page_and_count_as_a_change(void **state)
{
    struct pool_view all = {0};
    struct pool_view calm = view_of(2);
    struct pool_view last = troubled_view();
    uint64_t before;

    (void)state;
    assert_int_equal(pool_view_add_page(&all, &calm.snapshot, NULL), 0);
    assert_int_equal(pool_view_add_page(&all, &last.snapshot, NULL), 0);
    assert_int_equal(all.snapshot.problems.count, 2);
    assert_int_equal(last.snapshot.problems.count, 0);
    before = pool_fingerprint_events(&all);
    assert_int_equal(machine_report_add_problem(&all.snapshot.problems, "amd", "another"), 0);
    assert_false(pool_fingerprint_events(&all) == before);
    before = pool_fingerprint_events(&all);
    all.snapshot.slots.items[0].device->old = true;
    assert_false(pool_fingerprint_events(&all) == before);
    pool_view_finish(&all);
    pool_view_finish(&calm);
    pool_view_finish(&last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_pool_is_short),
        cmocka_unit_test(free_devices_have_no_holders),
        cmocka_unit_test(holders_and_the_queue_on_a_narrow_terminal),
        cmocka_unit_test(holders_and_the_queue_without_a_terminal),
        cmocka_unit_test(all_of_it_fits),
        cmocka_unit_test(hostile_names_are_inert),
        cmocka_unit_test(colours_only_where_wanted),
        cmocka_unit_test(what_is_unusual_is_noted),
        cmocka_unit_test(the_pool_is_named),
        cmocka_unit_test(json_has_the_members_of_the_contract),
        cmocka_unit_test(json_of_nonsense_is_a_document),
        cmocka_unit_test(pages_come_together),
        cmocka_unit_test(a_slot_without_a_device_is_refused),
        cmocka_unit_test(the_fingerprint_tells_changes),
        cmocka_unit_test(without_memory_the_text_is_failed),
        cmocka_unit_test(users_have_names_or_numbers),
        cmocka_unit_test(what_is_wrong_with_the_hardware_is_said),
        cmocka_unit_test(problems_come_with_the_last_page_and_count_as_a_change),
    };

    return cmocka_run_group_tests_name("status_output", tests, NULL, NULL);
}
