/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of the user's environment: masks and the clock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/bitset.h"
#include "base/error.h"
#include "base/system/clock.h"
#include "base/system/user_names.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"
#include "cli/doctor/doctor_checks.h"
#include "cli/state_home.h"
#include "client/user_directory.h"
#include "launch/masks/inherited_masks.h"

/* A clock before 2025 was never set. In nanoseconds since 1970. */
#define CLOCK_MIN (INT64_C(1735689600) * DURATION_SECOND)
/* The pool's time may differ this much from the clock. */
#define CLOCK_DIFFERENCE_MAX (5 * DURATION_SECOND)

static bool has_lease(const struct doctor_facts *facts, uint64_t id)
{
    const struct lease_info *lease;

    vector_for_each (lease, &facts->view.snapshot.leases) {
        if (lease->id == id && !lease->draining)
            return true;
    }
    return false;
}

/* Reports the lease that this shell runs in. Returns whether there is one. */
static bool check_lease(const struct doctor_facts *facts, const char *variable,
                        struct doctor_report *report)
{
    uint64_t id;

    if (quantity_parse_number(variable, 1, UINT64_MAX, &id, NULL) < 0) {
        doctor_report_add(report, DOCTOR_PROBLEM, "BERTH_LEASE: expected the id of a lease, got %s",
                          quote(variable).text);
        doctor_report_advise(report, "unset BERTH_LEASE");
        return false;
    }
    if (!doctor_facts_is_startable(facts) && !doctor_facts_has_view(facts)) {
        doctor_report_add(report, DOCTOR_UNKNOWN,
                          "this shell belongs to lease %" PRIu64 ", but no daemon answers", id);
        doctor_report_advise(report, "see the line of the daemon");
        return true;
    }
    if (has_lease(facts, id)) {
        doctor_report_add(report, DOCTOR_OK, "this shell runs in lease %" PRIu64, id);
        return true;
    }
    doctor_report_add(report, DOCTOR_PROBLEM,
                      "this shell belongs to lease %" PRIu64 ", which has ended", id);
    doctor_report_advise(report, "unset BERTH_LEASE and the masks, or open a new shell");
    return false;
}

/* The vendors of hidden devices, a bit for each. */
struct hidden_vendors {
    uint32_t all;  /* all devices of the vendor are hidden */
    uint32_t some; /* at least one is */
};

/* Finds the devices that the masks hide. */
static struct hidden_vendors find_hidden(const struct doctor_facts *facts,
                                         const struct string_list *masks,
                                         struct doctor_report *report)
{
    const struct machine *machine = &facts->machine.machine;
    struct hidden_vendors hidden = {0};
    struct bitset visible;
    uint32_t left = 0;

    if (inherited_masks_find_visible(masks, machine, &visible, NULL) < 0) {
        report->failed = true;
        return hidden;
    }
    for (size_t i = 0; i < machine->devices.count; i++) {
        uint32_t vendor = UINT32_C(1) << machine->devices.items[i].id.vendor;

        *(bitset_has(&visible, i) ? &left : &hidden.some) |= vendor;
    }
    bitset_finish(&visible);
    hidden.all = hidden.some & ~left;
    return hidden;
}

/* Finds the devices that one of the masks hides, alone with the settings for their numbering. */
static struct hidden_vendors find_hidden_by(const struct doctor_facts *facts,
                                            const struct string_list *masks, const char *mask,
                                            struct doctor_report *report)
{
    struct string_list some = {0};
    struct hidden_vendors hidden = {0};
    char *const *other;
    int code = string_list_append(&some, mask);

    vector_for_each (other, masks) {
        if (code == 0 && inherited_masks_is_setting(*other))
            code = string_list_append(&some, *other);
    }
    if (code == 0)
        hidden = find_hidden(facts, &some, report);
    report->failed |= code < 0;
    string_list_finish(&some);
    return hidden;
}

/* Returns the name of the first of these vendors. */
static const char *name_vendor(uint32_t vendors)
{
    return vendor_name((enum vendor)__builtin_ctz(vendors));
}

