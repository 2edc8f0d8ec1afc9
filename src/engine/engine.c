/* SPDX-License-Identifier: Apache-2.0
 *
 * Creates and destroys the engine, changes its rules and advances its time.
 */
#include "engine/engine.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/internal.h"
#include "engine/policy/policies.h"

#define SECOND INT64_C(1000000000)

/* A grant that failed for lack of memory is tried again after this time. */
static const int64_t retry_after = SECOND / 100;

static const struct engine_settings default_settings = {
    .time_slice_tenants = 4,
    .mps_tenants = 8,
    .age_step = 3600 * SECOND,
    .grace = 10 * SECOND,
};

static struct engine_settings fill_defaults(const struct engine_settings *given)
{
    struct engine_settings settings = given != NULL ? *given : default_settings;

    if (settings.time_slice_tenants == 0)
        settings.time_slice_tenants = default_settings.time_slice_tenants;
    if (settings.mps_tenants == 0)
        settings.mps_tenants = default_settings.mps_tenants;
    if (settings.age_step <= 0)
        settings.age_step = default_settings.age_step;
    if (settings.grace <= 0)
        settings.grace = default_settings.grace;
    return settings;
}

/* Returns the maximum of slots in one decision: every tenant of every slot. */
static size_t chosen_max(const struct engine *engine, const struct engine_settings *settings)
{
    return engine->size * (settings->mps_tenants > settings->time_slice_tenants
                               ? settings->mps_tenants
                               : settings->time_slice_tenants);
}

static int allocate_buffers(struct engine *engine)
{
    size_t size = engine->size;

    engine->chosen = calloc(chosen_max(engine, &engine->settings), sizeof(*engine->chosen));
    engine->status = calloc(size, sizeof(*engine->status));
    engine->allowed = calloc(size, sizeof(*engine->allowed));
    engine->room = calloc(size, sizeof(*engine->room));
    engine->simulated = calloc(size, sizeof(*engine->simulated));
    engine->future = calloc(size, sizeof(*engine->future));
    engine->host_room = calloc(engine->host_count, sizeof(*engine->host_room));
    engine->simulated_hosts = calloc(engine->host_count, sizeof(*engine->simulated_hosts));
    engine->future_hosts = calloc(engine->host_count, sizeof(*engine->future_hosts));
    if (engine->chosen == NULL || engine->status == NULL || engine->allowed == NULL ||
        engine->room == NULL || engine->simulated == NULL || engine->future == NULL ||
        engine->host_room == NULL || engine->simulated_hosts == NULL ||
        engine->future_hosts == NULL || bitset_init(&engine->legal, size) < 0 ||
        bitset_init(&engine->from, size) < 0 || bitset_init(&engine->not_now, size) < 0 ||
        blocked_init(&engine->walk, size) < 0 || id_map_init(&engine->claim_ids) < 0 ||
        id_map_init(&engine->lease_ids) < 0 || id_map_init(&engine->families) < 0 ||
        placement_search_init(&engine->search, &engine->machine, size) < 0 ||
        vector_reserve(&engine->search.slots_chosen, size) < 0 ||
        vector_reserve(&engine->search.sizes, size) < 0 ||
        vector_reserve(&engine->machine.devices, size) < 0)
        return BERTH_ERROR_MEMORY;
    engine->group_counts =
        calloc(engine->host_count * GROUPS_OF_NODE, sizeof(*engine->group_counts));
    if (engine->group_counts == NULL)
        return BERTH_ERROR_MEMORY;
    for (size_t slot = 0; slot < engine->machine.devices.count; slot++)
        engine->status[slot].present = true;
    return scope_init(&engine->root, engine, NULL);
}

static int check_machine(const struct machine *machine, size_t size, struct berth_error *error)
{
    const struct device *device;

    if (machine->devices.count > size || size > REQUEST_COUNT_MAX)
        return error_set(error, BERTH_ERROR_LIMIT, "expected at most %zu devices, got %zu",
                         size < REQUEST_COUNT_MAX ? size : (size_t)REQUEST_COUNT_MAX,
                         machine->devices.count);
    vector_for_each (device, &machine->devices) {
        if (device->host > 0 && device->host >= machine->hosts.count)
            return error_set(error, BERTH_ERROR_INVALID, "%s: expected a known host, got %u",
                             device_id_format(device->id).text, device->host);
    }
    return 0;
}

