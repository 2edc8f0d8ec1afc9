/* SPDX-License-Identifier: Apache-2.0
 *
 * A reader of the event stream, with a daemon that the test plays.
 */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "support/assert_error.h"
#include "support/views/pool_views.h"
#include "view/follower.h"

/* The daemon's end of a connection, and its follower. */
struct stage {
    int daemon;
    struct follower follower;
};

static struct stage *begin_stage(struct follower_settings settings)
{
    struct stage *stage = malloc(sizeof(*stage));
    int ends[2];

    assert_non_null(stage);

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    stage->daemon = ends[0];
    assert_int_equal(follower_open_connected(&stage->follower, ends[1], &settings, NULL), 0);
    return stage;
}

static void end(struct stage *stage)
{
    if (stage->daemon >= 0)
        close(stage->daemon);
    follower_close(&stage->follower);
    free(stage);
}

/* Receives the next request, which must be of this type. */
static struct wire_message hear(struct stage *stage, enum wire_type type)
{
    static unsigned char bytes[WIRE_MESSAGE_MAX];
    ssize_t length = recv(stage->daemon, bytes, sizeof(bytes), MSG_DONTWAIT);
    struct wire_message message;

    assert_true(length > 0);
    assert_int_equal(wire_decode(bytes, (size_t)length, &message, NULL), 0);
    assert_int_equal(message.type, type);
    return message;
}

static bool hears_nothing(struct stage *stage)
{
    char byte;

    return recv(stage->daemon, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
}

static void say(struct stage *stage, const struct wire_message *message)
{
    struct text out = {0};

    assert_int_equal(wire_encode(message, &out, NULL), 0);
    assert_int_equal(send(stage->daemon, out.bytes, out.length, 0), (ssize_t)out.length);
    text_finish(&out);
}

/* Answers the first requests. Returns the number of the FOLLOW request. */
static uint64_t introduce(struct stage *stage)
{
    say(stage, &(struct wire_message){
                   .type = WIRE_POOL,
                   .number = hear(stage, WIRE_HELLO).number,
                   .about.pool = (char *)"p",
                   .epoch = 5,
               });
    return hear(stage, WIRE_FOLLOW).number;
}

static int step(struct stage *stage)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int news = follower_step(&stage->follower, &error);

    if (news < 0)
        fail_msg("%s", error.message);
    return news;
}

static void send_news(struct stage *stage, uint64_t follow, uint64_t epoch, uint64_t after,
                      uint32_t kinds)
{
    say(stage, &(struct wire_message){
                   .type = WIRE_NEWS,
                   .number = follow,
                   .epoch = epoch,
                   .after = after,
                   .kinds = kinds,
               });
}

/* Answers LOOK with a view's items as one page, and finishes the view. */
static void show(struct stage *stage, uint64_t snapshot, struct pool_view view)
{
    say(stage,
        &(struct wire_message){.type = WIRE_PAGE, .number = snapshot, .snapshot = view.snapshot});
    pool_view_finish(&view);
}

/* The same, where the rest of the queue follows on the next page. */
static void show_first(struct stage *stage, uint64_t snapshot, struct pool_view view)
{
    say(stage, &(struct wire_message){.type = WIRE_PAGE,
                                      .number = snapshot,
                                      .section = WIRE_SECTION_QUEUE,
                                      .after = 2,
                                      .snapshot = view.snapshot});
    pool_view_finish(&view);
}

/* A view with one lease and two claims. */
static struct pool_view busy(void)
{
    struct pool_view view = view_of(2);

    view_lease(&view, 7, 0, 1);
    for (uint32_t i = 0; i < 2; i++) {
        struct claim_info *claim = vector_append(&view.snapshot.claims);

        assert_non_null(claim);
        *claim = (struct claim_info){.id = 8 + i, .position = 1 + i};
    }
    return view;
}

