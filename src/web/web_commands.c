/* SPDX-License-Identifier: Apache-2.0 */
#include "web/web_commands.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/program_name.h"

static void limit_command(char *command)
{
    size_t length;
    const char *name;

    if (command == NULL)
        return;
    name = program_name_find(command, &length);
    memmove(command, name, length);
    command[length] = '\0';
}

void web_commands_limit(struct follower *follower)
{
    struct pool_snapshot *snapshot = &follower->view.snapshot;
    struct device_process *process;
    struct ended_lease *ended;
    struct slot_info *slot;
    struct lease_info *lease;
    struct claim_info *claim;

    vector_for_each (slot, &snapshot->slots) {
        vector_for_each (process, &slot->device->processes)
            limit_command(process->command);
    }
    vector_for_each (lease, &snapshot->leases)
        limit_command(lease->command);
    vector_for_each (claim, &snapshot->claims)
        limit_command(claim->command);
    vector_for_each (ended, &follower->ended)
        limit_command(ended->lease->command);
}

/* ---- The history ---- */

struct history_writing {
    struct json json;
    int64_t now;
};

static int write_lease(void *context, const struct history_lease *lease, struct berth_error *error)
{
    struct history_writing *writing = context;
    struct history_lease copy = *lease;
    char *name = program_name_copy(lease->command);

    if (name == NULL && lease->command != NULL)
        return error_set_memory(error);
    copy.command = name;
    history_json_lease(&writing->json, &copy, writing->now);
    free(name);
    return text_failed(writing->json.text) ? error_set_memory(error) : 0;
}

int web_commands_write_history(struct history *history, const struct history_query *query,
                               struct text *out, struct berth_error *error)
{
    struct history_writing writing = {.now = query->now};
    int code;

    json_start(&writing.json, out, JSON_COMPACT);
    history_json_begin(&writing.json);
    code = history_each(history, query, write_lease, &writing, error);
    if (code < 0)
        return code;
    history_json_end(&writing.json);
    json_finish(&writing.json);
    return text_failed(out) ? error_set_memory(error) : 0;
}
