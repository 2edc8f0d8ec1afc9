/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of the pool's daemon and of the state that it reports.
 */
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/system/program.h"
#include "base/system/user_names.h"
#include "cli/doctor/doctor_checks.h"
#include "view/view_facts.h"

enum { CHILDREN_MAX = 4096, STATUS_MAX = 16384 };

/* Returns whether the pool's state is known. If not, adds a line. */
static bool has_view(const struct doctor_facts *facts, struct doctor_report *report)
{
    if (facts->address_error.code == 0 && facts->daemon_error.code == 0)
        return true;
    doctor_report_add(report, DOCTOR_UNKNOWN, "no daemon answers");
    return false;
}

/* Returns whether the daemon is absent, and may be. */
static bool is_startable(const struct doctor_facts *facts)
{
    return facts->address.own && facts->daemon_error.code == BERTH_ERROR_NOT_FOUND;
}

static const char *describe_kind(const struct pool_address *address)
{
    if (pool_address_is_machine(address))
        return "the machine's daemon";
    return address->own ? "your own daemon" : "the daemon of BERTH_SOCKET";
}

/* A daemon that is started on demand must exist as a program. */
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

/* BERTH_SOCKET may lead to another pool than that of all other users. */
static void check_choice(const struct doctor_facts *facts, struct doctor_report *report)
{
    if (facts->is_virtual || pool_address_is_machine(&facts->address) ||
        access(POOL_MACHINE_SOCKET, F_OK) < 0)
        return;
    doctor_report_add(report, DOCTOR_WARNING, "this machine has a pool for all users at %s",
                      POOL_MACHINE_SOCKET);
    doctor_report_advise(report, "use it: unset BERTH_SOCKET");
}

/* Reports that the address of the pool cannot be found. */
static void report_address(const struct berth_error *error, struct doctor_report *report)
{
    doctor_report_add_error(report, "", error,
                            error->code == BERTH_ERROR_INVALID
                                ? "correct the variable, or unset it"
                                : "run as root: chmod 0755 /run/berth");
}

/* Reports a daemon that does not run or does not answer. */
static void report_failure(const struct doctor_facts *facts, struct doctor_report *report)
{
    bool is_missing = facts->daemon_error.code == BERTH_ERROR_NOT_FOUND;
    const char *remedy;

    if (pool_address_is_machine(&facts->address))
        remedy = is_missing ? "start it: systemctl start berth.socket"
                            : "see systemctl status berth.socket berthd";
    else if (facts->address.own)
        remedy = "see the file log beside the socket";
    else
        remedy =
            is_missing ? "start it, or unset BERTH_SOCKET" : "correct BERTH_SOCKET, or unset it";
    doctor_report_add_error(report, "", &facts->daemon_error, remedy);
}