/* Completes the first snapshot. Returns the number of the next FOLLOW request. */
static uint64_t settle(struct stage *stage)
{
    uint64_t follow = introduce(stage);
    uint64_t snapshot;

    send_news(stage, follow, 5, 1, WIRE_NEWS_ALL);
    assert_int_equal(step(stage), 0);
    snapshot = hear(stage, WIRE_LOOK).number;
    follow = hear(stage, WIRE_FOLLOW).number;
    show(stage, snapshot, busy());
    assert_int_equal(step(stage), WIRE_NEWS_ALL);
    assert_true(stage->follower.has_view);
    return follow;
}

static void everything_is_looked_at_first(void **state)
{
    struct stage *stage = begin_stage((struct follower_settings){.kinds = WIRE_NEWS_ALL});

    (void)state;
    assert_false(stage->follower.has_view);
    settle(stage);
    assert_int_equal(stage->follower.view.snapshot.slots.count, 2);
    assert_int_equal(stage->follower.view.snapshot.leases.count, 1);
    assert_int_equal(stage->follower.view.uses.count, 1);
    assert_string_equal(stage->follower.view.about.pool, "p");
    assert_int_equal(follower_get_state(&stage->follower), FOLLOWER_LIVE);
    assert_true(hears_nothing(stage));
    end(stage);
}

static void only_what_changed_is_looked_at(void **state)
{
    struct stage *stage = begin_stage((struct follower_settings){.kinds = WIRE_NEWS_ALL});
    uint64_t follow = settle(stage);
    struct pool_view loads = view_of(2);
    struct wire_message snapshot;

    (void)state;
    send_news(stage, follow, 5, 2, WIRE_NEWS_LOAD);
    assert_int_equal(step(stage), 0);
    snapshot = hear(stage, WIRE_LOOK);
    assert_int_equal(snapshot.sections, 1U << WIRE_SECTION_DEVICES);
    loads.snapshot.slots.items[1].state = SLOT_STATE_SICK;
    show(stage, snapshot.number, loads);
    assert_int_equal(step(stage), WIRE_NEWS_LOAD);
    assert_int_equal(stage->follower.view.snapshot.slots.items[1].state, SLOT_STATE_SICK);
    /* Other sections are unchanged, and are indexed with the new devices. */
    assert_int_equal(stage->follower.view.snapshot.leases.count, 1);
    assert_int_equal(stage->follower.view.snapshot.claims.count, 2);
    assert_int_equal(stage->follower.view.uses.count, 1);
    end(stage);
}

static void it_asks_on_from_where_it_is(void **state)
{
    struct stage *stage = begin_stage((struct follower_settings){
        .kinds = WIRE_NEWS_LEASE, .interval = 9, .epoch = 4, .ended_known = 3});
    struct wire_message follow;

    (void)state;
    hear(stage, WIRE_HELLO);
    follow = hear(stage, WIRE_FOLLOW);
    assert_int_equal(follow.epoch, 4);
    assert_int_equal(follow.id, 3);
    assert_int_equal(follow.duration, 9);
    say(stage, &(struct wire_message){
                   .type = WIRE_NEWS,
                   .number = follow.number,
                   .epoch = 4,
                   .after = 77,
                   .id = 6,
                   .kinds = WIRE_NEWS_LEASE,
               });
    step(stage);
    hear(stage, WIRE_LOOK);
    follow = hear(stage, WIRE_FOLLOW);
    assert_int_equal(follow.after, 77);
    assert_int_equal(follow.id, 6);
    end(stage);
}

