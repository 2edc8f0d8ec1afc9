/* SPDX-License-Identifier: Apache-2.0
 *
 * Check of the configuration that the pool reads when its daemon starts.
 */
#include <unistd.h>

#include "cli/doctor/doctor_checks.h"

/* Reports a file that the daemon does not accept, or that this user cannot read. */
static void report_error(const struct doctor_facts *facts, struct doctor_report *report)
{
    const char *path = text_string(&facts->configuration_path);

    if (facts->configuration_error.code != BERTH_ERROR_PERMISSION) {
        doctor_report_add(report, DOCTOR_PROBLEM, "%s", facts->configuration_error.message);
        doctor_report_advise(
            report, "correct the file, then run: berth daemon --check-config --config %s", path);
    } else if (facts->reads_own_configuration) {
        doctor_report_add(report, DOCTOR_PROBLEM, "%s", facts->configuration_error.message);
        doctor_report_advise(report,
                             "make it readable for you, or set HOME or XDG_CONFIG_HOME to a "
                             "directory of yours");
    } else {
        doctor_report_add(report, DOCTOR_UNKNOWN, "%s", facts->configuration_error.message);
        doctor_report_advise(report, "ask an administrator to run: berth daemon --check-config");
    }
}

void doctor_configuration_check(const struct doctor_facts *facts, struct doctor_report *report)
{
    const char *path = text_string(&facts->configuration_path);

    if (facts->configuration_error.code != 0)
        report_error(facts, report);
    else if (*path == '\0')
        doctor_report_add(report, DOCTOR_OK, "no file, as HOME is not set: the defaults apply");
    else if (access(path, F_OK) < 0)
        doctor_report_add(report, DOCTOR_OK, "%s does not exist: the defaults apply%s", path,
                          facts->reads_own_configuration ? ""
                                                         : ", unless berthd runs with --config");
    else
        doctor_report_add(report, DOCTOR_OK, "%s is valid", path);
}
