/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which processes squat, that is, use a device without a lease on it. Processes that only
 * draw on a screen, and programs that maintain the devices, do not count.
 */
#ifndef DAEMON_PROCESSES_SQUATTERS_H
#define DAEMON_PROCESSES_SQUATTERS_H

#include <stdbool.h>
#include <sys/types.h>

struct device;
struct device_process;
struct string_list;

/* Returns whether the process on the device squats. `more` are names of further programs that never
 * count; `daemon` is the daemon's pid: its own processes do not count either. */
bool squatters_has(const struct device *device, const struct device_process *process,
                   const struct string_list *more, pid_t daemon);

/* Returns whether a program of this command line never counts, by its name. */
bool squatters_excepts(const char *command, const struct string_list *more);

#endif
