/* SPDX-License-Identifier: Apache-2.0
 *
 * Blockers: processes and drains that keep devices from being granted, as text and as JSON.
 */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "cli/devices/devices_output.h"
#include "support/views/pool_pictures.h"
#include "view/pool_fingerprint.h"

static struct device_process *add_process(struct slot_info *slot, uint64_t pid)
{
    struct device_process *process = vector_append(&slot->device->processes);

    assert_non_null(process);
    *process = (struct device_process){
        .pid = pid,
        .uid = optional_number_of(4000000002),
        .command = view_text("python train.py --config experiments/large.yaml"),
        .started = VIEW_NOW - 2 * DURATION_HOUR - 13 * DURATION_MINUTE,
    };
    return process;
}

static void drain(struct slot_info *slot, const char *reason, struct optional_number uid)
{
    slot->blocks |= SLOT_BLOCK_DRAINED;
    slot->reason = view_text(reason);
    slot->reason_uid = uid;
    slot->reason_time = VIEW_NOW - 52 * DURATION_HOUR;
}

/* A pool with every kind of blocker. */
static struct pool_view blocked_view(void)
{
    struct pool_view view = view_of(6);
    struct slot_info *slots = view.snapshot.slots.items;
    struct lease_info *lease = view_lease(&view, 12, 0, 1);
    struct device_process *process;

    lease->name = view_text("train");
    lease->idle = optional_number_of(45 * DURATION_MINUTE);
    lease->idle_warned = true;
    lease = view_lease(&view, 13, 4, 5);
    lease->adopted = true;
    lease->idle = optional_number_of(59 * DURATION_SECOND);
    view_lease(&view, 14, 5, 6)->preparing = true;
    slots[1].state = SLOT_STATE_SQUATTED;
    slots[1].blocks = SLOT_BLOCK_SQUATTED;
    process = add_process(&slots[1], 4711);
    process->squats = true;
    process->container = view_text("0123456789abcdef0123456789abcdef");
    process = add_process(&slots[1], 4712);
    process->squats = true;
    process->uid.known = false;
    process->started = 0;
    add_process(&slots[1], 4713)->draws = true; /* blocks nothing */
    slots[2].state = SLOT_STATE_DRAINING;
    slots[2].blocks = SLOT_BLOCK_DIRTY;
    add_process(&slots[2], 99)->lease = 9;
    add_process(&slots[2], 100);
    add_process(&slots[2], 101)->draws = true;
    slots[3].state = SLOT_STATE_DRAINED;
    drain(&slots[3], "the fan is loud, and somebody has to look at it before it is used again",
          optional_number_of(4000000002));
    drain(&slots[4], NULL, (struct optional_number){0});
    add_process(&slots[4], 102)->lease = 13; /* belongs to the device's lease */
    return view;
}

static void blockers_are_listed(void **state)
{
    (void)state;
    check_picture(
        blocked_view(), narrow,
        "6 devices, none free, nobody waits\n"
        "your own pool, all NVIDIA A100-SXM4-80GB\n"
        "\n"
        "DEVICE   MEMORY  STATE      LEASE  USER         HELD  NOTE      JOB\n"
        "nvidia0  80 GiB  leased        12  4000000000  2h10m  idle 45m  train\n"
        "nvidia1  80 GiB  squatted\n"
        "nvidia2  80 GiB  draining\n"
        "nvidia3  80 GiB  drained\n"
        "nvidia4  80 GiB  leased        13  4000000000  2h10m  adopted   -\n"
        "nvidia5  80 GiB  preparing     14  4000000000  2h10m            -\n"
        "\n"
        "BLOCKED   PID  USER          FOR  LEASE     CONTAINER     COMMAND\n"
        "nvidia1  4711  4000000002  2h13m  none      0123456789ab  python train.py --con…\n"
        "nvidia1  4712  -               -  none                    python train.py --con…\n"
        "nvidia2    99  4000000002  2h13m  9, ended                python train.py --con…\n"
        "nvidia2   100  4000000002  2h13m  ended                   python train.py --con…\n"
        "process 4711 is in a container: start it with 'berth cdi --arguments', or\n"
        "  'berth adopt --container 0123456789ab'\n"
        "\n"
        "nvidia3 is drained (4000000002, 2d4h ago): the fan is loud, and somebody has\n"
        "  to look at it before it is used again\n"
        "nvidia4 will be drained (the pool, 2d4h ago)\n");
}

static void blockers_fit_the_terminal(void **state)
{
    static const size_t widths[] = {60, 80, 200};

    (void)state;
    for (size_t i = 0; i < COUNT(widths); i++) {
        const struct terminal terminal = {.width = widths[i], .unicode = true};
        struct pool_view view = blocked_view();
        struct slot_info *slots = view.snapshot.slots.items;
        char word[256] = "";
        struct text out;

        memset(word, 'x', sizeof(word) - 1);
        free(slots[4].reason);
        slots[4].reason = view_text(word);
        free(slots[3].reason);
        slots[3].reason = view_text("\033[31mred\nline\xff\t");
        free(slots[1].device->processes.items[0].command);
        slots[1].device->processes.items[0].command = view_text("\033]0;title\007\r\n");
        out = picture_of(&view, terminal);
        check_lines(&out, widths[i]);
        assert_non_null(strstr(text_string(&out), "nvidia4 will be drained (the pool, 2d4h ago)"));
        text_finish(&out);
    }
}

