/* SPDX-License-Identifier: Apache-2.0
 *
 * What /proc/PID/stat says of a process. Any thread may call these.
 */
#ifndef BASE_SYSTEM_PROCESS_STAT_H
#define BASE_SYSTEM_PROCESS_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The fields behind the name, which may hold anything: " S 1 ..." begins with the state, the third
 * field. They are in `buffer`; NULL: there is no such process. */
const char *process_stat_fields(pid_t pid, char *buffer, size_t size);

/* The state in them: 'R', 'S', 'T', 'Z', ...; 0: they are not of the form. */
char process_stat_state(const char *fields);

/* Whether the state says that it has ended and is only waited for. */
bool process_stat_has_ended(const char *fields);

/* The field of this number, counted from 1 as proc(5) does and behind the state, as a whole number;
 * 0 where there is none. */
uint64_t process_stat_number(const char *fields, int number);

/* How long ago it began, in nanoseconds, as exactly as the kernel's ticks tell. */
int64_t process_stat_age(const char *fields);

/* The parent; 0: there is no such process. */
pid_t process_stat_parent(pid_t pid);

/* When the process began, in clock ticks since boot; 0: there is no such process, or it has ended
 * and is only waited for. */
uint64_t process_stat_started(pid_t pid);

#endif
