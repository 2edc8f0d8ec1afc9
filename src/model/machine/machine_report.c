/* SPDX-License-Identifier: Apache-2.0 */
#include "model/machine/machine_report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"

bool machine_report_has_problem(const struct problem_list *list, const char *backend,
                                const char *message)
{
    const struct problem *problem;

    vector_for_each (problem, list) {
        if (strcmp(problem->backend, backend) == 0 && strcmp(problem->message, message) == 0)
            return true;
    }
    return false;
}

static int append_problem(struct problem_list *list, const char *backend, const char *message)
{
    struct problem made = {.backend = strdup(backend), .message = strdup(message)};
    struct problem *place =
        made.backend == NULL || made.message == NULL ? NULL : vector_append(list);

    if (place == NULL) {
        free(made.backend);
        free(made.message);
        return BERTH_ERROR_MEMORY;
    }
    *place = made;
    return 0;
}

int machine_report_add_problem(struct problem_list *list, const char *backend, const char *format,
                               ...)
{
    struct text message = {0};
    va_list arguments;
    int code = BERTH_ERROR_MEMORY;

    va_start(arguments, format);
    text_append_list(&message, format, arguments);
    va_end(arguments);
    if (!text_failed(&message))
        code = list->count >= PROBLEMS_MAX ||
                       machine_report_has_problem(list, backend, text_string(&message))
                   ? 0
                   : append_problem(list, backend, text_string(&message));
    text_finish(&message);
    return code;
}

void machine_report_drop_problems(struct problem_list *list, const char *backend)
{
    struct problem *problem;
    size_t kept = 0;

    vector_for_each (problem, list) {
        if (strcmp(problem->backend, backend) != 0) {
            list->items[kept++] = *problem;
        } else {
            free(problem->backend);
            free(problem->message);
        }
    }
    list->count = kept;
}

void machine_report_finish_problems(struct problem_list *list)
{
    struct problem *problem;

    vector_for_each (problem, list) {
        free(problem->backend);
        free(problem->message);
    }
    vector_finish(list);
}

void machine_report_finish(struct machine_report *report)
{
    machine_finish(&report->machine);
    machine_report_finish_problems(&report->problems);
    *report = (struct machine_report){0};
}
