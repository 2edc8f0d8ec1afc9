/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quote.h"
#include "base/text/suggest.h"
#include "libberth/local/compiled_requests.h"

const char *berth_version(void)
{
    return BERTH_VERSION;
}

int berth_request_create(struct berth_request **ret_request, struct berth_error *error)
{
    struct berth_request *request = malloc(sizeof(*request));

    if (request == NULL)
        return error_set_memory(error);
    request_options_init(&request->options);
    request->core = local_request_core_create();
    if (request->core == NULL) {
        free(request);
        return error_set_memory(error);
    }
    *ret_request = request;
    return 0;
}

/* Marks the core as ended for the pools that use it; the last one frees it. */
static void end_core(struct request_core *core)
{
    atomic_store(&core->ended, true);
    local_request_core_release(core);
}

void berth_request_destroy(struct berth_request *request)
{
    if (request == NULL)
        return;
    end_core(request->core);
    request_options_finish(&request->options);
    free(request);
}

static int refuse_name(const char *name, struct berth_error *error)
{
    struct suggestion nearest = {.wanted = name};

    for (const struct option_set *const *set = request_property_sets; *set != NULL; set++) {
        for (size_t i = 0; i < (*set)->count; i++)
            suggest_compare(&nearest, (*set)->options[i].name);
    }
    if (nearest.best != NULL)
        return error_set(error, BERTH_ERROR_INVALID,
                         "expected a property of a request, got %s, did you mean %s?",
                         quote(name).text, nearest.best);
    return error_set(error, BERTH_ERROR_INVALID,
                     "expected a property of a request such as gpus or model, got %s",
                     quote(name).text);
}

int berth_request_set(struct berth_request *request, const char *name, const char *value,
                      struct berth_error *error)
{
    const struct option_set *set;
    const struct option *option =
        request_options_find(request_property_sets, name, strlen(name), &set);
    struct request_core *core = NULL;
    int code;

    if (option == NULL)
        return refuse_name(name, error);
    /* Give the request a new core: pools have compiled the old one. */
    if (atomic_load(&request->core->references) > 1) {
        core = local_request_core_create();
        if (core == NULL)
            return error_set_memory(error);
    }
    code = option_apply(option, &request->options, value, error);
    if (code < 0) {
        free(core);
        return error_wrap(error, code, "%s", name);
    }
    if (core != NULL) {
        end_core(request->core);
        request->core = core;
    }
    request->core->has_limit = request->options.request.time.known;
    return 0;
}
