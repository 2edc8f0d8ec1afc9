/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of the pool's daemon and of the state that it reports.
 */
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/program.h"
#include "base/system/user_names.h"
#include "cli/doctor/doctor_checks.h"
#include "cli/doctor/doctor_history.h"
#include "view/view_facts.h"

/* Returns whether the pool's state is known. If not, adds a line. */
static bool has_view(const struct doctor_facts *facts, struct doctor_report *report)
{
    if (doctor_facts_has_view(facts))
        return true;
    doctor_report_add(report, DOCTOR_UNKNOWN,
                      facts->address_error.code == 0 ? "no daemon answers"
                                                     : "the pool is not known");
    doctor_report_advise(report, "see the line of the daemon");
    return false;
}

static const char *describe_kind(const struct pool_address *address)
{
    if (pool_address_is_machine(address))
        return "the machine's daemon";
    return address->own ? "your own daemon" : "the daemon of BERTH_SOCKET";
}

/* Checks that the program of a daemon that is started on demand exists. */
static void check_program(const struct doctor_facts *facts, struct doctor_report *report)
{
    char path[PATH_MAX];

    program_find("berthd", path, sizeof(path));
    if (access(path, X_OK) == 0) {
        doctor_report_add(report, DOCTOR_OK,
                          "your own daemon is not running; the next command starts it in %s",
                          facts->address.directory);
        return;
    }
    doctor_report_add(report, DOCTOR_PROBLEM, "cannot execute %s", path);
    doctor_report_advise(report, "install berth completely");
}

/* Warns if BERTH_SOCKET leads to another pool than the machine's. */
static void check_choice(const struct doctor_facts *facts, struct doctor_report *report)
{
    if (facts->inventory != NULL || pool_address_is_machine(&facts->address) ||
        access(POOL_MACHINE_SOCKET, F_OK) < 0)
        return;
    doctor_report_add(report, DOCTOR_WARNING, "this machine has a pool for all users at %s",
                      POOL_MACHINE_SOCKET);
    doctor_report_advise(report, "use it: unset BERTH_SOCKET");
}

/* Reports that the address of the pool cannot be found. */
static void report_address(const struct doctor_facts *facts, struct doctor_report *report)
{
    const struct berth_error *error = &facts->address_error;

    /* The probe's line has the same error. */
    if (facts->inventory != NULL && strcmp(error->message, facts->probe_error.message) == 0) {
        doctor_report_add(report, DOCTOR_UNKNOWN, "the inventory file names the pool");
        doctor_report_advise(report, "see the line of the probe");
        return;
    }
    doctor_report_add_error(report, "", error,
                            error->code == BERTH_ERROR_INVALID
                                ? "correct the variable, or unset it"
                                : "run as root: chmod 0755 /run/berth");
}

/* Writes which daemon an error is about. Its messages name the socket, or "the daemon (pid 7)". */
static void name_daemon(const struct doctor_facts *facts, struct berth_error *error)
{
    static const char any[] = "the daemon ";
    const struct berth_error given = *error;

    if (strstr(given.message, facts->address.socket) == NULL &&
        strncmp(given.message, any, sizeof(any) - 1) == 0)
        error_set(error, given.code, "%s at %s %s", describe_kind(&facts->address),
                  facts->address.socket, given.message + sizeof(any) - 1);
}

/* Reports a daemon that does not run or does not answer. */
static void report_failure(const struct doctor_facts *facts, struct doctor_report *report)
{
    struct berth_error error = facts->daemon_error;
    bool is_missing = error.code == BERTH_ERROR_NOT_FOUND;
    const char *remedy;

    if (pool_address_is_machine(&facts->address))
        remedy = is_missing ? "start it: systemctl start berth.socket"
                            : "see systemctl status berth.socket berthd";
    else if (facts->address.own)
        remedy = "see the file log beside the socket";
    else
        remedy =
            is_missing ? "start it, or unset BERTH_SOCKET" : "correct BERTH_SOCKET, or unset it";
    name_daemon(facts, &error);
    doctor_report_add_error(report, "", &error, remedy);
}

