/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that only read: HELLO, EXPLAIN and LOOK.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/clients/connection.h"
#include "daemon/devices/device_locks.h"
#include "daemon/devices/probe_poll.h"
#include "daemon/handlers/handle.h"
#include "daemon/leases/device_drain.h"
#include "daemon/leases/job.h"
#include "daemon/leases/lease_warnings.h"
#include "daemon/leases/left_processes.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/pool_facts.h"
#include "daemon/leases/visible_commands.h"
#include "daemon/stream/followers.h"
#include "daemon/stream/recorder_process.h"

/* The limits of a page: its bytes and, because each takes time to explain, its claims. The last
 * page has additional bytes for problems. */
enum {
    PAGE_BYTES = 64 * 1024,
    PROBLEM_BYTES = 16 * 1024,
    PAGE_CLAIMS = 64,
    EXPLAINED_MAX = 512, /* the first claims of the queue */
    ITEM_BYTES = 160,
    ID_BYTES = 9,
};

/* The time limit for filling a page, because all other clients wait meanwhile. */
#define PAGE_TIME (5 * (DURATION_SECOND / 1000))

void handle_hello(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = pool_of(connection);
    const struct wire_message answer = {
        .type = WIRE_POOL,
        .number = message->number,
        .about = {.pool = pool->name,
                  .socket = (char *)pool->settings.socket,
                  .inventory = (char *)pool->settings.inventory,
                  .version_text = (char *)BERTH_VERSION,
                  .history = (char *)recorder_process_file(pool->recorder_process)},
        .pid = (int32_t)pool->pid,
        .snapshot = pool_facts_counts(pool),
        .epoch = followers_epoch(pool->followers),
    };

    connection_send(connection, &answer);
}

/* ---- One claim ---- */

struct position_search {
    uint64_t id;
    uint32_t position;
    bool found;
};

static void find_position(void *context, const struct claim_view *view)
{
    struct position_search *search = context;

    if (search->found)
        return;
    search->position++;
    search->found = view->id == search->id;
}

/* Gets the reason why a claim waits, and the estimated time until its start, if known. */
static void explain_claim(struct pool *pool, uint64_t id, struct text *ret_why,
                          struct optional_number *ret_estimate)
{
    int64_t now = engine_now(pool->engine);
    int64_t start = TIME_NEVER;

    engine_explain(pool->engine, id, ret_why, &start, NULL);
    if (start != TIME_NEVER)
        *ret_estimate = optional_number_of(start > now ? (uint64_t)(start - now) : 0);
}

void handle_explain(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = pool_of(connection);
    const struct job *job = job_of_id(pool, message->id);
    struct position_search search = {.id = message->id};
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
    engine_each_claim(pool->engine, find_position, &search);
    explain_claim(pool, message->id, &why, &answer.estimate);
    answer.id = message->id;
    answer.position = search.position;
    answer.snapshot.pending = (uint32_t)engine_pending(pool->engine);
    answer.text = (char *)text_string(&why);
    connection_send(connection, &answer);
    text_finish(&why);
}

/* ---- Pages ---- */

static size_t length_of(const char *string)
{
    return string == NULL ? 0 : strlen(string);
}

/* A page that is being filled. Its items borrow from the engine and the jobs. */
struct page {
    struct pool *pool;
    struct wire_message *message;
    struct pool_snapshot *snapshot; /* the message's */
    struct visible_commands *visible;
    uint64_t after;
    size_t bytes;
    uint32_t position;
    bool full;
    bool has_no_memory; /* items are missing */
    uint64_t last;      /* the key of the section's last item so far */
    struct {
        VECTOR_OF(struct device *);
    } copies;                 /* of devices, which the items use */
    struct problem_list left; /* processes, likewise */
};

/* Returns the device without those facts of its processes that only the daemon may see. Returns
 * NULL without memory. */
static struct device *copy_for_clients(struct page *page, struct device *device)
{
    size_t count = device->processes.count;
    struct device **place = count == 0 ? NULL : vector_append(&page->copies);
    struct device *copy =
        place == NULL ? NULL : malloc(sizeof(*copy) + count * sizeof(struct device_process));

    if (copy == NULL)
        return count == 0 ? device : NULL;
    *place = copy;
    *copy = *device;
    copy->processes.items = (struct device_process *)(copy + 1);
    for (size_t i = 0; i < count; i++) {
        struct device_process *process = &copy->processes.items[i];

        *process = device->processes.items[i];
        if (visible_commands_limit_process(page->visible, process) < 0)
            page->has_no_memory = true;
        process->said_lease = 0;
        process->said_socket = NULL;
        process->owner = (struct optional_number){0};
        process->ancestors = NULL;
        process->ancestor_count = 0;
    }
    return copy;
}

