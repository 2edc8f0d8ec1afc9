/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal beside the socket: records one after the other in a file that is mapped into memory,
 * so that writing one down is copying it. It survives the daemon, not the machine, and needs not
 * to: a machine that goes down takes every holder with it. Disk space is taken ahead of what is
 * written; when there is none left, what cannot be written down is kept, and `behind` says that
 * nothing may be answered before it is. Bytes after the last record are zero.
 */
#ifndef DAEMON_JOURNAL_FILE_H
#define DAEMON_JOURNAL_FILE_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text/text.h"

struct journal_file {
    int descriptor;     /* -1: none */
    unsigned char *map; /* of its end, from `mapped` on: what is written is not looked at again */
    size_t mapped;
    size_t size;
    size_t used;
    size_t first;        /* how much it held when it was made */
    struct text waiting; /* what found no room */
};

#define JOURNAL_FILE_INIT \
    {                     \
        .descriptor = -1  \
    }

/* Makes a new file of `content`, with room for more, and puts it in the place of `path` in one
 * step; `file` goes on with it. Fails with BERTH_ERROR_IO, _PERMISSION or _MEMORY: then `path` and
 * `file` are as before. */
int journal_file_make(struct journal_file *file, const char *path, const struct text *content,
                      struct berth_error *error);
void journal_file_finish(struct journal_file *file);

/* Whether there is room for `need` bytes and then some, taken now if it was not. Fails with
 * BERTH_ERROR_IO: "No space left on device". */
int journal_file_reserve(struct journal_file *file, size_t need, struct berth_error *error);

void journal_file_append(struct journal_file *file, const void *bytes, size_t length);

/* Whether something waits for room; tries again to write it down. */
bool journal_file_is_behind(struct journal_file *file);

/* Whether it has grown so much that it is worth making it anew. */
bool journal_file_is_long(const struct journal_file *file);

#endif