void doctor_daemon_check_reachable(const struct doctor_facts *facts, struct doctor_report *report)
{
    if (facts->address_error.code != 0) {
        report_address(facts, report);
        return;
    }
    if (doctor_facts_is_startable(facts)) {
        check_program(facts, report);
    } else if (facts->daemon_error.code != 0) {
        report_failure(facts, report);
    } else if (facts->daemon_pid > 0) {
        doctor_report_add(report, DOCTOR_OK, "%s answers at %s (pid %ld)",
                          describe_kind(&facts->address), facts->address.socket,
                          (long)facts->daemon_pid);
    } else {
        doctor_report_add(report, DOCTOR_OK, "%s answers at %s", describe_kind(&facts->address),
                          facts->address.socket);
    }
    check_choice(facts, report);
}

void doctor_daemon_check_versions(const struct doctor_facts *facts, struct doctor_report *report)
{
    const char *version = facts->view.about.version_text;

    if (doctor_facts_is_startable(facts)) {
        doctor_report_add(report, DOCTOR_OK, "this is %s; no daemon is running", BERTH_VERSION);
        return;
    }
    if (!has_view(facts, report))
        return;
    if (version != NULL && strcmp(version, BERTH_VERSION) == 0) {
        doctor_report_add(report, DOCTOR_OK, "berth and the daemon are %s", BERTH_VERSION);
        return;
    }
    doctor_report_add(report, DOCTOR_WARNING, "this is %s, the daemon is %s", BERTH_VERSION,
                      version == NULL ? "of an unknown version" : version);
    if (facts->address.own && facts->daemon_pid > 0)
        doctor_report_advise(report,
                             "run: kill %ld; the next command starts it again (leases are kept)",
                             (long)facts->daemon_pid);
    else
        doctor_report_advise(report, "%s (leases are kept)",
                             pool_address_is_machine(&facts->address)
                                 ? "run as root: systemctl restart berthd"
                                 : "restart the daemon");
}

/* Advises on a right that the daemon reports as missing. */
static void advise_rights(const char *message, struct doctor_report *report)
{
    if (strstr(message, "CAP_SETUID") != NULL)
        doctor_report_advise(report,
                             "add them to the unit with systemctl edit berthd (docs/ADMIN.md, "
                             "MPS), or set mps: no in berth.yaml");
    else
        doctor_report_advise(report, "start it with its systemd unit, or as root: berthd --user "
                                     "berth");
}

/* Reports the rights of a daemon that is not the user's own. */
static void report_rights(const struct doctor_facts *facts, struct doctor_report *report)
{
    const struct problem *problem;
    struct user_names users = {0};
    size_t before = report->count;

    vector_for_each (problem, &facts->view.snapshot.problems) {
        if (strcmp(problem->backend, PROBLEM_OF_RIGHTS) != 0)
            continue;
        doctor_report_add(report, DOCTOR_WARNING, "%s", problem->message);
        advise_rights(problem->message, report);
    }
    if (facts->has_daemon_uid && facts->daemon_uid == 0) {
        doctor_report_add(report, DOCTOR_WARNING,
                          "the daemon runs as root, with more rights than it needs");
        doctor_report_advise(report, "start it with its systemd unit, or as root: berthd --user "
                                     "berth");
    }
    if (report->count == before)
        doctor_report_add(report, DOCTOR_OK, "the daemon runs as %s and lacks no right",
                          facts->has_daemon_uid ? user_names_find(&users, facts->daemon_uid)
                                                : "an unknown user");
    user_names_finish(&users);
}

void doctor_daemon_check_rights(const struct doctor_facts *facts, struct doctor_report *report)
{
    if (doctor_facts_is_startable(facts))
        doctor_report_add(report, DOCTOR_OK, "your own daemon needs none");
    else if (!has_view(facts, report))
        return;
    else if (facts->address.own)
        doctor_report_add(report, DOCTOR_OK, "your own daemon sees and ends your processes");
    else
        report_rights(facts, report);
}

