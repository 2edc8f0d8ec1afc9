/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/policy/policies.h"

#include <string.h>

#include "base/error.h"
#include "base/text/quote.h"
#include "base/text/text.h"

const struct policy *const policies[] = {
    &policy_first,
    &policy_round_robin,
    &policy_least_loaded,
    &policy_best_available,
    &policy_best_compute,
    &policy_pack,
    &policy_spread,
    &policy_topology,
    &policy_frag,
    &policy_weighted,
    NULL,
};

static int refuse_name(const char *name, struct berth_error *error)
{
    struct text names = {0};
    int code;

    for (const struct policy *const *policy = policies; *policy != NULL; policy++)
        text_append_format(&names, "%s%s", policy == policies ? "" : ", ", (*policy)->name);
    code = text_failed(&names)
               ? error_set_memory(error)
               : error_set(error, BERTH_ERROR_INVALID, "policy: expected one of %s; got %s",
                           text_string(&names), quote(name).text);
    text_finish(&names);
    return code;
}

const struct policy *policy_default(const struct request *request)
{
    if (request->sharing != SHARING_EXCLUSIVE)
        return &policy_frag;
    return request->gpus.all || request->gpus.max > 1 ? &policy_topology : &policy_first;
}

int policy_find(const char *name, const struct policy **ret_policy, struct berth_error *error)
{
    if (name == NULL) {
        *ret_policy = NULL;
        return 0;
    }
    for (const struct policy *const *policy = policies; *policy != NULL; policy++) {
        if (strcmp((*policy)->name, name) == 0) {
            *ret_policy = *policy;
            return 0;
        }
    }
    return refuse_name(name, error);
}
