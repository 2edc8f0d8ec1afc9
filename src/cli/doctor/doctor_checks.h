/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of berth doctor. Each file has a group of checks; doctor.c has the table.
 */
#ifndef CLI_DOCTOR_DOCTOR_CHECKS_H
#define CLI_DOCTOR_DOCTOR_CHECKS_H

#include "cli/doctor/doctor_facts.h"
#include "cli/doctor/doctor_report.h"

/* Adds one or more lines to the report. */
typedef void doctor_check_run(const struct doctor_facts *facts, struct doctor_report *report);

struct doctor_check {
    const char *name; /* shown, and a key of the JSON document */
    doctor_check_run *run;
};

/* doctor_hardware.c */
doctor_check_run doctor_hardware_check_drivers;
doctor_check_run doctor_hardware_check_files;
doctor_check_run doctor_hardware_check_probe;

/* doctor_daemon.c */
doctor_check_run doctor_daemon_check_reachable;
doctor_check_run doctor_daemon_check_versions;
doctor_check_run doctor_daemon_check_rights;
doctor_check_run doctor_daemon_check_problems;
doctor_check_run doctor_daemon_check_squatters;

/* doctor_configuration.c */
doctor_check_run doctor_configuration_check;

/* doctor_environment.c */
doctor_check_run doctor_environment_check_masks;
doctor_check_run doctor_environment_check_clock;

/* doctor_directories.c */
doctor_check_run doctor_directories_check;

#endif
