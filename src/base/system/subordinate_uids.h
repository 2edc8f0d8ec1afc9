/* SPDX-License-Identifier: Apache-2.0
 *
 * Subordinate uids: each user may have ranges of further uids for containers (subuid(5)). A process
 * with such a uid acts for the owner of the range, also where the kernel reports its uid.
 */
#ifndef BASE_SYSTEM_SUBORDINATE_UIDS_H
#define BASE_SYSTEM_SUBORDINATE_UIDS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/text/span.h"
#include "base/vector.h"

/* The owner of a range whose user is not known; no user has this uid. */
#define SUBORDINATE_NO_OWNER UINT32_MAX

struct subordinate_range {
    uint32_t owner;
    uint32_t first;
    uint32_t last;
};

/* Zeroed memory: no ranges, and no file was read. */
struct subordinate_uids {
    VECTOR_OF(struct subordinate_range);
    struct timespec changed; /* of the file that was read */
};

/* Finds the uid of a user's name. Returns false if there is none. */
typedef bool subordinate_uids_resolver(void *context, const char *name, uint32_t *ret_uid);

/* Appends the ranges of a text: lines NAME:FIRST:COUNT, where NAME may be a uid. Ranges of unknown
 * names get SUBORDINATE_NO_OWNER. Invalid lines and ranges that do not fit into memory are left
 * out. */
void subordinate_uids_parse(struct subordinate_uids *uids, struct span text,
                            subordinate_uids_resolver *resolve, void *context);

/* Reads the file (usually /etc/subuid) if it has changed since the last call. Without a file there
 * are no ranges. Asks the user database for names then, which may block. */
void subordinate_uids_refresh(struct subordinate_uids *uids, const char *path);

/* Does the same without asking for names: the first uid of each range counts as its owner. So all
 * uids of a range belong together. Reads a file only. */
void subordinate_uids_refresh_ranges(struct subordinate_uids *uids, const char *path);

/* Returns the first range with an owner that contains the uid, or else the first range that
 * contains it; NULL: none.
 */
const struct subordinate_range *subordinate_uids_find(const struct subordinate_uids *uids,
                                                      uint32_t uid);

/* Returns the owner of a uid; the uid itself if it is in no range, or in one without an owner. */
uint32_t subordinate_uids_owner(const struct subordinate_uids *uids, uint32_t uid);

void subordinate_uids_finish(struct subordinate_uids *uids);

#endif
