/* SPDX-License-Identifier: Apache-2.0
 *
 * What a look at the hardware came to: the machine, and what went wrong on the way. Zeroed memory
 * is the report of a machine without devices that nobody has looked for.
 */
#ifndef MODEL_MACHINE_REPORT_H
#define MODEL_MACHINE_REPORT_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"
#include "model/machine.h"

/* Something that could not be read, for people; devices that it concerns say so themselves too. */
struct problem {
    char *backend; /* whose it is: nvidia, amd, intel, apple, dri, processes, probe */
    char *message; /* one line */
};

struct problem_list {
    VECTOR_OF(struct problem);
};

/* The most that are kept. */
#define PROBLEMS_MAX 1024

/* Adds a problem unless the same is there. Returns 0 or BERTH_ERROR_MEMORY. */
int machine_report_add_problem(struct problem_list *list, const char *backend, const char *format,
                               ...) __attribute__((format(printf, 3, 4)));

/* Whether the same is there. */
bool machine_report_has_problem(const struct problem_list *list, const char *backend,
                                const char *message);

void machine_report_finish_problems(struct problem_list *list);

struct machine_report {
    struct machine machine; /* by PCI address; one host */
    uint32_t listed;        /* a bit for each vendor whose devices are all here: one that is not is
                               gone. Of the others devices may be missing */
    struct problem_list problems;
};

void machine_report_finish(struct machine_report *report);

#endif
