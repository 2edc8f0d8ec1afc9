/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/configure_engine.h"

#include "base/error.h"
#include "daemon/leases/job.h"
#include "daemon/leases/pool.h"

static int set_limit(struct pool *pool, const struct device_limit *limit, uint64_t max,
                     struct berth_error *error)
{
    return limit->is_group ? engine_limit_group(pool->engine, limit->key, max, error)
                           : engine_limit_user(pool->engine, limit->key, max, error);
}

static bool has_limit(const struct limit_list *limits, uint32_t key, bool is_group)
{
    const struct device_limit *limit;

    vector_for_each (limit, limits) {
        if (limit->key == key && limit->is_group == is_group)
            return true;
    }
    return false;
}

/* Lifts the limits of the old rules last, so that a limit in both is never lifted meanwhile. */
static int apply_limits(struct pool *pool, const struct configuration *next,
                        struct berth_error *error)
{
    const struct device_limit *limit;
    const uint32_t *uid;
    int code = 0;

    vector_for_each (limit, &next->limits) {
        if (code == 0)
            code = set_limit(pool, limit, limit->allowance.devices, error);
    }
    vector_for_each (uid, &pool->limited) {
        if (!has_limit(&next->limits, *uid, false) && code == 0)
            code = engine_limit_user(pool->engine, *uid, next->each_user.devices, error);
    }
    vector_for_each (limit, &pool->rules.limits) {
        bool is_each =
            !limit->is_group && configuration_number_list_has(&pool->limited, limit->key);

        if (!is_each && !has_limit(&next->limits, limit->key, limit->is_group))
            set_limit(pool, limit, DEVICES_UNLIMITED, NULL);
    }
    return code;
}

int configure_engine_limit_user(struct pool *pool, uint32_t uid, struct berth_error *error)
{
    uint32_t *place;
    int code;

    /* Root and the owner have no limits but those that name them. */
    if (pool->rules.each_user.devices == DEVICES_UNLIMITED || uid == 0 || uid == pool->owner ||
        configuration_number_list_has(&pool->limited, uid))
        return 0;
    code = has_limit(&pool->rules.limits, uid, false)
               ? 0
               : engine_limit_user(pool->engine, uid, pool->rules.each_user.devices, error);
    place = code < 0 ? NULL : vector_append(&pool->limited);
    if (place == NULL)
        return code < 0 ? code : error_set_memory(error);
    *place = uid;
    return 0;
}

int configure_engine_limit_all(struct pool *pool, struct berth_error *error)
{
    int code = 0;

    list_for_each (link, &pool->jobs) {
        const struct job *job = container_of(link, struct job, in_pool);

        if (code == 0)
            code = configure_engine_limit_user(pool, job->holder->account, error);
    }
    return code;
}

static const struct principals *find_principals(const struct configuration *rules,
                                                struct device_id id)
{
    const struct reserved_device *reserved;

    vector_for_each (reserved, &rules->reserved) {
        if (device_id_equals(reserved->id, id))
            return &reserved->principals;
    }
    return NULL;
}

/* Returns the device's place in the list of preferred devices, from 1; 0: it is not in the list. */
static uint32_t rank_of(const struct configuration *rules, struct device_id id)
{
    for (size_t i = 0; i < rules->preferred.count; i++) {
        if (device_id_equals(rules->preferred.items[i], id))
            return (uint32_t)i + 1;
    }
    return 0;
}

int configure_engine_slot(struct pool *pool, uint32_t slot, struct berth_error *error)
{
    struct device_id id = engine_machine(pool->engine)->devices.items[slot].id;
    const struct principals *principals = find_principals(&pool->rules, id);
    struct allowed_users allowed = {0};

    if (principals != NULL)
        allowed = (struct allowed_users){
            .uids = principals->users.items,
            .uid_count = principals->users.count,
            .groups = principals->groups.items,
            .group_count = principals->groups.count,
        };
    engine_set_rank(pool->engine, slot, rank_of(&pool->rules, id));
    return engine_reserve_device(pool->engine, slot, principals == NULL ? NULL : &allowed, error);
}

int configure_engine_apply(struct pool *pool, struct configuration *configuration,
                           struct berth_error *error)
{
    size_t count = engine_machine(pool->engine)->devices.count;
    int code = apply_limits(pool, configuration, error);

    configuration_finish(&pool->rules);
    pool->rules = *configuration;
    *configuration = (struct configuration){0};
    for (uint32_t slot = 0; slot < count; slot++) {
        int failed = configure_engine_slot(pool, slot, error);

        code = code < 0 ? code : failed;
    }
    return code;
}
