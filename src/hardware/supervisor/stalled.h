/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes at which a reader of /proc blocked. They are remembered by pidfd until they end, so
 * that no reader blocks at them again.
 */
#ifndef HARDWARE_SUPERVISOR_STALLED_H
#define HARDWARE_SUPERVISOR_STALLED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/optional.h"
#include "base/system/subordinate_uids.h"
#include "base/vector.h"
#include "hardware/proc/proc_watch.h"

/* The maximum number of remembered processes, because each one needs a descriptor. */
enum { STALLED_MAX = 512 };

/* If more processes of one user are remembered, no process of that user is read any more. */
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

/* Returns whether more than STALLED_OF_USER_MAX of the user's processes are remembered. */
bool stalled_list_is_full_of(const struct stalled_list *list, uint32_t uid);

/* Fills in the processes to avoid, and their users: of all processes of these users, a scan reads
 * only the kernel's own figures. So it stalls once for each user, not once for each process. If the
 * list is full, this holds for all users. Returns 0 or BERTH_ERROR_MEMORY; the caller finishes the
 * list in both cases. */
int stalled_list_avoid(const struct stalled_list *list, struct avoided *ret_avoided);

/* Finds the effective uid of a process without reading a file below /proc/PID. Never blocks. */
struct optional_number stalled_uid(uint64_t pid);

/* Reads the ranges of uids that users have for containers, if their file has changed. */
void stalled_read_ranges(struct subordinate_uids *ranges);

#endif
