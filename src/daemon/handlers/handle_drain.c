/* SPDX-License-Identifier: Apache-2.0
 *
 * DRAIN and UNDRAIN.
 */
#include "base/error.h"
#include "daemon/clients/connection.h"
#include "daemon/clients/permissions.h"
#include "daemon/handlers/handle.h"
#include "daemon/leases/device_drain.h"
#include "daemon/leases/lost_leases.h"
#include "daemon/leases/pool.h"

static int check_message(struct connection *connection, const struct wire_message *message,
                         struct berth_error *error)
{
    const struct device_list *devices = &engine_machine(pool_of(connection)->engine)->devices;
    const struct device_id *id;

    if (!permissions_is_admin(connection))
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

static void change_devices(struct connection *connection, const struct wire_message *message,
                           bool drains)
{
    struct pool *pool = pool_of(connection);
    const struct device_list *devices = &engine_machine(pool->engine)->devices;
    struct berth_error error = BERTH_ERROR_INIT;
    const struct device_id *id;
    int code = check_message(connection, message, &error);

    /* The engine grants when all devices of the message have changed. */
    engine_pause(pool->engine);
    vector_for_each (id, &message->device_ids) {
        uint32_t slot = code < 0 ? 0 : (uint32_t)device_list_find(devices, *id);

        if (code == 0 && drains)
            code = device_drain_set(pool, slot, message->text, optional_number_of(connection->uid),
                                    &error);
        if (code == 0 && !drains) {
            device_drain_clear(pool, slot);
            lost_leases_release(pool, slot);
        }
    }
    engine_resume(pool->engine);
    if (code < 0)
        connection_refuse(connection, message->number, &error);
    else
        connection_send(connection,
                        &(struct wire_message){.type = WIRE_DONE, .number = message->number});
}

void handle_drain(struct connection *connection, struct wire_message *message)
{
    change_devices(connection, message, true);
}

void handle_undrain(struct connection *connection, struct wire_message *message)
{
    change_devices(connection, message, false);
}