static void what_changes_while_it_looks_is_looked_at_again(void **state)
{
    struct stage *stage = begin_stage((struct follower_settings){.kinds = WIRE_NEWS_ALL});
    uint64_t follow = settle(stage);
    struct wire_message snapshot;

    (void)state;
    send_news(stage, follow, 5, 2, WIRE_NEWS_QUEUE);
    step(stage);
    snapshot = hear(stage, WIRE_LOOK);
    assert_int_equal(snapshot.sections, 1U << WIRE_SECTION_QUEUE);
    send_news(stage, hear(stage, WIRE_FOLLOW).number, 5, 3, WIRE_NEWS_LOAD);
    assert_int_equal(step(stage), 0);
    hear(stage, WIRE_FOLLOW);
    assert_true(hears_nothing(stage));
    show(stage, snapshot.number, view_of(0));
    assert_int_equal(step(stage), WIRE_NEWS_QUEUE);
    assert_int_equal(stage->follower.view.snapshot.claims.count, 0);
    assert_int_equal(stage->follower.view.snapshot.slots.count, 2);
    /* News that came meanwhile are reported after their snapshot, not before. */
    snapshot = hear(stage, WIRE_LOOK);
    assert_int_equal(snapshot.sections, 1U << WIRE_SECTION_DEVICES);
    show(stage, snapshot.number, view_of(3));
    assert_int_equal(step(stage), WIRE_NEWS_LOAD);
    assert_int_equal(stage->follower.view.snapshot.slots.count, 3);
    end(stage);
}

static void a_refresh_need_not_wait_for_news(void **state)
{
    struct stage *stage = begin_stage((struct follower_settings){
        .kinds = WIRE_NEWS_LEASE | WIRE_NEWS_QUEUE, .interval = DURATION_HOUR, .claims_max = 1});
    struct duration_histogram waited = {.counts = {[1] = 2}};
    struct pool_tally tally = {.busy = 3, .waited = &waited};
    struct wire_message first;
    struct wire_message second;
    struct pool_view counted = busy();

    (void)state;
    send_news(stage, introduce(stage), 5, 1, WIRE_NEWS_LEASE);
    step(stage);
    show(stage, hear(stage, WIRE_LOOK).number, busy());
    hear(stage, WIRE_FOLLOW);
    step(stage);
    assert_int_equal(stage->follower.seen, 1);
    assert_int_equal(follower_refresh(&stage->follower, false), 2);
    first = hear(stage, WIRE_LOOK);
    /* A later refresh gets a later snapshot, with the whole queue. */
    assert_int_equal(follower_refresh(&stage->follower, true), 3);
    assert_true(hears_nothing(stage));
    say(stage, &(struct wire_message){.type = WIRE_PAGE,
                                      .number = first.number,
                                      .tally = &tally,
                                      .snapshot = counted.snapshot});
    pool_view_finish(&counted);
    assert_int_equal(step(stage), WIRE_NEWS_LEASE | WIRE_NEWS_QUEUE);
    assert_int_equal(stage->follower.seen, 2);
    assert_int_equal(stage->follower.tally.busy, 3);
    assert_int_equal(stage->follower.tally.waited->counts[1], 2);
    second = hear(stage, WIRE_LOOK);
    show_first(stage, second.number, busy());
    assert_int_equal(step(stage), 0);
    second = hear(stage, WIRE_LOOK);
    assert_int_equal(second.after, 2);
    show(stage, second.number, view_of(0));
    assert_int_equal(step(stage), WIRE_NEWS_LEASE | WIRE_NEWS_QUEUE);
    assert_int_equal(stage->follower.seen, 3);
    assert_int_equal(stage->follower.view.snapshot.claims.count, 2);
    end(stage);
}

static void a_long_queue_is_cut(void **state)
{
    struct stage *stage =
        begin_stage((struct follower_settings){.kinds = WIRE_NEWS_ALL, .claims_max = 2});
    uint64_t follow = introduce(stage);
    struct pool_view last = view_of(0);
    struct wire_message snapshot;

    (void)state;
    send_news(stage, follow, 5, 1, WIRE_NEWS_ALL);
    step(stage);
    show_first(stage, hear(stage, WIRE_LOOK).number, busy());
    hear(stage, WIRE_FOLLOW);
    assert_int_equal(step(stage), 0);
    snapshot = hear(stage, WIRE_LOOK);
    assert_true(snapshot.section == WIRE_SECTION_QUEUE && snapshot.after == UINT32_MAX);
    assert_int_equal(machine_report_add_problem(&last.snapshot.problems, "nvidia", "it hangs"), 0);
    show(stage, snapshot.number, last);
    assert_int_equal(step(stage), WIRE_NEWS_ALL);
    assert_int_equal(stage->follower.view.snapshot.claims.count, 2);
    assert_int_equal(stage->follower.view.snapshot.problems.count, 1);
    end(stage);
}

