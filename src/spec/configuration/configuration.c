/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/configuration/configuration.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"
#include "base/text/text.h"
#include "spec/configuration/configuration_types.h"

enum { TENANTS_MAX = 1024, PATH_LENGTH_MAX = 4000 };

#define GRACE_MIN               (DURATION_SECOND / 1000)
#define DEFAULT_CHECK_DEADLINE  (30 * DURATION_SECOND)
#define DEFAULT_HISTORY_KEEP    (90 * DURATION_DAY)
#define DEFAULT_HISTORY_SIZE    (UINT64_C(1) << 30)
#define DEFAULT_SQUATTER_MEMORY (UINT64_C(1) << 30)

static int read_policy(const struct field_reading *reading, const struct field *field,
                       const struct document_node *node, void *target)
{
    struct configured_policy *policy = target;

    policy->line = node->line;
    policy->column = node->column;
    return field_read(reading, &field_text, field, node, &policy->name);
}

static const struct field_type type_policy = {.read = read_policy};

static const struct choice squatting_names[] = {
    {"avoid", SQUATTING_AVOIDED},
    {"ignore", SQUATTING_IGNORED},
    {0},
};

static const struct choice show_commands_names[] = {
    {"owner", SHOW_COMMANDS_OWNER},
    {"all", SHOW_COMMANDS_ALL},
    {0},
};

#define BOUND(member) .offset = offsetof(struct bounds, member), .min = 1

static const struct field bounds_fields[] = {
    {"connections", &field_number32, BOUND(connections), .max = BOUND_CONNECTIONS_MAX},
    {"messages", &field_number32, BOUND(messages), .max = BOUND_MESSAGES_MAX},
    {"waiting", &field_number32, BOUND(waiting), .max = BOUND_WAITING_MAX},
};

static const struct record bounds_record = {
    .what = "bounds",
    .fields = bounds_fields,
    .field_count = COUNT(bounds_fields),
};

static int read_bounds(const struct field_reading *reading, const struct field *field,
                       const struct document_node *node, void *target)
{
    (void)field;
    return field_read_record(reading, &bounds_record, node, target);
}

static const struct field_type type_bounds = {.read = read_bounds};

static int parse_history(const struct field *field, const char *text, void *target,
                         struct berth_error *error)
{
    const struct field row = {.name = field->name, .max = PATH_LENGTH_MAX};
    struct configured_history *history = target;

    if (text[0] == '/' && text[strlen(text) - 1] != '/')
        return field_text.parse(&row, text, &history->file, error);
    if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
        return error_set(error, BERTH_ERROR_INVALID,
                         "expected yes, no or the absolute path of a file, got %s",
                         quote(text).text);
    history->is_off = strcmp(text, "no") == 0;
    return 0;
}

static const struct field_type type_history = {
    .wanted = "yes, no or the absolute path of a file",
    .parse = parse_history,
};

#define MEMBER(member) .offset = offsetof(struct configuration, member)

static const struct field configuration_fields[] = {
    {"policy", &type_policy, MEMBER(policy)},
    {"grace", &field_duration, MEMBER(grace), .min = GRACE_MIN},
    {"age_step", &field_duration, MEMBER(age_step), .min = DURATION_SECOND},
    {"time_slice_tenants", &field_number32, MEMBER(time_slice_tenants), .min = 1,
     .max = TENANTS_MAX},
    {"mps_tenants", &field_number32, MEMBER(mps_tenants), .min = 1, .max = TENANTS_MAX},
    {"mps", &configuration_switch, MEMBER(mps)},
    {"mps_control", &configuration_program, MEMBER(mps_control)},
    {"default_time", &field_duration, MEMBER(default_time), .min = DURATION_SECOND},
    {"longest_time", &field_duration, MEMBER(longest_time), .min = DURATION_SECOND},
    {"time_warning", &field_duration, MEMBER(time_warning)},
    {"admins", &configuration_principals, MEMBER(admins)},
    {"high", &configuration_principals, MEMBER(high)},
    {"limits", &configuration_limits, .offset = 0},
    {"bounds", &type_bounds, MEMBER(bounds)},
    {"preferred", &configuration_device_ids, MEMBER(preferred)},
    {"reserved", &configuration_reserved, MEMBER(reserved)},
    {"squatters", &field_choice, MEMBER(squatters), .choices = squatting_names},
    {"squatter_memory", &field_size, MEMBER(squatter_memory), .max = SQUATTER_MEMORY_MAX},
    {"squatters_except", &configuration_program_names, MEMBER(squatters_except)},
    {"idle_warning", &field_duration, MEMBER(idle_warning), .min = DURATION_SECOND},
    {"idle_reclaim", &field_duration, MEMBER(idle_reclaim), .min = DURATION_SECOND},
    {"prolog", &field_record, MEMBER(prolog), .record = &configuration_prolog},
    {"epilog", &field_record, MEMBER(epilog), .record = &configuration_epilog},
    {"notify", &configuration_command, MEMBER(notify)},
    {"history", &type_history, MEMBER(history)},
    {"history_keep", &field_duration, MEMBER(history_keep), .min = DURATION_SECOND},
    {"history_size", &field_size, MEMBER(history_size), .min = HISTORY_SIZE_MIN,
     .max = HISTORY_SIZE_MAX},
    {"show_commands", &field_choice, MEMBER(show_commands), .choices = show_commands_names},
};

/* Refuses a default_time above the maximum: the pool would refuse every request without a time
 * limit. */