static void add_devices(struct page *page)
{
    const struct device_list *devices = &engine_machine(page->pool->engine)->devices;

    for (uint64_t slot = page->after; slot < devices->count; slot++) {
        struct device *device;
        struct slot_info *item;

        if (page->bytes > PAGE_BYTES) {
            page->full = true;
            return;
        }
        device = copy_for_clients(page, &devices->items[slot]);
        item = device == NULL ? NULL : vector_append(&page->snapshot->slots);
        if (item == NULL) {
            page->has_no_memory = true;
            return;
        }
        pool_facts_fill_slot(page->pool, (uint32_t)slot, item);
        item->device = device;
        page->bytes += pool_facts_device_size(item->device) + length_of(item->reason);
        page->last = slot + 1;
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
        if (item == NULL) {
            page->has_no_memory = true;
            return;
        }
        if (pool_facts_fill_lease(page->pool, job, &view, item) < 0)
            page->has_no_memory = true;
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
    if (item == NULL) {
        page->has_no_memory = true;
        return;
    }
    *item = (struct claim_info){
        .id = view->id,
        .parent = job->holder->parent,
        .uid = job->holder->account,
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

/* Ends the page before the claim at this index. */
static void end_page_before(struct page *page, size_t place)
{
    page->snapshot->claims.count = place;
    page->full = true;
    page->last = page->snapshot->claims.items[place - 1].position;
}

/* Adds the reasons to the page's claims. This comes after the iteration, during which the engine
 * must not be called. Claims far back in the queue get no reason: it takes long and helps little.
 */
static void explain_claims(struct page *page)
{
    const struct loop *loop = &page->pool->loop;
    int64_t began = loop_processor_time(loop);

    for (size_t i = 0; i < page->snapshot->claims.count; i++) {
        struct claim_info *item = &page->snapshot->claims.items[i];
        struct claim_view view;
        struct text text = {0};

        if (i > 0 && loop_processor_time(loop) - began > PAGE_TIME) {
            end_page_before(page, i);
            return;
        }
        if (!engine_get_claim(page->pool->engine, item->id, &view))
            continue;
        request_describe(engine_request_what(view.request), &text);
        item->request = text_detach(&text);
        if (item->position <= EXPLAINED_MAX)
            explain_claim(page->pool, item->id, &text, &item->estimate);
        else
            text_append(&text, "it is far back in the queue");
        item->why = text_detach(&text);
    }
}

/* Adds problems to the last page. The items borrow their texts. */
static void add_problems(struct page *page, const struct problem_list *problems)
{
    size_t bytes = 0;

    for (size_t i = 0; problems != NULL && i < problems->count && bytes < PROBLEM_BYTES; i++) {
        struct problem *item = vector_append(&page->snapshot->problems);

        if (item == NULL) {
            page->has_no_memory = true;
            return;
        }
        *item = problems->items[i];
        bytes += ITEM_BYTES + length_of(item->backend) + length_of(item->message);
    }
}

static void finish_page(struct page *page)
{
    struct pool_snapshot *snapshot = page->snapshot;
    struct device **copy;
    struct lease_info *lease;
    struct claim_info *claim;

    vector_for_each (lease, &snapshot->leases)
        vector_finish(&lease->devices);
    vector_for_each (claim, &snapshot->claims) {
        free(claim->request);
        free(claim->why);
    }
    vector_for_each (copy, &page->copies)
        free(*copy);
    vector_finish(&page->copies);
    machine_report_finish_problems(&page->left);
    vector_finish(&snapshot->slots);
    vector_finish(&snapshot->leases);
    vector_finish(&snapshot->claims);
    vector_finish(&snapshot->problems);
}

/* Fills one section, if it is requested. The next page has its rest or the next section. */
static void fill_section(struct page *page, uint32_t section, uint32_t wanted)
{
    bool is_wanted = wanted == 0 || (wanted & (1U << section)) != 0;

    page->last = page->after;
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

/* Fills a page from this section on. Short sections share a page. */
static void fill_page(struct page *page, uint32_t section, uint32_t wanted)
{
    struct pool *pool = page->pool;
    struct wire_message *answer = page->message;

    while (!page->full && section >= WIRE_SECTION_DEVICES && section <= WIRE_SECTION_QUEUE) {
        fill_section(page, section, wanted);
        section = answer->section;
        page->after = 0;
    }
    if (answer->section > WIRE_SECTION_QUEUE)
        answer->section = WIRE_SECTION_END;
    if (answer->section != WIRE_SECTION_END)
        return;
    left_processes_describe(pool, &page->left);
    add_problems(page, &pool->problems);
    add_problems(page, &page->left);
    add_problems(page, probe_poll_problems(pool->probe_poll));
    add_problems(page, recorder_process_problems(pool->recorder_process));
    answer->tally = &pool->counts.tally;
}

/* Sends the page, or refuses the message: a page that lacks items would be wrong. */
static void send_page(struct connection *connection, struct page *page)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code = page->has_no_memory ? error_set_memory(&error) : 0;

    if (code == 0)
        code = visible_commands_limit(page->visible, page->message, &error);
    if (code < 0)
        connection_refuse(connection, page->message->number, &error);
    else
        connection_send(connection, page->message);
}

void handle_look(struct connection *connection, struct wire_message *message)
{
    struct pool *pool = pool_of(connection);
    struct wire_message answer = {
        .type = WIRE_PAGE,
        .number = message->number,
        .snapshot = pool_facts_counts(pool),
        .about.socket = (char *)pool->settings.socket,
        .about.inventory = (char *)pool->settings.inventory,
    };
    struct visible_commands visible;
    struct page page = {
        .pool = pool,
        .message = &answer,
        .snapshot = &answer.snapshot,
        .visible = &visible,
        .after = message->after,
    };
    uint32_t section =
        message->section == WIRE_SECTION_END ? WIRE_SECTION_DEVICES : message->section;

    visible_commands_init(&visible, connection);
    /* A follower has set its own interval. */
    if (section == WIRE_SECTION_DEVICES && message->sections == 0)
        probe_poll_watched(pool->probe_poll);
    fill_page(&page, section, message->sections);
    send_page(connection, &page);
    visible_commands_finish(&visible);
    finish_page(&page);
}
