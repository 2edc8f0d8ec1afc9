/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of what placement_find answers, in words.
 */
#ifndef TESTS_ANSWERS_H
#define TESTS_ANSWERS_H

#include "support/unit.h"

#include "support/questions.h"

static inline void set_count(struct question *question, uint32_t min, uint32_t max)
{
    question->request.gpus = (struct device_count){.min = min, .max = max};
}

static inline void avoid(struct question *question, const char *ids)
{
    assert_int_equal(device_id_list_parse(&question->request.avoided, ids, NULL), 0);
}

/* The answer in one line: "now: nvidia0,nvidia1 | nvidia2", "not now", "never". */
static inline void answer_write(const struct question *question, const struct placement *placement,
                                struct text *out)
{
    const struct device *devices = question->machine.devices.items;
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

/* Asks and compares with the answer in one line and, unless that is NULL, the reason. */
static inline void answer_compare(const struct question *question, const char *wanted,
                                  const char *why, const char *file, int line)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct placement placement;
    struct text found = {0};

    assert_int_equal(request_validate(&question->request, NULL), 0);
    assert_int_equal(question_ask(question, &placement, &error), 0);
    assert_string_equal(error.message, "");
    answer_write(question, &placement, &found);
    _assert_string_equal(text_string(&found), wanted, file, line);
    if (why != NULL)
        _assert_string_equal(text_string(&placement.why), why, file, line);
    text_finish(&found);
    placement_finish(&placement);
}

/* Macros, so that the report names the caller's line. */
#define check_answer(question, wanted) \
    answer_compare((question), (wanted), NULL, __FILE__, __LINE__)
#define check_why(question, wanted, why) \
    answer_compare((question), (wanted), (why), __FILE__, __LINE__)

#endif