/* Reports a mask that hides devices. If no device is known, each mask may. */
static void check_mask(const struct doctor_facts *facts, const struct string_list *masks,
                       const char *mask, struct doctor_report *report)
{
    int length = (int)strcspn(mask, "=");
    const char *value = mask + length + 1;
    struct hidden_vendors hidden = find_hidden_by(facts, masks, mask, report);

    if (facts->machine.machine.devices.count > 0 && hidden.some == 0)
        return;
    if (hidden.all != 0 && *value != '\0')
        doctor_report_add(report, DOCTOR_WARNING,
                          "%.*s leaves no %s device to this shell's jobs: %s does not begin with "
                          "a device of this machine",
                          length, mask, name_vendor(hidden.all), quote(value).text);
    else if (hidden.all != 0)
        doctor_report_add(report, DOCTOR_WARNING, "%.*s leaves no %s device to this shell's jobs",
                          length, mask, name_vendor(hidden.all));
    else
        doctor_report_add(report, DOCTOR_WARNING, "%.*s limits this shell's jobs to %s", length,
                          mask, *value == '\0' ? "no device" : value);
    doctor_report_advise(report, "if this is not intended: unset %.*s", length, mask);
}

/* Reports masks that each leave a device of a vendor, but not the same one. */
static void check_all_masks(const struct doctor_facts *facts, const struct string_list *masks,
                            struct doctor_report *report)
{
    uint32_t all = find_hidden(facts, masks, report).all;
    struct text names = {0};
    char *const *mask;

    vector_for_each (mask, masks) {
        struct hidden_vendors hidden = find_hidden_by(facts, masks, *mask, report);

        all &= ~hidden.all; /* each has a line of its own */
        if (hidden.some != 0)
            text_append_format(&names, " %.*s", (int)strcspn(*mask, "="), *mask);
    }
    if (all != 0) {
        doctor_report_add(report, DOCTOR_WARNING,
                          "together, the masks leave no %s device to this shell's jobs",
                          name_vendor(all));
        doctor_report_advise(report, "if this is not intended: unset%s", text_string(&names));
    }
    report->failed |= text_failed(&names);
    text_finish(&names);
}

void doctor_environment_check_masks(const struct doctor_facts *facts, struct doctor_report *report)
{
    const char *lease = getenv("BERTH_LEASE");
    struct string_list masks = {0};
    size_t before = report->count;
    char *const *mask;

    if (lease != NULL && *lease != '\0' && check_lease(facts, lease, report))
        return; /* the lease's own masks */
    if (inherited_masks_collect(environ, &masks, NULL) < 0) {
        report->failed = true;
        return;
    }
    vector_for_each (mask, &masks) {
        if (!inherited_masks_is_setting(*mask))
            check_mask(facts, &masks, *mask, report);
    }
    check_all_masks(facts, &masks, report);
    string_list_finish(&masks);
    if (report->count == before)
        doctor_report_add(report, DOCTOR_OK, "the environment hides no device");
}

void doctor_environment_check_clock(const struct doctor_facts *facts, struct doctor_report *report)
{
    int64_t now = clock_read(CLOCK_REALTIME);
    int64_t difference = facts->view.snapshot.time - facts->view_time;
    bool has_pool_time = doctor_facts_has_view(facts);

    if (now < CLOCK_MIN) {
        doctor_report_add(report, DOCTOR_PROBLEM, "the clock says %s",
                          quantity_format_time(now).text);
        doctor_report_advise(report, "set it: timedatectl set-ntp true");
    } else if (has_pool_time && llabs(difference) > CLOCK_DIFFERENCE_MAX) {
        doctor_report_add(report, DOCTOR_WARNING, "the clock was set: the pool's time is %s %s it",
                          quantity_format_duration(llabs(difference)).text,
                          difference > 0 ? "ahead of" : "behind");
        doctor_report_advise(report, "limits are kept; times in berth status are right again "
                                     "after a reboot");
    } else {
        doctor_report_add(report, DOCTOR_OK, "%s%s", quantity_format_time(now).text,
                          has_pool_time ? ", as in the pool" : "");
    }
}
