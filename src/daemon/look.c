/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that only look.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "daemon/connection.h"
#include "daemon/drains.h"
#include "daemon/hardware.h"
#include "daemon/jobs.h"
#include "daemon/messages.h"
#include "daemon/news.h"
#include "daemon/notices.h"
#include "daemon/recorder.h"

/* A page ends when it holds about so many bytes, or so many claims, each of which takes time to
 * explain. The last has some more for problems. */
enum {
    PAGE_BYTES = 64 * 1024,
    PROBLEM_BYTES = 16 * 1024,
    PAGE_CLAIMS = 64,
    EXPLAINED_MAX = 512, /* claims of the queue */
    ITEM_BYTES = 160,
    ID_BYTES = 9,
};

/* And when filling it has taken this long: everybody else waits meanwhile. */
#define PAGE_TIME (5 * (DURATION_SECOND / 1000))

/* The engine's blocks that messages have, too. */
#define WIRE_BLOCKS (BLOCK_SQUATTED | BLOCK_DIRTY | BLOCK_DRAINED | BLOCK_ELSEWHERE)
_Static_assert((int)SLOT_BLOCK_SQUATTED == (int)BLOCK_SQUATTED &&
                   (int)SLOT_BLOCK_DIRTY == (int)BLOCK_DIRTY &&
                   (int)SLOT_BLOCK_DRAINED == (int)BLOCK_DRAINED &&
                   (int)SLOT_BLOCK_ELSEWHERE == (int)BLOCK_ELSEWHERE,
               "one set serves both");

void message_handle(struct connection *connection, struct wire_message *message)
{
    static void (*const handlers[])(struct connection *, struct wire_message *) = {
        [WIRE_HELLO] = message_hello,     [WIRE_CLAIM] = message_claim,
        [WIRE_RELEASE] = message_release, [WIRE_CANCEL] = message_cancel,
        [WIRE_STOP] = message_stop,       [WIRE_EXTEND] = message_extend,
        [WIRE_EXPLAIN] = message_explain, [WIRE_WATCH] = message_watch,
        [WIRE_TEST] = message_test,       [WIRE_LOOK] = message_look,
        [WIRE_DRAIN] = message_drain,     [WIRE_UNDRAIN] = message_undrain,
        [WIRE_FOLLOW] = message_follow,
    };
    struct berth_error error = BERTH_ERROR_INIT;

    if ((size_t)message->type < sizeof(handlers) / sizeof(handlers[0]) &&
        handlers[message->type] != NULL) {
        handlers[message->type](connection, message);
        return;
    }
    error_set(&error, BERTH_ERROR_INVALID,
              "unknown message type %d; the client may be newer than the daemon",
              (int)message->type);
    connection_refuse(connection, message->number, &error);
}

struct pool_snapshot look_counts(const struct pool *pool)
{
    return (struct pool_snapshot){
        .capacity = (uint32_t)engine_machine(pool->engine)->devices.count,
        .pending = (uint32_t)engine_pending(pool->engine),
        .time = pool_now(pool),
    };
}

void message_hello(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = connection->pool;

    connection_send(connection, &(struct wire_message){
                                    .type = WIRE_POOL,
                                    .number = message->number,
                                    .about = {.pool = pool->name,
                                              .socket = (char *)pool->settings.socket,
                                              .inventory = (char *)pool->settings.inventory,
                                              .version_text = (char *)BERTH_VERSION,
                                              .history = pool->history_path},
                                    .pid = (int32_t)pool->pid,
                                    .snapshot = look_counts(pool),
                                    .epoch = news_epoch(pool),
                                });
}

/* ---- One claim ---- */

struct seeking {
    uint64_t id;
    uint32_t position;
    bool found;
};

static void seek(void *context, const struct claim_view *view)
{
    struct seeking *seeking = context;

    if (seeking->found)
        return;
    seeking->position++;
    seeking->found = view->id == seeking->id;
}

/* Why a claim waits and when it will start, as far as is known. */
static void explain(struct pool *pool, uint64_t id, struct text *ret_why,
                    struct optional_number *ret_estimate)
{
    int64_t now = engine_now(pool->engine);
    int64_t start = TIME_NEVER;

