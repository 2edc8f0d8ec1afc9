/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of directories that berth writes to.
 */
#ifndef CLI_DOCTOR_DOCTOR_DIRECTORIES_H
#define CLI_DOCTOR_DOCTOR_DIRECTORIES_H

#include "cli/doctor/doctor_report.h"

/* Checks a directory of the user, which is created when it is needed: adds a line that begins with
 * `what`. `variable` can name another directory. */
void doctor_directories_check_own(const char *what, const char *path, const char *variable,
                                  struct doctor_report *report);

/* Adds a warning if the disk of an existing directory is nearly full. */
void doctor_directories_check_space(const char *directory, struct doctor_report *report);

#endif
