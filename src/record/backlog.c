/* SPDX-License-Identifier: Apache-2.0 */
#include "record/backlog.h"

#include <string.h>

/* The part of the maximum that is dropped at once. */
enum { DROPPED_PART = 32 };

static size_t length_of(const char *text)
{
    return text == NULL ? 0 : strlen(text) + 1;
}

static size_t size_of(const struct ended_lease *ended)
{
    const struct lease_info *lease = ended->lease;

    return sizeof(*ended) + sizeof(*lease) + length_of(lease->name) + length_of(lease->command) +
           lease->devices.count * sizeof(*lease->devices.items);
}

/* Returns the user's share, which it adds if there is none; NULL: there is no memory. */
static struct backlog_share *find_share(struct backlog *backlog, uint32_t uid)
{
    struct backlog_share *share;

    vector_for_each (share, &backlog->shares) {
        if (share->uid == uid)
            return share;
    }
    share = vector_append(&backlog->shares);
    if (share != NULL)
        *share = (struct backlog_share){.uid = uid};
    return share;
}

static struct backlog_share *find_largest(struct backlog *backlog)
{
    struct backlog_share *largest = NULL;
    struct backlog_share *share;

    vector_for_each (share, &backlog->shares) {
        if (largest == NULL || share->bytes > largest->bytes)
            largest = share;
    }
    return largest;
}

/* Drops the oldest leases of one user, about this many bytes. */
static void drop_oldest(struct backlog *backlog, struct backlog_share *share, size_t bytes)
{
    size_t wanted = share->bytes > bytes ? share->bytes - bytes : 0;
    size_t kept = 0;

    for (size_t i = 0; i < backlog->count; i++) {
        struct ended_lease *ended = &backlog->items[i];
        size_t size = size_of(ended);

        if (ended->lease->uid != share->uid || share->bytes <= wanted) {
            backlog->items[kept++] = *ended;
            continue;
        }
        share->bytes -= size;
        backlog->bytes -= size;
        backlog->dropped++;
        pool_info_finish_ended(ended);
    }
    backlog->count = kept;
}

/* Drops leases until there is room for this many more bytes, and for several leases at once,
 * because each call takes long. */
static void make_room(struct backlog *backlog, size_t size, size_t max)
{
    while (backlog->count > 0 && size > max - backlog->bytes)
        drop_oldest(backlog, find_largest(backlog), max / DROPPED_PART + size);
}

void backlog_add(struct backlog *backlog, struct ended_lease *ended)
{
    size_t max = backlog->bytes_max == 0 ? BACKLOG_BYTES_MAX : backlog->bytes_max;
    size_t size = size_of(ended);
    struct backlog_share *share = size <= max ? find_share(backlog, ended->lease->uid) : NULL;
    struct ended_lease *added = NULL;

    if (share != NULL) {
        make_room(backlog, size, max);
        added = vector_append(backlog);
    }
    if (added == NULL) {
        backlog->dropped++;
        pool_info_finish_ended(ended);
        return;
    }
    *added = *ended;
    *ended = (struct ended_lease){0};
    share->bytes += size;
    backlog->bytes += size;
}

void backlog_clear(struct backlog *backlog)
{
    struct ended_lease *ended;

    vector_for_each (ended, backlog)
        pool_info_finish_ended(ended);
    vector_finish(backlog);
    vector_finish(&backlog->shares);
    *backlog = (struct backlog){.bytes_max = backlog->bytes_max};
}
