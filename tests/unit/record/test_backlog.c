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

static void there_is_an_end_to_it(void **state)
{
    enum { LONG = 4096, MANY = BACKLOG_BYTES_MAX / LONG + 100 };
    struct backlog backlog = {0};

    (void)state;
    for (uint64_t id = 1; id <= MANY; id++) {
        struct ended_lease ended = make_ended(id, LONG);

        backlog_add(&backlog, &ended);
    }
    assert_true(backlog.bytes <= BACKLOG_BYTES_MAX);
    assert_true(backlog.dropped > 100);
    assert_int_equal(backlog.count + backlog.dropped, MANY);
    /* The oldest leases stay. */
    assert_int_equal(backlog.items[0].lease->id, 1);
    assert_int_equal(backlog.items[backlog.count - 1].lease->id, backlog.count);
    backlog_clear(&backlog);
    assert_int_equal(backlog.dropped, 0);
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
        cmocka_unit_test(there_is_an_end_to_it),
        cmocka_unit_test(without_memory_they_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
