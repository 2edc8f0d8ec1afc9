/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal's file beside the socket: records one after the other. The file is mapped into
 * memory, so that writing a record is a copy. It outlives the daemon, but not the machine, whose
 * end also ends every holder. Disk space is allocated ahead. Without space, records wait in memory,
 * and the daemon must not answer before they are written. The bytes after the last record are zero.
 *
 * Only the disk of the socket's directory can delay these functions.
 */
#ifndef DAEMON_JOURNAL_JOURNAL_FILE_H
#define DAEMON_JOURNAL_JOURNAL_FILE_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text/text.h"

struct journal_file {
    int descriptor;     /* -1: none */
    unsigned char *map; /* of the file's end, from byte `mapped` on */
    size_t mapped;
    size_t size;         /* of the file */
    size_t used;         /* bytes of records */
    size_t first;        /* bytes of records when the file was created */
    struct text waiting; /* records without room */
};

#define JOURNAL_FILE_INIT \
    {                     \
        .descriptor = -1  \
    }

/* Creates a new file with this content and room for more, and replaces the file `path` by it in one
 * step. `file` continues with the new one. Fails with BERTH_ERROR_IO, _PERMISSION, _NOT_FOUND or
 * _MEMORY, and changes nothing then. */
int journal_file_make(struct journal_file *file, const char *path, const struct text *content,
                      struct berth_error *error);
/* Keeps the file `path` as `path`.damaged; the next file that is made replaces it under its name.
 * Returns the path of the kept file, which the caller frees, or NULL if it cannot be kept. */
char *journal_file_keep_damaged(const char *path);

/* Closes the file and drops the waiting records. */
void journal_file_finish(struct journal_file *file);

/* Allocates space for `need` bytes, and some for ends of leases after that. Fails with
 * BERTH_ERROR_IO. */
int journal_file_reserve(struct journal_file *file, size_t need, struct berth_error *error);

/* Appends a record, or keeps it until there is room. */
void journal_file_append(struct journal_file *file, const void *bytes, size_t length);

/* Tries again to write the waiting records. Returns whether some still wait. */
bool journal_file_is_behind(struct journal_file *file);

/* Returns whether the file is so long that a checkpoint is worth its cost. */
bool journal_file_is_long(const struct journal_file *file);

#endif
