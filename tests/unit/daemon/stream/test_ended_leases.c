/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/stream/ended_leases.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/quantity.h"
#include "daemon/stream/followers.h"
#include "daemon/stream/pool_counts.h"
#include "wire/wire.h"

#define NOW (1000 * DURATION_SECOND)

struct stream {
    struct loop loop;
    struct followers *followers;
    struct ended_leases *ended;
};

static int begin(void **state)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    assert_non_null(stream);
    assert_int_equal(loop_init(&stream->loop, NULL), 0);
    stream->loop.now = NOW;
    assert_int_equal(followers_create(&stream->followers,
                                      &(struct followers_settings){.loop = &stream->loop}, NULL),
                     0);
    assert_int_equal(ended_leases_create(&stream->ended, &stream->loop, stream->followers, NULL),
                     0);
    *state = stream;
    return 0;
}

static int end(void **state)
{
    struct stream *stream = *state;

    ended_leases_destroy(stream->ended);
    followers_destroy(stream->followers);
    loop_finish(&stream->loop);
    free(stream);
    return 0;
}

static bool note_lease(struct stream *stream, uint64_t lease, const char *name)
{
    struct lease_info info = {.id = lease, .name = (char *)name, .granted = 5};

    return ended_leases_note(stream->ended, lease, &info);
}

static const struct lease_info *end_lease(struct stream *stream, uint64_t lease)
{
    return ended_leases_add(stream->ended, lease,
                            &(struct lease_ended){.end = LEASE_END_RELEASED, .time = 9});
}

/* Returns how many leases a follower that knows `count` is told, and the message's id and lost. */
static size_t count_after(struct stream *stream, uint64_t count, uint64_t *ret_id,
                          uint64_t *ret_lost)
{
    struct wire_message message = {0};
    size_t told;

    ended_leases_fill(stream->ended, count, &message);
    told = message.ended.count;
    *ret_id = message.id;
    *ret_lost = message.lost;
    vector_finish(&message.ended);
    return told;
}

static void newest_facts_are_kept(void **state)
{
    struct stream *stream = *state;
    const struct lease_info *info;

    assert_true(note_lease(stream, 7, "first"));
    assert_false(note_lease(stream, 7, "second"));
    info = end_lease(stream, 7);
    assert_non_null(info);
    assert_string_equal(info->name, "second");
    assert_int_equal(info->end, LEASE_END_RELEASED);
    assert_int_equal(ended_leases_count(stream->ended), 1);
}

static void unknown_lease_is_counted_and_lost(void **state)
{
    struct stream *stream = *state;
    uint64_t id, lost;

    assert_null(end_lease(stream, 3));
    assert_int_equal(count_after(stream, 0, &id, &lost), 0);
    assert_int_equal(id, 1);
    assert_int_equal(lost, 1);
}

static void follower_gets_what_it_does_not_know(void **state)
{
    struct stream *stream = *state;
    uint64_t id, lost;

    for (uint64_t lease = 1; lease <= 5; lease++) {
        note_lease(stream, lease, "job");
        end_lease(stream, lease);
    }
    assert_int_equal(count_after(stream, 3, &id, &lost), 2);
    assert_int_equal(id, 5);
    assert_int_equal(lost, 0);
    assert_int_equal(count_after(stream, 5, &id, &lost), 0);
}

static void written_leases_go(void **state)
{
    struct stream *stream = *state;
    uint64_t id, lost;

    for (uint64_t lease = 1; lease <= 5; lease++) {
        note_lease(stream, lease, "job");
        end_lease(stream, lease);
    }
    ended_leases_note_written(stream->ended, 4);
    assert_int_equal(count_after(stream, 0, &id, &lost), 1);
    assert_int_equal(lost, 4);
    ended_leases_set_written(stream->ended, false);
    assert_int_equal(count_after(stream, 0, &id, &lost), 0);
    assert_int_equal(lost, 5);
}

static void number_is_bounded(void **state)
{
    struct stream *stream = *state;
    char name[200];
    struct wire_message message = {0};

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    for (uint64_t lease = 1; lease <= 2 * ENDED_LEASES_MAX; lease++) {
        note_lease(stream, lease, name);
        end_lease(stream, lease);
    }
    ended_leases_fill(stream->ended, 0, &message);
    assert_true(message.lost >= ENDED_LEASES_MAX - 1);
    assert_true(message.more);
    vector_finish(&message.ended);
}

static void flood_drops_its_own_leases(void **state)
{
    enum { QUIET = 100, QUIET_UID = 1000, FLOOD_UID = 1001 };
    struct stream *stream = *state;
    struct wire_message message = {0};

    for (uint64_t lease = 1; lease <= 2 * ENDED_LEASES_MAX; lease++) {
        struct lease_info info = {.id = lease, .uid = lease <= QUIET ? QUIET_UID : FLOOD_UID};

        ended_leases_note(stream->ended, lease, &info);
        end_lease(stream, lease);
    }
    ended_leases_fill(stream->ended, 0, &message);
    for (size_t i = 0; i < QUIET; i++)
        assert_int_equal(message.ended.items[i].lease->uid, QUIET_UID);
    /* The flood's newest leases are kept. */
    assert_int_equal(message.ended.items[QUIET].lease->uid, FLOOD_UID);
    assert_true(message.ended.items[QUIET].lease->id >= ENDED_LEASES_MAX);
    vector_finish(&message.ended);
}

static void counts_add_up(void **state)
{
    struct pool_counts counts;

    (void)state;
    pool_counts_init(&counts);
    pool_counts_add_granted(&counts, -5);
    pool_counts_add_granted(&counts, 3 * DURATION_SECOND);
    pool_counts_add_held(&counts, INT64_MAX);
    pool_counts_add_refused(&counts, BERTH_ERROR_BUSY);
    pool_counts_add_refused(&counts, BERTH_ERROR_NO_DEVICE);
    pool_counts_add_refused(&counts, BERTH_ERROR_PERMISSION);
    pool_counts_add_gone(&counts, LEASE_END_TIMED_OUT);
    pool_counts_add_gone(&counts, LEASE_END_CANCELLED);
    assert_int_equal(counts.tally.granted, 2);
    assert_int_equal(counts.tally.busy, 1);
    assert_int_equal(counts.tally.impossible, 1);
    assert_int_equal(counts.tally.refused, 1);
    assert_int_equal(counts.tally.timed_out, 1);
    assert_int_equal(counts.tally.cancelled, 1);
    assert_int_equal(counts.waited.counts[0], 1);
    assert_int_equal(counts.waited.sum, 3 * DURATION_SECOND);
    assert_int_equal(counts.held.counts[HISTOGRAM_BUCKETS - 1], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(newest_facts_are_kept, begin, end),
        cmocka_unit_test_setup_teardown(unknown_lease_is_counted_and_lost, begin, end),
        cmocka_unit_test_setup_teardown(follower_gets_what_it_does_not_know, begin, end),
        cmocka_unit_test_setup_teardown(written_leases_go, begin, end),
        cmocka_unit_test_setup_teardown(number_is_bounded, begin, end),
        cmocka_unit_test_setup_teardown(flood_drops_its_own_leases, begin, end),
        cmocka_unit_test(counts_add_up),
    };

    return cmocka_run_group_tests_name("ended_leases", tests, NULL, NULL);
}
