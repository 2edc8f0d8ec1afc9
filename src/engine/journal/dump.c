/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the whole state as the fewest events that restore it.
 */
#include <stdlib.h>

#include "engine/internal.h"

struct dump {
    const struct engine *engine;
    const struct event_sink *sink;
    struct {
        VECTOR_OF(const struct engine_request *);
    } requests; /* by number */
    struct {
        VECTOR_OF(const struct engine_entry *);
    } entries; /* claims and leases, by id */
};

static void write_event(const struct dump *dump, struct engine_event event)
{
    if ((dump->sink->wanted & EVENT_BIT(event.type)) != 0)
        dump->sink->notify(dump->sink->context, &event);
}

static struct engine_event event_of_request(const struct engine_request *request,
                                            struct party *party)
{
    *party = (struct party){
        .uid = request->uid,
        .groups = request->groups,
        .group_count = request->group_count,
        .mask = request->has_mask ? &request->mask : NULL,
        .parent = request->parent,
    };
    return (struct engine_event){
        .type = EVENT_REQUEST,
        .request = request->number,
        .what = &request->what,
        .party = party,
        .share = filter_shares_evenly(&request->what) ? request->share : 0,
    };
}

void engine_notify_request(const struct engine_request *request)
{
    struct party party;

    engine_notify(request->engine, event_of_request(request, &party));
}

static int compare_requests(const void *one, const void *other)
{
    uint64_t first = (*(const struct engine_request *const *)one)->number;
    uint64_t second = (*(const struct engine_request *const *)other)->number;

    return (first > second) - (first < second);
}

static int compare_entries(const void *one, const void *other)
{
    uint64_t first = (*(const struct engine_entry *const *)one)->link.id;
    uint64_t second = (*(const struct engine_entry *const *)other)->link.id;

    return (first > second) - (first < second);
}

static int add_entry(struct dump *dump, const struct engine_entry *entry)
{
    const struct engine_entry **place = vector_append(&dump->entries);

    if (place == NULL)
        return BERTH_ERROR_MEMORY;
    *place = entry;
    return 0;
}

static int gather_request(struct dump *dump, const struct engine_request *request)
{
    const struct engine_request **place = vector_append(&dump->requests);

    if (place == NULL)
        return BERTH_ERROR_MEMORY;
    *place = request;
    list_for_each (link, &request->waiting) {
        if (add_entry(dump, &container_of(link, struct claim, in_lane)->entry) < 0)
            return BERTH_ERROR_MEMORY;
    }
    return 0;
}

static int gather_state(struct dump *dump)
{
    list_for_each (link, &dump->engine->scopes) {
        const struct scope *scope = container_of(link, struct scope, in_engine);

        list_for_each (other, &scope->requests) {
            if (gather_request(dump, container_of(other, struct engine_request, in_scope)) < 0)
                return BERTH_ERROR_MEMORY;
        }
    }
    list_for_each (link, &dump->engine->leases) {
        if (add_entry(dump, &container_of(link, struct lease, in_engine)->entry) < 0)
            return BERTH_ERROR_MEMORY;
    }
    if (dump->requests.count > 0)
        qsort(dump->requests.items, dump->requests.count, sizeof(*dump->requests.items),
              compare_requests);
    if (dump->entries.count > 0)
        qsort(dump->entries.items, dump->entries.count, sizeof(*dump->entries.items),
              compare_entries);
    return 0;
}

static void write_devices(const struct dump *dump)
{
    const struct engine *engine = dump->engine;

    for (uint32_t slot = 0; slot < engine->machine.devices.count; slot++)
        write_event(dump, (struct engine_event){
                              .type = EVENT_DEVICE,
                              .time = engine->now,
                              .slot = slot,
                              .blocks = engine->status[slot].blocks,
                              .health = (uint8_t)engine->machine.devices.items[slot].health,
                              .present = engine->status[slot].present,
                          });
}

