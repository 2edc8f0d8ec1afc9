/* SPDX-License-Identifier: Apache-2.0
 *
 * The panes of leases and of the queue, and the details of a row.
 */
#include <inttypes.h>
#include <string.h>

#include "base/count.h"
#include "top/draw_internal.h"
#include "top/lease_labels.h"
#include "view/reason_text.h"

static const struct pane_column lease_columns[] = {
    {{.heading = "LEASE", .priority = TABLE_ALWAYS, .right = true}, VIEW_COLUMN_LEASE},
    {{.heading = "USER", .priority = 95, .min = 6}, VIEW_COLUMN_USER},
    {{.heading = "GPUS", .priority = 60, .right = true}, VIEW_COLUMN_DEVICES},
    {{.heading = "DEVICES", .priority = 90, .min = 8}, VIEW_COLUMN_NONE},
    {{.heading = "SHARE", .priority = 50, .hide_unknown = true}, VIEW_COLUMN_NONE},
    {{.heading = "HELD", .priority = 85, .right = true}, VIEW_COLUMN_HELD},
    {{.heading = "LEFT", .priority = 80, .right = true, .hide_unknown = true}, VIEW_COLUMN_LEFT},
    {{.heading = "IDLE", .priority = 70, .right = true}, VIEW_COLUMN_IDLE},
    {{.heading = "JOB", .priority = 88, .min = 8, .hide_unknown = true}, VIEW_COLUMN_JOB},
};

static const struct pane_column queue_columns[] = {
    {{.heading = "QUEUE", .priority = 40, .right = true}, VIEW_COLUMN_QUEUE},
    {{.heading = "CLAIM", .priority = TABLE_ALWAYS, .right = true}, VIEW_COLUMN_CLAIM},
    {{.heading = "USER", .priority = 95, .min = 6}, VIEW_COLUMN_USER},
    {{.heading = "WAITING", .priority = 85, .right = true}, VIEW_COLUMN_WAITING},
    {{.heading = "STARTS", .priority = 80, .right = true}, VIEW_COLUMN_STARTS},
    {{.heading = "WANTS", .priority = 90, .min = 8}, VIEW_COLUMN_NONE},
    {{.heading = "JOB", .priority = 70, .min = 8, .hide_unknown = true}, VIEW_COLUMN_JOB},
    {{.heading = "WHY", .priority = 75, .min = 16, .hide_unknown = true}, VIEW_COLUMN_NONE},
};

/* Adds an empty cell to a column that only rows with a lease fill. */
static void add_empty_cell(struct table *table, const struct pane_facts *facts)
{
    table_cell(table, facts->leases ? "" : NULL);
}

void draw_add_lease_id(struct table *table, const struct lease_info *lease,
                       const struct pane_facts *facts)
{
    if (lease == NULL)
        add_empty_cell(table, facts);
    else if (lease->parent != 0)
        table_cell_format(table, "%" PRIu64 " in %" PRIu64, lease->id, lease->parent);
    else
        table_cell_format(table, "%" PRIu64, lease->id);
}

void draw_add_share(struct table *table, const struct lease_info *lease,
                    const struct pane_facts *facts)
{
    struct quantity_text share;

    if (lease == NULL || lease->sharing == SHARING_EXCLUSIVE) {
        table_cell(table, facts->shares ? "" : NULL);
        return;
    }
    share = quantity_format_decimal(lease->share, SHARE_DECIMALS);
    if (lease->memory.known)
        table_cell_format(table, "%s, %s", share.text,
                          quantity_format_size(lease->memory.value).text);
    else
        table_cell(table, share.text);
}

void draw_add_user(struct table *table, const struct lease_info *lease, struct user_names *users,
                   const struct pane_facts *facts)
{
    if (lease == NULL)
        add_empty_cell(table, facts);
    else
        table_cell(table, user_names_find(users, lease->uid));
}

void draw_add_held(struct table *table, const struct lease_info *lease, int64_t now,
                   const struct pane_facts *facts)
{
    if (lease == NULL)
        add_empty_cell(table, facts);
    else
        table_cell(table, view_format_duration(lease->granted, now).text);
}

void draw_add_left(struct table *table, const struct lease_info *lease, int64_t now,
                   const struct pane_facts *facts)
{
    int64_t left;

    if (lease == NULL || !lease->expires.known) {
        table_cell(table, facts->limits ? "" : NULL);
        return;
    }
    left = view_time_between(now, view_time_from_wire(lease->expires.value));
    table_cell_styled(table, left < 5 * DURATION_MINUTE ? STYLE_WARNING : STYLE_PLAIN,
                      view_format_duration(0, left).text);
}

static void add_remark(struct text *out, const char *remark)
{
    text_append(out, out->length == 0 ? "[" : ", ");
    text_append(out, remark);
}

/* Appends remarks about the lease: "[ending: ..., adopted". Returns whether one of them is a
 * warning. */
static bool append_remarks(struct text *out, const struct lease_info *lease, const char *note)
{
    struct text ending = {0};

    if (note != NULL)
        add_remark(out, note);
    if (lease->end != 0) {
        text_append_format(&ending, "ending: %s", pool_info_describe_end(lease->end));
        add_remark(out, text_string(&ending));
        out->failed |= text_failed(&ending);
        text_finish(&ending);
    } else if (lease->draining) {
        add_remark(out, "ended, processes still run");
    }
    if (lease->preparing)
        add_remark(out, "preparing");
    if (lease->opportunistic)
        add_remark(out, "opportunistic");
    if (lease->adopted)
        add_remark(out, "adopted");
    if (view_is_idle(lease) && lease->idle_warned)
        add_remark(out, "idle too long");
    return note != NULL || lease->end != 0 || lease->draining || lease->idle_warned;
}

