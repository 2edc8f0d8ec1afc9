/* SPDX-License-Identifier: Apache-2.0
 *
 * A vendor's looks at a made-up machine.
 */
#ifndef TESTS_VENDOR_LOOKS_H
#define TESTS_VENDOR_LOOKS_H

#include "support/made_up_machine.h"

#include "hardware/vendors.h"
#include "support/failing_allocator.h"

/* Frees what the vendor kept. */
static inline void vendor_close(const struct vendor_table *table, struct vendor_context *context)
{
    if (table->close != NULL && context->own != NULL)
        table->close(context);
}

/* Lists the vendor's devices; the caller finishes the sight. */
static inline struct sight vendor_list(const struct vendor_table *table)
{
    struct vendor_context context = {.root = &machine};
    struct berth_error error = BERTH_ERROR_INIT;
    struct sight sight = {0};

    assert_int_equal(table->list(&context, &sight, &error), 0);
    assert_string_equal(error.message, "");
    for (size_t i = 0; i < sight.found.count; i++) {
        assert_int_equal(sight.found.items[i].device->id.vendor, table->vendor);
        assert_non_null(sight.found.items[i].key);
    }
    vendor_close(table, &context);
    return sight;
}

/* Lists them, wants `count`, and reads one of them; the caller finishes the sight. */
static inline struct sight vendor_read(const struct vendor_table *table, size_t count, size_t which)
{
    struct vendor_context context = {.root = &machine};
    struct berth_error error = BERTH_ERROR_INIT;
    struct sight listed = vendor_list(table);
    struct sight sight = {0};

    assert_int_equal(listed.found.count, count);
    assert_int_equal(table->read(&context, &listed.found.items[which], &sight, &error), 0);
    assert_string_equal(error.message, "");
    assert_int_equal(sight.found.count, 1);
    assert_true(
        device_id_equals(sight.found.items[0].device->id, listed.found.items[which].device->id));
    assert_string_equal(sight.found.items[0].key, listed.found.items[which].key);
    assert_string_equal(sight.found.items[0].path, listed.found.items[which].path);
    sight_finish(&listed);
    vendor_close(table, &context);
    return sight;
}

/* Lists and reads the first with each allocation refused in turn: that is said, or a single fact is
 * unknown. What leaks, LeakSanitizer finds. */
static inline void vendor_look_with_failures(const struct vendor_table *table)
{
    struct vendor_context context = {.root = &machine};
    bool refused = true;

    for (unsigned long n = 1; refused; n++) {
        struct sight listed = {0};
        struct sight sight = {0};
        int code;

        failing_allocator_start(n);
        code = table->list(&context, &listed, NULL);
        if (code == 0 && listed.found.count > 0)
            code = table->read(&context, &listed.found.items[0], &sight, NULL);
        refused = failing_allocator_stop();
        assert_true(code == 0 || (refused && code == BERTH_ERROR_MEMORY));
        assert_true(code < 0 || sight.found.count == 1);
        sight_finish(&listed);
        sight_finish(&sight);
        vendor_close(table, &context);
    }
}

/* That a figure was sampled with this value, and with the time. */
#define assert_sampled(figure, wanted)            \
    do {                                          \
        assert_true((figure).known);              \
        assert_int_equal((figure).value, wanted); \
        assert_true((figure).sampled_at > 0);     \
    } while (0)

#endif
