/* SPDX-License-Identifier: Apache-2.0 */
#include "libberth/local/notifications.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

int news_init(struct news_box *box)
{
    *box = (struct news_box){.descriptor = -1};
    box->to_tell_end = &box->to_tell;
    list_init(&box->kept);
    return id_map_init(&box->tickets);
}

static void free_all(struct news *news)
{
    while (news != NULL) {
        struct news *next = news->next;

        free(news);
        news = next;
    }
}

void news_finish(struct news_box *box)
{
    free_all(box->to_tell);
    free_all(box->spare);
    list_for_each (link, &box->kept)
        free(container_of(link, struct news, in_kept));
    id_map_finish(&box->tickets);
    if (box->descriptor >= 0)
        close(box->descriptor);
}

static void put_back(struct news_box *box, struct news *news)
{
    news->next = box->spare;
    box->spare = news;
    box->spare_count++;
}

int news_reserve(struct news_box *box, size_t wanted)
{
    while (box->spare_count < wanted) {
        struct news *news = calloc(1, sizeof(*news));

        if (news == NULL)
            return BERTH_ERROR_MEMORY;
        put_back(box, news);
    }
    return 0;
}

/* A spare one with this message; NULL: none and no memory. */
static struct news *news_of(struct news_box *box, const struct message *message)
{
    struct news *news;

    if (news_reserve(box, 1) < 0)
        return NULL;
    news = box->spare;
    box->spare = news->next;
    box->spare_count--;
    news->message = *message;
    return news;
}

void news_tell(struct news_box *box, const struct message *message)
{
    struct news *news = news_of(box, message);

    if (news == NULL)
        return;
    news->next = NULL;
    *box->to_tell_end = news;
    box->to_tell_end = &news->next;
}

size_t news_take(struct news_box *box, struct message *ret_messages, size_t max)
{
    size_t taken = 0;

    while (taken < max && box->to_tell != NULL) {
        struct news *news = box->to_tell;

        ret_messages[taken++] = news->message;
        box->to_tell = news->next;
        put_back(box, news);
    }
    if (box->to_tell == NULL)
        box->to_tell_end = &box->to_tell;
    return taken;
}

/* The descriptor follows the list with the lock held, so that the two never disagree. */
void news_keep(struct news_box *box, const struct message *message)
{
    struct news *news = news_of(box, message);

    if (news == NULL)
        return;
    if (list_is_empty(&box->kept) && box->descriptor >= 0)
        eventfd_write(box->descriptor, 1);
    list_append(&box->kept, &news->in_kept);
    if (++box->kept_count > box->tickets.mask)
        id_map_reserve(&box->tickets, box->kept_count * 2);
    news->by_ticket.id = message->ticket;
    id_map_add(&box->tickets, &news->by_ticket);
}

struct news *news_find(const struct news_box *box, uint64_t ticket)
{
    struct id_link *link = id_map_find(&box->tickets, ticket);

    return link == NULL ? NULL : container_of(link, struct news, by_ticket);
}

struct news *news_oldest(const struct news_box *box)
{
    return list_is_empty(&box->kept) ? NULL
                                     : container_of(list_first(&box->kept), struct news, in_kept);
}

void news_collect(struct news_box *box, struct news *news)
{
    eventfd_t value;

    id_map_remove(&box->tickets, &news->by_ticket);
    box->kept_count--;
    list_remove(&news->in_kept);
    put_back(box, news);
    if (list_is_empty(&box->kept) && box->descriptor >= 0)
        eventfd_read(box->descriptor, &value);
}
