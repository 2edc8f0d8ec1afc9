/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the file below a size: deletes the oldest leases of the user with the most data, so that a
 * user with very many leases loses their own leases first. Only for this component.
 */
#ifndef HISTORY_HISTORY_TRIM_H
#define HISTORY_HISTORY_TRIM_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"
#include "history/history_database.h"

/* The data of one user. */
struct history_share {
    char *user;
    int64_t bytes; /* approximately */
};

struct history_trim {
    uint64_t size; /* the maximum size of the file and its log together, in bytes; 0: none */
    struct {
        VECTOR_OF(struct history_share);
    } shares; /* while leases are being deleted */
    bool is_deleting;
};

/* Sets the maximum size, and bounds the log accordingly. */
int history_trim_init(struct history_trim *trim, struct history_database *database, uint64_t size,
                      struct berth_error *error);
void history_trim_finish(struct history_trim *trim);

/* Makes room for `more` bytes, a little per call: deletes some leases and gives back some space.
 * Must not be called within a batch. Returns in *ret_more whether there is more to delete. Fails
 * with BERTH_ERROR_BUSY while another process prevents that the log shrinks. */
int history_trim_step(struct history_trim *trim, struct history_database *database, uint64_t more,
                      bool *ret_more, struct berth_error *error);

#endif
