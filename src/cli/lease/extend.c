/* SPDX-License-Identifier: Apache-2.0
 *
 * berth extend: adds to the time limit of a lease.
 */
#include <inttypes.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "cli/connect.h"
#include "cli/ids.h"
#include "cli/output.h"
#include "cli/verbs.h"

/* Extends the lease. Returns 0 with its new end, or a negative error code. */
static int extend_lease(const char *inventory, uint64_t id, int64_t duration,
                        struct optional_number *ret_expires, struct berth_error *error)
{
    struct wire_message question = {
        .type = WIRE_EXTEND,
        .id = id,
        .duration = (uint64_t)duration,
    };
    struct wire_message answer;
    struct pool_connection connection;
    int code = connect_open(&connection, inventory, error);

    if (code < 0)
        return code;
    code = session_request(&connection.session, &question, WIRE_DONE, &answer, error);
    if (code == 0) {
        *ret_expires = answer.expires;
        wire_message_finish(&answer);
    }
    connect_close(&connection);
    return code;
}

static int print_expiry(uint64_t id, struct optional_number expires)
{
    struct text out = {0};
    int code;

    text_append_format(&out, "lease %" PRIu64, id);
    if (expires.known)
        text_append_format(&out, " ends %s\n", quantity_format_time((int64_t)expires.value).text);
    else
        text_append(&out, " has no time limit\n");
    code = output_write(&out);
    text_finish(&out);
    return code;
}

static int parse_operands(int count, char **operands, uint64_t *ret_id, int64_t *ret_duration,
                          struct berth_error *error)
{
    int code;

    if (count != 2)
        return error_set(error, BERTH_ERROR_INVALID,
                         "expected the id of a lease and a duration, got %d argument%s", count,
                         count == 1 ? "" : "s");
    code = id_parse(operands[0], ret_id, error);
    if (code == 0)
        code = quantity_parse_duration(operands[1], ret_duration, error);
    /* Any error in the arguments is an error of usage. */
    if (code < 0 && error->code != BERTH_ERROR_INVALID)
        error->code = code = BERTH_ERROR_INVALID;
    return code;
}

static int run_extend_verb(int argc, char **argv)
{
    struct connect_options options = {0};
    const struct option_binding binding = {&connect_option_set, &options};
    struct berth_error error = BERTH_ERROR_INIT;
    struct optional_number expires = {0};
    int64_t duration = 0;
    uint64_t id = 0;
    int operand;
    int code;

    if (!verb_begin_operands(&verb_extend, &binding, 1, argc, argv, &operand, &code))
        return code;
    code = parse_operands(argc - operand, argv + operand, &id, &duration, &error);
    if (code == 0)
        code = extend_lease(options.inventory, id, duration, &expires, &error);
    if (code < 0) {
        error_wrap(&error, code, "extend");
        return output_refusal(&error);
    }
    return print_expiry(id, expires);
}

static const struct option_set *const extend_sets[] = {&connect_option_set, NULL};

const struct verb verb_extend = {
    .name = "extend",
    .usage = "[options] LEASE DURATION",
    .summary = "extend the time limit of a lease",
    .description = "Adds DURATION to the time limit of a lease. Prints the new end.",
    .examples = "berth extend 12 1h\n"
                "berth extend 12 2h30m\n",
    .sets = extend_sets,
    .operand = OPERAND_LEASE,
    .run = run_extend_verb,
};
