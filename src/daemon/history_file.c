/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/history_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/listener.h"

static const char machine_socket[] = "/run/berth/berth.sock";
static const char machine_file[] = "/var/lib/berth/history.db";

void history_file_default(const struct pool_settings *settings, const char *home, const char *state,
                          struct text *out)
{
    bool is_ours = settings->own && settings->inventory == NULL;

    if (is_ours && state != NULL && *state == '/') {
        text_append_format(out, "%s/berth/history.db", state);
    } else if (is_ours && home != NULL && *home == '/') {
        text_append_format(out, "%s/.local/state/berth/history.db",
                           strcmp(home, "/") == 0 ? "" : home);
    } else if (strcmp(settings->socket, machine_socket) == 0 && settings->inventory == NULL) {
        text_append(out, machine_file);
    } else {
        listener_beside(settings->socket, ".history", out);
    }
}

int history_file_find(const struct pool *pool, char **ret_path, struct berth_error *error)
{
    const struct configured_history *history = &pool->rules.history;
    struct text path = {0};

    *ret_path = NULL;
    if (history->is_off)
        return 0;
    if (history->file != NULL)
        text_append(&path, history->file);
    else
        history_file_default(&pool->settings, getenv("HOME"), getenv("XDG_STATE_HOME"), &path);
    *ret_path = text_detach(&path);
    return *ret_path == NULL ? error_set_memory(error) : 0;
}