static void without_a_name_or_reason_the_state_is_explained(void **state)
{
    struct pool_view view = view_of(2);

    (void)state;
    view.snapshot.slots.items[0].state = SLOT_STATE_SQUATTED;
    view.snapshot.slots.items[1].state = SLOT_STATE_DRAINED;
    check_picture(view, none,
                  "2 devices, none free, nobody waits\n"
                  "your own pool, all NVIDIA A100-SXM4-80GB\n"
                  "\n"
                  "DEVICE   MEMORY  STATE     NOTE\n"
                  "nvidia0  80 GiB  squatted  in use without a lease\n"
                  "nvidia1  80 GiB  drained   out of service\n");
}

static void habits_of_a_lease_come_together(void **state)
{
    struct pool_view view = view_of(1);
    struct lease_info *lease = view_lease(&view, 1, 0, 1);

    (void)state;
    lease->opportunistic = true;
    lease->adopted = true;
    lease->idle = optional_number_of(UINT64_MAX);
    check_picture(view, none,
                  "1 device, not free, nobody waits\n"
                  "your own pool, NVIDIA A100-SXM4-80GB\n"
                  "\n"
                  "DEVICE   MEMORY  STATE   LEASE  USER         HELD  NOTE\n"
                  "nvidia0  80 GiB  leased      1  4000000000  2h10m  adopted, opportunistic, idle "
                  "106751d23h\n");
}

static void blockers_are_in_the_document(void **state)
{
    (void)state;
    check_json(blocked_view(),
               "\"squatters\":[{\"pid\":4711,\"user\":\"4000000002\",\"uid\":4000000002,"
               "\"command\":\"python train.py --config experiments/large.yaml\","
               "\"container\":\"0123456789abcdef0123456789abcdef\","
               "\"since\":\"2026-11-16T09:47:00.000Z\"},{\"pid\":4712,\"user\":null,\"uid\":null,");
    check_json(blocked_view(), "\"container\":null,\"since\":null}],\"lingering\":[],");
    check_json(blocked_view(), "\"squatters\":[],\"lingering\":[{\"pid\":99,");
    check_json(blocked_view(), "\"drain\":{\"reason\":null,\"user\":null,"
                               "\"since\":\"2026-11-14T08:00:00.000Z\"},\"name_held_by\":null}");
    check_json(
        blocked_view(),
        "\"user\":\"4000000002\",\"since\":\"2026-11-14T08:00:00.000Z\"},\"name_held_by\":null}");
    check_json(blocked_view(), "\"idle_s\":2700,\"idle_warned\":true,\"adopted\":false,");
    check_json(blocked_view(), "\"idle_s\":59,\"idle_warned\":false,\"adopted\":true,");
    check_json(blocked_view(), "\"idle_s\":null,\"idle_warned\":false,\"adopted\":false,"
                               "\"preparing\":true,");
    check_json(blocked_view(), "\"since\":\"2026-11-16T09:47:00.000Z\",\"squats\":true}");
    check_json(blocked_view(), "\"since\":\"2026-11-16T09:47:00.000Z\",\"squats\":false}");
}

static void blockers_count_as_a_change(void **state)
{
    struct pool_view one = blocked_view();
    uint64_t before = pool_fingerprint_events(&one);

    (void)state;
    one.snapshot.leases.items[0].idle.value += DURATION_MINUTE;
    assert_true(pool_fingerprint_events(&one) == before);
    one.snapshot.leases.items[0].idle_warned = false;
    assert_false(pool_fingerprint_events(&one) == before);
    one.snapshot.leases.items[0].idle_warned = true;
    one.snapshot.leases.items[2].preparing = false;
    assert_false(pool_fingerprint_events(&one) == before);
    one.snapshot.leases.items[2].preparing = true;
    one.snapshot.slots.items[1].device->processes.items[0].squats = false;
    assert_false(pool_fingerprint_events(&one) == before);
    one.snapshot.slots.items[1].device->processes.items[0].squats = true;
    one.snapshot.slots.items[4].blocks = 0;
    assert_false(pool_fingerprint_events(&one) == before);
    pool_view_finish(&one);
}

/* ---- The state of a device after drain ---- */

static void check_standing(struct pool_view *view, uint32_t index, const char *wanted)
{
    struct user_names users = {0};
    struct text out = {0};

    drain_describe(view, (struct device_id){VENDOR_NVIDIA, index, DEVICE_NO_MIG}, &users, &out);
    assert_string_equal(text_string(&out), wanted);
    text_finish(&out);
    user_names_finish(&users);
}

static void how_a_drained_device_stands(void **state)
{
    struct pool_view view = blocked_view();
    struct lease_info *lease;

    (void)state;
    lease = view_lease(&view, 15, 4, 5);
    lease->uid = 0;
    lease = view_lease(&view, 16, 4, 5);
    lease->parent = 15;
    assert_int_equal(pool_view_index(&view, NULL), 0);
    check_standing(&view, 0, "nvidia0: in service\n");
    check_standing(&view, 3, "nvidia3: out of service\n");
    check_standing(&view, 4,
                   "nvidia4: out of service once leases 13 (4000000000), 15 (root) end\n");
    check_standing(&view, 7, "nvidia7: no longer in this pool\n");
    view.snapshot.slots.items[5].blocks = SLOT_BLOCK_DRAINED;
    check_standing(&view, 5, "nvidia5: out of service once lease 14 (4000000000) ends\n");
    pool_view_finish(&view);
}

static void without_memory_the_text_is_failed(void **state)
{
    (void)state;
    check_without_memory(blocked_view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blockers_are_listed),
        cmocka_unit_test(blockers_fit_the_terminal),
        cmocka_unit_test(without_a_name_or_reason_the_state_is_explained),
        cmocka_unit_test(habits_of_a_lease_come_together),
        cmocka_unit_test(blockers_are_in_the_document),
        cmocka_unit_test(blockers_count_as_a_change),
        cmocka_unit_test(how_a_drained_device_stands),
        cmocka_unit_test(without_memory_the_text_is_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
