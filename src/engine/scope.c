/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "engine/internal.h"

/* Sets the terms within a lease: the parent's part is the whole device (FAIRNESS.md section 11). */
static void set_terms(struct scope *scope)
{
    const struct engine_settings *settings = &scope->engine->settings;
    const struct lease *parent = scope->parent;

    scope->terms = (struct filter_terms){
        .time_slice_tenants = settings->time_slice_tenants,
        .mps_tenants = settings->mps_tenants,
        .share = SHARE_WHOLE,
    };
    if (parent == NULL)
        return;
    scope->terms.share = parent->request->share;
    scope->terms.memory = parent->request->scope->terms.memory;
    /* A shared lease without reserved memory has no memory to reserve. */
    if (parent->request->what.sharing != SHARING_EXCLUSIVE)
        scope->terms.memory = optional_number_of(
            parent->request->what.memory.known ? parent->request->what.memory.value : 0);
    scope->only_sharing = parent->request->what.sharing == SHARING_EXCLUSIVE
                              ? parent->request->scope->only_sharing
                              : parent->request->what.sharing;
    scope->only_domain = parent->request->what.sharing == SHARING_EXCLUSIVE
                             ? parent->request->scope->only_domain
                             : parent->request->domain;
}

void scope_apply_rules(struct scope *scope)
{
    scope->terms.time_slice_tenants = scope->engine->settings.time_slice_tenants;
    scope->terms.mps_tenants = scope->engine->settings.mps_tenants;
    for (uint32_t slot = 0; slot < scope->engine->machine.devices.count; slot++)
        scope_refresh_sets(scope, slot);
}

int scope_init(struct scope *scope, struct engine *engine, struct lease *parent)
{
    size_t size = engine->size;

    *scope = (struct scope){.engine = engine, .parent = parent, .next_age = TIME_NEVER};
    list_init(&scope->requests);
    set_terms(scope);
    scope->ledger = calloc(size, sizeof(*scope->ledger));
    scope->slots = calloc(size, sizeof(*scope->slots));
    scope->host_usage = calloc(engine->host_count, sizeof(*scope->host_usage));
    scope->wanted_by = calloc(size, sizeof(*scope->wanted_by));
    if (scope->ledger == NULL || scope->slots == NULL || scope->host_usage == NULL ||
        scope->wanted_by == NULL || lowest_set_init(&scope->empty, size) < 0 ||
        bitset_init(&scope->part, size) < 0 || bitset_init(&scope->contested, size) < 0 ||
        bitset_init(&scope->members, size) < 0) {
        scope_finish(scope);
        return BERTH_ERROR_MEMORY;
    }
    for (uint32_t i = 0; parent != NULL && i < parent->slot_count; i++)
        bitset_add(&scope->members, parent->slots[i]);
    for (uint32_t slot = 0; parent != NULL && slot < size; slot++)
        scope->slots[slot].rank = engine->root.slots[slot].rank;
    for (uint32_t slot = 0; slot < engine->machine.devices.count; slot++) {
        if (parent != NULL) { /* the device's work counts within a lease too */
            scope->slots[slot].queued = engine->root.slots[slot].queued;
            scope->slots[slot].active = engine->root.slots[slot].active;
            scope->slots[slot].weight = engine->root.slots[slot].weight;
        }
        scope_refresh(scope, slot);
    }
    list_append(&engine->scopes, &scope->in_engine);
    return 0;
}

struct scope *scope_within(struct lease *parent)
{
    struct scope *scope = parent->inner_scope;

    if (scope != NULL)
        return scope;
    scope = malloc(sizeof(*scope));
    if (scope == NULL || scope_init(scope, parent->request->engine, parent) < 0) {
        free(scope);
        return NULL;
    }
    parent->inner_scope = scope;
    parent->touched |= LEASE_TOUCHED_REST;
    return scope;
}

void scope_finish(struct scope *scope)
{
    list_remove(&scope->in_engine);
    free(scope->ledger);
    free(scope->slots);
    free(scope->host_usage);
    free(scope->wanted_by);
    /* A scope whose creation failed is finished a second time with the engine. */
    scope->ledger = NULL;
    scope->slots = NULL;
    scope->host_usage = NULL;
    scope->wanted_by = NULL;
    lowest_set_finish(&scope->empty);
    bitset_finish(&scope->part);
    bitset_finish(&scope->contested);
    bitset_finish(&scope->members);
    vector_finish(&scope->lanes);
    vector_finish(&scope->walked);
    vector_finish(&scope->endings);
}

/* Returns whether the slot is usable (FAIRNESS.md section 1). Within a lease, blocks do not matter
 * (section 11). */
static bool is_usable(const struct scope *scope, uint32_t slot)
{
    const struct device *device = &scope->engine->machine.devices.items[slot];
    const struct slot_status *status = &scope->engine->status[slot];

    if (!status->present || device->partitioned || device->health == HEALTH_SICK)
        return false;
    return scope->parent == NULL ? status->blocks == 0 : bitset_has(&scope->members, slot);
}

/* Returns whether a shared slot may have room for another tenant. */
static bool has_part_left(const struct scope *scope, const struct usage *usage)
{
    uint32_t max = usage->brief.sharing == SHARING_MPS ? scope->terms.mps_tenants
                                                       : scope->terms.time_slice_tenants;

    return usage->brief.sharing != SHARING_EXCLUSIVE && usage->brief.tenants < max &&
           usage->brief.share < scope->terms.share;
}

void scope_refresh(struct scope *scope, uint32_t slot)
{
    scope->ledger[slot].usable = is_usable(scope, slot);
    scope_refresh_sets(scope, slot);
}

void scope_refresh_sets(struct scope *scope, uint32_t slot)
{
    const struct usage *usage = &scope->ledger[slot].usage;
    bool usable = scope->ledger[slot].usable;
    bool is_empty = usable && usage->brief.tenants == 0;
    bool is_part = usable && usage->brief.tenants > 0 && has_part_left(scope, usage);

    if (is_empty && !lowest_set_has(&scope->empty, slot))
        lowest_set_add(&scope->empty, slot);
    if (!is_empty && lowest_set_has(&scope->empty, slot))
        lowest_set_remove(&scope->empty, slot);
    if (is_part && !bitset_has(&scope->part, slot)) {
        bitset_add(&scope->part, slot);
        scope->part_count++;
    }
    if (!is_part && bitset_has(&scope->part, slot)) {
        bitset_remove(&scope->part, slot);
        scope->part_count--;
    }
}