void doctor_daemon_check_reachable(const struct doctor_facts *facts, struct doctor_report *report)
{
    if (facts->address_error.code != 0) {
        report_address(&facts->address_error, report);
        return;
    }
    if (is_startable(facts)) {
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

    if (is_startable(facts)) {
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

/* Reads the number after `field` in the file /proc/PID/status. Returns false if there is none. */
static bool read_status(const char *status, const char *field, int base, uint64_t *ret_number)
{
    const char *at = strstr(status, field);

    if (at == NULL)
        return false;
    *ret_number = strtoull(at + strlen(field), NULL, base);
    return true;
}

/* Reads the uid and the effective capabilities of a process, and whether it has this name. Returns
 * false if it cannot. */
static bool read_process(long pid, const char *name, uint64_t *ret_uid, uint64_t *ret_capabilities)
{
    struct text status = {0};
    char path[64];
    char line[64];
    bool is_read;

    snprintf(path, sizeof(path), "/proc/%ld/status", pid);
    snprintf(line, sizeof(line), "Name:\t%s\n", name);
    is_read = file_read(path, STATUS_MAX, &status, NULL) == 0 &&
              strncmp(text_string(&status), line, strlen(line)) == 0 &&
              read_status(text_string(&status), "\nUid:", 10, ret_uid) &&
              read_status(text_string(&status), "\nCapEff:", 16, ret_capabilities);
    text_finish(&status);
    return is_read;
}

/* Returns the capabilities of the daemon's launcher (berthd(8), PRIVILEGES); 0: it has none. */
static uint64_t find_launcher_capabilities(long daemon)
{
    struct text children = {0};
    char path[64];
    char *at;
    char *end;
    uint64_t uid;
    uint64_t capabilities = 0;

    snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", daemon, daemon);
    if (file_read(path, CHILDREN_MAX, &children, NULL) == 0) {
        at = children.bytes;
        for (long pid; at != NULL && (pid = strtol(at, &end, 10)) > 0; at = end) {
            if (read_process(pid, "berth-launcher", &uid, &capabilities))
                break;
            capabilities = 0;
        }
    }
    text_finish(&children);
    return capabilities;
}

/* The machine's daemon must be able to see and to signal the processes of all users. */
static void report_rights(uint64_t uid, uint64_t capabilities, struct doctor_report *report)
{
    struct user_names users = {0};
    const char *user = user_names_find(&users, (uint32_t)uid);
    bool signals = (capabilities >> CAP_KILL & 1) != 0;
    bool sees = (capabilities >> CAP_SYS_PTRACE & 1) != 0;

    if (signals && sees)
        doctor_report_add(report, DOCTOR_OK,
                          "the daemon runs as %s; it sees and may end the processes of all users",
                          user);
    if (!signals)
        doctor_report_add(report, DOCTOR_WARNING,
                          "the daemon runs as %s and may not end the processes of other users: "
                          "what is left of their jobs keeps devices busy",
                          user);
    else if (!sees)
        doctor_report_add(report, DOCTOR_WARNING,
                          "the daemon runs as %s and does not see the processes of other users: "
                          "it finds neither squatters nor what is left of jobs",
                          user);
    if (!signals || !sees)
        doctor_report_advise(report, "start it with its systemd unit, or as root: berthd --user "
                                     "berth");
    user_names_finish(&users);
}

void doctor_daemon_check_rights(const struct doctor_facts *facts, struct doctor_report *report)
{
    uint64_t uid;
    uint64_t capabilities;

    if (is_startable(facts)) {
        doctor_report_add(report, DOCTOR_OK, "your own daemon needs none");
        return;
    }
    if (!has_view(facts, report))
        return;
    if (facts->daemon_pid == 0)
        doctor_report_add(report, DOCTOR_UNKNOWN, "the daemon runs in another pid namespace");
    else if (!read_process((long)facts->daemon_pid, "berthd", &uid, &capabilities))
        doctor_report_add(report, DOCTOR_UNKNOWN, "cannot read /proc/%ld/status",
                          (long)facts->daemon_pid);
    else if (facts->address.own && uid == geteuid())
        doctor_report_add(report, DOCTOR_OK, "your own daemon sees and ends your processes");
    else
        report_rights(uid, capabilities | find_launcher_capabilities((long)facts->daemon_pid),
                      report);
}

void doctor_daemon_check_problems(const struct doctor_facts *facts, struct doctor_report *report)
{
    const struct problem *problem;
    size_t count = 0;

    if (is_startable(facts)) {
        doctor_report_add(report, DOCTOR_OK, "no daemon is running");
        return;
    }
    if (!has_view(facts, report))
        return;
    vector_for_each (problem, &facts->view.snapshot.problems) {
        doctor_report_add(report, DOCTOR_PROBLEM, "%s: %s", problem->backend, problem->message);
        if (pool_address_is_machine(&facts->address))
            doctor_report_advise(report, "see the daemon's log: journalctl -u berthd");
        else if (facts->address.own)
            doctor_report_advise(report, "see the daemon's log: %s/log", facts->address.directory);
        else
            doctor_report_advise(report, "see the daemon's log");
        count++;
    }
    if (count == 0)
        doctor_report_add(report, DOCTOR_OK, "the daemon reports no problems");
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

    if (is_startable(facts)) {
        doctor_report_add(report, DOCTOR_UNKNOWN, "no daemon is running");
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
