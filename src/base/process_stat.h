/* SPDX-License-Identifier: Apache-2.0
 *
 * What /proc/PID/stat, and status, say of a process. Any thread may call these.
 */
#ifndef BASE_PROCESS_STAT_H
#define BASE_PROCESS_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The fields behind the name, which may hold anything: " S 1 ..." begins with the state, the third
 * field. They are in `buffer`; NULL: there is no such process. */
const char *process_stat_fields(pid_t pid, char *buffer, size_t size);

/* The user whose process it is (the real one: a program with rights of its own does not change
 * that). Returns false when there is no such process. */
bool process_stat_user(pid_t pid, uint32_t *ret_uid);

/* The parent; 0: there is no such process. */
pid_t process_stat_parent(pid_t pid);

#endif
