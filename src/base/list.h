/* SPDX-License-Identifier: Apache-2.0
 *
 * Intrusive doubly-linked lists. The link is a member of the item, so adding and removing never
 * allocate, and removing needs no search.
 *
 *     struct claim { struct list_link in_queue; ... };
 *     struct list queue;
 *     list_init(&queue);
 *     list_append(&queue, &claim->in_queue);
 *     list_for_each (link, &queue) {
 *         struct claim *claim = container_of(link, struct claim, in_queue);
 *     }
 *
 * The list owns nothing. Only one thread may use a list at a time.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list_link {
    struct list_link *previous;
    struct list_link *next;
};

struct list {
    struct list_link ends;
};

#define container_of(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* Runs `link` over the list in order. The body may remove and free the current item, but not the
 * next one. */
#define list_for_each(link, list)                                               \
    for (struct list_link *link = (list)->ends.next, *link##_next = link->next; \
         link != &(list)->ends; link = link##_next, link##_next = link->next)

static inline void list_init(struct list *list)
{
    list->ends.previous = &list->ends;
    list->ends.next = &list->ends;
}

/* Returns whether the link is in a list. A zeroed link, and a link after list_remove, is in none.
 */
static inline bool list_is_linked(const struct list_link *link)
{
    return link->next != NULL;
}

static inline bool list_is_empty(const struct list *list)
{
    return list->ends.next == &list->ends;
}

/* Inserts `link`, which must be in no list, before `position`, which may be &list->ends. */
static inline void list_insert_before(struct list_link *position, struct list_link *link)
{
    link->previous = position->previous;
    link->next = position;
    position->previous->next = link;
    position->previous = link;
}

static inline void list_append(struct list *list, struct list_link *link)
{
    list_insert_before(&list->ends, link);
}

/* Removes `link` from its list, if it is in one. */
static inline void list_remove(struct list_link *link)
{
    if (!list_is_linked(link))
        return;
    link->previous->next = link->next;
    link->next->previous = link->previous;
    link->previous = NULL;
    link->next = NULL;
}

/* Removes `link`, which must be in a list, without writing to it: its memory is about to be freed
 * or reused. */
static inline void list_unlink(const struct list_link *link)
{
    link->previous->next = link->next;
    link->next->previous = link->previous;
}

/* Return the first and the last link, or NULL when the list is empty. */
static inline struct list_link *list_first(const struct list *list)
{
    return list_is_empty(list) ? NULL : list->ends.next;
}

static inline struct list_link *list_last(const struct list *list)
{
    return list_is_empty(list) ? NULL : list->ends.previous;
}

#endif
