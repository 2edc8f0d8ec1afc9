/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect.h"

#include <stdio.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/terminal.h"
#include "spec/option_types.h"
#include "view/pool_view_fetch.h"

static const struct option connect_rows[] = {
    {.name = "inventory",
     .argument = "FILE",
     .help = "use the pool of this inventory file",
     .offset = offsetof(struct connect_options, inventory),
     .parse = option_type_string},
};

const struct option_set connect_option_set = {
    .heading = "Pool",
    .options = connect_rows,
    .count = COUNT(connect_rows),
};

int connect_open(struct pool_connection *connection, const char *inventory,
                 struct berth_error *error)
{
    int code = pool_address_find(inventory, &connection->address, error);

    /* A missing file is wrong usage. A missing daemon, which session_open() reports with the same
     * code, is not. */
    if (code == BERTH_ERROR_NOT_FOUND)
        return error_wrap(error, BERTH_ERROR_INVALID, "--inventory");
    if (code < 0)
        return code;
    code = session_open(&connection->session, &connection->address, DIAL_START, error);
    if (code < 0)
        pool_address_finish(&connection->address);
    return code;
}

/* Resolves the ids of the request by the devices of the pool. */
static int resolve_ids(struct session *session, struct request *request, struct berth_error *error)
{
    struct device_id_list present = {0};
    const struct slot_info *slot;
    struct pool_view view;
    int code = pool_view_fetch_retrying(session, &view, error);

    if (code < 0)
        return code;
    vector_for_each (slot, &view.snapshot.slots) {
        struct device_id *id = vector_append(&present);

        if (id == NULL)
            code = error_set_memory(error);
        else
            *id = slot->device->id;
    }
    if (code == 0)
        code = request_resolve_devices(request, &present, error);
    vector_finish(&present);
    pool_view_finish(&view);
    return code;
}

/* session_patience.report. The context is the verb's name. */
static void print_news(void *context, const char *news)
{
    const char *verb = context;

    if (verb != NULL)
        fprintf(stderr, "%sberth: %s: %s\n", terminal_clear_line(STDERR_FILENO), verb, news);
}

static void set_patience(struct session *session, const struct request *request, const char *verb)
{
    struct session_patience patience = {.report = print_news, .context = (char *)verb};

    if (request->nonblock)
        return;
    patience.has_limit = request->wait.known;
    patience.limit = (int64_t)request->wait.value;
    session_set_patience(session, &patience);
}

int connect_open_for_request(struct pool_connection *connection, struct request_options *options,
                             const char *verb, struct berth_error *error)
{
    struct request *request = &options->request;
    int code = connect_open(connection, options->inventory, error);

    if (code < 0)
        return code;
    set_patience(&connection->session, request, verb);
    if (!request_is_unresolved(request))
        return 0;
    code = resolve_ids(&connection->session, request, error);
    if (code < 0)
        connect_close(connection);
    return code;
}

void connect_close(struct pool_connection *connection)
{
    session_close(&connection->session);
    pool_address_finish(&connection->address);
}
