/* SPDX-License-Identifier: Apache-2.0
 *
 * The programs that belong together.
 */
#ifndef BASE_SYSTEM_PROGRAM_H
#define BASE_SYSTEM_PROGRAM_H

#include <stddef.h>

/* Where a program of ours is: beside the one that runs, else where they are installed. The path is
 * cut when there is no room for it. Any thread may call it. */
void program_find(const char *name, char *path, size_t size);

#endif
