/* SPDX-License-Identifier: Apache-2.0 */
#include "client/news.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

int news_init(struct news_box *box)
{
    *box = (struct news_box){.descriptor = -1};
    list_init(&box->to_tell);
    list_init(&box->kept);
    list_init(&box->spare);
    return id_map_init(&box->tickets);
}

static struct news *news_of(struct list_link *link)
{
    return container_of(link, struct news, in_list);
}

static void free_all(struct list *list)
{
    list_for_each (link, list)
        free(news_of(link));
    list_init(list);
}

void news_finish(struct news_box *box)
{
    free_all(&box->to_tell);
    free_all(&box->kept);
    free_all(&box->spare);
    id_map_finish(&box->tickets);
    if (box->descriptor >= 0)
        close(box->descriptor);
    box->descriptor = -1;
}

/* In front, so that the one used next is still in the cache. */
static void put_back(struct news_box *box, struct news *news)
{
    list_prepend(&box->spare, &news->in_list);
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

static struct news *copy_to_spare(struct news_box *box, const struct news *news)
{
    struct news *copy;

    if (news_reserve(box, 1) < 0)
        return NULL;
    copy = news_of(list_first(&box->spare));
    list_remove(&copy->in_list);
    box->spare_count--;
    *copy = *news;
    copy->in_list = (struct list_link){0};
    return copy;
}

static void add_untold(struct news_box *box, size_t more)
{
    size_t before = atomic_load_explicit(&box->untold, memory_order_relaxed);

    atomic_store_explicit(&box->untold, before + more, memory_order_relaxed);
}

void news_tell(struct news_box *box, const struct news *news)
{
    struct news *copy = copy_to_spare(box, news);

    if (copy == NULL)
        return;
    list_append(&box->to_tell, &copy->in_list);
    add_untold(box, 1);
}

size_t news_take(struct news_box *box, struct news *ret_news, size_t most)
{
    size_t taken = 0;

    while (taken < most && !list_is_empty(&box->to_tell)) {
        struct news *news = news_of(list_first(&box->to_tell));

        ret_news[taken++] = *news;
        list_remove(&news->in_list);
        put_back(box, news);
    }
    if (taken > 0)
        add_untold(box, -taken);
    return taken;
}

/* The descriptor follows the list with the lock held, so that the two never disagree. */
void news_keep(struct news_box *box, const struct news *news)
{
    struct news *copy = copy_to_spare(box, news);

    if (copy == NULL)
        return;
    if (list_is_empty(&box->kept) && box->descriptor >= 0)
        eventfd_write(box->descriptor, 1);
    list_append(&box->kept, &copy->in_list);
    if (box->tickets.count > box->tickets.mask)
        id_map_reserve(&box->tickets, box->tickets.count * 2);
    id_map_add(&box->tickets, &copy->by_ticket);
}

struct news *news_find(const struct news_box *box, uint64_t ticket)
{
    struct id_link *link = id_map_find(&box->tickets, ticket);

    return link == NULL ? NULL : container_of(link, struct news, by_ticket);
}

struct news *news_oldest(const struct news_box *box)
{
    return list_is_empty(&box->kept) ? NULL : news_of(list_first(&box->kept));
}

void news_collect(struct news_box *box, struct news *news)
{
    eventfd_t value;

    id_map_remove(&box->tickets, &news->by_ticket);
    list_remove(&news->in_list);
    put_back(box, news);
    if (list_is_empty(&box->kept) && box->descriptor >= 0)
        eventfd_read(box->descriptor, &value);
}
