/* SPDX-License-Identifier: Apache-2.0
 *
 * A library that is loaded while running, as those of vendors are.
 */
#ifndef BASE_SYSTEM_LIBRARY_H
#define BASE_SYSTEM_LIBRARY_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>

/* A function of the library and where its pointer goes. */
struct library_symbol {
    const char *name;
    size_t offset; /* in the caller's struct of function pointers */
    bool required;
};

/* Loads the library and puts the functions' addresses into `functions`, NULL for those that it
 * lacks. `file` is a name for the loader or a path. Fails with BERTH_ERROR_NOT_FOUND (there is
 * none), _INVALID (it cannot be loaded, or lacks a required function). *ret_library is for
 * library_close. */
int library_open(const char *file, const struct library_symbol *symbols, size_t count,
                 void *functions, void **ret_library, struct berth_error *error);
void library_close(void *library);

#endif
