/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases that could not be written yet.
 */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "record/backlog.h"
#include "support/failing_allocator.h"

static struct ended_lease make_ended(uint64_t id, size_t command_length)
{
    struct ended_lease ended = {.lease = calloc(1, sizeof(*ended.lease)),
                                .end = LEASE_END_RELEASED};

    assert_non_null(ended.lease);
    ended.lease->id = id;
    ended.lease->name = strdup("name");
    ended.lease->command = calloc(1, command_length + 1);
    memset(ended.lease->command, 'x', command_length);
    assert_non_null(vector_append(&ended.lease->devices));
    return ended;
}

static void they_are_kept_in_order(void **state)
{
    struct backlog backlog = {0};

    (void)state;
    for (uint64_t id = 1; id <= 100; id++) {
        struct ended_lease ended = make_ended(id, 10);

        backlog_add(&backlog, &ended);
        assert_null(ended.lease);
    }
    assert_int_equal(backlog.count, 100);
    assert_int_equal(backlog.items[0].lease->id, 1);
    assert_int_equal(backlog.items[99].lease->id, 100);
    assert_int_equal(backlog.dropped, 0);
    backlog_clear(&backlog);
    assert_int_equal(backlog.count + backlog.bytes, 0);
}

enum { LONG = 4096, MANY = BACKLOG_BYTES_MAX / LONG + 100, FLOOD = 1000, QUIET = 1001 };

static void add_of(struct backlog *backlog, uint32_t uid, uint64_t id, size_t command_length)
{
    struct ended_lease ended = make_ended(id, command_length);

    ended.lease->uid = uid;
    backlog_add(backlog, &ended);
    assert_null(ended.lease);
}

static void the_oldest_leases_are_dropped(void **state)
{
    struct backlog backlog = {0};

    (void)state;
    for (uint64_t id = 1; id <= MANY; id++)
        add_of(&backlog, FLOOD, id, LONG);
    assert_true(backlog.bytes <= BACKLOG_BYTES_MAX);
    assert_true(backlog.bytes >= BACKLOG_BYTES_MAX / 4 * 3);
    assert_true(backlog.dropped > 0);
    assert_int_equal(backlog.count + backlog.dropped, MANY);
    assert_int_equal(backlog.items[0].lease->id, backlog.dropped + 1);
    assert_int_equal(backlog.items[backlog.count - 1].lease->id, MANY);
    backlog_clear(&backlog);
    assert_int_equal(backlog.dropped, 0);
}

/* A user with very many leases loses the own oldest ones; other users lose none. */
static void other_users_lose_nothing(void **state)
{
    struct backlog backlog = {.bytes_max = (size_t)1 << 20};
    size_t quiet = 0;
    uint64_t last = 0;

    (void)state;
    for (uint64_t id = 1; id <= 10000; id++)
        add_of(&backlog, id % 100 == 0 ? QUIET : FLOOD, id, LONG);
    assert_true(backlog.bytes <= (size_t)1 << 20);
    for (size_t i = 0; i < backlog.count; i++) {
        const struct lease_info *lease = backlog.items[i].lease;

        assert_true(lease->id > last);
        last = lease->id;
        quiet += lease->uid == QUIET;
    }
    assert_int_equal(quiet, 100);
    assert_int_equal(last, 10000);
    assert_int_equal(backlog.count + backlog.dropped, 10000);
    backlog_clear(&backlog);
}

static void lease_that_is_too_large_is_dropped(void **state)
{
    struct backlog backlog = {.bytes_max = LONG};

    (void)state;
    add_of(&backlog, QUIET, 1, 10);
    add_of(&backlog, FLOOD, 2, LONG);
    assert_int_equal(backlog.count, 1);
    assert_int_equal(backlog.dropped, 1);
    backlog_clear(&backlog);
}

static void without_memory_they_are_counted(void **state)
{
    struct ended_lease ended = make_ended(1, 10);
    struct backlog backlog = {0};

    (void)state;
    failing_allocator_start(1);
    backlog_add(&backlog, &ended);
    assert_true(failing_allocator_stop());
    assert_int_equal(backlog.count, 0);
    assert_int_equal(backlog.dropped, 1);
    assert_null(ended.lease);
    backlog_clear(&backlog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_kept_in_order),
        cmocka_unit_test(the_oldest_leases_are_dropped),
        cmocka_unit_test(other_users_lose_nothing),
        cmocka_unit_test(lease_that_is_too_large_is_dropped),
        cmocka_unit_test(without_memory_they_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
