/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/stream/followers.h"

#include <stdlib.h>

#include "base/text/quantity.h"
#include "wire/wire.h"

#define NOW (1000 * DURATION_SECOND)

/* Followers whose answers are counted, and a clock that the test sets. */
struct stream {
    struct loop loop;
    struct followers *followers;
    int answers;
    struct stream_follower *answered;
    uint32_t kinds;
};

static void note_answer(void *context, struct stream_follower *follower, uint32_t kinds)
{
    struct stream *stream = context;

    stream->answers++;
    stream->answered = follower;
    stream->kinds = kinds;
    followers_remove(follower);
}

static int begin(void **state)
{
    struct stream *stream = calloc(1, sizeof(*stream));
    const struct followers_settings settings = {
        .loop = &stream->loop, .context = stream, .notify = note_answer};

    assert_non_null(stream);
    assert_int_equal(loop_init(&stream->loop, NULL), 0);
    stream->loop.now = NOW;
    assert_int_equal(followers_create(&stream->followers, &settings, NULL), 0);
    *state = stream;
    return 0;
}

static int end(void **state)
{
    struct stream *stream = *state;

    followers_destroy(stream->followers);
    loop_finish(&stream->loop);
    free(stream);
    return 0;
}

/* Makes a follower that knows all that happened so far. */
static struct stream_follower up_to_date(const struct stream *stream, uint32_t kinds)
{
    return (struct stream_follower){
        .knows_epoch = true, .mark = followers_mark(stream->followers), .kinds = kinds};
}

static void stranger_is_answered_at_once(void **state)
{
    struct stream *stream = *state;
    struct stream_follower follower = {.kinds = WIRE_NEWS_QUEUE};

    followers_add(stream->followers, &follower);
    followers_notify(stream->followers);
    assert_int_equal(stream->answers, 1);
    assert_ptr_equal(stream->answered, &follower);
    assert_int_equal(stream->kinds, WIRE_NEWS_QUEUE);
}

static void only_changes_of_its_kinds_count(void **state)
{
    struct stream *stream = *state;
    struct stream_follower follower = up_to_date(stream, WIRE_NEWS_QUEUE);

    followers_add(stream->followers, &follower);
    followers_notify(stream->followers);
    followers_note(stream->followers, WIRE_NEWS_LOAD);
    followers_notify(stream->followers);
    assert_int_equal(stream->answers, 0);
    followers_note_event(stream->followers, &(struct engine_event){.type = EVENT_QUEUED});
    followers_notify(stream->followers);
    assert_int_equal(stream->answers, 1);
    assert_int_equal(stream->kinds, WIRE_NEWS_QUEUE);
}

static void several_changes_are_one_answer(void **state)
{
    struct stream *stream = *state;
    struct stream_follower follower = up_to_date(stream, WIRE_NEWS_QUEUE | WIRE_NEWS_LEASE);

    followers_add(stream->followers, &follower);
    for (int i = 0; i < 100; i++)
        followers_note_event(stream->followers, &(struct engine_event){.type = EVENT_GRANTED});
    followers_notify(stream->followers);
    followers_notify(stream->followers);
    assert_int_equal(stream->answers, 1);
    assert_int_equal(stream->kinds, WIRE_NEWS_QUEUE | WIRE_NEWS_LEASE);
}

static void ended_leases_are_news_of_leases(void **state)
{
    struct stream *stream = *state;
    struct stream_follower follower = up_to_date(stream, WIRE_NEWS_LEASE);

    follower.ended = 4;
    followers_add(stream->followers, &follower);
    followers_note_ended(stream->followers, 4);
    followers_notify(stream->followers);
    assert_int_equal(stream->answers, 0);
    followers_note_ended(stream->followers, 5);
    followers_notify(stream->followers);
    assert_int_equal(stream->kinds, WIRE_NEWS_LEASE);
}

static void interval_is_kept(void **state)
{
    struct stream *stream = *state;
    struct stream_follower follower = up_to_date(stream, WIRE_NEWS_LOAD);

    follower.interval = DURATION_SECOND;
    follower.notified_at = NOW - DURATION_SECOND / 2;
    followers_add(stream->followers, &follower);
    followers_note(stream->followers, WIRE_NEWS_LOAD);
    followers_notify(stream->followers);
    assert_int_equal(stream->answers, 0);
    assert_int_equal(list_is_empty(&stream->loop.timers), false);
    stream->loop.now = NOW + DURATION_SECOND / 2;
    followers_notify(stream->followers);
    assert_int_equal(stream->answers, 1);
}

static void readers_are_remembered_for_a_moment(void **state)
{
    struct stream *stream = *state;
    struct stream_follower follower = up_to_date(stream, WIRE_NEWS_LEASE);
    struct stream_follower recorder = up_to_date(stream, WIRE_NEWS_LEASE);

    recorder.is_recorder = true;
    followers_add(stream->followers, &recorder);
    assert_false(followers_read_leases(stream->followers));
    followers_add(stream->followers, &follower);
    assert_true(followers_read_leases(stream->followers));
    followers_remove(&follower);
    stream->loop.now += DURATION_SECOND;
    assert_true(followers_read_leases(stream->followers));
    stream->loop.now += 10 * DURATION_SECOND;
    assert_false(followers_read_leases(stream->followers));
    followers_remove(&recorder);
}

static void shortest_interval_counts(void **state)
{
    struct stream *stream = *state;
    struct stream_follower slow = up_to_date(stream, WIRE_NEWS_LOAD);
    struct stream_follower fast = up_to_date(stream, WIRE_NEWS_LOAD);
    struct stream_follower other = up_to_date(stream, WIRE_NEWS_QUEUE);

    assert_int_equal(followers_load_interval(stream->followers), 0);
    slow.interval = 9;
    fast.interval = 2;
    other.interval = 1;
    followers_add(stream->followers, &slow);
    followers_add(stream->followers, &fast);
    followers_add(stream->followers, &other);
    assert_int_equal(followers_load_interval(stream->followers), 2);
    followers_remove(&slow);
    followers_remove(&fast);
    followers_remove(&other);
}

static void epochs_differ(void **state)
{
    struct stream *stream = *state;
    struct followers *others;

    assert_int_equal(
        followers_create(&others, &(struct followers_settings){.loop = &stream->loop}, NULL), 0);
    assert_true(followers_epoch(others) != followers_epoch(stream->followers));
    followers_destroy(others);
    followers_note(NULL, WIRE_NEWS_ALL); /* nothing to note in */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stranger_is_answered_at_once, begin, end),
        cmocka_unit_test_setup_teardown(only_changes_of_its_kinds_count, begin, end),
        cmocka_unit_test_setup_teardown(several_changes_are_one_answer, begin, end),
        cmocka_unit_test_setup_teardown(ended_leases_are_news_of_leases, begin, end),
        cmocka_unit_test_setup_teardown(interval_is_kept, begin, end),
        cmocka_unit_test_setup_teardown(readers_are_remembered_for_a_moment, begin, end),
        cmocka_unit_test_setup_teardown(shortest_interval_counts, begin, end),
        cmocka_unit_test_setup_teardown(epochs_differ, begin, end),
    };

    return cmocka_run_group_tests_name("followers", tests, NULL, NULL);
}
