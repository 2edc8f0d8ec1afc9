/* SPDX-License-Identifier: Apache-2.0
 *
 * The reasons why free devices are not granted: processes that use them without a lease or after
 * its end, and drains.
 */
#include <inttypes.h>
#include <string.h>

#include "base/count.h"
#include "base/system/container.h"
#include "base/text/table.h"
#include "base/text/utf8.h"
#include "cli/options.h"
#include "cli/status/status_output.h"

enum {
    INDENT = 2, /* of the lines after the first */
    WRAP_WIDTH_MIN = 40
};

/* A command can have any length, so it comes last. */
static const struct table_column columns[] = {
    {.heading = "BLOCKED", .priority = TABLE_ALWAYS},
    {.heading = "PID", .priority = TABLE_ALWAYS, .right = true},
    {.heading = "USER", .priority = 95, .min = 8},
    {.heading = "FOR", .priority = 85, .right = true, .hide_unknown = true},
    {.heading = "LEASE", .priority = 80},
    {.heading = "CONTAINER", .priority = 60, .hide_unknown = true},
    {.heading = "COMMAND", .priority = 90, .min = 12, .hide_unknown = true},
};

/* The columns to show, depending on the processes. */
struct blocker_columns {
    bool any;
    bool container;
    const struct device_process *contained; /* the first squatter in a container; NULL: none */
};

static bool is_blocking(const struct pool_view *view, const struct slot_info *slot,
                        const struct device_process *process)
{
    return process->squats || view_is_leftover(view, slot, process);
}

static struct blocker_columns find_columns(const struct pool_view *view)
{
    const struct device_process *process;
    const struct slot_info *slot;
    struct blocker_columns shown = {0};

    vector_for_each (slot, &view->snapshot.slots) {
        vector_for_each (process, &slot->device->processes) {
            if (!is_blocking(view, slot, process))
                continue;
            shown.any = true;
            shown.container |= process->container != NULL;
            if (shown.contained == NULL && process->squats && process->container != NULL)
                shown.contained = process;
        }
    }
    return shown;
}

static void add_process(struct table *table, const struct status_picture *picture,
                        const struct slot_info *slot, const struct device_process *process,
                        struct blocker_columns shown)
{
    table_cell_styled(table, STYLE_STRONG, device_id_format(slot->device->id).text);
    table_cell_format(table, "%" PRIu64, process->pid);
    table_cell(table, user_names_find_optional(picture->users, process->uid));
    table_cell(table, process->started == 0
                          ? NULL
                          : view_format_duration(process->started, picture->now).text);
    if (process->squats)
        table_cell(table, "none");
    else if (process->lease == 0)
        table_cell(table, "ended");
    else
        table_cell_format(table, "%" PRIu64 ", ended", process->lease);
    if (process->container != NULL)
        table_cell_format(table, "%.*s", container_shown_length(process->container),
                          process->container);
    else
        table_cell(table, shown.container ? "" : NULL);
    table_cell(table, process->command);
}

/* Writes the text, wrapped to the width of the terminal. */
static void write_wrapped(const struct status_picture *picture, enum style style,
                          const struct text *words, struct text *out)
{
    size_t width = picture->terminal.width == 0 ? SIZE_MAX : picture->terminal.width;
    struct text inert = {0};
    struct text lines = {0};
    char *rest;

    utf8_append_inert(&inert, text_string(words));
    options_wrap(text_string(&inert), INDENT, width < WRAP_WIDTH_MIN ? WRAP_WIDTH_MIN : width,
                 &lines);
    out->failed |= words->failed || inert.failed || lines.failed;
    rest = lines.bytes;
    while (rest != NULL && *rest != '\0')
        status_write_line(picture, style, strsep(&rest, "\n"), out);
    text_finish(&inert);
    text_finish(&lines);
}

static void write_advice(const struct status_picture *picture, const struct device_process *process,
                         struct text *out)
{
    struct text line = {0};

    text_append_format(&line, "process %" PRIu64 " is in a container: ", process->pid);
    device_process_advise(process, &line);
    write_wrapped(picture, STYLE_PLAIN, &line, out);
    text_finish(&line);
}

static void write_processes(const struct status_picture *picture, struct text *out)
{
    const struct pool_view *view = picture->view;
    struct blocker_columns shown = find_columns(view);
    const struct device_process *process;
    const struct slot_info *slot;
    struct table table;

    if (!shown.any)
        return;
    table_init(&table, columns, COUNT(columns));
    vector_for_each (slot, &view->snapshot.slots) {
        vector_for_each (process, &slot->device->processes) {
            if (is_blocking(view, slot, process))
                add_process(&table, picture, slot, process, shown);
        }
    }
    text_append_char(out, '\n');
    if (table_print(&table, &picture->terminal, out) < 0)
        out->failed = true;
    table_finish(&table);
    if (shown.contained != NULL)
        write_advice(picture, shown.contained, out);
}

static void write_blocker_line(const struct status_picture *picture, const struct text *line,
                               bool *first, struct text *out)
{
    if (*first)
        text_append_char(out, '\n');
    *first = false;
    write_wrapped(picture, STYLE_WARNING, line, out);
}

/* Appends "process 4711 of alice holds the kernel-wide name of nvidia3 ...". */
static void describe_name_holder(const struct status_picture *picture, const struct slot_info *slot,
                                 struct text *line)
{
    const char *user = user_names_find_optional(picture->users, slot->name_uid);

    text_append_format(line, "process %" PRIu64 " of %s holds the kernel-wide name of %s",
                       slot->name_pid.value, user == NULL ? "another user" : user,
                       device_id_format(slot->device->id).text);
    if ((slot->blocks & SLOT_BLOCK_ELSEWHERE) == 0)
        text_append(line, "; this has no effect on the machine's pool");
}

/* Appends "nvidia3 is drained (root, 2h5m ago): fan is loud". */
static void describe_drain(const struct status_picture *picture, const struct slot_info *slot,
                           struct text *line)
{
    const struct pool_view *view = picture->view;
    size_t place = (size_t)(slot - view->snapshot.slots.items);
    bool leased = pool_view_first_use(view, place) < view->uses.count;
    const char *user = user_names_find_optional(picture->users, slot->reason_uid);

    text_append_format(line, "%s %s drained", device_id_format(slot->device->id).text,
                       leased ? "will be" : "is");
    if (slot->reason_time != 0)
        text_append_format(line, " (%s, %s ago)", user == NULL ? "the pool" : user,
                           view_format_duration(slot->reason_time, picture->now).text);
    if (slot->reason != NULL)
        text_append_format(line, ": %s", slot->reason);
}

static void write_slot_lines(const struct status_picture *picture, const struct slot_info *slot,
                             bool *first, struct text *out)
{
    struct text line = {0};

    if (view_is_drained(slot)) {
        describe_drain(picture, slot, &line);
        write_blocker_line(picture, &line, first, out);
    }
    text_clear(&line);
    if (view_append_hidden_use(&line, slot))
        write_blocker_line(picture, &line, first, out);
    text_clear(&line);
    if (slot->name_pid.known) {
        describe_name_holder(picture, slot, &line);
        write_blocker_line(picture, &line, first, out);
    }
    text_finish(&line);
}

void status_write_blockers(const struct status_picture *picture, struct text *out)
{
    const struct slot_info *slot;
    bool first = true;

    write_processes(picture, out);
    vector_for_each (slot, &picture->view->snapshot.slots)
        write_slot_lines(picture, slot, &first, out);
}