/* Advises on a problem that the daemon reports. */
static void advise_problem(const struct doctor_facts *facts, const struct problem *problem,
                           struct doctor_report *report)
{
    if (strcmp(problem->backend, PROBLEM_OF_HISTORY) == 0 && doctor_history_advise(facts, report))
        return;
    if (pool_address_is_machine(&facts->address))
        doctor_report_advise(report, "see the daemon's log: journalctl -u berthd");
    else if (facts->address.own)
        doctor_report_advise(report, "see the daemon's log: %s/log", facts->address.directory);
    else
        doctor_report_advise(report, "see the daemon's log");
}

void doctor_daemon_check_problems(const struct doctor_facts *facts, struct doctor_report *report)
{
    const struct problem *problem;
    size_t before = report->count;

    if (doctor_facts_is_startable(facts)) {
        doctor_report_add(report, DOCTOR_OK, "no daemon is running");
        return;
    }
    if (!has_view(facts, report))
        return;
    vector_for_each (problem, &facts->view.snapshot.problems) {
        if (strcmp(problem->backend, PROBLEM_OF_RIGHTS) == 0)
            continue; /* shown by the check of the rights */
        doctor_report_add(report, DOCTOR_PROBLEM, "%s: %s", problem->backend, problem->message);
        advise_problem(facts, problem, report);
    }
    if (report->count == before)
        doctor_report_add(report, DOCTOR_OK, "the daemon reports no %sproblems",
                          facts->view.snapshot.problems.count == 0 ? "" : "other ");
}

static void list_squatter(const struct slot_info *slot, const struct device_process *process,
                          struct user_names *users, struct doctor_report *report)
{
    const char *user = user_names_find_optional(users, process->uid);

    doctor_report_add(report, DOCTOR_WARNING,
                      "process %" PRIu64 " (%s, %s) uses %s without a lease", process->pid,
                      user == NULL ? "unknown user" : user,
                      process->command == NULL ? "unknown command" : process->command,
                      device_id_format(slot->device->id).text);
    doctor_report_advise(report, "end it, or run as its user: berth adopt %" PRIu64, process->pid);
}

/* Reports a device that an unknown process uses, or may use. */
static void list_hidden_use(const struct slot_info *slot, struct doctor_report *report)
{
    struct text what = {0};

    if (view_append_hidden_use(&what, slot)) {
        doctor_report_add(report, DOCTOR_WARNING, "%s", text_string(&what));
        doctor_report_advise(report, "end the process where it runs, such as on the host or in "
                                     "another virtual machine, or raise squatter_memory in "
                                     "berth.yaml");
    } else if (slot->device->hides_processes) {
        doctor_report_add(
            report, DOCTOR_UNKNOWN,
            "the driver of %s cannot list processes: only used memory shows squatters",
            device_id_format(slot->device->id).text);
        doctor_report_advise(report, "on the host of this machine, look for processes on the GPU");
    }
    report->failed |= what.failed;
    text_finish(&what);
}

void doctor_daemon_check_squatters(const struct doctor_facts *facts, struct doctor_report *report)
{
    const struct device_process *process;
    const struct slot_info *slot;
    struct user_names users = {0};
    size_t before = report->count;

    if (doctor_facts_is_startable(facts)) {
        doctor_report_add(report, DOCTOR_UNKNOWN,
                          "no daemon is running, so the leases are not known");
        doctor_report_advise(report, "run berth status, which starts one, and berth doctor again");
        return;
    }
    if (!has_view(facts, report))
        return;
    vector_for_each (slot, &facts->view.snapshot.slots) {
        vector_for_each (process, &slot->device->processes) {
            if (process->squats)
                list_squatter(slot, process, &users, report);
        }
        list_hidden_use(slot, report);
    }
    if (report->count == before)
        doctor_report_add(report, DOCTOR_OK, "every process on a device has a lease");
    user_names_finish(&users);
}
