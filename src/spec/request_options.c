/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/request_options.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/text/quote.h"

const struct choice rank_mask_names[] = {
    {"all", RANK_MASK_ALL},
    {"one", RANK_MASK_ONE},
    {0},
};

const struct choice backend_names[] = {
    {"nccl", BACKEND_NCCL},
    {"gloo", BACKEND_GLOO},
    {"mpi", BACKEND_MPI},
    {0},
};

const struct option *request_options_find(const struct option_set *const *sets, const char *name,
                                          size_t length, const struct option_set **ret_set)
{
    for (; *sets != NULL; sets++) {
        const struct option *option = option_find(*sets, name, length);

        if (option != NULL) {
            *ret_set = *sets;
            return option;
        }
    }
    return NULL;
}

void request_options_init(struct request_options *options)
{
    *options = (struct request_options){0};
    request_init(&options->request);
}

void request_options_finish(struct request_options *options)
{
    request_finish(&options->request);
    free(options->count_model);
    free(options->interface);
    string_list_finish(&options->command);
    string_list_finish(&options->notes);
    options->count_model = options->interface = NULL;
}

/* Refuses options about ranks in a request without ranks. */
static int check_ranks(const struct request_options *options, const struct request_names *names,
                       const char **ret_field, struct berth_error *error)
{
    const char *option = NULL;

    if (options->rank_mask != RANK_MASK_ALL)
        option = "rank-mask";
    else if (options->backend != BACKEND_UNSAID)
        option = "backend";
    else if (options->master_port != 0)
        option = "master-port";
    else if (options->interface != NULL)
        option = "interface";
    if (!options->request.ranks && option != NULL) {
        *ret_field = option;
        return error_set(error, BERTH_ERROR_INVALID, "%s%s: needs %s%s", names->dashes, option,
                         names->dashes, names->ranks);
    }
    if (!options->request.ranks && options->request.replicas <= 1 && options->label) {
        *ret_field = "label";
        return error_set(error, BERTH_ERROR_INVALID, "%slabel: needs %s%s or several replicas",
                         names->dashes, names->dashes, names->ranks);
    }
    return 0;
}

int request_options_resolve_named(const struct request_options *options,
                                  const struct request_names *names, struct request *ret_request,
                                  const char **ret_field, struct berth_error *error)
{
    struct request request = options->request;
    int code;

    if (options->count_model != NULL && request.model != NULL &&
        strcasecmp(options->count_model, request.model) != 0) {
        *ret_field = "model";
        return error_set(error, BERTH_ERROR_INVALID,
                         "%smodel: expected the model of %s%s, %s, got %s", names->dashes,
                         names->dashes, names->gpus, quote(options->count_model).text,
                         quote(request.model).text);
    }
    if (request.model == NULL)
        request.model = options->count_model;
    code = check_ranks(options, names, ret_field, error);
    if (code < 0)
        return code;
    if (!request.ranks && request.scheduling == SCHEDULING_UNSAID)
        request.scheduling = options->default_scheduling;
    code = request_validate_named(&request, names, ret_field, error);
    if (code == 0)
        *ret_request = request;
    return code;
}

int request_options_resolve(const struct request_options *options, struct request *ret_request,
                            struct berth_error *error)
{
    const char *field;

    return request_options_resolve_named(options, &request_option_names, ret_request, &field,
                                         error);
}

int request_options_complete(struct request_options *options, struct berth_error *error)
{
    const char *field;
    int code = request_options_resolve_named(options, &request_command_names, &options->request,
                                             &field, error);

    if (code == 0 && options->request.model == options->count_model)
        options->count_model = NULL;
    return code;
}
