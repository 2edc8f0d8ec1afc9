/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the program's name in a command line. Pure.
 */
#ifndef BASE_TEXT_PROGRAM_NAME_H
#define BASE_TEXT_PROGRAM_NAME_H

#include <stddef.h>

/* Returns where the name begins in "/usr/bin/python3 train.py", and sets its length: "python3". A
 * command without a word has an empty name. */
const char *program_name_find(const char *command, size_t *ret_length);

/* Returns the name in memory that the caller frees; NULL for NULL, or without memory. */
char *program_name_copy(const char *command);

#endif
