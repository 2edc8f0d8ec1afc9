/* SPDX-License-Identifier: Apache-2.0
 *
 * Ended leases, for followers: the facts of each, kept for a while and within bounds. The oldest
 * ones of the user with the most are dropped first; a follower that had not read them counts them
 * as lost.
 *
 * Nothing here blocks. All functions belong to the loop's thread.
 */
#ifndef DAEMON_STREAM_ENDED_LEASES_H
#define DAEMON_STREAM_ENDED_LEASES_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/optional.h"
#include "daemon/core/loop.h"
#include "model/pool_info.h"

struct ended_leases;
struct followers;
struct wire_message;

/* How many are kept, and how many bytes of them. */
enum { ENDED_LEASES_MAX = 16 * 1024, ENDED_LEASES_BYTES = 4 * 1024 * 1024 };

/* The end of a lease. */
struct lease_ended {
    enum lease_end end;
    int64_t time; /* the pool's */
    struct optional_number exit_code;
    uint64_t judged_time; /* as in struct lease_info */
    uint64_t idle_time;
};

/* Both pointers must live as long as the ended leases. Fails with BERTH_ERROR_MEMORY. */
int ended_leases_create(struct ended_leases **ret_ended, const struct loop *loop,
                        struct followers *followers, struct berth_error *error);
void ended_leases_destroy(struct ended_leases *ended);

/* Notes the facts of a lease that goes on, or newer facts. Copies its texts and takes over its list
 * of devices. Returns whether the lease is new here. Without memory, the lease is not among the
 * ended ones later. */
bool ended_leases_note(struct ended_leases *ended, uint64_t lease, struct lease_info *info);

/* Notes the end of a lease. Returns its facts, valid until the next call; NULL if there are none.
 */
const struct lease_info *ended_leases_add(struct ended_leases *ended, uint64_t lease,
                                          const struct lease_ended *facts);

/* Returns how many leases have ended since the start. */
uint64_t ended_leases_count(const struct ended_leases *ended);

/* Puts those after the first `count` into the message, as many as fit; it borrows them. Sets `id`
 * to how many had ended with the last of them, `lost` and `more`. */
void ended_leases_fill(const struct ended_leases *ended, uint64_t count,
                       struct wire_message *message);

/* Sets whether a program writes them down. If not, they are kept for a moment only. True at first.
 */
void ended_leases_set_written(struct ended_leases *ended, bool is_written);

/* Notes that the first `count` are written down. */
void ended_leases_note_written(struct ended_leases *ended, uint64_t count);

#endif
