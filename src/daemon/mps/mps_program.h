/* SPDX-License-Identifier: Apache-2.0
 *
 * The control program of MPS: where it is, or why it cannot be used.
 */
#ifndef DAEMON_MPS_MPS_PROGRAM_H
#define DAEMON_MPS_MPS_PROGRAM_H

#include <stdint.h>

#include "base/text/quantity.h"
#include "base/text/text.h"

/* How long a result is used again. */
#define MPS_PROGRAM_KNOWN_FOR DURATION_SECOND

/* Zeroed memory means that no search has been made yet. */
struct mps_program {
    char *named;         /* the configured path of the last search; NULL: none */
    char *path;          /* that was found; NULL: none */
    int64_t searched_at; /* 0: never */
    struct text fault;   /* why there is no program */
};

/* Returns the program's path, valid until the next call, or NULL: then `fault` says why. `named`
 * NULL: the first of the standard directories that has it. `now` is a time that never goes back. */
const char *mps_program_find(struct mps_program *program, const char *named, int64_t now);
void mps_program_finish(struct mps_program *program);

#endif
