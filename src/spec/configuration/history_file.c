/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/configuration/history_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/socket_files.h"
#include "base/text/text.h"
#include "spec/configuration/configuration.h"

static const char machine_socket[] = "/run/berth/berth.sock";
static const char machine_file[] = "/var/lib/berth/history.db";

void history_file_default(const struct history_file_pool *pool, const char *home, const char *state,
                          struct text *out)
{
    bool is_in_home = pool->is_own && !pool->is_made_up;

    if (is_in_home && state != NULL && *state == '/') {
        text_append_format(out, "%s/berth/history.db", state);
    } else if (is_in_home && home != NULL && *home == '/') {
        text_append_format(out, "%s/.local/state/berth/history.db",
                           strcmp(home, "/") == 0 ? "" : home);
    } else if (strcmp(pool->socket, machine_socket) == 0 && !pool->is_made_up) {
        text_append(out, machine_file);
    } else {
        socket_files_append(pool->socket, ".history", out);
    }
}

int history_file_find(const struct history_file_pool *pool,
                      const struct configured_history *configured, char **ret_path,
                      struct berth_error *error)
{
    struct text path = {0};

    *ret_path = NULL;
    if (configured->is_off)
        return 0;
    if (configured->file != NULL)
        text_append(&path, configured->file);
    else
        history_file_default(pool, getenv("HOME"), getenv("XDG_STATE_HOME"), &path);
    *ret_path = text_detach(&path);
    return *ret_path == NULL ? error_set_memory(error) : 0;
}
