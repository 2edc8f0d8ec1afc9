/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading files that may be anything, and writing.
 */
#ifndef BASE_SYSTEM_FILE_H
#define BASE_SYSTEM_FILE_H

#include <berth/error.h>
#include <stddef.h>

#include "base/text/text.h"

/* Reads the whole of `path`, at most `limit` bytes, into `ret_content`, an initialised text whose
 * earlier content is replaced; the caller finishes it. The bytes may hold zeros. Pipes and special
 * files work as far as they end; a directory is refused. Interrupted calls go on. Fails with
 * BERTH_ERROR_LIMIT (more than `limit` bytes), _NOT_FOUND, _PERMISSION, _IO or _MEMORY; the
 * message starts with the path; ret_content is unchanged then. Blocks as long as the file does. */
int file_read(const char *path, size_t limit, struct text *ret_content, struct berth_error *error);

/* The same for what is open already, from where it stands to its end; `name` is for messages. The
 * caller closes it. */
int file_read_open(int descriptor, const char *name, size_t limit, struct text *ret_content,
                   struct berth_error *error);

/* Writes all of the bytes to what is open. Interrupted calls go on. Returns 0 or an errno; some of
 * them may be written then. Blocks as long as the file does. */
int file_write(int descriptor, const void *bytes, size_t length);

#endif
