/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes that a reader of /proc could not look at because the kernel made it sleep. They are
 * remembered by pidfd until they end, so that no reader sleeps at them again.
 */
#ifndef HARDWARE_SUPERVISOR_STALLED_H
#define HARDWARE_SUPERVISOR_STALLED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/optional.h"
#include "base/system/subordinate_uids.h"
#include "base/vector.h"
#include "hardware/proc/proc_watch.h"

/* More than these are not remembered: each one needs a descriptor. */
enum { STALLED_MAX = 512 };

/* With more remembered processes of one user, no process of that user is asked any more. */
enum { STALLED_OF_USER_MAX = 64 };

struct stalled_entry {
    uint64_t pid;
    int descriptor; /* pidfd */
    struct optional_number uid;
    bool wholly; /* as in struct avoided_process */
};

/* Zeroed memory is an empty list. */
struct stalled_list {
    VECTOR_OF(struct stalled_entry);
    struct subordinate_uids subordinates; /* the uids of a range count as one user */
};

/* Remembers a process. If it is remembered already, even the kernel's own figures of it are avoided
 * from now on. A process that has ended is not remembered. Never blocks. */
void stalled_list_add(struct stalled_list *list, uint64_t pid);

/* Forgets the processes that have ended, and reads the ranges of uids again if their file has
 * changed. Never waits for a process. */
void stalled_list_forget_ended(struct stalled_list *list);

void stalled_list_finish(struct stalled_list *list);

/* Returns the entry of a process; NULL: it is not remembered. */
const struct stalled_entry *stalled_list_find(const struct stalled_list *list, uint64_t pid);

/* Returns whether so many of the user's processes are remembered that no other one is asked. */
bool stalled_list_is_full_of(const struct stalled_list *list, uint32_t uid);

/* Fills in the processes to avoid, and the users that have any of them: a scan reads only the
 * kernel's own figures of all their processes, so that it stalls once for each user, not once for
 * each process. If the list is full, that holds for all users. Returns 0 or BERTH_ERROR_MEMORY; the
 * caller finishes the list in both cases. */
int stalled_list_avoid(const struct stalled_list *list, struct avoided *ret_avoided);

/* Finds the effective uid of a process without a file below /proc/PID: that would block, too.
 * Never blocks. */
struct optional_number stalled_uid(uint64_t pid);

/* Reads the ranges of uids that users have for containers, if their file has changed. */
void stalled_read_ranges(struct subordinate_uids *ranges);

#endif
