/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads files of any kind, and writes files.
 */
#ifndef BASE_SYSTEM_FILE_H
#define BASE_SYSTEM_FILE_H

#include <berth/error.h>
#include <stddef.h>

#include "base/text/text.h"

/* Reads all of `path`, at most `limit` bytes, into *ret_content, an initialised text, which the
 * caller finishes. Its earlier content is replaced. The content may include zero bytes. Pipes and
 * special files work if they end. A directory is refused. Fails with BERTH_ERROR_LIMIT (more than
 * `limit` bytes), _NOT_FOUND, _PERMISSION, _IO or _MEMORY; the message starts with the path, and
 * *ret_content is untouched then. Blocks as long as reading the file does. */
int file_read(const char *path, size_t limit, struct text *ret_content, struct berth_error *error);

/* Reads an open descriptor in the same way, from its current position to its end. `name` is for
 * messages. The caller closes the descriptor. */
int file_read_open(int descriptor, const char *name, size_t limit, struct text *ret_content,
                   struct berth_error *error);

/* Writes all bytes to an open descriptor. Returns 0, or an errno; a part of the bytes may be
 * written then. Blocks as long as writing does. */
int file_write(int descriptor, const void *bytes, size_t length);

#endif