/* An ended lease, and `lost` forgotten ones. */
static void tell_ended(struct stage *stage, uint64_t follow)
{
    struct lease_info lease = {.id = 3, .name = (char *)"over", .replicas = 1};
    struct ended_lease ended = {.lease = &lease, .end = LEASE_END_DIED, .time = 9};
    struct duration_histogram waited = {.counts = {[2] = 4}, .sum = 11};
    struct pool_tally tally = {.granted = 4, .waited = &waited};

    say(stage, &(struct wire_message){
                   .type = WIRE_NEWS,
                   .number = follow,
                   .epoch = 5,
                   .after = 1,
                   .kinds = WIRE_NEWS_LEASE,
                   .ended = {.items = &ended, .count = 1},
                   .lost = 2,
                   .tally = &tally,
               });
}

static void what_has_ended_is_kept_until_it_is_forgotten(void **state)
{
    struct stage *stage =
        begin_stage((struct follower_settings){.kinds = WIRE_NEWS_LEASE, .keeps_ended = true});

    (void)state;
    tell_ended(stage, introduce(stage));
    step(stage);
    assert_int_equal(stage->follower.ended.count, 1);
    assert_string_equal(stage->follower.ended.items[0].lease->name, "over");
    assert_int_equal(stage->follower.ended.items[0].end, LEASE_END_DIED);
    assert_int_equal(stage->follower.lost, 2);
    assert_int_equal(stage->follower.tally.granted, 4);
    assert_int_equal(stage->follower.tally.waited->counts[2], 4);
    follower_forget_ended(&stage->follower);
    assert_int_equal(stage->follower.ended.count + stage->follower.lost, 0);
    end(stage);
}

static void ended_leases_are_dropped_unless_wanted(void **state)
{
    struct stage *stage = begin_stage((struct follower_settings){.kinds = WIRE_NEWS_LEASE});

    (void)state;
    tell_ended(stage, introduce(stage));
    step(stage);
    assert_int_equal(stage->follower.ended.count + stage->follower.lost, 0);
    end(stage);
}

static void only_some_sections(void **state)
{
    struct stage *stage = begin_stage((struct follower_settings){
        .kinds = WIRE_NEWS_LEASE, .sections = 1U << WIRE_SECTION_LEASES});
    uint64_t follow = introduce(stage);

    (void)state;
    send_news(stage, follow, 5, 1, WIRE_NEWS_LEASE);
    step(stage);
    assert_int_equal(hear(stage, WIRE_LOOK).sections, 1U << WIRE_SECTION_LEASES);
    end(stage);
}

static void other_kinds_from_now_on(void **state)
{
    struct stage *stage = begin_stage((struct follower_settings){.kinds = WIRE_NEWS_LEASE});
    struct wire_message follow;

    (void)state;
    settle(stage);
    follower_set_interests(&stage->follower, WIRE_NEWS_LEASE | WIRE_NEWS_LOAD, DURATION_SECOND);
    assert_int_equal(hear(stage, WIRE_LOOK).sections, 1U << WIRE_SECTION_DEVICES);
    follow = hear(stage, WIRE_FOLLOW);
    assert_int_equal(follow.kinds, WIRE_NEWS_LEASE | WIRE_NEWS_LOAD);
    assert_int_equal(follow.duration, DURATION_SECOND);
    follower_set_interests(&stage->follower, WIRE_NEWS_LEASE | WIRE_NEWS_LOAD, DURATION_SECOND);
    assert_true(hears_nothing(stage));
    end(stage);
}

