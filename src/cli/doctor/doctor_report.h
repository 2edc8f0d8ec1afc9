/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines that the checks of berth doctor write.
 */
#ifndef CLI_DOCTOR_DOCTOR_REPORT_H
#define CLI_DOCTOR_DOCTOR_REPORT_H

#include <berth/error.h>
#include <stdbool.h>

#include "base/text/terminal.h"
#include "base/text/text.h"
#include "base/vector.h"

/* The states of a line. The second group is for self-tests. */
enum doctor_state {
    DOCTOR_OK,
    DOCTOR_WARNING, /* works, but probably not as the user wants */
    DOCTOR_PROBLEM, /* must be fixed */
    DOCTOR_UNKNOWN, /* cannot be checked */

    DOCTOR_PASSED,
    DOCTOR_FAILED,
    DOCTOR_NOT_POSSIBLE, /* not possible on this machine */
};

struct doctor_line {
    const char *check;
    enum doctor_state state;
    char *what;
    char *remedy; /* NULL: none */
};

/* Zeroed memory has no lines. If memory runs out, doctor_report_write() reports it. */
struct doctor_report {
    const char *check; /* the check that runs now; set by the caller */
    bool failed;
    VECTOR_OF(struct doctor_line);
};

/* Adds a line to the running check. */
void doctor_report_add(struct doctor_report *report, enum doctor_state state, const char *format,
                       ...) __attribute__((format(printf, 3, 4)));

/* Sets the remedy of the last line: a command or an instruction. */
void doctor_report_advise(struct doctor_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds the error's message to the running check, as a problem. If the message has a way out after
 * "; ", it becomes the remedy; otherwise `remedy` does. `what` begins the line; it may be "". */
void doctor_report_add_error(struct doctor_report *report, const char *what,
                             const struct berth_error *error, const char *remedy);

/* Returns whether a line is a problem, or a self-test that failed. */
bool doctor_report_has_problem(const struct doctor_report *report);

/* Returns whether the running check has added a problem. */
bool doctor_report_check_has_problem(const struct doctor_report *report);

/* Appends the lines: as text, or as a JSON document. A failed allocation is recorded in `out`. */
void doctor_report_write(const struct doctor_report *report, const struct terminal *terminal,
                         struct text *out);
void doctor_report_write_json(const struct doctor_report *report, struct text *out);

void doctor_report_finish(struct doctor_report *report);

#endif
