/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine's files: below /, or below the directory of a recorded machine (BERTH_SYSROOT). Paths
 * begin with a slash and are those of the machine: "/sys/class/drm". Everything read is anybody's
 * bytes: it is bounded and parsed strictly. Any of these may block for as long as a driver does.
 */
#ifndef HARDWARE_SYSFS_SYSROOT_H
#define HARDWARE_SYSFS_SYSROOT_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/string_list.h"
#include "base/text/text.h"
#include "model/optional.h"

struct sysroot {
    char *prefix;  /* "" for the machine itself; no slash at the end */
    bool recorded; /* device files and processes are not this machine's */
};

/* By BERTH_SYSROOT. Fails with BERTH_ERROR_MEMORY. */
int sysroot_init(struct sysroot *root, struct berth_error *error);
void sysroot_finish(struct sysroot *root);

/* The longest value that is taken from a file; what follows is cut. A page is what sysfs gives. */
#define SYSROOT_VALUE_SIZE 4097

struct sysroot_value {
    char text[SYSROOT_VALUE_SIZE]; /* terminated; without the blanks and newlines at its end */
    size_t length;                 /* there may be zero bytes within, in what lies */
};

/* Reads a file: `format` makes its path. Returns 0, or a negative errno (-ENOENT and so on) with an
 * empty value. */
int sysroot_read(const struct sysroot *root, struct sysroot_value *ret_value, const char *format,
                 ...) __attribute__((format(printf, 3, 4)));

/* Opens a directory, so that much below it is read at little cost. Returns a descriptor, which the
 * caller closes, or a negative errno. */
int sysroot_open(const struct sysroot *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* sysroot_read of the file `path` below such a directory; no slash at its beginning. */
int sysroot_read_at(int directory, const char *path, struct sysroot_value *ret_value);

/* Reads a file of at most `most` bytes (what follows is cut) after what `out` holds. Returns as
 * sysroot_read, -ENOMEM included. */
int sysroot_read_text(const struct sysroot *root, size_t max, struct text *out, const char *format,
                      ...) __attribute__((format(printf, 4, 5)));

/* A file that holds one number: decimal, or hexadecimal after 0x. Unknown when it cannot be read,
 * is something else, or does not fit. */
struct optional_number sysroot_number(const struct sysroot *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same where it may be negative; returns whether it is known. */
bool sysroot_signed(const struct sysroot *root, int64_t *ret_number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A file that holds hexadecimal digits without 0x in front; returns whether it is known. */
struct optional_number sysroot_hexadecimal(const struct sysroot *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds the names in a directory, without those that begin with a dot, numbers within names by value
 * (card2 before card10). At most SYSROOT_NAMES_MAX. Returns as sysroot_read. */
#define SYSROOT_NAMES_MAX 65536
int sysroot_list(const struct sysroot *root, struct string_list *ret_names, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The last part of what a symbolic link names (driver -> .../amdgpu gives amdgpu). NULL when there
 * is no link or no memory; the caller frees it. */
char *sysroot_link_name(const struct sysroot *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The path with all links resolved, still as the machine's: "/sys/devices/...". Links that lead out
 * of a recorded machine lead nowhere. NULL when there is nothing or no memory; the caller frees it.
 */
char *sysroot_resolve(const struct sysroot *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether there is something; never opens it. */
bool sysroot_has(const struct sysroot *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
