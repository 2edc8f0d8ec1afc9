/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sources.h"

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/quantity.h"
#include "base/quote.h"
#include "daemon/activation.h"
#include "daemon/asked.h"
#include "engine/policies.h"
#include "spec/configuration.h"
#include "spec/document.h"
#include "spec/inventory.h"

static int read_machine(struct pool *pool, struct machine *ret_machine, struct berth_error *error)
{
    const char *path = pool->settings.inventory;
    struct text content = {0};
    int code;

    if (path == NULL) {
        *ret_machine = (struct machine){0};
        return 0;
    }
    code = file_read(path, DOCUMENT_LARGEST, &content, error);
    if (code == 0) {
        pool->inventory_key = hash_bytes(path, strlen(path));
        pool->inventory_hash = hash_bytes(text_string(&content), content.length);
        code = inventory_parse(path, text_string(&content), content.length, ret_machine, error);
    }
    text_finish(&content);
    return code;
}

/* What the daemon itself keeps of the rules. */
static void take_rules(struct pool *pool, const struct configuration *configuration)
{
    uint32_t *uid;
    const uint32_t *from;

    pool->grace = configuration->grace;
    pool->default_time = configuration->default_time;
    pool->longest_time = configuration->longest_time;
    vector_finish(&pool->high);
    vector_for_each (from, &configuration->high) {
        uid = vector_append(&pool->high);
        if (uid != NULL)
            *uid = *from;
    }
}

static int set_limit(struct pool *pool, const struct device_limit *limit, uint64_t most,
                     struct berth_error *error)
{
    return limit->is_group ? engine_limit_group(pool->engine, limit->key, most, error)
                           : engine_limit_user(pool->engine, limit->key, most, error);
}

static int apply_limits(struct pool *pool, const struct configuration *configuration,
                        struct berth_error *error)
{
    const struct device_limit *limit;
    int code = 0;

    /* Those of before that are not there any more. */
    vector_for_each (limit, &pool->limits)
        set_limit(pool, limit, UINT64_MAX, NULL);
    vector_finish(&pool->limits);
    vector_for_each (limit, &configuration->limits) {
        struct device_limit *kept = vector_append(&pool->limits);

        if (kept == NULL)
            return error_set_memory(error);
        *kept = *limit;
        code = set_limit(pool, limit, limit->most, error);
    }
    return code;
}

static int make_engine(struct pool *pool, const struct configuration *configuration,
                       struct machine *machine, struct berth_error *error)
{
    struct engine_settings settings = {
        .time_slice_tenants = configuration->time_slice_tenants,
        .mps_tenants = configuration->mps_tenants,
        .age_step = configuration->age_step,
        .grace = configuration->grace,
        .affinity_by_user = true,
    };
    const struct device *device;
    int code = policy_find(configuration->policy, &settings.policy, error);

    vector_for_each (device, &machine->devices)
        pool->vendors |= UINT32_C(1) << device->id.vendor;
    if (code == 0)
        code = engine_create(machine, &settings, &pool->engine, error);
    if (code == 0)
        code = apply_limits(pool, configuration, error);
    return code;
}

int sources_open(struct pool *pool, struct berth_error *error)
{
    struct configuration configuration;
    struct machine machine = {0};
    int code = configuration_read(pool->settings.configuration, &configuration, error);

    if (code < 0)
        return code;
    take_rules(pool, &configuration);
    code = read_machine(pool, &machine, error);
    if (code == 0)
        code = make_engine(pool, &configuration, &machine, error);
    machine_finish(&machine);
    configuration_finish(&configuration);
    return code;
}

void sources_reload(struct pool *pool)
{
    struct configuration configuration;
    struct berth_error error = BERTH_ERROR_INIT;
    const struct policy *policy = NULL;
    int code = configuration_read(pool->settings.configuration, &configuration, &error);

    activation_reloading();
    if (code == 0) {
        take_rules(pool, &configuration);
        code = apply_limits(pool, &configuration, &error);
        if (code == 0)
            code = policy_find(configuration.policy, &policy, &error);
        engine_set_rules(pool->engine, configuration.grace, policy);
        asked_forget_spare(pool);
        configuration_finish(&configuration);
    }
    if (code < 0)
        log_line(&pool->log, pool_now(pool), "error", "what=reload reason=%s",
                 quote(error.message).text);
    else
        log_line(&pool->log, pool_now(pool), "reloaded", "%s", "");
    activation_ready(-1);
}
