/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/configure.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/string_list.h"
#include "base/system/file.h"
#include "base/text/quantity.h"
#include "daemon/clients/activation.h"
#include "daemon/clients/quota.h"
#include "daemon/core/local_users.h"
#include "daemon/core/runner.h"
#include "daemon/devices/probe_poll.h"
#include "daemon/leases/configure_engine.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/pool.h"
#include "daemon/leases/probe_events.h"
#include "daemon/leases/recorder_events.h"
#include "daemon/leases/request_cache.h"
#include "daemon/leases/squatter_watch.h"
#include "daemon/mps/mps.h"
#include "daemon/privileges.h"
#include "daemon/restore.h"
#include "daemon/stream/followers.h"
#include "engine/policy/policies.h"
#include "spec/configuration/configuration.h"
#include "spec/document.h"
#include "spec/inventory.h"

/* Spare slots for devices that appear later, such as partitions and hardware that is plugged in. */
enum { HARDWARE_SLOTS_MIN = 256 };

/* The maximum time for looking up the configuration's names in a name service. */
#define LOOKUP_TIMEOUT (30 * DURATION_SECOND)
enum { LOOKUP_OUTPUT_MAX = 16 << 20 };

/* Where the machine's daemon listens; a user's own daemon leaves the hardware to it. A recorded
 * machine (BERTH_SYSROOT) has no other daemon. */
static const char machine_socket[] = "/run/berth/berth.sock";

static int check_machine_pool(const struct pool *pool, struct berth_error *error)
{
    if (!pool->settings.own || getenv("BERTH_SYSROOT") != NULL || access(machine_socket, F_OK) < 0)
        return 0;
    return error_set(error, BERTH_ERROR_PERMISSION,
                     "cannot use the hardware: it belongs to the machine's pool at %s; unset "
                     "BERTH_SOCKET to use that pool, or name other devices with --inventory",
                     machine_socket);
}

/* Reads the devices from the journal. The first report, if it arrives in time, is applied later as
 * changes to them. */
static int read_hardware(struct pool *pool, struct machine *ret_machine, struct berth_error *error)
{
    int code = check_machine_pool(pool, error);

    if (code == 0)
        code = probe_events_open(pool, error);
    if (code == 0)
        code = restore_devices(pool, ret_machine, error);
    if (code == 0)
        probe_poll_await(pool->probe_poll, pool->signals.descriptor);
    return code;
}

static int read_inventory(struct pool *pool, struct machine *ret_machine, struct berth_error *error)
{
    const char *path = pool->settings.inventory;
    struct text content = {0};
    int code = file_read(path, DOCUMENT_BYTES_MAX, &content, error);
    if (code == 0) {
        pool->inventory_key = hash_bytes(path, strlen(path));
        pool->inventory_hash = hash_bytes(text_string(&content), content.length);
        code = inventory_parse(path, text_string(&content), content.length, ret_machine, error);
    }
    text_finish(&content);
    return code;
}

int configure_read_rules(const char *path, const struct configuration_names *names,
                         struct rules *ret_rules, struct berth_error *error)
{
    struct rules rules;
    const struct configured_policy *policy = &rules.configuration.policy;
    int code = configuration_read_with_names(path, names, &rules.configuration, error);

    if (code < 0)
        return code;
    code = policy_find(policy->name, &rules.policy, error);
    if (code < 0) {
        error_wrap(error, code, "%s:%u:%u", path, policy->line, policy->column);
        configuration_finish(&rules.configuration);
        return code;
    }
    *ret_rules = rules;
    return 0;
}

static struct engine_settings settings_of(const struct rules *rules)
{
    const struct configuration *configuration = &rules->configuration;

    return (struct engine_settings){
        .policy = rules->policy,
        .time_slice_tenants = configuration->time_slice_tenants,
        .mps_tenants = configuration->mps_tenants,
        .age_step = configuration->age_step,
        .grace = configuration->grace,
    };
}

static int make_engine(struct pool *pool, struct rules *rules, struct machine *machine,
                       struct berth_error *error)
{
    size_t known = machine->devices.count + probe_poll_first_count(pool->probe_poll);
    struct engine_settings settings = settings_of(rules);
    const struct device *device;
    int code;