void draw_add_job(struct table *table, const struct lease_info *lease, const char *note,
                  const struct pane_facts *facts)
{
    struct text job = {0};
    bool urgent;

    if (lease == NULL) {
        add_empty_cell(table, facts);
        return;
    }
    urgent = append_remarks(&job, lease, note);
    if (job.length > 0)
        text_append(&job, "] ");
    text_append(&job, lease_label_job(lease));
    table->failed |= text_failed(&job);
    table_cell_styled(table, urgent ? STYLE_WARNING : STYLE_PLAIN, text_string(&job));
    text_finish(&job);
}

static void add_idle(struct table *table, const struct lease_info *lease)
{
    if (lease->idle.known)
        table_cell_styled(table, lease->idle_warned ? STYLE_WARNING : STYLE_PLAIN,
                          view_format_duration(0, view_time_from_wire(lease->idle.value)).text);
    else
        table_cell(table, NULL);
}

static void add_lease(struct table *table, const struct top_picture *picture,
                      const struct top_row *row, const struct pane_facts *facts)
{
    const struct lease_info *lease = &picture->view->snapshot.leases.items[row->lease];
    struct text devices = {0};

    draw_add_lease_id(table, lease, facts);
    draw_add_user(table, lease, picture->users, facts);
    table_cell_format(table, "%zu", lease->devices.count);
    lease_label_append_devices(&devices, &lease->devices);
    table->failed |= text_failed(&devices);
    table_cell(table, text_string(&devices));
    text_finish(&devices);
    draw_add_share(table, lease, facts);
    draw_add_held(table, lease, picture->now, facts);
    draw_add_left(table, lease, picture->now, facts);
    add_idle(table, lease);
    draw_add_job(table, lease, NULL, facts);
}

/* Returns the reason without its lead, "needs 4: ". The column WANTS already shows the need, and a
 * narrow column must begin with the rest. */
static const char *skip_need(const char *reason)
{
    static const char *const ends[] = {": ", ", but ", ", "};
    const char *end = reason + strcspn(reason, ":,");

    if (strncmp(reason, "needs ", strlen("needs ")) != 0)
        return reason;
    for (size_t i = 0; i < COUNT(ends); i++) {
        if (strncmp(end, ends[i], strlen(ends[i])) == 0)
            return end + strlen(ends[i]);
    }
    return reason;
}

static void add_claim(struct table *table, const struct top_picture *picture,
                      const struct top_row *row, const struct pane_facts *facts)
{
    const struct claim_info *claim = &picture->view->snapshot.claims.items[row->claim];

    /* The daemon made the estimates at the time of the snapshot. */
    int64_t past = view_time_between(picture->view->snapshot.time, picture->now);
    struct text reason = {0};

    (void)facts;
    table_cell_format(table, "%u", claim->position);
    table_cell_format(table, "%" PRIu64, claim->id);
    table_cell(table, user_names_find(picture->users, claim->uid));
    table_cell(table, view_format_duration(claim->since, picture->now).text);
    table_cell(table,
               claim->estimate.known ? view_format_start(claim->estimate.value, past).text : NULL);
    table_cell(table, claim->request);
    table_cell(table, claim->name != NULL ? claim->name : claim->command);
    reason_text_append_claim(&reason, claim, picture->users);
    table->failed |= text_failed(&reason);
    table_cell(table, reason.length == 0 ? NULL : skip_need(text_string(&reason)));
    text_finish(&reason);
}

static void append_lease_detail(const struct lease_info *lease, struct text *out)
{
    text_append_format(out, "lease %" PRIu64, lease->id);
    if (lease->name != NULL)
        text_append_format(out, " (%s)", lease->name);
    if (lease->pid > 0)
        text_append_format(out, ", pid %d", lease->pid);
    if (lease->command != NULL)
        text_append_format(out, ": %s", lease->command);
}

static void append_claim_detail(const struct claim_info *claim, const struct top_picture *picture,
                                struct text *out)
{
    text_append_format(out, "claim %" PRIu64 " wants %s", claim->id,
                       claim->request == NULL ? "-" : claim->request);
    if (view_claim_reason(claim) != NULL)
        text_append(out, ": ");
    reason_text_append_claim(out, claim, picture->users);
}

void draw_append_detail(const struct top_picture *picture, const struct top_model *model,
                        struct text *out)
{
    const struct top_row *row = top_model_selected(model, model->pane);
    const struct pool_snapshot *snapshot = &picture->view->snapshot;

    if (row == NULL)
        return;
    if (row->claim != TOP_NOTHING) {
        append_claim_detail(&snapshot->claims.items[row->claim], picture, out);
        return;
    }
    if (row->slot != TOP_NOTHING) {
        const struct slot_info *slot = &snapshot->slots.items[row->slot];

        text_append_format(out, "%s: ", device_id_format(slot->device->id).text);
        draw_append_device_note(out, picture, slot, row->lease != TOP_NOTHING);
        if (out->length > strlen(device_id_format(slot->device->id).text) + 2)
            text_append(out, row->lease != TOP_NOTHING ? "; " : "");
        else if (row->lease == TOP_NOTHING)
            text_clear(out);
    }
    if (row->lease != TOP_NOTHING)
        append_lease_detail(&snapshot->leases.items[row->lease], out);
}

const struct pane_kind pane_leases = {
    .title = "Leases",
    .nothing = "no leases",
    .columns = lease_columns,
    .column_count = COUNT(lease_columns),
    .add = add_lease,
};

const struct pane_kind pane_queue = {
    .title = "Queue",
    .nothing = "nobody waits",
    .columns = queue_columns,
    .column_count = COUNT(queue_columns),
    .add = add_claim,
};
