/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lease/id_verbs.h"

#include "base/error.h"
#include "cli/connect.h"
#include "cli/exit_codes.h"
#include "cli/ids.h"
#include "cli/output.h"

const struct option_set *const id_verb_sets[] = {&connect_option_set, NULL};

/* One action for all ids; those that failed become 0. Returns whether all went well. */
static bool act_on_ids(const struct verb *verb, id_action *action, struct session *session,
                       struct id_list *ids)
{
    bool good = true;
    uint64_t *id;

    vector_for_each (id, ids) {
        struct berth_error error = BERTH_ERROR_INIT;
        int code = *id == 0 ? 0 : action(session, *id, &error);

        if (code == 0)
            continue;
        error_wrap(&error, code, "%s", verb->name);
        output_refusal(&error);
        *id = 0;
        good = false;
    }
    return good;
}

/* Returns the exit code, or a negative error code. */
static int run_actions(const struct verb *verb, const struct connect_options *options,
                       struct id_list *ids, id_action *const *actions, struct berth_error *error)
{
    int exit_code = EXIT_GOOD;
    struct pool_connection connection;
    int code = connect_open(&connection, options->inventory, error);

    if (code < 0)
        return code;
    for (; *actions != NULL; actions++) {
        if (!act_on_ids(verb, *actions, &connection.session, ids))
            exit_code = EXIT_BERTH;
    }
    connect_close(&connection);
    return exit_code;
}

int id_verb_run(const struct verb *verb, int argc, char **argv, id_action *const *actions)
{
    struct connect_options options = {0};
    const struct option_binding binding = {&connect_option_set, &options};
    struct berth_error error = BERTH_ERROR_INIT;
    struct id_list ids = {0};
    int operand;
    int code;

    if (!verb_begin_operands(verb, &binding, 1, argc, argv, &operand, &code))
        return code;
    code = ids_parse(argc, argv, operand, &ids, &error);
    if (code == 0)
        code = run_actions(verb, &options, &ids, actions, &error);
    if (code < 0) {
        error_wrap(&error, code, "%s", verb->name);
        code = output_refusal(&error);
    }
    vector_finish(&ids);
    return code;
}