static void write_slots(const struct dump *dump, const struct scope *scope)
{
    for (uint32_t slot = 0; slot < dump->engine->machine.devices.count; slot++) {
        const struct ledger_slot *view = &scope->ledger[slot];

        if (view->served == 0 && view->last_served == 0 && view->affinity == 0)
            continue;
        write_event(dump, (struct engine_event){
                              .type = EVENT_SLOT,
                              .time = dump->engine->now,
                              .lease = scope->parent != NULL ? scope->parent->entry.link.id : 0,
                              .slot = slot,
                              .stamp = view->last_served,
                              .served = view->served,
                              .affinity = view->affinity,
                          });
    }
}

static void write_lease_state(const struct dump *dump, const struct lease *held)
{
    struct engine_event event = {.time = dump->engine->now, .lease = held->entry.link.id};

    if (held->force_at != TIME_NEVER) {
        event.type = EVENT_NOTICE;
        event.expires = held->force_at;
        write_event(dump, event);
    }
    if (held->state == LEASE_HELD || held->state == LEASE_NOTICED)
        return;
    event.type = held->state == LEASE_REVOKED   ? EVENT_REVOKED
                 : held->state == LEASE_EXPIRED ? EVENT_EXPIRED
                                                : EVENT_DRAINING;
    event.expires = 0;
    write_event(dump, event);
}

static void write_entry(const struct dump *dump, const struct engine_entry *entry)
{
    if (entry->is_lease) {
        const struct lease *held = container_of(entry, struct lease, entry);

        write_event(dump, (struct engine_event){
                              .type = EVENT_GRANTED,
                              .time = held->granted,
                              .claim = held->claim,
                              .lease = entry->link.id,
                              .request = held->request->number,
                              .slots = held->slots,
                              .slot_count = held->slot_count,
                              .replicas = held->replicas,
                              .expires = held->expires,
                          });
    } else {
        const struct claim *claim = container_of(entry, struct claim, entry);

        write_event(dump, (struct engine_event){
                              .type = EVENT_QUEUED,
                              .time = claim->arrived,
                              .claim = entry->link.id,
                              .request = claim->request->number,
                              .deadline = entry->at,
                          });
    }
}

/* Writes the requests of the pool, then claims and leases by id, after each lease the requests
 * within it, and last the states of the leases. */
static void write_records(const struct dump *dump)
{
    const struct engine_request **request;
    const struct engine_entry **entry;
    struct party party;

    vector_for_each (request, &dump->requests) {
        if ((*request)->parent == 0)
            write_event(dump, event_of_request(*request, &party));
    }
    vector_for_each (entry, &dump->entries) {
        const struct lease *held;

        write_entry(dump, *entry);
        if (!(*entry)->is_lease)
            continue;
        held = container_of(*entry, struct lease, entry);
        vector_for_each (request, &dump->requests) {
            if (held->inner_scope != NULL && (*request)->parent == (*entry)->link.id)
                write_event(dump, event_of_request(*request, &party));
        }
    }
    vector_for_each (entry, &dump->entries) {
        if ((*entry)->is_lease)
            write_lease_state(dump, container_of(*entry, struct lease, entry));
    }
}

int engine_dump(const struct engine *engine, const struct event_sink *sink)
{
    struct dump dump = {.engine = engine, .sink = sink};
    int code = gather_state(&dump);

    if (code == 0) {
        write_event(&dump, (struct engine_event){
                               .type = EVENT_COUNTERS,
                               .time = engine->now,
                               .lease = engine->last_id,
                               .request = engine->last_request,
                           });
        write_records(&dump);
        write_devices(&dump);
        write_slots(&dump, &engine->root);
        list_for_each (link, &engine->leases) {
            const struct lease *held = container_of(link, struct lease, in_engine);

            if (held->inner_scope != NULL)
                write_slots(&dump, held->inner_scope);
        }
    }
    vector_finish(&dump.requests);
    vector_finish(&dump.entries);
    return code;
}
