/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares two messages and measures their memory, for unit tests and fuzz targets.
 */
#ifndef TESTS_WIRE_MESSAGES_H
#define TESTS_WIRE_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "wire/wire.h"

static inline bool same_text(const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

static inline bool same_maybe(struct optional_number one, struct optional_number other)
{
    return one.known == other.known && (!one.known || one.value == other.value);
}

static inline bool same_figure(struct figure one, struct figure other)
{
    return one.known == other.known &&
           (!one.known || (one.value == other.value && one.sampled_at == other.sampled_at));
}

static inline bool same_pci(struct pci_address one, struct pci_address other)
{
    return one.known == other.known && (!one.known || pci_compare(one, other) == 0);
}

static inline bool same_capability(struct capability one, struct capability other)
{
    return one.known == other.known &&
           (!one.known || (one.major == other.major && one.minor == other.minor));
}

static inline bool same_strings(const struct string_list *one, const struct string_list *other)
{
    bool same = one->count == other->count;

    for (size_t i = 0; same && i < one->count; i++)
        same = same_text(one->items[i], other->items[i]);
    return same;
}

static inline bool same_load(const struct load *one, const struct load *other)
{
    return same_figure(one->memory_free, other->memory_free) &&
           same_figure(one->utilization, other->utilization) &&
           same_figure(one->temperature, other->temperature) &&
           same_figure(one->power, other->power) && same_figure(one->frequency, other->frequency);
}

static inline bool same_process(const struct device_process *one,
                                const struct device_process *other)
{
    return one->pid == other->pid && same_maybe(one->uid, other->uid) &&
           same_maybe(one->memory, other->memory) && same_text(one->command, other->command) &&
           same_text(one->container, other->container) && one->lease == other->lease &&
           one->started == other->started && one->draws == other->draws &&
           one->squats == other->squats && one->said_lease == other->said_lease &&
           same_text(one->said_socket, other->said_socket) && same_maybe(one->owner, other->owner);
}

static inline bool same_processes(const struct device_process_list *one,
                                  const struct device_process_list *other)
{
    bool same = one->count == other->count;

    for (size_t i = 0; same && i < one->count; i++)
        same = same_process(&one->items[i], &other->items[i]);
    return same;
}

/* Compares devices, except for the host, which no message contains. */
static inline bool same_device(const struct device *one, const struct device *other)
{
    return device_id_equals(one->id, other->id) && same_text(one->name, other->name) &&
           same_text(one->uuid, other->uuid) && same_text(one->parent, other->parent) &&
           same_text(one->cpus, other->cpus) && same_pci(one->pci, other->pci) &&
           same_maybe(one->memory_total, other->memory_total) &&
           same_maybe(one->numa, other->numa) && same_maybe(one->minor, other->minor) &&
           same_maybe(one->tiles, other->tiles) && same_maybe(one->ordinal, other->ordinal) &&
           same_maybe(one->first_tile, other->first_tile) &&
           same_capability(one->cap, other->cap) && one->health == other->health &&
           one->partitioned == other->partitioned && same_strings(&one->nodes, &other->nodes) &&
           same_load(&one->load, &other->load) &&
           same_text(one->health_reason, other->health_reason) && one->asleep == other->asleep &&
           one->old == other->old && one->kind == other->kind &&
           same_processes(&one->processes, &other->processes);
}

static inline bool same_slot(const struct slot_info *one, const struct slot_info *other)
{
    return same_device(one->device, other->device) && one->state == other->state &&
           one->sharing == other->sharing && one->tenants == other->tenants &&
           one->share_used == other->share_used && one->memory_used == other->memory_used &&
           one->blocks == other->blocks && same_text(one->reason, other->reason) &&
           same_maybe(one->reason_uid, other->reason_uid) &&
           one->reason_time == other->reason_time && same_maybe(one->name_uid, other->name_uid) &&
           same_maybe(one->name_pid, other->name_pid);
}

static inline bool same_lease(const struct lease_info *one, const struct lease_info *other)
{
    return one->id == other->id && one->parent == other->parent && one->uid == other->uid &&
           one->pid == other->pid && same_text(one->name, other->name) &&
           same_text(one->command, other->command) &&
           device_id_list_equals(&one->devices, &other->devices) &&
           one->replicas == other->replicas && one->share == other->share &&
           same_maybe(one->memory, other->memory) && one->sharing == other->sharing &&
           one->priority == other->priority && one->opportunistic == other->opportunistic &&
           one->draining == other->draining && one->granted == other->granted &&
           one->since == other->since && same_maybe(one->expires, other->expires) &&
           same_maybe(one->force_at, other->force_at) && one->end == other->end &&
           same_maybe(one->idle, other->idle) && one->idle_warned == other->idle_warned &&
           one->adopted == other->adopted && one->preparing == other->preparing &&
           one->judged_time == other->judged_time && one->idle_time == other->idle_time;
}

static inline bool same_ended(const struct ended_lease *one, const struct ended_lease *other)
{
    return same_lease(one->lease, other->lease) && one->end == other->end &&
           one->time == other->time && same_maybe(one->exit_code, other->exit_code);
}

static inline bool same_histogram(const struct duration_histogram *one,
                                  const struct duration_histogram *other)
{
    return one == NULL || other == NULL ? one == other : memcmp(one, other, sizeof(*one)) == 0;
}

static inline bool same_tally(const struct pool_tally *one, const struct pool_tally *other)
{
    if (one == NULL || other == NULL)
        return one == other;
    return one->granted == other->granted && one->impossible == other->impossible &&
           one->refused == other->refused && one->busy == other->busy &&
           one->timed_out == other->timed_out && one->cancelled == other->cancelled &&
           same_histogram(one->waited, other->waited) && same_histogram(one->held, other->held);
}

static inline bool same_claim(const struct claim_info *one, const struct claim_info *other)
{
    return one->id == other->id && one->parent == other->parent && one->uid == other->uid &&
           one->pid == other->pid && one->position == other->position &&
           same_text(one->name, other->name) && same_text(one->command, other->command) &&
           same_text(one->request, other->request) && one->since == other->since &&
           same_text(one->why, other->why) && same_maybe(one->estimate, other->estimate) &&
           one->priority == other->priority && one->opportunistic == other->opportunistic;
}

/* Compares the members that a client sends. */
static inline bool same_question(const struct wire_message *one, const struct wire_message *other)
{
    if (one->request == NULL || other->request == NULL) {
        if (one->request != other->request)
            return false;
    } else if (!request_equals(one->request, other->request)) {
        return false;
    }
    return one->type == other->type && one->number == other->number && one->id == other->id &&
           one->parent == other->parent && one->token[0] == other->token[0] &&
           one->token[1] == other->token[1] && one->hold == other->hold &&
           one->resume == other->resume && same_strings(&one->masks, &other->masks) &&
           same_text(one->command, other->command) &&
           same_text(one->about.inventory, other->about.inventory) &&
           one->duration == other->duration && one->section == other->section &&
           one->after == other->after && one->started == other->started &&
           one->present == other->present && one->epoch == other->epoch &&
           one->kinds == other->kinds && one->sections == other->sections &&
           device_id_list_equals(&one->device_ids, &other->device_ids);
}

/* Compares the members that the daemon sends, except for lists. */
static inline bool same_answer(const struct wire_message *one, const struct wire_message *other)
{
    return one->error == other->error && same_text(one->text, other->text) &&
           one->position == other->position && same_maybe(one->estimate, other->estimate) &&
           one->replicas == other->replicas && one->more == other->more &&
           one->granted == other->granted && same_maybe(one->expires, other->expires) &&
           one->vendors == other->vendors && same_text(one->about.socket, other->about.socket) &&
           same_text(one->mps_root, other->mps_root) &&
           same_text(one->about.pool, other->about.pool) &&
           same_text(one->about.version_text, other->about.version_text) &&
           one->pid == other->pid && one->force_at == other->force_at && one->end == other->end &&
           same_maybe(one->exit_code, other->exit_code) &&
           one->snapshot.capacity == other->snapshot.capacity &&
           one->snapshot.pending == other->snapshot.pending &&
           one->snapshot.time == other->snapshot.time && one->stay == other->stay &&
           same_text(one->about.history, other->about.history) && one->lost == other->lost &&
           same_tally(one->tally, other->tally);
}

static inline bool wire_message_equals(const struct wire_message *one,
                                       const struct wire_message *other)
{
    bool same = same_question(one, other) && same_answer(one, other) &&
                one->devices.count == other->devices.count &&
                one->snapshot.slots.count == other->snapshot.slots.count &&
                one->snapshot.leases.count == other->snapshot.leases.count &&
                one->snapshot.claims.count == other->snapshot.claims.count &&
                one->snapshot.problems.count == other->snapshot.problems.count &&
                one->ended.count == other->ended.count;

    for (size_t i = 0; same && i < one->devices.count; i++)
        same = same_device(&one->devices.items[i], &other->devices.items[i]);
    for (size_t i = 0; same && i < one->snapshot.slots.count; i++)
        same = same_slot(&one->snapshot.slots.items[i], &other->snapshot.slots.items[i]);
    for (size_t i = 0; same && i < one->snapshot.leases.count; i++)
        same = same_lease(&one->snapshot.leases.items[i], &other->snapshot.leases.items[i]);
    for (size_t i = 0; same && i < one->ended.count; i++)
        same = same_ended(&one->ended.items[i], &other->ended.items[i]);
    for (size_t i = 0; same && i < one->snapshot.claims.count; i++)
        same = same_claim(&one->snapshot.claims.items[i], &other->snapshot.claims.items[i]);
    for (size_t i = 0; same && i < one->snapshot.problems.count; i++)
        same = same_text(one->snapshot.problems.items[i].backend,
                         other->snapshot.problems.items[i].backend) &&
               same_text(one->snapshot.problems.items[i].message,
                         other->snapshot.problems.items[i].message);
    return same;
}

/* ---- Memory ---- */

/* The approximate overhead of an allocation, in bytes. */
enum { PIECE = 32 };

static inline size_t text_memory(const char *text)
{
    return text == NULL ? 0 : PIECE + strlen(text);
}

static inline size_t strings_memory(const struct string_list *list)
{
    size_t sum = PIECE + list->capacity * sizeof(*list->items);

    for (size_t i = 0; i < list->count; i++)
        sum += text_memory(list->items[i]);
    return sum;
}

static inline size_t ids_memory(const struct device_id_list *list)
{
    return PIECE + list->capacity * sizeof(*list->items);
}

/* Returns how many bytes a device owns. */
static inline size_t device_memory(const struct device *device)
{
    size_t sum = text_memory(device->name) + text_memory(device->uuid) +
                 text_memory(device->parent) + text_memory(device->cpus) +
                 text_memory(device->health_reason) + strings_memory(&device->nodes) +
                 device->processes.capacity * sizeof(*device->processes.items);

    for (size_t i = 0; i < device->processes.count; i++)
        sum += text_memory(device->processes.items[i].command) +
               text_memory(device->processes.items[i].container) +
               text_memory(device->processes.items[i].said_socket);
    return sum;
}

static inline size_t request_memory(const struct request *request)
{
    if (request == NULL)
        return 0;
    return PIECE + sizeof(*request) + ids_memory(&request->wanted) + ids_memory(&request->avoided) +
           text_memory(request->model) + text_memory(request->policy) +
           text_memory(request->affinity) + text_memory(request->name);
}

static inline size_t lease_memory(const struct lease_info *lease)
{
    return text_memory(lease->name) + text_memory(lease->command) + ids_memory(&lease->devices);
}

static inline size_t tally_memory(const struct pool_tally *tally)
{
    if (tally == NULL)
        return 0;
    return PIECE + sizeof(*tally) +
           (tally->waited == NULL ? 0 : PIECE + sizeof(struct duration_histogram)) +
           (tally->held == NULL ? 0 : PIECE + sizeof(struct duration_histogram));
}

/* Returns how many bytes the message owns. */
static inline size_t wire_message_memory(const struct wire_message *message)
{
    size_t sum = request_memory(message->request) + strings_memory(&message->masks) +
                 ids_memory(&message->device_ids) + text_memory(message->command) +
                 text_memory(message->about.inventory) + text_memory(message->text) +
                 text_memory(message->about.socket) + text_memory(message->mps_root) +
                 text_memory(message->about.pool) + text_memory(message->about.version_text) +
                 message->devices.capacity * sizeof(*message->devices.items) +
                 message->snapshot.slots.capacity * sizeof(*message->snapshot.slots.items) +
                 message->snapshot.leases.capacity * sizeof(*message->snapshot.leases.items) +
                 message->snapshot.claims.capacity * sizeof(*message->snapshot.claims.items) +
                 message->snapshot.problems.capacity * sizeof(*message->snapshot.problems.items) +
                 message->ended.capacity * sizeof(*message->ended.items) +
                 tally_memory(message->tally) + text_memory(message->about.history);

    for (size_t i = 0; i < message->devices.count; i++)
        sum += device_memory(&message->devices.items[i]);
    for (size_t i = 0; i < message->snapshot.slots.count; i++)
        sum += PIECE + sizeof(struct device) +
               device_memory(message->snapshot.slots.items[i].device) +
               text_memory(message->snapshot.slots.items[i].reason);
    for (size_t i = 0; i < message->snapshot.leases.count; i++)
        sum += lease_memory(&message->snapshot.leases.items[i]);
    for (size_t i = 0; i < message->ended.count; i++)
        sum += PIECE + sizeof(struct lease_info) + lease_memory(message->ended.items[i].lease);
    for (size_t i = 0; i < message->snapshot.claims.count; i++) {
        const struct claim_info *claim = &message->snapshot.claims.items[i];

        sum += text_memory(claim->name) + text_memory(claim->command) +
               text_memory(claim->request) + text_memory(claim->why);
    }
    for (size_t i = 0; i < message->snapshot.problems.count; i++)
        sum += text_memory(message->snapshot.problems.items[i].backend) +
               text_memory(message->snapshot.problems.items[i].message);
    return sum;
}

#endif