int engine_create(struct machine *machine, const struct engine_settings *settings,
                  struct engine **ret_engine, struct berth_error *error)
{
    size_t size = settings != NULL && settings->slots_max > 0
                      ? settings->slots_max
                      : (machine->devices.count * 2 / 64 + 1) * 64;
    struct engine *engine;
    int code = check_machine(machine, size, error);

    if (code < 0)
        return code;
    engine = calloc(1, sizeof(*engine));
    if (engine == NULL)
        return error_set_memory(error);
    engine->size = size;
    engine->host_count = machine->hosts.count > 0 ? machine->hosts.count : 1;
    engine->settings = fill_defaults(settings);
    engine->machine = *machine;
    list_init(&engine->scopes);
    list_init(&engine->leases);
    list_init(&engine->accounts);
    list_init(&engine->orphans);
    if (allocate_buffers(engine) < 0) {
        *machine = engine->machine; /* unchanged, except for spare capacity */
        engine->machine = (struct machine){0};
        engine_destroy(engine);
        return error_set_memory(error);
    }
    *machine = (struct machine){0};
    *ret_engine = engine;
    return 0;
}

/* Frees requests that were not closed; claims and leases no longer matter. */
static void free_requests(struct list *requests)
{
    list_for_each (link, requests) {
        struct engine_request *request = container_of(link, struct engine_request, in_scope);

        engine_request_free(request);
    }
}

void engine_destroy(struct engine *engine)
{
    if (engine == NULL)
        return;
    engine->sink = (struct event_sink){0};
    list_for_each (link, &engine->scopes) {
        struct scope *scope = container_of(link, struct scope, in_engine);

        free_requests(&scope->requests);
        if (scope != &engine->root) {
            scope_finish(scope);
            free(scope);
        }
    }
    free_requests(&engine->orphans);
    scope_finish(&engine->root);
    list_for_each (link, &engine->accounts)
        free(container_of(link, struct account, in_engine));
    records_finish(engine);
    policy_tables_finish(engine);
    rating_index_finish_changes(&engine->changes);
    vector_finish(&engine->domains);
    blocked_finish(&engine->walk);
    placement_search_finish(&engine->search);
    vector_finish(&engine->endings_added);
    id_map_finish(&engine->families);
    id_map_finish(&engine->claim_ids);
    id_map_finish(&engine->lease_ids);
    bitset_finish(&engine->legal);
    bitset_finish(&engine->from);
    bitset_finish(&engine->not_now);
    for (size_t slot = 0; slot < engine->size && engine->allowed != NULL; slot++)
        reserved_devices_finish(&engine->allowed[slot]);
    free(engine->allowed);
    free(engine->chosen);
    free(engine->status);
    free(engine->room);
    free(engine->simulated);
    free(engine->future);
    free(engine->group_counts);
    free(engine->host_room);
    free(engine->simulated_hosts);
    free(engine->future_hosts);
    machine_finish(&engine->machine);
    free(engine);
}

/* Sets the maximum of tenants (FAIRNESS.md section 13). Returns 0 or BERTH_ERROR_MEMORY. */
static int set_tenants(struct engine *engine, const struct engine_settings *settings)
{
    uint32_t *chosen = reallocarray(engine->chosen, chosen_max(engine, settings), sizeof(*chosen));

    if (chosen == NULL)
        return BERTH_ERROR_MEMORY;
    engine->chosen = chosen;
    engine->settings.time_slice_tenants = settings->time_slice_tenants;
    engine->settings.mps_tenants = settings->mps_tenants;
    list_for_each (link, &engine->scopes)
        scope_apply_rules(container_of(link, struct scope, in_engine));
    return 0;
}

/* Sets the grace. It also determines when leases overstay (FAIRNESS.md section 13). */
static void set_grace(struct engine *engine, int64_t grace)
{
    engine->settings.grace = grace;
    list_for_each (link, &engine->leases) {
        struct lease *held = container_of(link, struct lease, in_engine);

        if (held->expires != TIME_NEVER)
            lifecycle_update_lease_timer(held);
    }
}

