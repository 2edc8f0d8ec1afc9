/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/launching.h"

#include <unistd.h>

#include "base/error.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "launch/become.h"
#include "launch/environment.h"

int launch_make_environment(const struct launch *launch, uint32_t replica,
                            struct string_list *ret_environment, struct berth_error *error)
{
    const struct claim *claim = launch->claim;
    struct launch_facts facts = {
        .vendors = UINT32_MAX, /* whatever there is */
        .uuid = launch->uuid,
        .has_replica = launch->has_replica,
        .replica = launch->first_replica + replica,
    };

    if (claim != NULL) {
        facts.lease = claim->id;
        facts.devices = claim_devices(claim, replica, &facts.device_count);
        facts.vendors = claim->grant.vendors;
        facts.socket = claim->grant.socket;
        facts.inventory = claim->question.inventory;
    }
    return launch_environment(&facts, environ, ret_environment, error);
}

int launch_fail(const struct launch *launch, struct berth_error *error)
{
    error_wrap(error, error->code, "%s", launch->verb);
    return output_refusal(error);
}

int launch_fail_start(const struct launch *launch, struct berth_error *error)
{
    launch_fail(launch, error);
    return exit_code_of_start(error->code);
}

int launch_exec(const struct launch *launch)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct string_list environment = {0};
    char **inherited = environ;
    int code;

    if (launch_make_environment(launch, 0, &environment, &error) < 0)
        return launch_fail(launch, &error);
    become_error(launch->words[0], become(launch->words, environment.items), &error);
    code = launch_fail_start(launch, &error);
    environ = inherited;
    string_list_finish(&environment);
    return code;
}
