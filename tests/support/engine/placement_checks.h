/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the result of placement_find with a text.
 */
#ifndef TESTS_PLACEMENT_CHECKS_H
#define TESTS_PLACEMENT_CHECKS_H

#include "support/unit.h"

#include "support/engine/placement_cases.h"

static inline void set_count(struct placement_case *asked, uint32_t min, uint32_t max)
{
    asked->request.gpus = (struct device_count){.min = min, .max = max};
}

static inline void avoid(struct placement_case *asked, const char *ids)
{
    assert_int_equal(device_id_list_parse(&asked->request.avoided, ids, NULL), 0);
}

/* Writes the answer as one line: "now: nvidia0,nvidia1 | nvidia2", "not now", "never". */
static inline void placement_case_write(const struct placement_case *asked,
                                        const struct placement *placement, struct text *out)
{
    const struct device *devices = asked->machine.devices.items;
    size_t next = 0;

    if (placement->now)
        text_append(out, "now");
    else
        text_append(out, placement->satisfiable ? "not now" : "never");
    assert_int_equal(placement->sizes.count, placement->replicas);
    for (size_t replica = 0; replica < placement->replicas; replica++) {
        const char *lead = replica == 0 ? ": " : " | ";

        for (size_t rest = placement->sizes.items[replica]; rest > 0; rest--) {
            assert_true(next < placement->slots.count);
            text_append_format(out, "%s%s", lead,
                               device_id_format(devices[placement->slots.items[next++]].id).text);
            lead = ",";
        }
    }
    assert_int_equal(next, placement->slots.count);
}

/* Calls placement_find(), and compares the answer with `wanted` and, unless `why` is NULL, the
 * reason with `why`. */
static inline void placement_case_compare(const struct placement_case *asked, const char *wanted,
                                          const char *why, const char *file, int line)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct placement placement;
    struct text found = {0};

    assert_int_equal(request_validate(&asked->request, NULL), 0);
    assert_int_equal(placement_case_ask(asked, &placement, &error), 0);
    assert_string_equal(error.message, "");
    placement_case_write(asked, &placement, &found);
    _assert_string_equal(text_string(&found), wanted, file, line);
    if (why != NULL)
        _assert_string_equal(text_string(&placement.why), why, file, line);
    text_finish(&found);
    placement_finish(&placement);
}

/* Macros, so that the report names the caller's line. */
#define check_answer(asked, wanted) \
    placement_case_compare((asked), (wanted), NULL, __FILE__, __LINE__)
#define check_why(asked, wanted, why) \
    placement_case_compare((asked), (wanted), (why), __FILE__, __LINE__)

#endif
