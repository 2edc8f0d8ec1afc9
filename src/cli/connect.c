/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect.h"

#include "base/count.h"
#include "base/error.h"
#include "spec/option_types.h"

static const struct option reach_rows[] = {
    {.name = "inventory",
     .argument = "FILE",
     .help = "the pool of this file's devices instead of the hardware's",
     .offset = offsetof(struct reach_options, inventory),
     .take = option_string},
};

const struct option_set reach_option_set = {
    .heading = "Pool",
    .options = reach_rows,
    .count = COUNT(reach_rows),
};

int reach_open(struct reach *reach, const char *inventory, struct berth_error *error)
{
    int code = pool_address_find(inventory, &reach->address, error);

    /* The file is the user's words; that nobody listens, which has the same code, is not. */
    if (code == BERTH_ERROR_NOT_FOUND)
        return error_wrap(error, BERTH_ERROR_INVALID, "inventory");
    if (code < 0)
        return code;
    code = session_open(&reach->session, &reach->address, DIAL_START, error);
    if (code < 0)
        pool_address_finish(&reach->address);
    return code;
}

void reach_close(struct reach *reach)
{
    session_close(&reach->session);
    pool_address_finish(&reach->address);
}
