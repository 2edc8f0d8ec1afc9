/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on devices and limits. The model changes first, so that the engine's events are
 * compared with the new state.
 */
#include "promises/run.h"

static void do_back(struct run *run, uint32_t slot)
{
    struct model_device *model = &run->model.devices[slot];
    struct device device;
    uint32_t found = UINT32_MAX;

    if (model->present)
        return;
    /* A new device gets the next slot, so the devices before it must be there. */
    if (!model->here && slot > 0 && !run->model.devices[slot - 1].here)
        return;
    model->here = true;
    model->present = true;
    model->health = model->plan->health;
    model->free_known = model->plan->free_known;
    model->free = model->plan->free;
    model->utilization = (struct figure){0};
    device = plan_device(model->plan);
    if (engine_device_add(run->engine, &device, &found, NULL) < 0) {
        device_finish(&device);
        run_blame(run, 7, "cannot add a device");
    } else if (found != slot) {
        run_blame(run, 7, "expected slot %u for a new device, got slot %u", slot, found);
    }
}

static void do_load(struct run *run, const struct operation *operation)
{
    struct model_device *device = &run->model.devices[operation->slot];

    device->free_known = operation->known;
    device->free = (uint64_t)operation->amount;
    device->utilization = operation->known
                              ? load_figure_sampled(operation->amount % 1001, run->model.now)
                              : (struct figure){0};
    run_load(run, run->engine, operation->slot);
}

void run_load(const struct run *run, struct engine *engine, uint32_t slot)
{
    const struct model_device *device = &run->model.devices[slot];
    struct load load = {.utilization = device->utilization};

    if (device->free_known)
        load.memory_free = load_figure_sampled((int64_t)device->free, run->model.now);
    engine_set_load(engine, slot, &load);
}

static void do_limit(struct run *run, const struct operation *operation)
{
    uint64_t max = operation->known ? (uint64_t)operation->amount : UINT64_MAX;

    if (operation->kind == OPERATION_LIMIT_USER) {
        run->model.user_limits[operation->what - FIRST_UID] = max;
        engine_limit_user(run->engine, operation->what, max, NULL);
    } else {
        run->model.group_limits[operation->what - 1] = max;
        engine_limit_group(run->engine, operation->what, max, NULL);
    }
}

static void do_reserve(struct run *run, const struct operation *operation)
{
    struct model_device *device = &run->model.devices[operation->slot];

    device->reserved = operation->known;
    device->people = operation->people;
    if (run_reserve(run->engine, operation->slot, device) < 0)
        run_blame(run, 7, "cannot reserve a device");
}

static void do_rules(struct run *run, const struct operation *operation)
{
    struct engine_settings settings = run_settings(run->plan, &operation->rules);

    run->model.rules = operation->rules;
    if (engine_set_rules(run->engine, &settings) < 0)
        run_blame(run, 7, "cannot change the rules");
}

int run_reserve(struct engine *engine, uint32_t slot, const struct model_device *device)
{
    uint32_t uids[USERS];
    uint32_t groups[GROUPS];
    struct allowed_users who = {.uids = uids, .groups = groups};

    for (uint32_t i = 0; i < USERS; i++) {
        if ((device->people.users >> i & 1) != 0)
            uids[who.uid_count++] = FIRST_UID + i;
    }
    for (uint32_t i = 0; i < GROUPS; i++) {
        if ((device->people.groups >> i & 1) != 0)
            groups[who.group_count++] = i + 1;
    }
    return engine_reserve_device(engine, slot, device->reserved ? &who : NULL, NULL);
}

void run_machine(struct run *run, const struct operation *operation)
{
    uint32_t slot = operation->slot;
    struct model_device *device = &run->model.devices[slot];

    if (operation->kind == OPERATION_LIMIT_USER || operation->kind == OPERATION_LIMIT_GROUP) {
        do_limit(run, operation);
        return;
    }
    if (operation->kind == OPERATION_BACK) {
        do_back(run, slot);
        return;
    }
    /* These are possible before the device is added, too. */
    if (operation->kind == OPERATION_RULES)
        do_rules(run, operation);
    else if (operation->kind == OPERATION_RESERVE)
        do_reserve(run, operation);
    else if (operation->kind == OPERATION_PREFER)
        engine_set_rank(run->engine, slot, device->rank = operation->what);
    if (!device->here)
        return;
    switch (operation->kind) {
    case OPERATION_BLOCK:
        device->blocks |= operation->what;
        engine_block(run->engine, slot, (enum block)operation->what);
        break;
    case OPERATION_UNBLOCK:
        device->blocks &= ~operation->what;
        engine_unblock(run->engine, slot, (enum block)operation->what);
        break;
    case OPERATION_HEALTH:
        device->health = (enum health)operation->what;
        engine_device_health(run->engine, slot, device->health);
        break;
    case OPERATION_GONE:
        device->present = false;
        engine_device_gone(run->engine, slot);
        break;
    case OPERATION_LOAD:
        do_load(run, operation);
        break;
    case OPERATION_WORK:
        device->queued = (uint64_t)operation->amount;
        device->active = operation->what;
        engine_set_work(run->engine, slot, device->queued, device->active);
        break;
    case OPERATION_WEIGHT:
        device->weight = operation->what;
        engine_set_weight(run->engine, slot, device->weight);
        break;
    default:
        break;
    }
}
