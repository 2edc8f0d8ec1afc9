/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/spec_option.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "spec/workload.h"

static void clear_text(char **text)
{
    free(*text);
    *text = NULL;
}

/* Drops fields of the file that the command line replaces or contradicts. Call this before the
 * options are parsed over the file, because parsing appends to lists. */
static void drop_overridden(struct request *file, const struct request_options *line)
{
    const struct request *given = &line->request;

    if (given->wanted.count > 0)
        file->wanted.count = 0;
    if (given->avoided.count > 0)
        file->avoided.count = 0;
    if (given->model != NULL || line->count_model != NULL)
        clear_text(&file->model);
    if (given->nonblock)
        file->wait.known = false;
    if (given->opportunistic)
        file->priority = PRIORITY_UNSAID;
    if (given->priority != PRIORITY_UNSAID)
        file->opportunistic = false;
}

/* Drops the file's fields about sharing that contradict the sharing mode of the options. */
static void drop_sharing(struct request *request, const struct request *given)
{
    if (request->sharing == SHARING_EXCLUSIVE && !given->share.known)
        request->share.known = false;
    if (request->sharing == SHARING_EXCLUSIVE && !given->memory.known)
        request->memory.known = false;
    if (request->sharing != SHARING_MPS && given->mps_pipe_dir == NULL)
        clear_text(&request->mps_pipe_dir);
    if (request->sharing != SHARING_MPS && given->mps_log_dir == NULL)
        clear_text(&request->mps_log_dir);
}

static bool has_set(const struct option_set *const *sets, const struct option_set *set)
{
    while (*sets != NULL && *sets != set)
        sets++;
    return *sets != NULL;
}

/* Returns whether the options of the set fill in the request. */
static bool is_request_set(const struct option_set *set)
{
    return has_set(request_option_sets, set) || has_set(request_variant_sets, set);
}

/* Reads the file and parses the options over it. They were parsed without an error before. */
static int apply_file(const struct option_binding *bindings, size_t count, size_t which,
                      options_parser *parse, int argc, char **argv, struct berth_error *error)
{
    struct request_options *line = bindings[which].target;
    struct option_binding again[OPTION_SETS_MAX];
    struct request_options both;
    int operand;
    int code = workload_read(line->spec, &both, error);

    if (code < 0)
        return error_wrap(error, code, "--spec");
    assert(count <= OPTION_SETS_MAX);
    for (size_t i = 0; i < count; i++)
        again[i] = (struct option_binding){bindings[i].set,
                                           is_request_set(bindings[i].set) ? &both : NULL};
    drop_overridden(&both.request, line);
    code = parse(again, count, argc, argv, &operand, error);
    drop_sharing(&both.request, &line->request);
    if (code >= 0) {
        struct request_options given = *line;

        *line = both;
        both = given;
    }
    request_options_finish(&both);
    return code;
}

int spec_option_apply(const struct option_binding *bindings, size_t count, options_parser *parse,
                      int argc, char **argv, struct berth_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct request_options *line = bindings[i].target;

        if (is_request_set(bindings[i].set) && line->spec != NULL)
            return apply_file(bindings, count, i, parse, argc, argv, error);
    }
    return OPTIONS_CONTINUE;
}
