/* SPDX-License-Identifier: Apache-2.0
 *
 * Server-sent events: their framing and contents.
 */
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "support/views/pool_views.h"
#include "web/events.h"

static void index_view(struct pool_view *view)
{
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(pool_view_index(view, &error), 0);
}

/* Checks that the text is one event of that name: two lines and an empty one. */
static void check_frame(const struct text *text, const char *name)
{
    const char *string = text_string(text);
    const char *data;

    assert_false(text_failed(text));
    assert_int_equal(strncmp(string, "event: ", 7), 0);
    assert_int_equal(strncmp(string + 7, name, strlen(name)), 0);
    data = string + 7 + strlen(name);
    assert_int_equal(strncmp(data, "\ndata: {", 8), 0);
    data = strchr(data + 1, '\n');
    assert_string_equal(data, "\n\n");
    assert_null(strchr(string, '\r'));
}

#define assert_has(text, part) assert_non_null(strstr(text_string(text), part))

static struct pool_view hostile_view(void)
{
    struct pool_view view = view_of(2);
    struct lease_info *lease = view_lease(&view, 12, 0, 1);

    lease->name = view_text("a\nb\r\ndata: x\n\n<script>\xe2\x80\xa8");
    lease->command = view_text("\xff\xfe");
    view_claim(&view, 13, "1\n\ndevice", "event: evil\n");
    index_view(&view);
    return view;
}

static void everything_is_one_line(void **state)
{
    struct pool_view view = hostile_view();
    struct user_names users = {0};
    struct load_history recent = {.length = 3, .interval = 5 * DURATION_SECOND};
    const struct ended_lease ended = {.lease = &view.snapshot.leases.items[0],
                                      .end = LEASE_END_DIED};
    struct text text = {0};

    (void)state;
    view.snapshot.slots.items[1].device->load.utilization = load_figure_sampled(250, VIEW_NOW - 1);
    load_history_add_samples(&recent, &view);
    events_write_hello(&view, &recent, FOLLOWER_LIVE, &users, &text);
    check_frame(&text, "hello");
    assert_has(&text,
               "\"recent\":{\"every_s\":5,\"until\":\"2026-11-16T12:00:00.000Z\",\"devices\":["
               "{\"id\":\"nvidia1\",\"utilization\":[null,0.25,null]}]}");
    assert_has(&text, "\"state\":\"live\"");
    assert_has(&text, "\"version\":\"" BERTH_VERSION "\"");
    text_clear(&text);
    events_write_load(&view, &text);
    check_frame(&text, "load");
    text_clear(&text);
    events_write_devices(&view, &users, &text);
    check_frame(&text, "devices");
    text_clear(&text);
    events_write_lease("granted", ended.lease, &users, &text);
    check_frame(&text, "lease");
    assert_has(&text, "\"end\":null,\"ended_at\":null,\"exit_code\":null");
    text_clear(&text);
    events_write_ended(&ended, &users, &text);
    check_frame(&text, "lease");
    text_clear(&text);
    events_write_queue(&view, &users, &text);
    check_frame(&text, "queue");
    assert_has(&text, "\"pending\":1");
    text_clear(&text);
    events_write_state(FOLLOWER_GONE, VIEW_NOW, "no\nreason", &text);
    check_frame(&text, "state");
    assert_has(&text, "\"state\":\"gone\",\"since\":\"2026-11-16T12:00:00.000Z\"");
    text_clear(&text);
    events_write_tick(VIEW_NOW, &text);
    check_frame(&text, "tick");
    load_history_finish(&recent);
    text_finish(&text);
    user_names_finish(&users);
    pool_view_finish(&view);
}

static void loads(void **state)
{
    struct pool_view view = view_of(2);
    struct load *load = &view.snapshot.slots.items[0].device->load;
    struct text text = {0};

    (void)state;
    load->utilization = load_figure_sampled(970, VIEW_NOW);
    load->memory_free = load_figure_sampled(INT64_C(20) << 30, VIEW_NOW);
    load->temperature = load_figure_sampled(45500, VIEW_NOW);
    load->power = load_figure_sampled(250000, VIEW_NOW);
    view_lease(&view, 12, 0, 1);
    index_view(&view);
    events_write_load(&view, &text);
    assert_has(&text,
               "{\"id\":\"nvidia0\",\"leased\":true,\"state\":\"leased\",\"utilization\":0.97,"
               "\"memory_used\":64424509440,\"memory_total\":85899345920,\"temperature_c\":45.5,"
               "\"power_w\":250,\"sampled_at\":\"2026-11-16T12:00:00.000Z\",\"health\":null,"
               "\"asleep\":false,\"old\":false}");
    assert_has(&text,
               "{\"id\":\"nvidia1\",\"leased\":false,\"state\":\"free\",\"utilization\":null,"
               "\"memory_used\":null,");
    text_finish(&text);
    pool_view_finish(&view);
}

static void what_ends_are_called(void **state)
{
    static const struct {
        enum lease_end end;
        const char *what;
        const char *name;
    } cases[] = {
        {LEASE_END_RELEASED, "released", "\"released\""},
        {LEASE_END_DIED, "released", "\"died\""},
        {LEASE_END_PARENT, "released", "\"parent\""},
        {LEASE_END_EXPIRED, "expired", "\"expired\""},
        {LEASE_END_REVOKED, "revoked", "\"revoked\""},
        {LEASE_END_STOPPED, "revoked", "\"stopped\""},
        {LEASE_END_IDLE, "revoked", "\"idle\""},
        {(enum lease_end)99, "released", "null"},
    };
    struct user_names users = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct lease_info lease = {.id = 7};
        struct ended_lease ended = {.lease = &lease,
                                    .end = cases[i].end,
                                    .time = VIEW_NOW,
                                    .exit_code = optional_number_of(3)};
        struct text text = {0};
        char wanted[64];

        events_write_ended(&ended, &users, &text);
        snprintf(wanted, sizeof(wanted), "\"what\":\"%s\"", cases[i].what);
        assert_has(&text, wanted);
        snprintf(wanted, sizeof(wanted), "\"end\":%s,\"ended_at\":\"2026-", cases[i].name);
        assert_has(&text, wanted);
        assert_has(&text, "\"exit_code\":3");
        text_finish(&text);
    }
    user_names_finish(&users);
}

static void long_queues_are_cut(void **state)
{
    struct pool_view view = view_of(1);
    struct user_names users = {0};
    struct text text = {0};
    size_t found = 0;

    (void)state;
    for (uint64_t i = 0; i < EVENTS_CLAIMS_MAX + 10; i++)
        view_claim(&view, 100 + i, "1 device", "busy");
    events_write_queue(&view, &users, &text);
    for (const char *at = text_string(&text); (at = strstr(at, "\"position\":")) != NULL; at++)
        found++;
    assert_int_equal(found, EVENTS_CLAIMS_MAX);
    assert_has(&text, "\"pending\":510");
    text_finish(&text);
    user_names_finish(&users);
    pool_view_finish(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_one_line),
        cmocka_unit_test(loads),
        cmocka_unit_test(what_ends_are_called),
        cmocka_unit_test(long_queues_are_cut),
    };

    return cmocka_run_group_tests_name("web events", tests, NULL, NULL);
}
