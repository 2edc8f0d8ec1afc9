/* SPDX-License-Identifier: Apache-2.0 */
#include "client/told.h"

#include <stdlib.h>

static void put_back(struct told_queue *queue, struct told *told)
{
    told->next = queue->spare;
    queue->spare = told;
    queue->spare_count++;
}

int told_reserve(struct told_queue *queue, size_t wanted)
{
    while (queue->spare_count < wanted) {
        struct told *told = malloc(sizeof(*told));

        if (told == NULL)
            return BERTH_ERROR_MEMORY;
        put_back(queue, told);
    }
    return 0;
}

void told_append(struct told_queue *queue, const struct told *news)
{
    struct told *told;

    if (told_reserve(queue, 1) < 0)
        return;
    told = queue->spare;
    queue->spare = told->next;
    queue->spare_count--;
    *told = *news;
    told->next = NULL;
    if (queue->first == NULL)
        queue->end = &queue->first;
    *queue->end = told;
    queue->end = &told->next;
    atomic_store_explicit(&queue->count,
                          atomic_load_explicit(&queue->count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

size_t told_take(struct told_queue *queue, struct told *ret_news, size_t most)
{
    size_t taken = 0;

    while (taken < most && queue->first != NULL) {
        struct told *told = queue->first;

        ret_news[taken++] = *told;
        queue->first = told->next;
        put_back(queue, told);
    }
    atomic_store_explicit(&queue->count,
                          atomic_load_explicit(&queue->count, memory_order_relaxed) - taken,
                          memory_order_relaxed);
    return taken;
}

static void free_all(struct told *told)
{
    while (told != NULL) {
        struct told *next = told->next;

        free(told);
        told = next;
    }
}

void told_finish(struct told_queue *queue)
{
    free_all(queue->first);
    free_all(queue->spare);
    *queue = (struct told_queue){0};
}
