/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/doctor_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/json.h"
#include "base/text/utf8.h"

static const struct {
    const char *word;
    enum style style;
} states[] = {
    [DOCTOR_OK] = {"ok", STYLE_GOOD},
    [DOCTOR_WARNING] = {"warning", STYLE_WARNING},
    [DOCTOR_PROBLEM] = {"problem", STYLE_BAD},
    [DOCTOR_UNKNOWN] = {"unknown", STYLE_FAINT},
    [DOCTOR_PASSED] = {"passed", STYLE_GOOD},
    [DOCTOR_FAILED] = {"failed", STYLE_BAD},
    [DOCTOR_NOT_POSSIBLE] = {"not possible", STYLE_FAINT},
};

void doctor_report_add(struct doctor_report *report, enum doctor_state state, const char *format,
                       ...)
{
    struct doctor_line line = {.check = report->check, .state = state};
    struct doctor_line *added;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vasprintf(&line.what, format, arguments);
    va_end(arguments);
    added = length < 0 ? NULL : vector_append(report);
    if (added != NULL) {
        *added = line;
    } else {
        report->failed = true;
        if (length >= 0)
            free(line.what);
    }
}

void doctor_report_advise(struct doctor_report *report, const char *format, ...)
{
    char *remedy;
    va_list arguments;
    int length;

    if (report->failed || report->count == 0)
        return;
    va_start(arguments, format);
    length = vasprintf(&remedy, format, arguments);
    va_end(arguments);
    if (length < 0) {
        report->failed = true;
    } else {
        free(report->items[report->count - 1].remedy);
        report->items[report->count - 1].remedy = remedy;
    }
}

void doctor_report_add_error(struct doctor_report *report, const char *what,
                             const struct berth_error *error, const char *remedy)
{
    const char *way_out = strstr(error->message, "; ");
    size_t length = way_out == NULL ? strlen(error->message) : (size_t)(way_out - error->message);

    doctor_report_add(report, DOCTOR_PROBLEM, "%s%.*s", what, (int)length, error->message);
    doctor_report_advise(report, "%s", way_out == NULL ? remedy : way_out + 2);
}

bool doctor_report_has_problem(const struct doctor_report *report)
{
    const struct doctor_line *line;

    vector_for_each (line, report) {
        if (line->state == DOCTOR_PROBLEM || line->state == DOCTOR_FAILED)
            return true;
    }
    return false;
}

bool doctor_report_check_has_problem(const struct doctor_report *report)
{
    const struct doctor_line *line;

    vector_for_each (line, report) {
        if (line->check == report->check && line->state == DOCTOR_PROBLEM)
            return true;
    }
    return false;
}

/* Returns the widths of the first two columns. */
static void measure_columns(const struct doctor_report *report, int *ret_state, int *ret_check)
{
    const struct doctor_line *line;

    *ret_state = *ret_check = 0;
    vector_for_each (line, report) {
        int state = (int)strlen(states[line->state].word);
        int check = (int)strlen(line->check);

        *ret_state = state > *ret_state ? state : *ret_state;
        *ret_check = check > *ret_check ? check : *ret_check;
    }
}

void doctor_report_write(const struct doctor_report *report, const struct terminal *terminal,
                         struct text *out)
{
    const struct doctor_line *line;
    int state_width;
    int check_width;

    measure_columns(report, &state_width, &check_width);
    vector_for_each (line, report) {
        const char *word = states[line->state].word;

        text_append(out, terminal->colour ? terminal_style_start(states[line->state].style) : "");
        text_append_format(out, "%-*s", state_width, word);
        text_append(out, terminal->colour ? terminal_style_end() : "");
        text_append_format(out, "  %-*s  ", check_width, line->check);
        utf8_append_inert(out, line->what);
        if (line->remedy != NULL) {
            text_append(out, "; ");
            utf8_append_inert(out, line->remedy);
        }
        text_append_char(out, '\n');
    }
    out->failed |= report->failed;
}

void doctor_report_write_json(const struct doctor_report *report, struct text *out)
{
    const struct doctor_line *line;
    struct json json;

    json_start(&json, out, JSON_INDENTED);
    json_object_begin(&json);
    json_string_member(&json, "schema", "berth.doctor/1");
    json_bool_member(&json, "good", !doctor_report_has_problem(report));
    json_key(&json, "checks");
    json_array_begin(&json);
    vector_for_each (line, report) {
        json_object_begin(&json);
        json_string_member(&json, "check", line->check);
        json_string_member(&json, "state", states[line->state].word);
        json_string_member(&json, "what", line->what);
        json_string_member(&json, "remedy", line->remedy);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    json_finish(&json);
    out->failed |= report->failed;
}

void doctor_report_finish(struct doctor_report *report)
{
    struct doctor_line *line;

    vector_for_each (line, report) {
        free(line->what);
        free(line->remedy);
    }
    vector_finish(report);
}
