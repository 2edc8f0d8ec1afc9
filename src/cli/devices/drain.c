/* SPDX-License-Identifier: Apache-2.0
 *
 * berth drain and berth undrain: take devices out of service and back. All devices of one command
 * change in one step, or none does.
 */
#include <inttypes.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/utf8.h"
#include "cli/connect.h"
#include "cli/devices/devices_output.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "view/pool_view_fetch.h"

enum { REASON_MAX = REQUEST_TEXT_MAX };

struct drain_options {
    const char *reason; /* NULL: none */
};

static int parse_reason(const struct option *option, void *member, const char *value,
                        struct berth_error *error)
{
    size_t length = strlen(value);

    (void)option;
    if (length > REASON_MAX)
        return error_set(error, BERTH_ERROR_INVALID, "expected at most %d bytes, got %zu",
                         REASON_MAX, length);
    *(const char **)member = length == 0 ? NULL : value;
    return 0;
}

static const struct option drain_rows[] = {
    {.name = "reason",
     .argument = "TEXT",
     .help = "why they are out of service, for berth status",
     .offset = offsetof(struct drain_options, reason),
     .parse = parse_reason},
};

static const struct option_set drain_option_set = {
    .heading = "Options",
    .options = drain_rows,
    .count = COUNT(drain_rows),
};

static const struct option_set *const drain_sets[] = {&drain_option_set, &connect_option_set, NULL};
static const struct option_set *const undrain_sets[] = {&connect_option_set, NULL};

static int parse_device_ids(int argc, char **argv, int first, struct device_id_list *ids,
                            struct berth_error *error)
{
    int code = 0;

    if (first >= argc)
        return error_set(error, BERTH_ERROR_INVALID,
                         "expected a device id such as nvidia0, got nothing");
    for (int i = first; i < argc && code == 0; i++)
        code = device_id_list_parse(ids, argv[i], error);
    /* Every mistake in an id is wrong usage. */
    if (code < 0 && code != BERTH_ERROR_MEMORY)
        error->code = code = BERTH_ERROR_INVALID;
    return code;
}

/* Appends the leases that must end first, and returns their number. Leases inside other leases are
 * left out: they end with those. */
static size_t append_leases(const struct pool_view *view, size_t slot, struct user_names *users,
                            struct text *out)
{
    uint64_t last = 0;
    size_t count = 0;

    for (size_t use = pool_view_first_use(view, slot);
         use < view->uses.count && view->uses.items[use].slot == slot; use++) {
        const struct lease_info *lease = &view->snapshot.leases.items[view->uses.items[use].lease];

        if (lease->parent != 0 || lease->id == last)
            continue;
        text_append_format(out, "%s%" PRIu64 " (", count == 0 ? "" : ", ", lease->id);
        utf8_append_inert(out, user_names_find(users, lease->uid));
        text_append_char(out, ')');
        last = lease->id;
        count++;
    }
    return count;
}

void drain_describe(const struct pool_view *view, struct device_id id, struct user_names *users,
                    struct text *out)
{
    const struct slot_info *slots = view->snapshot.slots.items;
    struct text leases = {0};
    size_t slot = 0;
    size_t count;

    while (slot < view->snapshot.slots.count && !device_id_equals(slots[slot].device->id, id))
        slot++;
    text_append_format(out, "%s: ", device_id_format(id).text);
    if (slot == view->snapshot.slots.count) {
        text_append(out, "no longer in this pool\n");
        return;
    }
    count = append_leases(view, slot, users, &leases);
    if ((slots[slot].blocks & SLOT_BLOCK_DRAINED) == 0)
        text_append(out, "in service\n");
    else if (count == 0)
        text_append(out, "out of service\n");
    else
        text_append_format(out, "out of service once lease%s %s end%s\n", count == 1 ? "" : "s",
                           text_string(&leases), count == 1 ? "s" : "");
    out->failed |= leases.failed;
    text_finish(&leases);
}

static int print_devices(struct session *session, const struct device_id_list *ids,
                         struct berth_error *error)
{
    struct user_names users = {0};
    const struct device_id *id;
    struct pool_view view;
    struct text out = {0};
    int code = pool_view_fetch_retrying(session, &view, error);

