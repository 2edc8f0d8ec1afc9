/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of the source tree, which BERTH_SOURCE_ROOT names.
 */
#ifndef TESTS_SOURCE_ROOT_H
#define TESTS_SOURCE_ROOT_H

#include "support/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"

/* Returns the path of a file of the source tree, which the caller frees. Skips the test if
 * BERTH_SOURCE_ROOT is not set. */
static inline char *source_path(const char *name)
{
    const char *root = getenv("BERTH_SOURCE_ROOT");
    struct text path = {0};
    char *taken;

    if (root == NULL) {
        print_message("skip: BERTH_SOURCE_ROOT is not set, so %s cannot be found\n", name);
        skip();
    }
    text_append_format(&path, "%s/%s", root, name);
    taken = text_detach(&path);
    assert_non_null(taken);
    return taken;
}

/* Calls `visit` with the path of each file below the directory of the source tree whose name ends
 * in `ending`, in the order of their names. Returns how many there were. */
static inline size_t for_each_source_file(const char *directory, const char *ending,
                                          void (*visit)(const char *path))
{
    char *below = source_path(directory);
    struct dirent **entries = NULL;
    int count = scandir(below, &entries, NULL, alphasort);
    size_t visited = 0;

    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        struct text path = {0};

        text_append_format(&path, "%s/%s", below, name);
        if (strlen(name) > strlen(ending) &&
            strcmp(name + strlen(name) - strlen(ending), ending) == 0) {
            visit(text_string(&path));
            visited++;
        }
        text_finish(&path);
        free(entries[i]);
    }
    free(entries);
    free(below);
    return visited;
}

#endif
