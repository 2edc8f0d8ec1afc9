/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/status/known_ids.h"

#include <unistd.h>

#include "base/text/quantity.h"
#include "base/text/utf8.h"
#include "cli/exit_codes.h"
#include "cli/machine_source.h"
#include "cli/output.h"
#include "view/pool_view_fetch.h"

const struct choice known_ids_names[] = {
    {"claims", KNOWN_IDS_CLAIMS},
    {"devices", KNOWN_IDS_DEVICES},
    {"jobs", KNOWN_IDS_JOBS},
    {"leases", KNOWN_IDS_LEASES},
    {0},
};

/* The timeouts for an answer of the daemon, and for the hardware. */
static const int64_t timeout = DURATION_SECOND / 2;
static const char deadline[] = "1s";

static bool is_ours(uint32_t uid)
{
    return geteuid() == 0 || geteuid() == uid;
}

/* Ends the line of an id with its description, which may be NULL. */
static void append_line_end(struct text *out, const char *word)
{
    text_append_char(out, '\t');
    if (word != NULL)
        utf8_append_inert(out, word);
    text_append_char(out, '\n');
}

static void append_job(struct text *out, uint64_t id, const char *name, const char *command)
{
    text_append_number(out, id);
    append_line_end(out, name != NULL ? name : command);
}

static void append_device(struct text *out, const struct device *device)
{
    device_id_append(device->id, out);
    append_line_end(out, device->name);
}

static void append_leases(struct text *out, const struct pool_view *view)
{
    const struct lease_info *lease;

    vector_for_each (lease, &view->snapshot.leases) {
        if (is_ours(lease->uid) && !lease->draining)
            append_job(out, lease->id, lease->name, lease->command);
    }
}

static void append_claims(struct text *out, const struct pool_view *view)
{
    const struct claim_info *claim;

    vector_for_each (claim, &view->snapshot.claims) {
        if (is_ours(claim->uid))
            append_job(out, claim->id, claim->name, claim->command);
    }
}

static void append_devices(struct text *out, const struct pool_view *view)
{
    const struct slot_info *slot;

    vector_for_each (slot, &view->snapshot.slots)
        append_device(out, slot->device);
}

/* Appends the ids that the pool has. Returns false if no daemon answers. */
static bool append_from_pool(enum known_ids which, const char *inventory, struct text *out)
{
    struct pool_address address;
    struct session session;
    struct pool_view view;
    bool known;

    if (pool_address_find(inventory, &address, NULL) < 0)
        return false;
    if (session_open_with_timeout(&session, &address, DIAL_ONLY, timeout, NULL) < 0) {
        pool_address_finish(&address);
        return false;
    }
    known = pool_view_fetch_within(&session, timeout, &view, NULL) == 0;
    if (known) {
        if (which == KNOWN_IDS_DEVICES)
            append_devices(out, &view);
        if (which == KNOWN_IDS_LEASES || which == KNOWN_IDS_JOBS)
            append_leases(out, &view);
        if (which == KNOWN_IDS_CLAIMS || which == KNOWN_IDS_JOBS)
            append_claims(out, &view);
        pool_view_finish(&view);
    }
    session_close(&session);
    pool_address_finish(&address);
    return known;
}

/* Appends the devices of the machine. Used if no daemon answers. */
static void append_from_machine(const char *inventory, struct text *out)
{
    struct machine_source source = {0};
    struct machine_report report;
    const struct device *device;

    if (machine_source_open(&source, inventory, deadline, NULL) < 0)
        return;
    source.without_processes = true;
    if (machine_source_scan(&source, &report, NULL) == 0) {
        vector_for_each (device, &report.machine.devices)
            append_device(out, device);
        machine_report_finish(&report);
    }
    machine_source_close(&source);
}

int known_ids_print(enum known_ids which, const char *inventory)
{
    struct text out = {0};
    int code;

    if (!append_from_pool(which, inventory, &out) && which == KNOWN_IDS_DEVICES)
        append_from_machine(inventory, &out);
    code = text_failed(&out) ? EXIT_BERTH : output_write(&out);
    text_finish(&out);
    return code;
}
