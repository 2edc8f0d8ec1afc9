/* SPDX-License-Identifier: Apache-2.0
 *
 * The result of probing the hardware: the machine, and the problems that occurred. Zeroed memory is
 * the report of a machine that was not probed.
 */
#ifndef MODEL_MACHINE_MACHINE_REPORT_H
#define MODEL_MACHINE_MACHINE_REPORT_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"
#include "model/machine/machine.h"

/* A part of the hardware that could not be read. The affected devices show it too. */
struct problem {
    char *backend; /* nvidia, amd, intel, apple, dri, processes or probe; of the daemon itself:
                      journal, PROBLEM_OF_HISTORY or PROBLEM_OF_RIGHTS */
    char *message; /* one line of text */
};

#define PROBLEM_OF_HISTORY "history"
#define PROBLEM_OF_RIGHTS  "rights"

struct problem_list {
    VECTOR_OF(struct problem);
};

/* The maximum length of a list; further problems are dropped. */
#define PROBLEMS_MAX 1024

/* Adds a problem unless the list already has it. Returns 0 or BERTH_ERROR_MEMORY. */
int machine_report_add_problem(struct problem_list *list, const char *backend, const char *format,
                               ...) __attribute__((format(printf, 3, 4)));

/* Returns whether the list has this problem. */
bool machine_report_has_problem(const struct problem_list *list, const char *backend,
                                const char *message);

/* Removes all problems of this backend. */
void machine_report_drop_problems(struct problem_list *list, const char *backend);

void machine_report_finish_problems(struct problem_list *list);

struct machine_report {
    struct machine machine; /* by PCI address; one host */
    uint32_t listed;        /* a bit for each vendor whose devices were all listed: a device that is
                               not here is gone. Devices of other vendors may be missing */
    struct problem_list problems;
};

void machine_report_finish(struct machine_report *report);

#endif
