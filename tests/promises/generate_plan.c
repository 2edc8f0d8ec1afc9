/* SPDX-License-Identifier: Apache-2.0 */
#include "base/count.h"
#include "engine/policy/policies.h"
#include "promises/generate.h"
#include "support/units.h"

static const char *const names[] = {"NVIDIA A100-SXM4-80GB", "NVIDIA H100 PCIe", "AMD MI300X",
                                    "Intel Max 1550"};

static void plan_one(struct generator *generator, struct device_plan *device, uint32_t index)
{
    static const uint64_t sizes[] = {16 * GIB, 40 * GIB, 80 * GIB};
    static const uint32_t vendors[] = {VENDOR_NVIDIA, VENDOR_NVIDIA, VENDOR_NVIDIA,
                                       VENDOR_AMD,    VENDOR_AMD,    VENDOR_INTEL};
    bool plain = !generator->flavour.filters;

    *device = (struct device_plan){.id = {.index = index, .mig = DEVICE_NO_MIG}, .numa = -1};
    device->id.vendor =
        plain ? VENDOR_NVIDIA : (enum vendor)vendors[below(generator, COUNT(vendors))];
    device->uuid = one_in(generator, 3) ? NULL : "GPU-made-up";
    if (plain || !one_in(generator, 6))
        device->name = plain ? names[0] : names[below(generator, COUNT(names))];
    if (plain || !one_in(generator, 6))
        device->memory = optional_number_of(sizes[below(generator, COUNT(sizes))]);
    if (!one_in(generator, 4)) {
        device->free_known = true;
        device->free = device->memory.known ? device->memory.value : 20 * GIB;
        device->free = one_in(generator, 3) ? device->free / 2 : device->free;
    }
    if (!one_in(generator, 4))
        device->cap = (struct capability){true, (uint16_t)(7 + below(generator, 3)), 0};
    if (!one_in(generator, 3))
        device->numa = below(generator, 2);
    device->health = one_in(generator, 12) ? HEALTH_SICK : (enum health)below(generator, 2);
}

/* Makes a device the first partition of another. */
static void partition(struct device_plan *whole, struct device_plan *part)
{
    whole->partitioned = true;
    whole->id.vendor = VENDOR_NVIDIA;
    part->id = whole->id;
    part->id.mig = 1;
    part->parent = "GPU-parent";
}

static void choose_flavour(struct generator *generator)
{
    struct flavour *flavour = &generator->flavour;

    flavour->filters = one_in(generator, 2);
    flavour->sharing = one_in(generator, 2);
    flavour->helpers = one_in(generator, 2);
    flavour->times = !one_in(generator, 3);
    flavour->limits = one_in(generator, 3);
    flavour->within = one_in(generator, 3);
    flavour->faults = one_in(generator, 2);
    flavour->replicas = one_in(generator, 2);
    flavour->policies = one_in(generator, 2);
    flavour->classes = !one_in(generator, 3);
    flavour->gifts = one_in(generator, 2);
    flavour->people = one_in(generator, 3);
    flavour->rules = one_in(generator, 3);
}

const char *generate_policy(struct generator *generator)
{
    uint32_t count = 1; /* there is at least one */

    while (policies[count] != NULL)
        count++;
    return policies[below(generator, count)]->name;
}

void generate_rules(struct generator *generator, struct rules_plan *ret_rules)
{
    static const int64_t age_steps[] = {0, 50, 200, 1000};
    static const int64_t graces[] = {0, 5, 20, 100};
    static const uint32_t tenants[] = {0, 2, 3, 5};

    ret_rules->age_step = age_steps[below(generator, COUNT(age_steps))];
    ret_rules->grace = graces[below(generator, COUNT(graces))];
    ret_rules->time_slice_tenants = tenants[below(generator, COUNT(tenants))];
    ret_rules->mps_tenants = tenants[below(generator, COUNT(tenants))];
    ret_rules->policy = generator->flavour.policies ? generate_policy(generator) : NULL;
}

void generate_plan(struct generator *generator, uint64_t seed, struct plan *ret_plan)
{
    struct flavour *flavour = &generator->flavour;

    *generator = (struct generator){.random = {seed}};
    *ret_plan = (struct plan){0};
    choose_flavour(generator);
    ret_plan->initial = one_in(generator, 3) ? 1 + below(generator, 12) : 1 + below(generator, 5);
    if (one_in(generator, 40))
        ret_plan->initial = 0;
    ret_plan->planned = ret_plan->initial + below(generator, 3);
    if (ret_plan->planned == 0)
        ret_plan->planned = 1;
    flavour->widest = 1 + below(generator, ret_plan->planned < 6 ? ret_plan->planned + 1 : 6);
    ret_plan->hosts = one_in(generator, 5) ? 2 + below(generator, 2) : 1;
    generate_rules(generator, &ret_plan->rules);
    ret_plan->affinity_by_user = one_in(generator, 2);
    ret_plan->quiet = one_in(generator, 2);
    for (uint32_t slot = 0; slot < ret_plan->planned; slot++) {
        plan_one(generator, &ret_plan->devices[slot], slot);
        ret_plan->devices[slot].host = below(generator, ret_plan->hosts);
    }
    if (flavour->filters && ret_plan->planned >= 3 && one_in(generator, 4))
        partition(&ret_plan->devices[0], &ret_plan->devices[1]);
}
