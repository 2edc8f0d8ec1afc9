/* SPDX-License-Identifier: Apache-2.0
 *
 * The subcommands of berth sim, one file each.
 */
#ifndef CLI_PROGRAMS_SIM_VERBS_H
#define CLI_PROGRAMS_SIM_VERBS_H

/* Run the subcommand. argv[0] is its name. Return the exit code. */
int sim_place_run(int argc, char **argv);
int sim_queue_run(int argc, char **argv);

#endif
