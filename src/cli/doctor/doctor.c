/* SPDX-License-Identifier: Apache-2.0
 *
 * berth doctor: checks the machine and prints one line for each check, with the remedy.
 */
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "cli/connect.h"
#include "cli/doctor/doctor_checks.h"
#include "cli/doctor/doctor_holder.h"
#include "cli/doctor/doctor_self_test.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "spec/option_types.h"

/* The checks in the order of the output. */
static const struct doctor_check checks[] = {
    {"drivers", doctor_hardware_check_drivers},    {"probe", doctor_hardware_check_probe},
    {"device files", doctor_hardware_check_files}, {"daemon", doctor_daemon_check_reachable},
    {"versions", doctor_daemon_check_versions},    {"rights", doctor_daemon_check_rights},
    {"pool", doctor_daemon_check_problems},        {"squatters", doctor_daemon_check_squatters},
    {"configuration", doctor_configuration_check}, {"masks", doctor_environment_check_masks},
    {"directories", doctor_directories_check},     {"clock", doctor_environment_check_clock},
};

struct doctor_options {
    bool json;
    bool self_test;
    bool holds; /* this process is the program of a self-test */
};

static const struct option doctor_rows[] = {
    {.name = "json",
     .help = "print JSON",
     .offset = offsetof(struct doctor_options, json),
     .parse = option_type_flag},
    {.name = "self-test",
     .help = "test each free device; needs a real GPU",
     .offset = offsetof(struct doctor_options, self_test),
     .parse = option_type_flag},
    {.name = "hold-device",
     .help = "the program of a self-test",
     .offset = offsetof(struct doctor_options, holds),
     .hidden = true,
     .parse = option_type_flag},
};

static const struct option_set doctor_option_set = {
    .heading = "Options",
    .options = doctor_rows,
    .count = COUNT(doctor_rows),
};

static void run_checks(const struct doctor_facts *facts, struct doctor_report *report)
{
    for (size_t i = 0; i < COUNT(checks); i++) {
        report->check = checks[i].name;
        checks[i].run(facts, report);
    }
}

/* Prints the report. Returns the exit code. */
static int print_report(const struct doctor_report *report, bool json)
{
    const struct terminal terminal = terminal_detect(STDOUT_FILENO);
    struct text out = {0};
    int code;

    if (json)
        doctor_report_write_json(report, &out);
    else
        doctor_report_write(report, &terminal, &out);
    code = output_write(&out);
    text_finish(&out);
    return code != EXIT_GOOD || !doctor_report_has_problem(report) ? code : EXIT_FOUND_PROBLEM;
}

static int run_doctor_verb(int argc, char **argv)
{
    struct doctor_options options = {0};
    struct connect_options where = {0};
    const struct option_binding bindings[] = {
        {&doctor_option_set, &options},
        {&connect_option_set, &where},
    };
    struct berth_error error = BERTH_ERROR_INIT;
    struct doctor_report report = {0};
    struct doctor_facts facts;
    int code;

    if (!verb_begin(&verb_doctor, bindings, COUNT(bindings), argc, argv, &code))
        return code;
    if (options.holds)
        return doctor_holder_run();
    code = doctor_facts_gather(&facts, where.inventory, &error);
    if (code < 0) {
        error_wrap(&error, code, "doctor");
        code = output_error(&error);
    } else {
        if (options.self_test)
            doctor_self_test_run(&facts, &report);
        else
            run_checks(&facts, &report);
        code = print_report(&report, options.json);
    }
    doctor_report_finish(&report);
    doctor_facts_finish(&facts);
    return code;
}

static const struct option_set *const doctor_sets[] = {&doctor_option_set, &connect_option_set,
                                                       NULL};

const struct verb verb_doctor = {
    .name = "doctor",
    .usage = "[--self-test] [--json]",
    .summary = "check the machine and report problems",
    .description = "Checks drivers, device files, the probe, the daemon and its rights, the "
                   "configuration, the environment, directories and the clock. Prints one line for "
                   "each: ok, warning, "
                   "problem or unknown, then the remedy. Changes nothing and starts no daemon. "
                   "--self-test leases each free device for a moment instead, and tests what only "
                   "a real GPU can show. The exit code is 1 if there is a problem or a test "
                   "failed, otherwise 0.",
    .examples = "berth doctor\n"
                "berth doctor --self-test\n"
                "berth doctor --json | jq '.checks[] | select(.state == \"problem\")'\n",
    .sets = doctor_sets,
    .run = run_doctor_verb,
};
