/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/doctor_directories.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/user_names.h"
#include "base/text/quantity.h"
#include "cli/doctor/doctor_checks.h"
#include "cli/doctor/doctor_history.h"
#include "cli/state_home.h"
#include "client/user_directory.h"

/* A disk with less free space than this is full soon. */
#define FREE_SPACE_MIN (UINT64_C(64) << 20)

void doctor_directories_check_space(const char *directory, struct doctor_report *report)
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

void doctor_directories_check_own(const char *what, const char *path, const char *variable,
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
        doctor_directories_check_space(existing, report);
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
            doctor_directories_check_own("logs of jobs", text_string(&home), "XDG_STATE_HOME",
                                         report);
    }
    text_finish(&home);
}

static void check_runtime(const struct pool_address *address, struct doctor_report *report)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (user_directory_check(address, &error) < 0)
        doctor_report_add_error(report, "own daemon: ", &error,
                                "fix it, or set BERTH_RUNTIME_DIR to another directory");
    else
        doctor_directories_check_own("own daemon", address->directory, "BERTH_RUNTIME_DIR", report);
}

void doctor_directories_check(const struct doctor_facts *facts, struct doctor_report *report)
{
    check_state(report);
    if (facts->address_error.code == 0 && facts->address.own)
        check_runtime(&facts->address, report);
    doctor_history_check(facts, report);
}
