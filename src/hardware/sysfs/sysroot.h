/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine's files, below / or below the directory of a recorded machine (BERTH_SYSROOT). Paths
 * begin with a slash and are those of the machine: "/sys/class/drm". File contents are not trusted:
 * they are bounded and parsed strictly. Each function may block for as long as a driver does.
 */
#ifndef HARDWARE_SYSFS_SYSROOT_H
#define HARDWARE_SYSFS_SYSROOT_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/optional.h"
#include "base/string_list.h"
#include "base/text/text.h"

struct sysroot {
    char *prefix;  /* "" for this machine; without a slash at the end */
    bool recorded; /* device files and processes do not belong to this machine */
};

/* Initialises it from BERTH_SYSROOT. Fails with BERTH_ERROR_MEMORY. */
int sysroot_init(struct sysroot *root, struct berth_error *error);
void sysroot_finish(struct sysroot *root);

/* The maximum size of a value; the rest is cut off. Sysfs gives at most a page. */
#define SYSROOT_VALUE_SIZE 4097

struct sysroot_value {
    char text[SYSROOT_VALUE_SIZE]; /* terminated, without blanks and newlines at the end */
    size_t length;                 /* the value may contain zero bytes */
};

/* Reads a file; `format` and its arguments give the path. Returns 0, or a negative errno (such as
 * -ENOENT) with an empty value. */
int sysroot_read(const struct sysroot *root, struct sysroot_value *ret_value, const char *format,
                 ...) __attribute__((format(printf, 3, 4)));

/* Opens a directory, so that many files below it can be read faster. Returns a descriptor, which
 * the caller closes, or a negative errno. */
int sysroot_open(const struct sysroot *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Like sysroot_read(), for the file `path` below such a directory; `path` has no leading slash. */
int sysroot_read_at(int directory, const char *path, struct sysroot_value *ret_value);

/* Appends at most `max` bytes of a file to `out`; the rest is cut off. Returns like sysroot_read(),
 * or -ENOMEM. */
int sysroot_read_text(const struct sysroot *root, size_t max, struct text *out, const char *format,
                      ...) __attribute__((format(printf, 4, 5)));

/* Reads a file with one number: decimal, or hexadecimal after 0x. Unknown if it cannot be read, is
 * not a number, or does not fit. */
struct optional_number sysroot_number(const struct sysroot *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for a number that may be negative. Returns whether it is known. */
bool sysroot_signed(const struct sysroot *root, int64_t *ret_number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Reads a file with hexadecimal digits without 0x. */
struct optional_number sysroot_hexadecimal(const struct sysroot *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds the names in a directory, without those that begin with a dot, at most SYSROOT_NAMES_MAX.
 * Numbers in names are ordered by value (card2 before card10). Returns like sysroot_read(), or
 * -ENOMEM. */
#define SYSROOT_NAMES_MAX 65536
int sysroot_list(const struct sysroot *root, struct string_list *ret_names, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns the last component of a symbolic link's target (driver -> .../amdgpu gives amdgpu). NULL
 * if there is no link or if memory ran out. The caller frees it. */
char *sysroot_link_name(const struct sysroot *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns the path with all links resolved, as a path of the machine: "/sys/devices/...". NULL if
 * it does not exist, leads out of a recorded machine, or if memory ran out. The caller frees it. */
char *sysroot_resolve(const struct sysroot *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns whether the path exists. Never opens it. */
bool sysroot_has(const struct sysroot *root, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
