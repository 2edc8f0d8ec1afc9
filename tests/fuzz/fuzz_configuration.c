/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses any bytes as a configuration. An accepted one has only values that a pool can use. A
 * refused one gets a message that names the file.
 */
#include <stdint.h>
#include <string.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "base/text/utf8.h"
#include "spec/configuration/configuration.h"
#include "support/require_output.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char file_name[] = "fuzz.yaml";

static bool is_text(const char *string, size_t longest)
{
    return string != NULL && *string != '\0' && strlen(string) <= longest &&
           utf8_is_valid(string, strlen(string));
}

static void walk_times(const struct configuration *configuration)
{
    int64_t longest = configuration->each_user.longest_time != 0
                          ? configuration->each_user.longest_time
                          : configuration->longest_time;

    require(configuration->grace > 0 && configuration->age_step >= DURATION_SECOND);
    require(configuration->default_time == 0 || configuration->default_time >= DURATION_SECOND);
    require(configuration->longest_time == 0 || configuration->longest_time >= DURATION_SECOND);
    require(longest == 0 || configuration->default_time <= longest);
    require(configuration->time_warning >= 0);
    require(configuration->idle_warning == 0 || configuration->idle_warning >= DURATION_SECOND);
    require(configuration->idle_reclaim == 0 || configuration->idle_reclaim >= DURATION_SECOND);
    require(configuration->idle_reclaim == 0 ||
            configuration->idle_reclaim >= configuration->idle_warning);
}

static void walk_numbers(const struct number_list *list)
{
    const uint32_t *number;

    require(list->count <= CONFIGURED_PRINCIPALS_MAX);
    vector_for_each (number, list) {
        require(*number != UINT32_MAX);
        require(configuration_number_list_has(list, *number));
    }
    require(!configuration_number_list_has(list, UINT32_MAX));
}

static void walk_principals(const struct principals *principals)
{
    walk_numbers(&principals->users);
    walk_numbers(&principals->groups);
}

static void walk_allowance(const struct allowance *allowance)
{
    require(allowance->devices == DEVICES_UNLIMITED ||
            allowance->devices <= UINT64_C(1000000000000));
    require(allowance->longest_time == 0 || allowance->longest_time >= DURATION_SECOND);
}

static void walk_limits(const struct configuration *configuration)
{
    const struct bounds *bounds = &configuration->bounds;
    const struct device_limit *limit;
    const struct device_limit *other;

    walk_allowance(&configuration->each_user);
    require(configuration->limits.count <= CONFIGURED_LIMITS_MAX);
    vector_for_each (limit, &configuration->limits) {
        require(limit->key != UINT32_MAX);
        walk_allowance(&limit->allowance);
        require(limit->allowance.devices != DEVICES_UNLIMITED ||
                limit->allowance.longest_time != 0);
        vector_for_each (other, &configuration->limits)
            require(other == limit || other->key != limit->key ||
                    other->is_group != limit->is_group);
    }
    require(bounds->connections >= 1 && bounds->connections <= BOUND_CONNECTIONS_MAX);
    require(bounds->messages >= 1 && bounds->messages <= BOUND_MESSAGES_MAX);
    require(bounds->waiting >= 1 && bounds->waiting <= BOUND_WAITING_MAX);
}

static void walk_id(struct device_id id)
{
    struct device_id again;

    require(device_id_parse(device_id_format(id).text, &again, NULL) == 0);
    require(device_id_equals(id, again));
}

static void walk_devices(const struct configuration *configuration)
{
    const struct device_id_list *preferred = &configuration->preferred;
    const struct reserved_list *reserved = &configuration->reserved;

    require(preferred->count <= DEVICE_ID_LIST_MAX && reserved->count <= DEVICE_ID_LIST_MAX);
    for (size_t i = 0; i < preferred->count; i++) {
        walk_id(preferred->items[i]);
        for (size_t other = 0; other < i; other++)
            require(!device_id_equals(preferred->items[i], preferred->items[other]));
    }
    for (size_t i = 0; i < reserved->count; i++) {
        walk_id(reserved->items[i].id);
        walk_principals(&reserved->items[i].principals);
        for (size_t other = 0; other < i; other++)
            require(!device_id_equals(reserved->items[i].id, reserved->items[other].id));
    }
}

static void walk_command(const struct string_list *words)
{
    char **word;

    require(words->count <= CONFIGURED_ARGUMENTS_MAX);
    require(words->count == 0 || words->items[0][0] == '/');
    vector_for_each (word, words)
        require(is_text(*word, 4095));
}

static void walk_programs(const struct configuration *configuration)
{
    const struct check_command *checks[] = {&configuration->prolog, &configuration->epilog};
    char **name;

    require(configuration->squatters == SQUATTING_AVOIDED ||
            configuration->squatters == SQUATTING_IGNORED);
    require(configuration->squatters_except.count <= CONFIGURED_PROGRAMS_MAX);
    vector_for_each (name, &configuration->squatters_except)
        require(is_text(*name, 255) && strchr(*name, '/') == NULL);
    for (size_t i = 0; i < COUNT(checks); i++) {
        walk_command(&checks[i]->argv);
        require(checks[i]->deadline >= CHECK_DEADLINE_MIN &&
                checks[i]->deadline <= CHECK_DEADLINE_MAX);
    }
    walk_command(&configuration->notify);
    require(configuration->mps_control == NULL ||
            (is_text(configuration->mps_control, 4095) && configuration->mps_control[0] == '/'));
}

static void walk(const struct configuration *configuration)
{
    const struct configured_policy *policy = &configuration->policy;

    if (policy->name != NULL)
        require(is_text(policy->name, 255) && policy->line > 0 && policy->column > 0);
    require(configuration->time_slice_tenants > 0 && configuration->time_slice_tenants <= 1024);
    require(configuration->mps_tenants > 0 && configuration->mps_tenants <= 1024);
    walk_times(configuration);
    walk_principals(&configuration->admins);
    walk_principals(&configuration->high);
    walk_limits(configuration);
    walk_devices(configuration);
    walk_programs(configuration);
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
