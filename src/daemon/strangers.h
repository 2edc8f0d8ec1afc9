/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that were looked at a moment ago and carry no lease of this pool, so that many short
 * leases do not make the daemon look at the same ones again and again. A process gets a lease in
 * its environment from its parent, or from the client of ours or the runtime of containers that
 * starts it; so who had none, and is no child of a client nor in a container, will have none.
 *
 * Process ids are used again, but not within STRANGERS_KNOWN_FOR.
 */
#ifndef DAEMON_STRANGERS_H
#define DAEMON_STRANGERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { STRANGERS_MAX = 4096 }; /* the newest ids, of which it may know that */
#define STRANGERS_KNOWN_FOR INT64_C(1000000000)

/* Zeroed memory knows of none. */
struct strangers {
    int64_t since;
    pid_t newest;
    uint64_t known[STRANGERS_MAX / 64];
};

/* Before the others: `newest` is the id that was given out last, `now` any clock that goes on. */
void strangers_begin(struct strangers *strangers, pid_t newest, int64_t now);

bool strangers_has(const struct strangers *strangers, pid_t pid);
void strangers_add(struct strangers *strangers, pid_t pid);

#endif
