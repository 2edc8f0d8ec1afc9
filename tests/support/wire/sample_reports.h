/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports of a probe in which every member is set, and a comparison of two reports.
 */
#ifndef TESTS_SAMPLE_REPORTS_H
#define TESTS_SAMPLE_REPORTS_H

#include "support/unit.h"

#include "probe/probe_messages.h"
#include "support/wire/sample_messages.h"
#include "support/wire/wire_messages.h"

/* Returns an answer with every member set. The caller finishes its report. */
static inline struct probe_answer answer_fill(void)
{
    struct probe_answer answer = {.number = UINT64_MAX, .report = {.listed = 0x1f}};
    struct machine *machine = &answer.report.machine;
    struct link *link;

    device_fill(vector_append(&machine->devices), id_of("nvidia0"));
    ((struct device *)vector_append(&machine->devices))->id = id_of("amd3");
    link = vector_append(&machine->links);
    assert_non_null(link);
    *link = (struct link){.between = {0, 1}, .kind = LINK_SYS, .lanes = 12};
    assert_int_equal(machine_report_add_problem(&answer.report.problems, "nvidia", "it hangs"), 0);
    return answer;
}

static inline bool same_answers(const struct probe_answer *one, const struct probe_answer *other)
{
    const struct machine *here = &one->report.machine;
    const struct machine *there = &other->report.machine;
    const struct problem_list *problems = &one->report.problems;
    bool same = one->number == other->number && one->report.listed == other->report.listed &&
                here->devices.count == there->devices.count &&
                here->links.count == there->links.count &&
                problems->count == other->report.problems.count;

    for (size_t i = 0; same && i < here->devices.count; i++)
        same = same_device(&here->devices.items[i], &there->devices.items[i]);
    for (size_t i = 0; same && i < here->links.count; i++)
        same = memcmp(here->links.items[i].between, there->links.items[i].between,
                      sizeof(here->links.items[i].between)) == 0 &&
               here->links.items[i].kind == there->links.items[i].kind &&
               here->links.items[i].lanes == there->links.items[i].lanes;
    for (size_t i = 0; same && i < problems->count; i++)
        same = same_text(problems->items[i].backend, other->report.problems.items[i].backend) &&
               same_text(problems->items[i].message, other->report.problems.items[i].message);
    return same;
}

#endif