static void a_connection_that_was_given_is_not_dialled_again(void **state)
{
    struct stage *stage = begin_stage((struct follower_settings){.kinds = WIRE_NEWS_ALL});
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    settle(stage);
    close(stage->daemon);
    stage->daemon = -1;
    assert_fails(follower_step(&stage->follower, &error), BERTH_ERROR_IO, &error,
                 "berthd: the daemon is gone");
    assert_int_equal(follower_get_state(&stage->follower), FOLLOWER_GONE);
    assert_int_equal(follower_descriptor(&stage->follower), -1);
    assert_int_equal(stage->follower.view.snapshot.slots.count, 2);
    end(stage);
}

static void an_older_daemon_says_no(void **state)
{
    struct stage *stage = begin_stage((struct follower_settings){.kinds = WIRE_NEWS_ALL});
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    say(stage, &(struct wire_message){
                   .type = WIRE_REFUSED,
                   .number = introduce(stage),
                   .error = -BERTH_ERROR_INVALID,
                   .text = (char *)"what is that?",
               });
    assert_fails(follower_step(&stage->follower, &error), BERTH_ERROR_INVALID, &error,
                 "cannot follow the pool: what is that?");
    end(stage);
}

static void pages_that_come_again_and_answers_that_are_none(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct stage *stage = begin_stage((struct follower_settings){.kinds = WIRE_NEWS_ALL});
        uint64_t follow = introduce(stage);
        uint64_t snapshot;

        send_news(stage, follow, 5, 1, WIRE_NEWS_ALL);
        step(stage);
        snapshot = hear(stage, WIRE_LOOK).number;
        if (i == 0)
            say(stage, &(struct wire_message){
                           .type = WIRE_PAGE, .number = snapshot, .section = WIRE_SECTION_DEVICES});
        else
            say(stage, &(struct wire_message){.type = WIRE_DONE, .number = snapshot});
        assert_fails(follower_step(&stage->follower, &error), BERTH_ERROR_SYNTAX, &error,
                     i == 0 ? "cannot read the pool: its pages are out of order"
                            : "cannot follow the pool: unexpected message 'done'");
        end(stage);
    }
}

/* A follower of a long queue takes fewer snapshots. */
static void looking_is_a_small_part_of_the_time(void **state)
{
    static const struct {
        int64_t snapshot_duration;
        int64_t pace;
    } rows[] = {
        {0, DURATION_SECOND / 5},
        {DURATION_SECOND / 100, DURATION_SECOND / 5},
        {DURATION_SECOND / 10, DURATION_SECOND},
        {DURATION_SECOND, 2 * DURATION_SECOND},
        {INT64_MAX, 2 * DURATION_SECOND},
    };
    struct stage *stage = begin_stage(
        (struct follower_settings){.kinds = WIRE_NEWS_ALL, .interval = DURATION_SECOND / 5});
    uint64_t follow = settle(stage);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wire_message asked;

        stage->follower.snapshot_duration = rows[i].snapshot_duration;
        send_news(stage, follow, 5, 2 + i, WIRE_NEWS_ALL);
        assert_int_equal(step(stage), 0);
        show(stage, hear(stage, WIRE_LOOK).number, busy());
        asked = hear(stage, WIRE_FOLLOW);
        assert_int_equal(asked.duration, rows[i].pace);
        follow = asked.number;
        stage->follower.snapshot_started_at -= DURATION_MINUTE;
        assert_int_equal(step(stage), WIRE_NEWS_ALL);
        assert_true(stage->follower.snapshot_duration >= DURATION_MINUTE);
    }
    /* Except a follower that must not miss ended leases. */
    stage->follower.settings.keeps_ended = true;
    send_news(stage, follow, 5, 20, WIRE_NEWS_LOAD);
    assert_int_equal(step(stage), 0);
    hear(stage, WIRE_LOOK);
    assert_int_equal(hear(stage, WIRE_FOLLOW).duration, DURATION_SECOND / 5);
    end(stage);
}

