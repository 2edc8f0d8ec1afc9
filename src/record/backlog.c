/* SPDX-License-Identifier: Apache-2.0 */
#include "record/backlog.h"

#include <stdlib.h>
#include <string.h>

static size_t length_of(const char *text)
{
    return text == NULL ? 0 : strlen(text) + 1;
}

static size_t size_of(const struct wire_ended *ended)
{
    const struct wire_lease *lease = ended->lease;

    return sizeof(*ended) + sizeof(*lease) + length_of(lease->name) + length_of(lease->command) +
           lease->devices.count * sizeof(*lease->devices.items);
}

static void ended_finish(struct wire_ended *ended)
{
    if (ended->lease != NULL) {
        free(ended->lease->name);
        free(ended->lease->command);
        vector_finish(&ended->lease->devices);
        free(ended->lease);
    }
    *ended = (struct wire_ended){0};
}

void backlog_add(struct backlog *backlog, struct wire_ended *ended)
{
    size_t size = size_of(ended);
    struct wire_ended *added = NULL;

    if (size <= BACKLOG_BYTES_MAX - backlog->bytes)
        added = vector_append(backlog);
    if (added == NULL) {
        backlog->dropped++;
        ended_finish(ended);
        return;
    }
    *added = *ended;
    *ended = (struct wire_ended){0};
    backlog->bytes += size;
}

void backlog_clear(struct backlog *backlog)
{
    struct wire_ended *ended;

    vector_for_each (ended, backlog)
        ended_finish(ended);
    vector_finish(backlog);
    *backlog = (struct backlog){0};
}
