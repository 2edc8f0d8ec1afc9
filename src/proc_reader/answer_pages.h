/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends an answer of a reader in pages, with the pidfds of its processes.
 */
#ifndef PROC_READER_ANSWER_PAGES_H
#define PROC_READER_ANSWER_PAGES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/text.h"
#include "reader/reader.h"

struct answer_pages {
    int socket;
    struct reader_answer page; /* not sent yet */
    size_t bytes;              /* of the page, at most */
    size_t count;              /* of processes in all pages */
    struct text packet;
};

/* Returns whether the answer has the maximum number of processes. */
bool answer_pages_is_full(const struct answer_pages *pages);

/* Adds a process. Takes its descriptor and its memory on success. Blocks while the socket is full.
 * Returns 0, or BERTH_ERROR_IO or _MEMORY, after which the program cannot continue. */
int answer_pages_add(struct answer_pages *pages, struct reader_process *process);

/* Sends the last page, and frees everything. Blocks in the same way. */
int answer_pages_end(struct answer_pages *pages);

#endif
