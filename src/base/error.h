/* SPDX-License-Identifier: Apache-2.0
 *
 * Filling in a caller's `struct berth_error`: set it where the failure is found, wrap it on the
 * way up. All functions take a NULL error (then only the code travels), never allocate and never
 * block. Two threads must not share one buffer.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <berth/error.h>

/* Stores the code and a message, replacing what was there. Returns `code`, so that a function can
 * end with `return error_set(error, BERTH_ERROR_RANGE, "...")`. Bytes that would break a line or a
 * terminal (control characters, broken UTF-8) come out as '?'. */
int error_set(struct berth_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts a prefix and ": " before the message that is there and stores `code`, usually the one that
 * came from below. An error that was never set becomes just the prefix. Returns `code`. */
int error_wrap(struct berth_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* error_set for an errno value: "<formatted>: <strerror>". EACCES and EPERM become
 * BERTH_ERROR_PERMISSION, ENOENT and ENOTDIR BERTH_ERROR_NOT_FOUND, ENOMEM BERTH_ERROR_MEMORY,
 * the rest BERTH_ERROR_IO. Returns the code. */
int error_set_errno(struct berth_error *error, int number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* error_set for a failed allocation. Returns BERTH_ERROR_MEMORY. */
int error_set_memory(struct berth_error *error);

#endif
