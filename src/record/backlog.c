/* SPDX-License-Identifier: Apache-2.0 */
#include "record/backlog.h"

#include <string.h>

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

void backlog_add(struct backlog *backlog, struct ended_lease *ended)
{
    size_t size = size_of(ended);
    struct ended_lease *added = NULL;

    if (size <= BACKLOG_BYTES_MAX - backlog->bytes)
        added = vector_append(backlog);
    if (added == NULL) {
        backlog->dropped++;
        pool_info_finish_ended(ended);
        return;
    }
    *added = *ended;
    *ended = (struct ended_lease){0};
    backlog->bytes += size;
}

void backlog_clear(struct backlog *backlog)
{
    struct ended_lease *ended;

    vector_for_each (ended, backlog)
        pool_info_finish_ended(ended);
    vector_finish(backlog);
    *backlog = (struct backlog){0};
}
