/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of the directory of the history.
 */
#ifndef CLI_DOCTOR_DOCTOR_HISTORY_H
#define CLI_DOCTOR_DOCTOR_HISTORY_H

#include <stdbool.h>

#include "cli/doctor/doctor_facts.h"
#include "cli/doctor/doctor_report.h"

/* Adds a line about the history's directory, which the daemon names, or the configuration if no
 * daemon answers. Adds none if the daemon itself reports a problem with the history. */
void doctor_history_check(const struct doctor_facts *facts, struct doctor_report *report);

/* Sets the remedy of the last line, which has the daemon's problem with the history. Returns false
 * if the directory is not the cause. */
bool doctor_history_advise(const struct doctor_facts *facts, struct doctor_report *report);

#endif
