/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a configuration. What is accepted holds only what a pool can work with; what is
 * refused is refused with a message that names the file.
 */
#include <stdint.h>
#include <string.h>

#include "base/quantity.h"
#include "base/utf8.h"
#include "spec/configuration.h"
#include "support/require_output.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char file_name[] = "fuzz.yaml";

static void walk(const struct configuration *configuration)
{
    const char *policy = configuration->policy.name;
    const struct device_limit *limit;
    const struct device_limit *other;
    const uint32_t *uid;

    if (policy != NULL)
        require(*policy != '\0' && utf8_is_valid(policy, strlen(policy)) &&
                configuration->policy.line > 0 && configuration->policy.column > 0);
    require(configuration->grace > 0 && configuration->age_step >= DURATION_SECOND);
    require(configuration->time_slice_tenants > 0 && configuration->mps_tenants > 0);
    require(configuration->default_time >= 0 && configuration->longest_time >= 0);
    require(configuration->longest_time == 0 ||
            configuration->default_time <= configuration->longest_time);
    vector_for_each (uid, &configuration->high.users)
        require(*uid != UINT32_MAX);
    vector_for_each (limit, &configuration->limits) {
        require(limit->key != UINT32_MAX);
        vector_for_each (other, &configuration->limits)
            require(other == limit || other->key != limit->key ||
                    other->is_group != limit->is_group);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct configuration configuration;
    int code = configuration_parse(file_name, (const char *)data, size, &configuration, &error);

    if (code < 0) {
        require_message(&error, code);
        require(strncmp(error.message, file_name, strlen(file_name)) == 0);
        require(error.message[strlen(file_name)] == ':');
        return 0;
    }
    require(error.message[0] == '\0');
    walk(&configuration);
    configuration_finish(&configuration);
    return 0;
}
