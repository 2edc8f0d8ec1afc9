/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of the user's environment: masks, directories, the clock.
 */
#include <errno.h>
#include <inttypes.h>
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
/* A disk with less free space than this is full soon. */
#define FREE_SPACE_MIN (UINT64_C(64) << 20)

static bool has_lease(const struct doctor_facts *facts, uint64_t id)
{
    const struct lease_info *lease;

    vector_for_each (lease, &facts->view.snapshot.leases) {
        if (lease->id == id && !lease->draining)
            return true;
    }
    return false;
}

/* Returns whether the user's own daemon does not run: it ends only when it has no leases. */
static bool is_daemon_absent(const struct doctor_facts *facts)
{
    return facts->address.own && facts->daemon_error.code == BERTH_ERROR_NOT_FOUND;
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
    if (!is_daemon_absent(facts) &&
        (facts->address_error.code != 0 || facts->daemon_error.code != 0)) {
        doctor_report_add(report, DOCTOR_UNKNOWN,
                          "this shell belongs to lease %" PRIu64 ", but no daemon answers", id);
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

/* Returns whether one of the masks hides a device, alone with the settings for their numbering. If
 * no device is known, each mask may. */
static bool hides_device(const struct doctor_facts *facts, const struct string_list *masks,
                         const char *mask, struct doctor_report *report)
{
    const struct machine *machine = &facts->machine.machine;
    struct string_list some = {0};
    struct bitset visible;
    char *const *other;
    bool hides = true;
    int code = string_list_append(&some, mask);

    if (machine->devices.count == 0) {
        string_list_finish(&some);
        return true;
    }
    vector_for_each (other, masks) {
        if (code == 0 && inherited_masks_is_setting(*other))
            code = string_list_append(&some, *other);
    }
    if (code == 0)
        code = inherited_masks_find_visible(&some, machine, &visible, NULL);
    if (code == 0) {
        hides = bitset_count(&visible) < machine->devices.count;
        bitset_finish(&visible);
    }
    report->failed |= code < 0;
    string_list_finish(&some);
    return hides;
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
        int length = (int)strcspn(*mask, "=");

        if (inherited_masks_is_setting(*mask) || !hides_device(facts, &masks, *mask, report))
            continue;
        doctor_report_add(report, DOCTOR_WARNING, "%.*s limits this shell's jobs to %s", length,
                          *mask, (*mask)[length + 1] == '\0' ? "no device" : *mask + length + 1);
        doctor_report_advise(report, "if this is not intended: unset %.*s", length, *mask);
    }
    string_list_finish(&masks);
    if (report->count == before)
        doctor_report_add(report, DOCTOR_OK, "the environment hides no device");
}

/* Checks the free space of an existing directory. */
static void check_space(const char *directory, struct doctor_report *report)
{
    struct statvfs space;

    if (statvfs(directory, &space) < 0 || space.f_blocks == 0 ||
        (uint64_t)space.f_bavail * space.f_frsize >= FREE_SPACE_MIN)
        return;
    doctor_report_add(report, DOCTOR_WARNING, "%s: only %s are free", directory,
                      quantity_format_size((uint64_t)space.f_bavail * space.f_frsize).text);
    doctor_report_advise(report, "free some space");
}

/* Cuts the path to the nearest directory that exists. */
static void find_existing(char *path)
{
    struct stat status;
    char *slash;

    while (stat(path, &status) < 0 && errno == ENOENT && (slash = strrchr(path, '/')) != NULL)
        slash[slash == path ? 1 : 0] = '\0';
}

/* Checks a directory of the user, which is created when it is needed. `variable` can name another
 * directory. */
static void check_own_directory(const char *what, const char *path, const char *variable,
                                struct doctor_report *report)
{
    struct user_names users = {0};
    struct stat status;
    char *existing = strdup(path);

    if (existing == NULL) {
        report->failed = true;
        return;
    }
    find_existing(existing);
    if (stat(existing, &status) < 0) {
        doctor_report_add(report, DOCTOR_PROBLEM, "%s: cannot read %s: %s", what, existing,
                          strerror(errno));
        doctor_report_advise(report, "make it writable, or set %s to another directory", variable);
    } else if (strcmp(existing, path) == 0 && status.st_uid != geteuid()) {
        doctor_report_add(report, DOCTOR_PROBLEM, "%s: %s belongs to %s", what, path,
                          user_names_find(&users, status.st_uid));
        doctor_report_advise(report, "run as root: chown -R %ju %s", (uintmax_t)geteuid(), path);
    } else if (!S_ISDIR(status.st_mode) || access(existing, W_OK | X_OK) < 0) {
        doctor_report_add(report, DOCTOR_PROBLEM, "%s: cannot write to %s: %s", what, existing,
                          S_ISDIR(status.st_mode) ? strerror(errno) : "not a directory");
        doctor_report_advise(report, "make it writable, or set %s to another directory", variable);
    } else {
        doctor_report_add(report, DOCTOR_OK, "%s: %s%s", what, path,
                          strcmp(existing, path) == 0 ? "" : " (created when it is needed)");
        check_space(existing, report);
    }
    free(existing);
    user_names_finish(&users);
}

static void check_state(struct doctor_report *report)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text home = {0};

    if (state_home_append(&home, &error) < 0) {
        doctor_report_add_error(report, "logs of jobs: ", &error, "set HOME or XDG_STATE_HOME");
    } else {
        text_append(&home, "/berth");
        if (text_failed(&home))
            report->failed = true;
        else
            check_own_directory("logs of jobs", text_string(&home), "XDG_STATE_HOME", report);
    }
    text_finish(&home);
}