    /* With a single user, affinity would only keep claims from the lowest slots. */
    settings.affinity_by_user = !pool->settings.own;
    if (pool->probe_poll != NULL)
        settings.slots_max = 2 * known < HARDWARE_SLOTS_MIN ? HARDWARE_SLOTS_MIN : 2 * known;
    vector_for_each (device, &machine->devices)
        pool->vendors |= UINT32_C(1) << device->id.vendor;
    code = engine_create(machine, &settings, &pool->engine, error);
    return code < 0 ? code : configure_engine_apply(pool, &rules->configuration, error);
}

/* Starts the launcher, whose rules cannot change afterwards. Must be called before the probe
 * starts, because the launcher starts it. */
static int start_launcher(struct pool *pool, const struct configuration *configuration,
                          struct berth_error *error)
{
    struct text base = {0};
    const char *program = getenv(MPS_CONTROL_VARIABLE);
    int code;

    if (program == NULL || *program == '\0')
        program = configuration->mps_control;
    pool->mps_program = program == NULL ? NULL : strdup(program);
    mps_append_base(pool->settings.socket, &base);
    if (text_failed(&base) || (program != NULL && pool->mps_program == NULL)) {
        text_finish(&base);
        return error_set_memory(error);
    }
    pool->mps_rules = (struct mps_rules){
        .program = pool->mps_program,
        .base = text_string(&base),
    };
    code = privileges_start_launcher(pool, configuration->mps, error);
    pool->mps_rules.base = NULL; /* only the launcher uses it */
    pool->may_become_others = privileges_may_become_others(pool);
    text_finish(&base);
    return code;
}

int configure_open(struct pool *pool, struct berth_error *error)
{
    struct rules rules;
    struct machine machine = {0};
    int code = configure_read_rules(pool->settings.configuration, NULL, &rules, error);

    if (code < 0)
        return code;
    code = start_launcher(pool, &rules.configuration, error);
    if (code == 0)
        code = pool->settings.inventory == NULL ? read_hardware(pool, &machine, error)
                                                : read_inventory(pool, &machine, error);
    if (code == 0)
        code = make_engine(pool, &rules, &machine, error);
    machine_finish(&machine);
    configuration_finish(&rules.configuration);
    return code;
}

/* ---- Reloading ---- */

/* The uids and gids of the configuration's names. */
struct known_names {
    struct local_users users;
    struct local_users groups;
    bool is_incomplete; /* a name was not found */
};

static bool find_local_name(void *context, bool is_group, const char *name, uint32_t *ret_number)
{
    struct known_names *known = context;
    bool found = local_users_find(is_group ? &known->groups : &known->users, name, ret_number);

    known->is_incomplete = known->is_incomplete || !found;
    return found;
}

/* Finds a name in the parsed output of configure_print_names(). */
static bool find_printed_name(void *context, bool is_group, const char *name, uint32_t *ret_number)
{
    struct known_names *known = context;
    struct text key = {0};
    bool found;

    text_append_char(&key, is_group ? 'g' : 'u');
    text_append(&key, name);
    found = local_users_find(&known->users, text_string(&key), ret_number);
    text_finish(&key);
    known->is_incomplete = known->is_incomplete || !found;
    return found;
}

static bool print_name(void *context, bool is_group, const char *name, uint32_t *ret_number)
{
    if (!configuration_find_name(is_group, name, ret_number))
        return false;
    text_append_format(context, "%c%s:x:%u:\n", is_group ? 'g' : 'u', name, *ret_number);
    return true;
}

int configure_print_names(const char *path, struct text *out, struct berth_error *error)
{
    const struct configuration_names names = {.find = print_name, .context = out};
    struct rules rules;
    int code = configure_read_rules(path, &names, &rules, error);

    if (code == 0) {
        configuration_finish(&rules.configuration);
        return text_failed(out) ? error_set_memory(error) : 0;
    }
    /* The name service also knows similar names, for the message. */
    code = configure_read_rules(path, NULL, &rules, error);
    if (code == 0)
        configuration_finish(&rules.configuration);
    text_clear(out);
    text_append(out, code == 0 ? "the name service gave different answers" : error->message);
    return code == 0 ? BERTH_ERROR_IO : code;
}

