/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/devices/device_verbs.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/text/utf8.h"
#include "cli/connect.h"
#include "cli/exit_codes.h"
#include "cli/output.h"

static int parse_device_ids(int argc, char **argv, int first, struct device_id_list *ids,
                            struct berth_error *error)
{
    int code = 0;

    if (first >= argc)
        return error_set(error, BERTH_ERROR_INVALID,
                         "expected a device id such as nvidia0, got nothing");
    for (int i = first; i < argc && code == 0; i++)
        code = device_id_list_parse(ids, argv[i], error);
    /* Whatever is wrong with it, it is usage. */
    if (code < 0 && code != BERTH_ERROR_MEMORY)
        error->code = code = BERTH_ERROR_INVALID;
    return code;
}

/* The leases that have to end first; those within others end with these. Returns how many. */
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

void device_verb_describe(const struct pool_view *view, struct device_id id,
                          struct user_names *users, struct text *out)
{
    const struct slot_info *slots = view->snapshot.slots.items;
    struct text leases = {0};
    size_t slot = 0;
    size_t count;

    while (slot < view->snapshot.slots.count && !device_id_equals(slots[slot].device->id, id))
        slot++;
    text_append_format(out, "%s: ", device_id_format(id).text);
    if (slot == view->snapshot.slots.count) {
        text_append(out, "not in this pool any more\n");
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
        return error_wrap(error, code, "it is done, but how things stand is not known");
    vector_for_each (id, ids)
        device_verb_describe(&view, *id, &users, &out);
    pool_view_finish(&view);
    user_names_finish(&users);
    code = output_write(&out);
    text_finish(&out);
    return code;
}

/* Returns the exit code, or a negative error code. */
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

int device_verb_run(const struct verb *verb, const struct device_action *action, int argc,
                    char **argv, int first)
{
    struct wire_message question = {.type = action->type, .text = (char *)action->reason};
    struct berth_error error = BERTH_ERROR_INIT;
    struct pool_connection connection;
    int code = parse_device_ids(argc, argv, first, &question.device_ids, &error);

    if (code == 0)
        code = connect_open(&connection, action->inventory, &error);
    if (code < 0) {
        vector_finish(&question.device_ids);
        return fail_verb(verb, &error);
    }
    code = request_and_print(&connection.session, &question, &error);
    connect_close(&connection);
    vector_finish(&question.device_ids);
    if (code >= 0)
        return code;
    /* The words were good; what the pool makes of them is not usage. */
    fail_verb(verb, &error);
    return EXIT_BERTH;
}