    if (code < 0)
        return error_wrap(error, code, "done, but reading the new state failed");
    vector_for_each (id, ids)
        drain_describe(&view, *id, &users, &out);
    pool_view_finish(&view);
    user_names_finish(&users);
    code = output_write(&out);
    text_finish(&out);
    return code;
}

/* Sends the request and prints the devices. Returns the exit code, or a negative error code. */
static int request_and_print(struct session *session, struct wire_message *question,
                             struct berth_error *error)
{
    struct wire_message answer;
    int code = session_request(session, question, WIRE_DONE, &answer, error);

    if (code < 0)
        return code;
    wire_message_finish(&answer);
    return print_devices(session, &question->device_ids, error);
}

static int fail_verb(const struct verb *verb, struct berth_error *error)
{
    error_wrap(error, error->code, "%s", verb->name);
    return output_refusal(error);
}

/* Sends the request about the devices in argv from `first` on. Each argument is one id, or several
 * separated by commas. Returns the exit code: EXIT_USAGE for an invalid id, EXIT_BERTH if the pool
 * refuses. */
static int change_devices(const struct verb *verb, struct wire_message question,
                          const char *inventory, int argc, char **argv, int first)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct pool_connection connection;
    int code = parse_device_ids(argc, argv, first, &question.device_ids, &error);

    if (code == 0)
        code = connect_open(&connection, inventory, &error);
    if (code < 0) {
        vector_finish(&question.device_ids);
        return fail_verb(verb, &error);
    }
    code = request_and_print(&connection.session, &question, &error);
    connect_close(&connection);
    vector_finish(&question.device_ids);
    if (code >= 0)
        return code;
    /* The arguments were valid: a refusal by the pool is not wrong usage. */
    fail_verb(verb, &error);
    return EXIT_BERTH;
}

static int run_drain_verb(int argc, char **argv)
{
    struct drain_options options = {0};
    struct connect_options connection = {0};
    const struct option_binding bindings[] = {
        {&drain_option_set, &options},
        {&connect_option_set, &connection},
    };
    struct wire_message question = {.type = WIRE_DRAIN};
    int operand;
    int code;

    if (!verb_begin_mixed(&verb_drain, bindings, COUNT(bindings), argc, argv, &operand, &code))
        return code;
    question.text = (char *)options.reason;
    return change_devices(&verb_drain, question, connection.inventory, argc, argv, operand);
}

static int run_undrain_verb(int argc, char **argv)
{
    struct connect_options connection = {0};
    const struct option_binding binding = {&connect_option_set, &connection};
    const struct wire_message question = {.type = WIRE_UNDRAIN};
    int operand;
    int code;

    if (!verb_begin_mixed(&verb_undrain, &binding, 1, argc, argv, &operand, &code))
        return code;
    return change_devices(&verb_undrain, question, connection.inventory, argc, argv, operand);
}

const struct verb verb_drain = {
    .name = "drain",
    .usage = "DEVICE... [--reason TEXT]",
    .summary = "take devices out of service",
    .description = "Takes devices out of service: they are no longer granted, and leases on them "
                   "continue until they end. Then it prints the state of each device. 'berth "
                   "undrain' puts them back into service. Only root, the owner of the pool and its "
                   "admins may do this.",
    .examples = "berth drain nvidia3 --reason 'fan is loud'\n"
                "berth drain nvidia0,nvidia1\n",
    .sets = drain_sets,
    .operand = OPERAND_DEVICE,
    .run = run_drain_verb,
};

const struct verb verb_undrain = {
    .name = "undrain",
    .usage = "DEVICE...",
    .summary = "put devices back into service",
    .description =
        "Puts devices back into service after 'berth drain', or after the pool took them "
        "out because a check failed. Then it prints the state of each device. Only root, "
        "the owner of the pool and its admins may do this.",
    .examples = "berth undrain nvidia3\n"
                "berth undrain nvidia0,nvidia1\n",
    .sets = undrain_sets,
    .operand = OPERAND_DEVICE,
    .run = run_undrain_verb,
};