/* Applies all rules at once, so that no claim is granted by a mixture of old and new rules. */
static int apply_rules(struct pool *pool, struct rules *rules, struct berth_error *error)
{
    struct engine_settings settings = settings_of(rules);
    int code = 0;

    engine_pause(pool->engine);
    if (engine_set_rules(pool->engine, &settings) < 0)
        code = error_set_memory(error);
    if (configure_engine_apply(pool, &rules->configuration, error) < 0 ||
        configure_engine_limit_all(pool, error) < 0)
        code = error->code;
    squatter_watch_judge_all(pool);
    engine_resume(pool->engine);
    quota_apply_bounds(&pool->clients);
    request_cache_drop_unused(pool);
    recorder_events_apply_rules(pool);
    privileges_note_problems(pool);
    followers_note(pool->followers, WIRE_NEWS_LOAD);
    return code;
}

static void end_reload(struct pool *pool, int code, const struct berth_error *error)
{
    if (code < 0)
        log_line(&pool->log, pool_clock_now(&pool->clock), "error", "what=reload reason=%s",
                 log_quote(error->message).text);
    else
        log_line(&pool->log, pool_clock_now(&pool->clock), "reloaded", "%s", "");
    activation_ready(-1);
}

static int reload_with_names(struct pool *pool, const struct configuration_names *names,
                             struct berth_error *error)
{
    struct rules rules;
    int code = configure_read_rules(pool->settings.configuration, names, &rules, error);

    return code < 0 ? code : apply_rules(pool, &rules, error);
}

static int reload_with_output(struct pool *pool, const struct runner_end *end,
                              struct berth_error *error)
{
    struct known_names known = {0};
    const struct configuration_names names = {.find = find_printed_name, .context = &known};
    struct text reason = {0};
    int code;

    if (runner_succeeded(end)) {
        local_users_parse(&known.users, end->output);
        code = reload_with_names(pool, &names, error);
        if (code < 0 && known.is_incomplete)
            code = error_set(error, BERTH_ERROR_INVALID,
                             "%s has changed meanwhile; reload it once more",
                             pool->settings.configuration);
        local_users_finish(&known.users);
        return code;
    }
    if (end->outcome == HELPER_EXITED && end->output->length > 0)
        return error_set(error, BERTH_ERROR_INVALID, "%s", text_string(end->output));
    runner_describe_end(end, &reason);
    code = error_set(error, BERTH_ERROR_IO, "cannot look up the names in %s: %s",
                     pool->settings.configuration, text_string(&reason));
    text_finish(&reason);
    return code;
}

static void begin_reload(struct pool *pool);

static void end_lookup(void *context, const struct runner_end *end)
{
    struct pool *pool = context;
    struct berth_error error = BERTH_ERROR_INIT;

    pool->is_looking_up_names = false;
    if (pool->must_reload_again) {
        pool->must_reload_again = false;
        begin_reload(pool);
    } else {
        end_reload(pool, reload_with_output(pool, end, &error), &error);
    }
    engine_events_settle(pool);
}

/* Returns whether end_lookup() follows. */
static bool start_lookup(struct pool *pool)
{
    const char *program = pool->settings.name_program;
    struct string_list words = {0};
    bool started = string_list_append(&words, program != NULL ? program : "/proc/self/exe") == 0 &&
                   string_list_append(&words, CONFIGURE_NAMES_OPTION) == 0 &&
                   string_list_append(&words, pool->settings.configuration) == 0 &&
                   runner_start(pool->runner, &(struct runner_order){
                                                  .words = &words,
                                                  .deadline = LOOKUP_TIMEOUT,
                                                  .output_max = LOOKUP_OUTPUT_MAX,
                                                  .done = end_lookup,
                                                  .context = pool,
                                              }) != NULL;

    string_list_finish(&words);
    pool->is_looking_up_names = started;
    return started;
}

static void begin_reload(struct pool *pool)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct known_names known = {0};
    const struct configuration_names names = {.find = find_local_name, .context = &known};
    int code;

    local_users_read(&known.users, "/etc/passwd");
    local_users_read(&known.groups, "/etc/group");
    code = reload_with_names(pool, &names, &error);
    local_users_finish(&known.users);
    local_users_finish(&known.groups);
    if (code == 0 || !known.is_incomplete || !start_lookup(pool))
        end_reload(pool, code, &error);
}

void configure_reload(struct pool *pool)
{
    activation_reloading();
    if (pool->is_looking_up_names)
        pool->must_reload_again = true;
    else
        begin_reload(pool);
}
