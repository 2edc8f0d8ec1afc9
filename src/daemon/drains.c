/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/drains.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/connection.h"
#include "daemon/keep.h"
#include "daemon/messages.h"
#include "daemon/rights.h"

int drains_init(struct pool *pool, struct berth_error *error)
{
    pool->drains = calloc(engine_slots_max(pool->engine), sizeof(*pool->drains));
    return pool->drains == NULL ? error_set_memory(error) : 0;
}

void drains_finish(struct pool *pool)
{
    for (size_t slot = 0; pool->drains != NULL && slot < engine_slots_max(pool->engine); slot++)
        free(pool->drains[slot].reason);
    free(pool->drains);
    pool->drains = NULL;
}

const struct drain *drain_of(const struct pool *pool, uint32_t slot)
{
    return &pool->drains[slot];
}

static void log_drain(struct pool *pool, uint32_t slot, const char *what)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    const struct drain *drain = &pool->drains[slot];

    log_begin(&pool->log, pool_now(pool), what);
    device_id_append(device->id, log_value(&pool->log, "device"));
    if (drain->uid.known)
        log_number(&pool->log, "uid", drain->uid.value);
    if (drain->reason != NULL)
        text_append(log_value(&pool->log, "reason"), log_quote(drain->reason).text);
    log_end(&pool->log);
}

int drain_set(struct pool *pool, uint32_t slot, const char *reason, struct optional_number uid,
              struct berth_error *error)
{
    struct drain *drain = &pool->drains[slot];
    char *copy = reason == NULL ? NULL : strdup(reason);

    if (reason != NULL && copy == NULL)
        return error_set_memory(error);
    free(drain->reason);
    *drain = (struct drain){.reason = copy, .uid = uid, .time = pool_now(pool)};
    log_drain(pool, slot, "drained");
    keep_drain(pool, slot);
    engine_block(pool->engine, slot, BLOCK_DRAINED);
    return 0;
}

void drain_clear(struct pool *pool, uint32_t slot)
{
    struct drain *drain = &pool->drains[slot];

    if (drain->time == 0)
        return;
    free(drain->reason);
    *drain = (struct drain){0};
    log_drain(pool, slot, "undrained");
    keep_drain(pool, slot);
    engine_unblock(pool->engine, slot, BLOCK_DRAINED);
}

void drain_restore(struct pool *pool, struct kept_drain *kept)
{
    struct drain *drain;

    if (kept->slot >= engine_slots_max(pool->engine))
        return;
    drain = &pool->drains[kept->slot];
    free(drain->reason);
    *drain = (struct drain){.reason = kept->reason, .uid = kept->uid, .time = kept->time};
    kept->reason = NULL;
}

void drains_restored(struct pool *pool, bool other_devices)
{
    for (uint32_t slot = 0; slot < engine_machine(pool->engine)->devices.count; slot++) {
        struct drain *drain = &pool->drains[slot];

        if (other_devices) {
            free(drain->reason);
            *drain = (struct drain){0};
        }
        if (drain->time != 0)
            engine_block(pool->engine, slot, BLOCK_DRAINED);
        else
            engine_unblock(pool->engine, slot, BLOCK_DRAINED);
    }
}

/* ---- Messages ---- */

static int check(struct connection *connection, const struct wire_message *message,
                 struct berth_error *error)
{
    const struct device_list *devices = &engine_machine(connection->pool->engine)->devices;
    const struct device_id *id;

    if (!rights_is_admin(connection))
        return error_set(error, BERTH_ERROR_PERMISSION,
                         "only root, the pool's owner and its admins may drain devices");
    if (message->device_ids.count == 0)
        return error_set(error, BERTH_ERROR_INVALID,
                         "cannot change devices: the message names none");
    vector_for_each (id, &message->device_ids) {
        if (device_list_find(devices, *id) == devices->count)
            return error_set(error, BERTH_ERROR_NOT_FOUND, "no device named %s in this pool",
                             device_id_format(*id).text);
    }
    return 0;
}

static void change(struct connection *connection, const struct wire_message *message, bool drains)
{
    struct pool *pool = connection->pool;
    const struct device_list *devices = &engine_machine(pool->engine)->devices;
    struct berth_error error = BERTH_ERROR_INIT;
    const struct device_id *id;
    int code = check(connection, message, &error);

    /* What is free by it is granted when all are in service again. */
    engine_pause(pool->engine);
    vector_for_each (id, &message->device_ids) {
        uint32_t slot = code < 0 ? 0 : (uint32_t)device_list_find(devices, *id);

        if (code == 0 && drains)
            code =
                drain_set(pool, slot, message->text, optional_number_of(connection->uid), &error);
        else if (code == 0)
            drain_clear(pool, slot);
    }
    engine_resume(pool->engine);
    if (code < 0)
        connection_refuse(connection, message->number, &error);
    else
        connection_send(connection,
                        &(struct wire_message){.type = WIRE_DONE, .number = message->number});
}

void message_drain(struct connection *connection, struct wire_message *message)
{
    change(connection, message, true);
}

void message_undrain(struct connection *connection, struct wire_message *message)
{
    change(connection, message, false);
}
