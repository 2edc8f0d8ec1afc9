/* SPDX-License-Identifier: Apache-2.0 */
#include "model/machine_report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"

bool problem_list_has(const struct problem_list *list, const char *backend, const char *message)
{
    const struct problem *problem;

    vector_for_each (problem, list) {
        if (strcmp(problem->backend, backend) == 0 && strcmp(problem->message, message) == 0)
            return true;
    }
    return false;
}

static int add(struct problem_list *list, const char *backend, const char *message)
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

int problem_list_add(struct problem_list *list, const char *backend, const char *format, ...)
{
    struct text message = {0};
    va_list arguments;
    int code = BERTH_ERROR_MEMORY;

    va_start(arguments, format);
    text_append_list(&message, format, arguments);
    va_end(arguments);
    if (!text_failed(&message))
        code = list->count >= PROBLEMS_MAX || problem_list_has(list, backend, text_string(&message))
                   ? 0
                   : add(list, backend, text_string(&message));
    text_finish(&message);
    return code;
}

void problem_list_finish(struct problem_list *list)
{
    struct problem *problem;

    vector_for_each (problem, list) {
        free(problem->backend);
        free(problem->message);
    }
    vector_finish(list);
}

void report_finish(struct report *report)
{
    machine_finish(&report->machine);
    problem_list_finish(&report->problems);
    *report = (struct report){0};
}