    engine_explain(pool->engine, id, ret_why, &start, NULL);
    if (start != TIME_NEVER)
        *ret_estimate = optional_number_of(start > now ? (uint64_t)(start - now) : 0);
}

void message_explain(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = connection->pool;
    const struct job *job = job_of_id(pool, message->id);
    struct seeking seeking = {.id = message->id};
    struct wire_message answer = {.type = WIRE_WAITING, .number = message->number};
    struct berth_error error = BERTH_ERROR_INIT;
    struct text why = {0};

    if (job != NULL && job_is_preparing(job)) {
        answer.id = message->id;
        answer.snapshot.pending = (uint32_t)engine_pending(pool->engine);
        answer.text = (char *)"its devices are being checked";
        connection_send(connection, &answer);
        return;
    }
    if (job == NULL || job->by_lease.id != 0) {
        error_set(&error, BERTH_ERROR_NOT_FOUND,
                  "cannot explain claim %" PRIu64 ": no waiting claim has this id", message->id);
        connection_refuse(connection, message->number, &error);
        return;
    }
    engine_each_claim(pool->engine, seek, &seeking);
    explain(pool, message->id, &why, &answer.estimate);
    answer.id = message->id;
    answer.position = seeking.position;
    answer.snapshot.pending = (uint32_t)engine_pending(pool->engine);
    answer.text = (char *)text_string(&why);
    connection_send(connection, &answer);
    text_finish(&why);
}

/* ---- Pages ---- */

static enum slot_state state_of(const struct pool *pool, uint32_t slot,
                                const struct slot_view *view)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    const struct job *job = view->lease == 0 ? NULL : job_of_lease(pool, view->lease);

    if (job != NULL && job->state == JOB_DRAINING)
        return SLOT_STATE_DRAINING;
    if (view->taken)
        return view->sharing == SHARING_EXCLUSIVE ? SLOT_STATE_LEASED : SLOT_STATE_SHARED;
    if (!view->present)
        return SLOT_STATE_GONE;
    if ((view->blocks & BLOCK_DRAINED) != 0)
        return SLOT_STATE_DRAINED;
    if (device->health == HEALTH_SICK)
        return SLOT_STATE_SICK;
    if ((view->blocks & BLOCK_ELSEWHERE) != 0)
        return SLOT_STATE_ELSEWHERE;
    if ((view->blocks & BLOCK_DIRTY) != 0)
        return SLOT_STATE_DRAINING;
    if ((view->blocks & BLOCK_SQUATTED) != 0)
        return SLOT_STATE_SQUATTED;
    /* Who is granted one that sleeps wakes it. */
    return device->asleep ? SLOT_STATE_ASLEEP : SLOT_STATE_FREE;
}

static size_t length_of(const char *string)
{
    return string == NULL ? 0 : strlen(string);
}

size_t look_device_size(const struct device *device)
{
    size_t size = 3 * ITEM_BYTES + length_of(device->name) + length_of(device->uuid) +
                  length_of(device->parent) + length_of(device->cpus) +
                  length_of(device->health_reason);
    const struct device_process *process;
    char *const *node;

    vector_for_each (node, &device->nodes)
        size += length_of(*node) + 4;
    vector_for_each (process, &device->processes)
        size += look_process_size(process);
    return size;
}

size_t look_process_size(const struct device_process *process)
{
    return ITEM_BYTES / 2 + length_of(process->command) + length_of(process->container);
}

/* A page being filled. Items borrow what they point to from the engine and the jobs. */
struct page {
    struct pool *pool;
    struct wire_message *message;
    struct pool_snapshot *snapshot; /* of the message */
    uint64_t after;
    size_t bytes;
    uint32_t position;
    bool full;
    uint64_t last; /* that is on it */
};

