/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads shared libraries at run time, such as those of GPU vendors.
 */
#ifndef BASE_SYSTEM_LIBRARY_H
#define BASE_SYSTEM_LIBRARY_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>

/* A function of the library. */
struct library_symbol {
    const char *name;
    size_t offset; /* of its pointer in the caller's struct of function pointers */
    bool required;
};

/* Loads the library and stores the functions' addresses in `functions`, NULL for each function that
 * the library lacks. `file` is a path, or a name that the loader searches for. The caller closes
 * *ret_library with library_close. Fails with BERTH_ERROR_NOT_FOUND (no such library) or _INVALID
 * (it cannot be loaded, or lacks a required function). */
int library_open(const char *file, const struct library_symbol *symbols, size_t count,
                 void *functions, void **ret_library, struct berth_error *error);
void library_close(void *library);

#endif
