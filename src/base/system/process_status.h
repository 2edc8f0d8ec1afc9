/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the text of /proc/PID/status. The kernel shows this file even while the process is inside
 * execve(), unlike /proc/PID/stat.
 */
#ifndef BASE_SYSTEM_PROCESS_STATUS_H
#define BASE_SYSTEM_PROCESS_STATUS_H

#include <sys/types.h>

#include "base/text/span.h"

/* Returns the value of a line "Key:\tvalue", without blanks around it, or an empty span. The
 * process chooses its name, which comes first, but the kernel escapes newlines. */
struct span process_status_find(struct span status, const char *key);

/* Returns the parent's pid, or 0. */
pid_t process_status_parent(struct span status);

#endif