static void check_runtime(const struct pool_address *address, struct doctor_report *report)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (user_directory_check(address, &error) < 0)
        doctor_report_add_error(report, "own daemon: ", &error,
                                "mend it, or set BERTH_RUNTIME_DIR to another directory");
    else
        check_own_directory("own daemon", address->directory, "BERTH_RUNTIME_DIR", report);
}

static void check_history(const char *path, bool own, struct doctor_report *report)
{
    const char *slash = strrchr(path, '/');
    char *directory = strndup(path, slash == NULL ? 0 : (size_t)(slash - path));

    if (directory == NULL) {
        report->failed = true;
        return;
    }
    if (access(path, R_OK) == 0) {
        doctor_report_add(report, DOCTOR_OK, "history: %s", path);
        check_space(directory, report);
    } else if (errno == ENOENT && access(directory, F_OK) == 0) {
        doctor_report_add(report, DOCTOR_OK, "history: %s (written when the first lease ends)",
                          path);
        check_space(directory, report);
    } else if (own && errno == ENOENT) {
        check_own_directory("history", directory, "XDG_STATE_HOME", report);
    } else if (errno == ENOENT || errno == ENOTDIR) {
        doctor_report_add(report, DOCTOR_PROBLEM, "history: the directory %s is missing",
                          directory);
        doctor_report_advise(report, "create it for the daemon's user");
    } else {
        doctor_report_add(report, DOCTOR_WARNING, "history: you cannot read %s: %s", path,
                          strerror(errno));
        doctor_report_advise(report, "ask an administrator, if you need berth history");
    }
    free(directory);
}

void doctor_environment_check_directories(const struct doctor_facts *facts,
                                          struct doctor_report *report)
{
    check_state(report);
    if (facts->address_error.code == 0 && facts->address.own)
        check_runtime(&facts->address, report);
    if (facts->view.about.history == NULL && facts->view.about.pool != NULL)
        doctor_report_add(report, DOCTOR_OK, "history: leases are not recorded (history: no)");
    else if (facts->view.about.history != NULL)
        check_history(facts->view.about.history, facts->address.own, report);
}

void doctor_environment_check_clock(const struct doctor_facts *facts, struct doctor_report *report)
{
    int64_t now = clock_read(CLOCK_REALTIME);
    int64_t difference = facts->view.snapshot.time - facts->view_time;
    bool has_pool_time = facts->address_error.code == 0 && facts->daemon_error.code == 0;

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
