/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/doctor_history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/user_names.h"
#include "cli/doctor/doctor_directories.h"
#include "spec/configuration/history_file.h"

/* The user of the machine's daemon (docs/ADMIN.md). */
static const char service_user[] = "berth";

static bool has_problem(const struct doctor_facts *facts)
{
    const struct problem *problem;

    vector_for_each (problem, &facts->view.snapshot.problems) {
        if (strcmp(problem->backend, PROBLEM_OF_HISTORY) == 0)
            return true;
    }
    return false;
}

/* Returns the directory of a file, which the caller frees; NULL: no memory. */
static char *copy_directory(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == path ? strdup("/") : strndup(path, slash == NULL ? 0 : (size_t)(slash - path));
}

/* Advises to create the directory for the daemon's user, as docs/ADMIN.md does. */
static void advise_create(const struct doctor_facts *facts, const char *directory,
                          struct doctor_report *report)
{
    struct user_names users = {0};
    const char *user = service_user;

    if (facts->has_daemon_uid && facts->daemon_uid != 0)
        user = user_names_find(&users, facts->daemon_uid);
    if (facts->address.own)
        doctor_report_advise(report, "run: mkdir -p %s, or set `history` in %s to another file",
                             directory, text_string(&facts->configuration_path));
    else if (strcmp(user, service_user) == 0)
        doctor_report_advise(report, "run as root: install -d -o berth -g berth -m 0755 %s",
                             directory);
    else
        doctor_report_advise(report, "run as root: install -d -o %s -m 0755 %s", user, directory);
    user_names_finish(&users);
}

bool doctor_history_advise(const struct doctor_facts *facts, struct doctor_report *report)
{
    const char *path = facts->view.about.history;
    char *directory = path == NULL ? NULL : copy_directory(path);
    bool is_cause = true;

    if (path == NULL)
        return false;
    if (directory == NULL)
        report->failed = true;
    else if (access(directory, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR))
        advise_create(facts, directory, report);
    else if (facts->address.own && access(directory, W_OK | X_OK) < 0)
        doctor_report_advise(report, "make %s writable, or set `history` in %s to another file",
                             directory, text_string(&facts->configuration_path));
    else
        is_cause = false;
    free(directory);
    return is_cause;
}

static void check_file(const struct doctor_facts *facts, const char *path, bool is_default,
                       struct doctor_report *report)
{
    char *directory = copy_directory(path);

    if (directory == NULL) {
        report->failed = true;
        return;
    }
    if (access(path, R_OK) == 0) {
        doctor_report_add(report, DOCTOR_OK, "history: %s", path);
        doctor_directories_check_space(directory, report);
    } else if (errno == ENOENT && access(directory, F_OK) == 0) {
        doctor_report_add(report, DOCTOR_OK, "history: %s (written when the first lease ends)",
                          path);
        doctor_directories_check_space(directory, report);
    } else if (facts->address.own && is_default && doctor_report_check_has_problem(report)) {
        ; /* it is one of the user's directories above */
    } else if (facts->address.own && is_default) {
        doctor_directories_check_own("history", directory, "XDG_STATE_HOME", report);
    } else if (errno == ENOENT || errno == ENOTDIR) {
        doctor_report_add(report, DOCTOR_PROBLEM, "history: the directory %s is missing",
                          directory);
        advise_create(facts, directory, report);
    } else {
        doctor_report_add(report, DOCTOR_WARNING, "history: you cannot read %s: %s", path,
                          strerror(errno));
        doctor_report_advise(report, "ask an administrator, if you need berth history");
    }
    free(directory);
}

/* Returns whether the file that a daemon would use is known: BERTH_SOCKET may be wrong. */
static bool is_planned(const struct doctor_facts *facts)
{
    return facts->address_error.code == 0 && facts->configuration_error.code == 0 &&
           (facts->address.own || pool_address_is_machine(&facts->address) ||
            facts->daemon_error.code != BERTH_ERROR_NOT_FOUND);
}

/* Checks the file that a daemon would use. */
static void check_planned(const struct doctor_facts *facts, struct doctor_report *report)
{
    const struct configured_history *history = &facts->configuration.history;
    const struct history_file_pool pool = {
        .socket = facts->address.socket,
        .is_own = facts->address.own,
        .is_made_up = facts->address.inventory != NULL,
    };
    char *path;

    if (history_file_find(&pool, history, &path, NULL) < 0)
        report->failed = true;
    else if (path == NULL)
        doctor_report_add(report, DOCTOR_OK, "history: leases are not recorded (history: no)");
    else
        check_file(facts, path, history->file == NULL, report);
    free(path);
}

void doctor_history_check(const struct doctor_facts *facts, struct doctor_report *report)
{
    const char *path = facts->view.about.history;

    if (has_problem(facts))
        return;
    if (path != NULL) {
        check_file(facts, path, facts->configuration.history.file == NULL, report);
    } else if (doctor_facts_has_view(facts)) {
        doctor_report_add(report, DOCTOR_OK, "history: leases are not recorded (history: no)");
    } else if (!is_planned(facts)) {
        doctor_report_add(report, DOCTOR_UNKNOWN, "history: its directory is not known");
        doctor_report_advise(report, "see the line of the %s",
                             facts->configuration_error.code == 0 ? "daemon" : "configuration");
    } else {
        check_planned(facts, report);
    }
}
