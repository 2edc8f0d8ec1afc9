/* SPDX-License-Identifier: Apache-2.0
 *
 * A directory for one test, below $TMPDIR or /tmp.
 */
#ifndef TESTS_TEMPORARY_DIRECTORY_H
#define TESTS_TEMPORARY_DIRECTORY_H

#include "support/unit.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A setup function for cmocka: makes the directory and changes into it. The state is its path. */
static inline int temporary_directory_enter(void **state)
{
    const char *parent = getenv("TMPDIR");
    char *path;

    if (parent == NULL || parent[0] != '/')
        parent = "/tmp";
    if (asprintf(&path, "%s/berth-test-XXXXXX", parent) < 0)
        return -1;
    if (mkdtemp(path) == NULL || chdir(path) < 0) {
        free(path);
        return -1;
    }
    *state = path;
    return 0;
}

static inline int temporary_directory_remove(const char *path, const struct stat *status, int kind,
                                             struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

/* The teardown function, which cmocka also calls after a failure: removes it with all content. */
static inline int temporary_directory_leave(void **state)
{
    char *path = *state;
    int result = chdir("/");

    if (nftw(path, temporary_directory_remove, 8, FTW_DEPTH | FTW_PHYS) < 0)
        result = -1;
    free(path);
    return result;
}

#endif
