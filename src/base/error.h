/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills in a caller's `struct berth_error`: set it where the failure is found, wrap it on the way
 * up. `error` may be NULL; then only the code is returned. These functions never allocate and never
 * block. Two threads must not share one `struct berth_error`.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <berth/error.h>

/* Stores the code and a message, and replaces earlier ones. Returns `code`, so that a function can
 * end with `return error_set(error, BERTH_ERROR_RANGE, "...")`. Control characters and invalid
 * UTF-8 are replaced by '?'. A message that is too long is cut and ends in "...". */
int error_set(struct berth_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts a prefix and ": " before the message, and stores `code`, which is usually the code that the
 * callee returned. An error without a message gets the prefix alone. Returns `code`. */
int error_wrap(struct berth_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets an error for an errno value: "<formatted>: <strerror>". EACCES and EPERM become
 * BERTH_ERROR_PERMISSION, ENOENT and ENOTDIR BERTH_ERROR_NOT_FOUND, ENOMEM BERTH_ERROR_MEMORY, the
 * rest BERTH_ERROR_IO. Returns the code. */
int error_set_errno(struct berth_error *error, int number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets the error of a failed allocation. Returns BERTH_ERROR_MEMORY. */
int error_set_memory(struct berth_error *error);

#endif