static void add_devices(struct page *page)
{
    const struct device_list *devices = &engine_machine(page->pool->engine)->devices;

    for (uint64_t slot = page->after; slot < devices->count; slot++) {
        struct slot_info *item;
        struct slot_view view;

        if (page->bytes > PAGE_BYTES) {
            page->full = true;
            return;
        }
        item = vector_append(&page->snapshot->slots);
        if (item == NULL)
            return;
        engine_get_slot(page->pool->engine, (uint32_t)slot, &view);
        *item = (struct slot_info){
            .device = &devices->items[slot],
            .state = state_of(page->pool, (uint32_t)slot, &view),
            .sharing = view.sharing,
            .tenants = view.tenants,
            .share_used = view.share_used,
            .memory_used = view.memory_used,
            .blocks = view.blocks & WIRE_BLOCKS,
            .reason = drain_of(page->pool, (uint32_t)slot)->reason,
            .reason_uid = drain_of(page->pool, (uint32_t)slot)->uid,
            .reason_time = drain_of(page->pool, (uint32_t)slot)->time,
        };
        page->bytes += look_device_size(item->device) + length_of(item->reason);
        page->last = slot + 1;
    }
}

static struct optional_number known_time(int64_t time)
{
    struct optional_number known = {0};

    if (time != TIME_NEVER)
        known = optional_number_of((uint64_t)time);
    return known;
}

void look_fill_lease(struct pool *pool, const struct job *job, const struct lease_view *view,
                     struct lease_info *item)
{
    const struct machine *machine = engine_machine(pool->engine);
    const struct request *request = engine_request_what(view->request);

    *item = (struct lease_info){
        .id = job->by_id.id,
        .parent = job->holder->parent,
        .uid = job->holder->uid,
        .pid = job->hold == LEASE_HOLD_NOTHING ? 0 : (int32_t)job->holder->pid,
        .name = request->name,
        .command = job->holder->command,
        .replicas = view->replicas,
        .share = view->share,
        .memory = view->memory,
        .sharing = request->sharing,
        .priority = request->priority,
        .opportunistic = request->opportunistic,
        .draining = job->state == JOB_DRAINING,
        .granted = view->granted,
        .since = job->since,
        .expires = known_time(view->expires),
        .force_at = known_time(job->guard == NULL ? TIME_NEVER : job->guard->force_at),
        .end = job->end,
        .adopted = job->adopted,
        .idle = notice_idle_time(pool, job),
        .idle_warned = job->guard != NULL && job->guard->idle_warned,
        .preparing = job_is_preparing(job),
        .judged_time = job->guard == NULL ? 0 : job->guard->judged_time,
        .idle_time = job->guard == NULL ? 0 : job->guard->idle_time,
    };
    for (uint32_t i = 0; i < view->slot_count && i < DEVICE_ID_LIST_MAX; i++) {
        struct device_id *id = vector_append(&item->devices);

        if (id != NULL)
            *id = machine->devices.items[view->slots[i]].id;
    }
}

static void add_leases(struct page *page)
{
    list_for_each (link, &page->pool->jobs) {
        const struct job *job = container_of(link, struct job, in_pool);
        struct lease_info *item;
        struct lease_view view;

        if (job->by_id.id <= page->after ||
            !engine_get_lease(page->pool->engine, job->by_lease.id, &view))
            continue;
        if (page->bytes > PAGE_BYTES) {
            page->full = true;
            return;
        }
        item = vector_append(&page->snapshot->leases);
        if (item == NULL)
            return;
        look_fill_lease(page->pool, job, &view, item);
        page->bytes += ITEM_BYTES + length_of(item->name) + length_of(item->command) +
                       item->devices.count * ID_BYTES;
        page->last = item->id;
    }
}

static void add_claim(void *context, const struct claim_view *view)
{
    struct page *page = context;
    const struct job *job = job_of_id(page->pool, view->id);
    const struct request *request = engine_request_what(view->request);
    struct claim_info *item;

    page->position++;
    if (page->full || page->position <= page->after || job == NULL)
        return;
    if (page->bytes > PAGE_BYTES || page->snapshot->claims.count >= PAGE_CLAIMS) {
        page->full = true;
        return;
    }
    item = vector_append(&page->snapshot->claims);
    if (item == NULL)
        return;
    *item = (struct claim_info){
        .id = view->id,
        .parent = job->holder->parent,
        .uid = job->holder->uid,
        .pid = (int32_t)job->holder->pid,
        .position = page->position,
        .name = request->name,
        .command = job->holder->command,
        .since = job->since,
        .priority = request->priority,
        .opportunistic = request->opportunistic,
    };
    page->bytes += 4 * ITEM_BYTES + length_of(item->name) + length_of(item->command);
    page->last = page->position;
}

