/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes `berth status` as text: the headline, then the other parts.
 */
#include <stdint.h>
#include <string.h>

#include "base/count.h"
#include "base/text/truncate.h"
#include "cli/status/status_output.h"

static void append_devices(struct view_census census, struct text *out)
{
    if (census.devices == 0)
        text_append(out, "No devices");
    else if (census.devices == 1)
        text_append(out, census.free == 1 ? "1 device, free" : "1 device, not free");
    else if (census.free == census.devices)
        text_append_format(out, "%zu devices, all free", census.devices);
    else if (census.free == 0)
        text_append_format(out, "%zu devices, none free", census.devices);
    else
        text_append_format(out, "%zu devices, %zu free", census.devices, census.free);
    if (census.share_left > 0)
        text_append_format(out, ", %zu with a share left", census.share_left);
}

static void append_waiting(size_t count, struct text *out)
{
    if (count == 0)
        text_append(out, ", nobody waits");
    else
        text_append_format(out, ", %zu %s waiting", count, count == 1 ? "claim" : "claims");
}

/* Returns the model of all devices; NULL if they differ or one is unknown. */
static const char *common_model(const struct pool_view *view)
{
    const struct slot_info *slot;
    const char *model = NULL;

    vector_for_each (slot, &view->snapshot.slots) {
        if (slot->device->name == NULL || (model != NULL && strcmp(model, slot->device->name) != 0))
            return NULL;
        model = slot->device->name;
    }
    return model;
}

void status_write_line(const struct status_picture *picture, enum style style, const char *line,
                       struct text *out)
{
    size_t room = picture->terminal.width == 0 ? SIZE_MAX : picture->terminal.width;

    truncate_append(out, line, truncate_measure(line, room), style, &picture->terminal);
    text_append_char(out, '\n');
}

void status_write_headline(const struct status_picture *picture, struct text *out)
{
    const struct pool_view *view = picture->view;
    struct text line = {0};
    struct text pool = {0};

    append_devices(view_count_devices(view), &line);
    if (view->snapshot.slots.count + view->snapshot.claims.count > 0)
        append_waiting(view->snapshot.claims.count, &line);
    view_append_pool_name(view, picture->address, &pool);
    if (common_model(view) != NULL)
        text_append_format(&pool, ", %s%s", view->snapshot.slots.count > 1 ? "all " : "",
                           common_model(view));
    status_write_line(picture, STYLE_STRONG, text_string(&line), out);
    status_write_line(picture, STYLE_FAINT, text_string(&pool), out);
    if (picture->note != NULL)
        status_write_line(picture, picture->stale ? STYLE_WARNING : STYLE_FAINT, picture->note,
                          out);
    out->failed |= line.failed || pool.failed;
    text_finish(&line);
    text_finish(&pool);
}

void status_write_problems(const struct status_picture *picture, struct text *out)
{
    const struct problem *problem;

    vector_for_each (problem, &picture->view->snapshot.problems) {
        struct text line = {0};

        text_append_format(&line, "%s: %s", problem->backend, problem->message);
        status_write_line(picture, STYLE_WARNING, text_string(&line), out);
        out->failed |= line.failed;
        text_finish(&line);
    }
}

void status_write(const struct status_picture *picture, struct text *out)
{
    const struct pool_snapshot *snapshot = &picture->view->snapshot;

    status_write_headline(picture, out);
    if (snapshot->slots.count > 0) {
        text_append_char(out, '\n');
        status_write_devices(picture, out);
        status_write_blockers(picture, out);
    }
    if (snapshot->claims.count > 0) {
        text_append_char(out, '\n');
        status_write_queue(picture, out);
    }
    if (snapshot->problems.count > 0) {
        text_append_char(out, '\n');
        status_write_problems(picture, out);
    }
}
