/* SPDX-License-Identifier: Apache-2.0 */
#include "libberth/local/notifications.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

int notifications_init(struct notification_queue *queue)
{
    *queue = (struct notification_queue){.descriptor = -1};
    queue->pending_end = &queue->pending;
    list_init(&queue->kept);
    return id_map_init(&queue->tickets);
}

static void free_chain(struct notification *notification)
{
    while (notification != NULL) {
        struct notification *next = notification->next;

        free(notification);
        notification = next;
    }
}

void notifications_finish(struct notification_queue *queue)
{
    free_chain(queue->pending);
    free_chain(queue->spare);
    list_for_each (link, &queue->kept)
        free(container_of(link, struct notification, in_kept));
    id_map_finish(&queue->tickets);
    if (queue->descriptor >= 0)
        close(queue->descriptor);
}

static void return_spare(struct notification_queue *queue, struct notification *notification)
{
    notification->next = queue->spare;
    queue->spare = notification;
    queue->spare_count++;
}

int notifications_reserve(struct notification_queue *queue, size_t wanted)
{
    while (queue->spare_count < wanted) {
        struct notification *notification = calloc(1, sizeof(*notification));

        if (notification == NULL)
            return BERTH_ERROR_MEMORY;
        return_spare(queue, notification);
    }
    return 0;
}

/* Returns a spare notification with this message; NULL: none left and no memory. */
static struct notification *take_spare(struct notification_queue *queue,
                                       const struct message *message)
{
    struct notification *notification;

    if (notifications_reserve(queue, 1) < 0)
        return NULL;
    notification = queue->spare;
    queue->spare = notification->next;
    queue->spare_count--;
    notification->message = *message;
    return notification;
}

void notifications_append(struct notification_queue *queue, const struct message *message)
{
    struct notification *notification = take_spare(queue, message);

    if (notification == NULL)
        return;
    notification->next = NULL;
    *queue->pending_end = notification;
    queue->pending_end = &notification->next;
}

size_t notifications_dequeue(struct notification_queue *queue, struct message *ret_messages,
                             size_t max)
{
    size_t taken = 0;

    while (taken < max && queue->pending != NULL) {
        struct notification *notification = queue->pending;

        ret_messages[taken++] = notification->message;
        queue->pending = notification->next;
        return_spare(queue, notification);
    }
    if (queue->pending == NULL)
        queue->pending_end = &queue->pending;
    return taken;
}

/* The descriptor changes with the lock held, so that it always agrees with the list. */
void notifications_keep_outcome(struct notification_queue *queue, const struct message *message)
{
    struct notification *notification = take_spare(queue, message);

    if (notification == NULL)
        return;
    if (list_is_empty(&queue->kept) && queue->descriptor >= 0)
        eventfd_write(queue->descriptor, 1);
    list_append(&queue->kept, &notification->in_kept);
    if (++queue->kept_count > queue->tickets.mask)
        id_map_reserve(&queue->tickets, queue->kept_count * 2);
    notification->by_ticket.id = message->ticket;
    id_map_add(&queue->tickets, &notification->by_ticket);
}

struct notification *notifications_find_outcome(const struct notification_queue *queue,
                                                uint64_t ticket)
{
    struct id_link *link = id_map_find(&queue->tickets, ticket);

    return link == NULL ? NULL : container_of(link, struct notification, by_ticket);
}

struct notification *notifications_oldest_outcome(const struct notification_queue *queue)
{
    return list_is_empty(&queue->kept)
               ? NULL
               : container_of(list_first(&queue->kept), struct notification, in_kept);
}

void notifications_collect_outcome(struct notification_queue *queue,
                                   struct notification *notification)
{
    eventfd_t value;

    id_map_remove(&queue->tickets, &notification->by_ticket);
    queue->kept_count--;
    list_remove(&notification->in_kept);
    return_spare(queue, notification);
    if (list_is_empty(&queue->kept) && queue->descriptor >= 0)
        eventfd_read(queue->descriptor, &value);
}
