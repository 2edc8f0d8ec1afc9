/* SPDX-License-Identifier: Apache-2.0
 *
 * berth doctor --self-test: leases each free device for a moment, and tests the facts that only a
 * machine with a real GPU can show (docs/HARDWARE-CHECKS.md).
 */
#ifndef CLI_DOCTOR_DOCTOR_SELF_TEST_H
#define CLI_DOCTOR_DOCTOR_SELF_TEST_H

#include "cli/doctor/doctor_facts.h"
#include "cli/doctor/doctor_report.h"

/* Runs all tests on all devices, and adds a line for each. Starts the user's own daemon if it does
 * not run. Blocks for seconds per device. */
void doctor_self_test_run(const struct doctor_facts *facts, struct doctor_report *report);

#endif