/* The snapshot is ten seconds old, and the daemon's last message seven seconds. */
static void the_time_goes_on_as_long_as_the_daemon_answers(void **state)
{
    struct stage *stage = begin_stage((struct follower_settings){.kinds = WIRE_NEWS_ALL});
    struct follower *follower = &stage->follower;
    int64_t passed;

    (void)state;
    settle(stage);
    follower->view.snapshot.time = 1000 * DURATION_SECOND;
    follower->seen_at = clock_now() - 10 * DURATION_SECOND;
    follower->last_heard_at = follower->seen_at + 3 * DURATION_SECOND;
    passed = follower_time(follower) - 1000 * DURATION_SECOND;
    assert_true(passed >= 10 * DURATION_SECOND && passed < DURATION_HOUR);
    follower->requested_at = clock_now() - FOLLOWER_TIMEOUT;
    assert_int_equal(follower_time(follower), 1003 * DURATION_SECOND);
    end(stage);
}

static void answers_to_nothing_are_passed_over(void **state)
{
    struct stage *stage = begin_stage((struct follower_settings){.kinds = WIRE_NEWS_ALL});

    (void)state;
    settle(stage);
    send_news(stage, 4711, 9, 9, WIRE_NEWS_ALL);
    say(stage, &(struct wire_message){.type = WIRE_DONE, .number = 4712});
    assert_int_equal(step(stage), 0);
    assert_int_equal(stage->follower.epoch, 5);
    end(stage);
}

static void it_says_when_to_call_it(void **state)
{
    struct stage *stage = begin_stage((struct follower_settings){.kinds = WIRE_NEWS_ALL});

    (void)state;
    settle(stage);
    assert_true(follower_next_timeout(&stage->follower) > 0);
    assert_true(follower_next_timeout(&stage->follower) > 3 * DURATION_SECOND);
    stage->follower.never_reconnects = false;
    assert_true(follower_next_timeout(&stage->follower) <= 3 * DURATION_SECOND);
    /* The daemon was silent for some time, so the follower checks the connection. */
    stage->follower.last_heard_at -= 4 * DURATION_SECOND;
    assert_int_equal(follower_next_timeout(&stage->follower), 0);
    assert_int_equal(step(stage), 0);
    hear(stage, WIRE_HELLO);
    assert_int_equal(follower_get_state(&stage->follower), FOLLOWER_LIVE);
    stage->follower.requested_at -= FOLLOWER_TIMEOUT;
    assert_int_equal(follower_get_state(&stage->follower), FOLLOWER_SILENT);
    assert_int_equal(step(stage), 0);
    assert_true(hears_nothing(stage));
    end(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_looked_at_first),
        cmocka_unit_test(only_what_changed_is_looked_at),
        cmocka_unit_test(it_asks_on_from_where_it_is),
        cmocka_unit_test(what_changes_while_it_looks_is_looked_at_again),
        cmocka_unit_test(a_refresh_need_not_wait_for_news),
        cmocka_unit_test(a_long_queue_is_cut),
        cmocka_unit_test(what_has_ended_is_kept_until_it_is_forgotten),
        cmocka_unit_test(ended_leases_are_dropped_unless_wanted),
        cmocka_unit_test(only_some_sections),
        cmocka_unit_test(other_kinds_from_now_on),
        cmocka_unit_test(a_connection_that_was_given_is_not_dialled_again),
        cmocka_unit_test(an_older_daemon_says_no),
        cmocka_unit_test(pages_that_come_again_and_answers_that_are_none),
        cmocka_unit_test(looking_is_a_small_part_of_the_time),
        cmocka_unit_test(the_time_goes_on_as_long_as_the_daemon_answers),
        cmocka_unit_test(answers_to_nothing_are_passed_over),
        cmocka_unit_test(it_says_when_to_call_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