static void set_policy(struct engine *engine, const struct policy *policy)
{
    engine->settings.policy = policy;
    list_for_each (link, &engine->scopes) {
        struct scope *scope = container_of(link, struct scope, in_engine);

        list_for_each (other, &scope->requests) {
            struct engine_request *request = container_of(other, struct engine_request, in_scope);

            if (request->default_policy)
                request->policy = policy != NULL ? policy : policy_default(&request->what);
        }
    }
}

int engine_set_rules(struct engine *engine, const struct engine_settings *given)
{
    struct engine_settings settings = fill_defaults(given);

    if ((settings.time_slice_tenants != engine->settings.time_slice_tenants ||
         settings.mps_tenants != engine->settings.mps_tenants) &&
        set_tenants(engine, &settings) < 0)
        return BERTH_ERROR_MEMORY;
    set_grace(engine, settings.grace);
    engine->settings.age_step = settings.age_step;
    set_policy(engine, settings.policy);
    engine_recompile_requests(engine);
    list_for_each (link, &engine->scopes)
        lanes_order(container_of(link, struct scope, in_engine));
    engine_refuse_impossible(engine);
    schedule_all(engine);
    return 0;
}

void engine_set_sink(struct engine *engine, const struct event_sink *sink)
{
    engine->sink = sink->notify != NULL ? *sink : (struct event_sink){0};
    engine->notifies_at_once =
        engine_wants_event(engine, EVENT_GRANTED) && !engine->sink.waited_only;
}

int64_t engine_now(const struct engine *engine)
{
    return engine->now;
}

/* Returns when the next timer fires or the next claim may rise by a class. */
static int64_t find_next_due(const struct engine *engine)
{
    int64_t next = engine->timers.count > 0 ? engine->timers.items[0]->at : TIME_NEVER;

    list_for_each (link, &engine->scopes) {
        const struct scope *scope = container_of(link, struct scope, in_engine);

        if (scope->lanes.count > 0 && scope->next_age < next)
            next = scope->next_age;
    }
    return next;
}

int64_t engine_next_time(const struct engine *engine)
{
    int64_t next = find_next_due(engine);

    if (engine->retry && next > engine->now && retry_after < next - engine->now)
        next = engine->now + retry_after;
    return next;
}

static void expire_lease(struct lease *held)
{
    struct engine *engine = held->request->engine;
    bool forced = held->state == LEASE_NOTICED && held->force_at <= engine->now;
    enum event_type type = forced ? EVENT_REVOKED : EVENT_EXPIRED;

    if (held->state != LEASE_HELD && held->state != LEASE_NOTICED) {
        lifecycle_update_lease_timer(held); /* it overstays, which affects only reservations */
        return;
    }
    lifecycle_set_lease_state(held, forced ? LEASE_REVOKED : LEASE_EXPIRED);
    lifecycle_update_lease_timer(held);
    if (engine_wants_event(engine, type))
        engine_notify(engine, (struct engine_event){.type = type, .lease = held->entry.link.id});
}

/* Handles everything that is due at the engine's time. */
static void process_due(struct engine *engine)
{
    while (engine->timers.count > 0 && engine->timers.items[0]->at <= engine->now) {
        struct engine_entry *entry = engine->timers.items[0];

        if (entry->is_lease)
            expire_lease(container_of(entry, struct lease, entry));
        else
            lifecycle_refuse_claim(container_of(entry, struct claim, entry), REFUSAL_TIMED_OUT);
    }
    list_for_each (link, &engine->scopes) {
        struct scope *scope = container_of(link, struct scope, in_engine);

        if (scope->next_age <= engine->now)
            lanes_age(scope);
    }
    schedule_all(engine);
}

void engine_advance(struct engine *engine, int64_t now)
{
    if (engine->retry && !engine->paused) {
        engine->retry = false;
        engine_resume(engine);
    }
    for (int64_t next = find_next_due(engine); next <= now && next != TIME_NEVER;
         next = find_next_due(engine)) {
        if (next > engine->now)
            engine->now = next;
        process_due(engine);
    }
    if (now > engine->now)
        engine->now = now;
}

void engine_notify(const struct engine *engine, struct engine_event event)
{
    event.time = engine->now;
    engine->sink.notify(engine->sink.context, &event);
}
