/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds berth's programs.
 */
#ifndef BASE_SYSTEM_PROGRAM_H
#define BASE_SYSTEM_PROGRAM_H

#include <stddef.h>

/* Finds a program in the directory of the running program, or else where berth is installed. The
 * path is cut when it does not fit. Any thread may call it. */
void program_find(const char *name, char *path, size_t size);

#endif
