/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a made-up machine with one vendor's table.
 */
#ifndef TESTS_VENDOR_LOOKS_H
#define TESTS_VENDOR_LOOKS_H

#include "support/hardware/made_up_machine.h"

#include "hardware/vendors.h"
#include "support/failing_allocator.h"

/* Frees the vendor's own data. */
static inline void vendor_close(const struct vendor_table *table, struct vendor_context *context)
{
    if (table->close != NULL && context->own != NULL)
        table->close(context);
}

/* Lists the vendor's devices. The caller finishes the findings. */
static inline struct findings vendor_list(const struct vendor_table *table)
{
    struct vendor_context context = {.root = &machine};
    struct berth_error error = BERTH_ERROR_INIT;
    struct findings findings = {0};

    assert_int_equal(table->list(&context, NULL, &findings, &error), 0);
    assert_string_equal(error.message, "");
    for (size_t i = 0; i < findings.found.count; i++) {
        assert_int_equal(findings.found.items[i].device->id.vendor, table->vendor);
        assert_non_null(findings.found.items[i].key);
    }
    vendor_close(table, &context);
    return findings;
}

/* Lists the devices, which must be `count`, and reads one of them. The caller finishes the
 * findings.
 */
static inline struct findings vendor_read(const struct vendor_table *table, size_t count,
                                          size_t which)
{
    struct vendor_context context = {.root = &machine};
    struct berth_error error = BERTH_ERROR_INIT;
    struct findings listed = vendor_list(table);
    struct findings findings = {0};

    assert_int_equal(listed.found.count, count);
    assert_int_equal(table->read(&context, &listed.found.items[which], &findings, &error), 0);
    assert_string_equal(error.message, "");
    assert_int_equal(findings.found.count, 1);
    assert_true(
        device_id_equals(findings.found.items[0].device->id, listed.found.items[which].device->id));
    assert_string_equal(findings.found.items[0].key, listed.found.items[which].key);
    assert_string_equal(findings.found.items[0].path, listed.found.items[which].path);
    findings_finish(&listed);
    vendor_close(table, &context);
    return findings;
}

/* Lists the devices and reads the first one, with each allocation refused in turn. The call must
 * fail or leave facts unknown. LeakSanitizer finds leaks. */
static inline void vendor_look_with_failures(const struct vendor_table *table)
{
    struct vendor_context context = {.root = &machine};
    bool refused = true;

    for (unsigned long n = 1; refused; n++) {
        struct findings listed = {0};
        struct findings findings = {0};
        int code;

        failing_allocator_start(n);
        code = table->list(&context, NULL, &listed, NULL);
        if (code == 0 && listed.found.count > 0)
            code = table->read(&context, &listed.found.items[0], &findings, NULL);
        refused = failing_allocator_stop();
        assert_true(code == 0 || (refused && code == BERTH_ERROR_MEMORY));
        assert_true(code < 0 || findings.found.count == 1);
        findings_finish(&listed);
        findings_finish(&findings);
        vendor_close(table, &context);
    }
}

/* Checks that a figure was sampled with this value, and that it has a time. */
#define assert_sampled(figure, wanted)            \
    do {                                          \
        assert_true((figure).known);              \
        assert_int_equal((figure).value, wanted); \
        assert_true((figure).sampled_at > 0);     \
    } while (0)

#endif