/* The page ends before the claim at this place. */
static void end_page_before(struct page *page, size_t place)
{
    page->snapshot->claims.count = place;
    page->full = true;
    page->last = page->snapshot->claims.items[place - 1].position;
}

/* The engine must not be asked while it tells of its claims, so their reasons come afterwards. Why
 * one far back waits takes long to find out, and helps nobody. */
static void explain_claims(struct page *page)
{
    int64_t began = clock_now();

    for (size_t i = 0; i < page->snapshot->claims.count; i++) {
        struct claim_info *item = &page->snapshot->claims.items[i];
        struct claim_view view;
        struct text text = {0};

        if (i > 0 && clock_now() - began > PAGE_TIME) {
            end_page_before(page, i);
            return;
        }
        if (!engine_get_claim(page->pool->engine, item->id, &view))
            continue;
        request_describe(engine_request_what(view.request), &text);
        item->request = text_detach(&text);
        if (item->position <= EXPLAINED_MAX)
            explain(page->pool, item->id, &text, &item->estimate);
        else
            text_append(&text, "it is far back in the queue");
        item->why = text_detach(&text);
    }
}

/* The last page has room left, as problems have none of their own. The items borrow their texts. */
static void add_problems(struct page *page, const struct problem_list *problems)
{
    size_t bytes = 0;

    for (size_t i = 0; problems != NULL && i < problems->count && bytes < PROBLEM_BYTES; i++) {
        struct problem *item = vector_append(&page->snapshot->problems);

        if (item == NULL)
            return;
        *item = problems->items[i];
        bytes += ITEM_BYTES + length_of(item->backend) + length_of(item->message);
    }
}

static void finish_page(struct pool_snapshot *snapshot)
{
    struct lease_info *lease;
    struct claim_info *claim;

    vector_for_each (lease, &snapshot->leases)
        vector_finish(&lease->devices);
    vector_for_each (claim, &snapshot->claims) {
        free(claim->request);
        free(claim->why);
    }
    vector_finish(&snapshot->slots);
    vector_finish(&snapshot->leases);
    vector_finish(&snapshot->claims);
    vector_finish(&snapshot->problems);
}

/* Fills one section, if it is wanted; the next page is the rest of it, or the section after it. */
static void fill_section(struct page *page, uint32_t section, uint32_t wanted)
{
    bool is_wanted = wanted == 0 || (wanted & (1U << section)) != 0;

    switch (is_wanted ? section : WIRE_SECTION_END) {
    case WIRE_SECTION_DEVICES:
        add_devices(page);
        break;
    case WIRE_SECTION_LEASES:
        add_leases(page);
        break;
    case WIRE_SECTION_QUEUE:
        engine_each_claim(page->pool->engine, add_claim, page);
        explain_claims(page);
        break;
    default:
        break;
    }
    page->message->section = page->full ? section : section + 1;
    page->message->after = page->full ? page->last : 0;
}

void message_look(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = connection->pool;
    struct wire_message answer = {
        .type = WIRE_PAGE,
        .number = message->number,
        .snapshot = look_counts(pool),
        .about.socket = (char *)pool->settings.socket,
        .about.inventory = (char *)pool->settings.inventory,
    };
    struct page page = {
        .pool = pool, .message = &answer, .snapshot = &answer.snapshot, .after = message->after};
    uint32_t section =
        message->section == WIRE_SECTION_END ? WIRE_SECTION_DEVICES : message->section;

    /* Who follows has said how often. */
    if (section == WIRE_SECTION_DEVICES && message->sections == 0)
        hardware_watched(pool);
    /* What is short comes in one page. */
    while (!page.full && section >= WIRE_SECTION_DEVICES && section <= WIRE_SECTION_QUEUE) {
        fill_section(&page, section, message->sections);
        section = answer.section;
        page.after = 0;
        page.position = 0;
    }
    if (answer.section > WIRE_SECTION_QUEUE)
        answer.section = WIRE_SECTION_END;
    if (answer.section == WIRE_SECTION_END) {
        add_problems(&page, hardware_problems(pool));
        add_problems(&page, recorder_problems(pool));
        answer.tally = news_tally(pool);
    }
    connection_send(connection, &answer);
    finish_page(&answer.snapshot);
}
