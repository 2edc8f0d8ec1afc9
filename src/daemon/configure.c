/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/configure.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/system/file.h"
#include "base/text/quantity.h"
#include "daemon/clients/activation.h"
#include "daemon/clients/quota.h"
#include "daemon/devices/probe_poll.h"
#include "daemon/leases/configure_engine.h"
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

/* Room for devices that are added later: partitions, and hardware that is plugged in. */
enum { HARDWARE_SLOTS_MIN = 256 };

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

/* Gets the hardware as the last daemon knew it. The first report, if it comes in time, is applied
 * as the changes since then. */
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

int configure_read_rules(const char *path, struct rules *ret_rules, struct berth_error *error)
{
    struct rules rules;
    const struct configured_policy *policy = &rules.configuration.policy;
    int code = configuration_read(path, &rules.configuration, error);

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

    /* Where all are one user's, it would only keep them from the lowest slots. */
    settings.affinity_by_user = !pool->settings.own;
    if (pool->probe_poll != NULL)
        settings.slots_max = 2 * known < HARDWARE_SLOTS_MIN ? HARDWARE_SLOTS_MIN : 2 * known;
    vector_for_each (device, &machine->devices)
        pool->vendors |= UINT32_C(1) << device->id.vendor;
    code = engine_create(machine, &settings, &pool->engine, error);
    return code < 0 ? code : configure_engine_apply(pool, &rules->configuration, error);
}

/* Starts the launcher, before the probe, which it starts. Its rules are fixed from here on. */
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
    int code = configure_read_rules(pool->settings.configuration, &rules, error);

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

void configure_reload(struct pool *pool)
{
    struct rules rules;
    struct engine_settings settings;
    struct berth_error error = BERTH_ERROR_INIT;
    int code = configure_read_rules(pool->settings.configuration, &rules, &error);

    activation_reloading();
    if (code == 0) {
        settings = settings_of(&rules);
        /* All rules change at once: no claim is granted by one of them what another one forbids. */
        engine_pause(pool->engine);
        if (engine_set_rules(pool->engine, &settings) < 0)
            code = error_set_memory(&error);
        if (configure_engine_apply(pool, &rules.configuration, &error) < 0 ||
            configure_engine_limit_all(pool, &error) < 0)
            code = error.code;
        squatter_watch_judge_all(pool);
        engine_resume(pool->engine);
        quota_apply_bounds(&pool->clients);
        request_cache_drop_unused(pool);
        recorder_events_apply_rules(pool);
        privileges_note_problems(pool);
        followers_note(pool->followers, WIRE_NEWS_LOAD);
    }
    if (code < 0)
        log_line(&pool->log, pool_clock_now(&pool->clock), "error", "what=reload reason=%s",
                 log_quote(error.message).text);
    else
        log_line(&pool->log, pool_clock_now(&pool->clock), "reloaded", "%s", "");
    activation_ready(-1);
}
