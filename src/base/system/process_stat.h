/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads /proc/PID/stat. Any thread may call these.
 */
#ifndef BASE_SYSTEM_PROCESS_STAT_H
#define BASE_SYSTEM_PROCESS_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads the fields after the name into `buffer`. Returns them, beginning with the state, the third
 * field: " S 1 ...". Returns NULL when there is no such process. The name may contain anything, so
 * the fields before it cannot be parsed with the others. */
const char *process_stat_fields(pid_t pid, char *buffer, size_t size);

/* Returns the state, 'R', 'S', 'T', 'Z' or another, or 0 when the fields cannot be parsed. */
char process_stat_state(const char *fields);

/* Returns whether the process is a zombie or dead. */
bool process_stat_has_ended(const char *fields);

/* Returns the number in a field, or 0 when there is none. Fields are counted from 1 as in proc(5),
 * and must be after the state. */
uint64_t process_stat_number(const char *fields, int number);

/* Returns the time since the process started in nanoseconds, with the precision of clock ticks. */
int64_t process_stat_age(const char *fields);

/* Returns the parent's pid, or 0 when there is no such process. */
pid_t process_stat_parent(pid_t pid);

/* Returns the time when the process started, in clock ticks since boot, or 0 when there is no such
 * process, or it is a zombie or dead. */
uint64_t process_stat_started(pid_t pid);

#endif
