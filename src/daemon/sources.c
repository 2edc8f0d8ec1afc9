/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sources.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/system/file.h"
#include "base/text/quantity.h"
#include "daemon/activation.h"
#include "daemon/asked.h"
#include "daemon/hardware.h"
#include "daemon/recorder.h"
#include "daemon/restore.h"
#include "daemon/rules.h"
#include "daemon/squatters.h"
#include "daemon/users.h"
#include "engine/policy/policies.h"
#include "spec/configuration/configuration.h"
#include "spec/document.h"
#include "spec/inventory.h"

/* How many devices the hardware may have that are not there yet: partitions, what is plugged in. */
enum { HARDWARE_SLOTS_MIN = 256 };

/* What the last daemon knew of the hardware; the first report, if it comes in time, is taken in as
 * what has changed since. */
static int read_hardware(struct pool *pool, struct machine *ret_machine, struct berth_error *error)
{
    int code = hardware_open(pool, error);

    if (code == 0)
        code = restore_devices(pool, ret_machine, error);
    if (code == 0)
        hardware_await(pool);
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

int sources_read_rules(const char *path, struct rules *ret_rules, struct berth_error *error)
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
    size_t known = machine->devices.count + hardware_first_count(pool);
    struct engine_settings settings = settings_of(rules);
    const struct device *device;
    int code;

    /* Where all are one user's, it would only keep them from the lowest slots. */
    settings.affinity_by_user = !pool->settings.own;
    if (pool->hardware != NULL)
        settings.slots_max = 2 * known < HARDWARE_SLOTS_MIN ? HARDWARE_SLOTS_MIN : 2 * known;
    vector_for_each (device, &machine->devices)
        pool->vendors |= UINT32_C(1) << device->id.vendor;
    code = engine_create(machine, &settings, &pool->engine, error);
    return code < 0 ? code : rules_take(pool, &rules->configuration, error);
}

int sources_open(struct pool *pool, struct berth_error *error)
{
    struct rules rules;
    struct machine machine = {0};
    int code = sources_read_rules(pool->settings.configuration, &rules, error);

    if (code < 0)
        return code;
    code = pool->settings.inventory == NULL ? read_hardware(pool, &machine, error)
                                            : read_inventory(pool, &machine, error);
    if (code == 0)
        code = make_engine(pool, &rules, &machine, error);
    machine_finish(&machine);
    configuration_finish(&rules.configuration);
    return code;
}

void sources_reload(struct pool *pool)
{
    struct rules rules;
    struct engine_settings settings;
    struct berth_error error = BERTH_ERROR_INIT;
    int code = sources_read_rules(pool->settings.configuration, &rules, &error);

    activation_reloading();
    if (code == 0) {
        settings = settings_of(&rules);
        if (engine_set_rules(pool->engine, &settings) < 0)
            code = error_set_memory(&error);
        engine_pause(pool->engine);
        if (rules_take(pool, &rules.configuration, &error) < 0)
            code = error.code;
        squatters_judge_all(pool);
        engine_resume(pool->engine);
        users_apply_rules(pool);
        asked_forget_spare(pool);
        recorder_apply_rules(pool);
    }
    if (code < 0)
        log_line(&pool->log, pool_now(pool), "error", "what=reload reason=%s",
                 log_quote(error.message).text);
    else
        log_line(&pool->log, pool_now(pool), "reloaded", "%s", "");
    activation_ready(-1);
}