static int check_default_time(const struct field_reading *reading, const struct document_node *node,
                              const struct configuration *configuration)
{
    bool is_each = configuration->each_user.longest_time != 0;
    int64_t longest = is_each ? configuration->each_user.longest_time : configuration->longest_time;

    if (longest == 0 || configuration->default_time <= longest)
        return 0;
    return document_error(reading->document, field_record_value(node, "default_time"),
                          reading->error, BERTH_ERROR_INVALID,
                          "default_time: expected at most %s (%s), got %s",
                          is_each ? "the longest_time of each_user" : "longest_time",
                          quantity_format_duration(longest).text,
                          quantity_format_duration(configuration->default_time).text);
}

/* Refuses an idle_reclaim that ends a lease before its user is warned. */
static int check_idle_times(const struct field_reading *reading, const struct document_node *node,
                            const struct configuration *configuration)
{
    if (configuration->idle_reclaim == 0 ||
        configuration->idle_reclaim >= configuration->idle_warning)
        return 0;
    return document_error(reading->document, field_record_value(node, "idle_reclaim"),
                          reading->error, BERTH_ERROR_INVALID,
                          "idle_reclaim: expected at least idle_warning (%s), got %s",
                          quantity_format_duration(configuration->idle_warning).text,
                          quantity_format_duration(configuration->idle_reclaim).text);
}

static int check_times(const struct field_reading *reading, const struct document_node *node,
                       void *target)
{
    int code = check_default_time(reading, node, target);

    return code < 0 ? code : check_idle_times(reading, node, target);
}

static const struct record configuration_record = {
    .what = "a configuration",
    .fields = configuration_fields,
    .field_count = COUNT(configuration_fields),
    .check = check_times,
};

static const struct configuration defaults = {
    .grace = 10 * DURATION_SECOND,
    .age_step = DURATION_HOUR,
    .time_slice_tenants = 4,
    .mps_tenants = 8,
    .time_warning = 5 * DURATION_MINUTE,
    .each_user = {.devices = DEVICES_UNLIMITED},
    .bounds = {.connections = 1000, .messages = 5000, .waiting = 1000},
    .prolog = {.deadline = DEFAULT_CHECK_DEADLINE},
    .epilog = {.deadline = DEFAULT_CHECK_DEADLINE},
    .history_keep = DEFAULT_HISTORY_KEEP,
    .squatter_memory = {.known = true, .value = DEFAULT_SQUATTER_MEMORY},
    .history_size = {.known = true, .value = DEFAULT_HISTORY_SIZE},
};

static int build_configuration(const struct document *document,
                               const struct configuration_names *names,
                               struct configuration *ret_configuration, struct berth_error *error)
{
    struct configuration configuration = defaults;
    int code = 0;

    if (document->root != NULL && !document_node_is_null(document->root))
        code = field_read_record(&(struct field_reading){document, error, names},
                                 &configuration_record, document->root, &configuration);
    if (code < 0)
        configuration_finish(&configuration);
    else
        *ret_configuration = configuration;
    return code;
}

int configuration_parse(const char *file, const char *text, size_t length,
                        struct configuration *ret_configuration, struct berth_error *error)
{
    struct document document;
    int code = document_parse(&document, file, text, length, error);

    if (code < 0)
        return code;
    code = build_configuration(&document, NULL, ret_configuration, error);
    document_finish(&document);
    return code;
}

int configuration_read(const char *path, struct configuration *ret_configuration,
                       struct berth_error *error)
{
    return configuration_read_with_names(path, NULL, ret_configuration, error);
}

int configuration_read_with_names(const char *path, const struct configuration_names *names,
                                  struct configuration *ret_configuration,
                                  struct berth_error *error)
{
    struct berth_error reason = BERTH_ERROR_INIT;
    struct document document;
    int code = path == NULL ? BERTH_ERROR_NOT_FOUND : document_read(&document, path, &reason);

    if (code == BERTH_ERROR_NOT_FOUND) {
        *ret_configuration = defaults;
        return 0;
    }
    if (code < 0)
        return error_set(error, code, "%s", reason.message);
    code = build_configuration(&document, names, ret_configuration, error);
    document_finish(&document);
    return code;
}

void configuration_append_path(bool is_own, struct text *out)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");

    if (!is_own)
        text_append(out, CONFIGURATION_MACHINE_FILE);
    else if (config != NULL && config[0] == '/')
        text_append_format(out, "%s/berth/berth.yaml", config);
    else if (home != NULL && home[0] == '/')
        text_append_format(out, "%s/.config/berth/berth.yaml", home);
}

static void reserved_devices_finish(struct principals *principals)
{
    vector_finish(&principals->users);
    vector_finish(&principals->groups);
}

void configuration_finish(struct configuration *configuration)
{
    struct reserved_device *reserved;

    free(configuration->policy.name);
    free(configuration->mps_control);
    reserved_devices_finish(&configuration->admins);
    reserved_devices_finish(&configuration->high);
    vector_finish(&configuration->limits);
    vector_finish(&configuration->preferred);
    vector_for_each (reserved, &configuration->reserved)
        reserved_devices_finish(&reserved->principals);
    vector_finish(&configuration->reserved);
    string_list_finish(&configuration->squatters_except);
    string_list_finish(&configuration->prolog.argv);
    string_list_finish(&configuration->epilog.argv);
    string_list_finish(&configuration->notify);
    free(configuration->history.file);
    *configuration = (struct configuration){0};
}
