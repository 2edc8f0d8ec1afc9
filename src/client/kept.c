/* SPDX-License-Identifier: Apache-2.0 */
#include "client/kept.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { CHUNK = 128 };

void kept_init(struct kept_list *list)
{
    *list = (struct kept_list){.descriptor = -1};
    list_init(&list->outcomes);
}

void kept_finish(struct kept_list *list)
{
    struct kept **chunk;

    vector_for_each (chunk, &list->chunks)
        free(*chunk);
    vector_finish(&list->chunks);
    if (list->descriptor >= 0)
        close(list->descriptor);
    kept_init(list);
}

static bool add_chunk(struct kept_list *list)
{
    struct kept *chunk = calloc(CHUNK, sizeof(*chunk));
    struct kept **place = chunk == NULL ? NULL : vector_append(&list->chunks);

    if (place == NULL) {
        free(chunk);
        return false;
    }
    *place = chunk;
    for (size_t i = CHUNK; i-- > 0;) {
        chunk[i].number = (uint32_t)((list->chunks.count - 1) * CHUNK + i);
        chunk[i].next_free = list->free;
        list->free = &chunk[i];
    }
    return true;
}

struct kept *kept_take(struct kept_list *list)
{
    struct kept *kept;

    if (list->free == NULL && !add_chunk(list))
        return NULL;
    kept = list->free;
    list->free = kept->next_free;
    *kept = (struct kept){.number = kept->number};
    return kept;
}

void kept_give_back(struct kept_list *list, struct kept *kept)
{
    kept->ticket = 0;
    kept->next_free = list->free;
    list->free = kept;
}

struct kept *kept_find(const struct kept_list *list, uint32_t number, uint64_t ticket)
{
    struct kept *kept;

    if (ticket == 0 || number / CHUNK >= list->chunks.count)
        return NULL;
    kept = &list->chunks.items[number / CHUNK][number % CHUNK];
    return kept->ticket == ticket ? kept : NULL;
}

/* The descriptor follows the list under the lock, so that the two never disagree for long. */
static void set_readable(struct kept_list *list)
{
    if (list->descriptor >= 0)
        eventfd_write(list->descriptor, 1);
}

static void set_unreadable(struct kept_list *list)
{
    eventfd_t value;

    if (list->descriptor >= 0)
        eventfd_read(list->descriptor, &value);
}

void kept_settle(struct kept_list *list, struct kept *kept, int code, uint64_t lease)
{
    bool was_empty = list_is_empty(&list->outcomes);

    kept->code = code;
    kept->lease = lease;
    list_append(&list->outcomes, &kept->in_order);
    if (was_empty)
        set_readable(list);
}

void kept_collect(struct kept_list *list, struct kept *kept)
{
    list_remove(&kept->in_order);
    kept_give_back(list, kept);
    if (list_is_empty(&list->outcomes))
        set_unreadable(list);
}
