/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/visible_commands.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/program_name.h"
#include "base/text/utf8.h"
#include "daemon/clients/connection.h"
#include "daemon/clients/permissions.h"
#include "daemon/leases/pool.h"
#include "wire/wire.h"

void visible_commands_init(struct visible_commands *visible, struct connection *connection)
{
    const struct pool *pool = pool_of(connection);

    *visible = (struct visible_commands){
        .limits = !configuration_shows_commands(&pool->rules, pool->settings.own) &&
                  !permissions_is_admin(connection),
        .uid = connection->uid,
    };
}

/* Replaces a command line by the program's name, which lives until visible_commands_finish(). */
static int limit_command(struct visible_commands *visible, char **command)
{
    char *name = *command == NULL ? NULL : program_name_copy(*command);
    char **place = name == NULL ? NULL : vector_append(&visible->names);

    if (*command == NULL)
        return 0;
    if (place == NULL) {
        free(name);
        return BERTH_ERROR_MEMORY;
    }
    *place = *command = name;
    return 0;
}

int visible_commands_limit_process(struct visible_commands *visible, struct device_process *process)
{
    bool is_own = (process->uid.known && process->uid.value == visible->uid) ||
                  (process->owner.known && process->owner.value == visible->uid);

    return visible->limits && !is_own ? limit_command(visible, &process->command) : 0;
}

void visible_commands_append(const struct pool *pool, const char *command, struct text *out)
{
    char *name;

    if (configuration_shows_commands(&pool->rules, pool->settings.own)) {
        utf8_append_inert(out, command);
        return;
    }
    name = program_name_copy(command);
    utf8_append_inert(out, name == NULL ? "" : name);
    free(name);
}

static int limit_ended(struct visible_commands *visible, struct ended_lease *ended)
{
    struct lease_info *copy;
    struct lease_info **place;

    if (ended->lease->uid == visible->uid || ended->lease->command == NULL)
        return 0;
    copy = malloc(sizeof(*copy));
    place = copy == NULL ? NULL : vector_append(&visible->leases);
    if (place == NULL) {
        free(copy);
        return BERTH_ERROR_MEMORY;
    }
    *place = copy;
    *copy = *ended->lease;
    ended->lease = copy;
    return limit_command(visible, &copy->command);
}

int visible_commands_limit(struct visible_commands *visible, struct wire_message *message,
                           struct berth_error *error)
{
    struct pool_snapshot *snapshot = &message->snapshot;
    struct lease_info *lease;
    struct claim_info *claim;
    int code = 0;

    if (!visible->limits)
        return 0;
    vector_for_each (lease, &snapshot->leases) {
        if (code == 0 && lease->uid != visible->uid)
            code = limit_command(visible, &lease->command);
    }
    vector_for_each (claim, &snapshot->claims) {
        if (code == 0 && claim->uid != visible->uid)
            code = limit_command(visible, &claim->command);
    }
    for (size_t i = 0; i < message->ended.count && code == 0; i++)
        code = limit_ended(visible, &message->ended.items[i]);
    return code < 0 ? error_set_memory(error) : 0;
}

void visible_commands_finish(struct visible_commands *visible)
{
    struct lease_info **lease;

    string_list_finish(&visible->names);
    vector_for_each (lease, &visible->leases)
        free(*lease);
    vector_finish(&visible->leases);
}
