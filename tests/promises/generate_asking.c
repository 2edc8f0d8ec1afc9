/* SPDX-License-Identifier: Apache-2.0 */
#include "base/count.h"
#include "promises/generate.h"
#include "support/units.h"

static void choose_count(struct generator *generator, struct asking *asking)
{
    const struct flavour *flavour = &generator->flavour;

    asking->gpus.min = one_in(generator, 2) ? 1 : 1 + below(generator, flavour->widest);
    asking->gpus.max = asking->gpus.min;
    if (one_in(generator, 5))
        asking->gpus.max += below(generator, 3);
    asking->replicas = 1;
    if (flavour->replicas && one_in(generator, 3)) {
        asking->replicas = 1 + below(generator, 3);
        asking->scheduling = (enum scheduling)below(generator, 4);
    }
    if (asking->replicas == 1 && one_in(generator, 12)) {
        asking->gpus = (struct device_count){.all = true};
        asking->scheduling = SCHEDULING_UNSAID;
    }
}

static slot_set some_slots(struct generator *generator, const struct plan *plan, uint32_t each)
{
    slot_set slots = 0;

    for (unsigned slot = 0; slot < plan->planned; slot++)
        slots |= one_in(generator, each) ? (slot_set)1 << slot : 0;
    return slots;
}

static void choose_filters(struct generator *generator, const struct plan *plan,
                           struct asking *asking)
{
    if (one_in(generator, 4))
        asking->wanted = some_slots(generator, plan, 2);
    if (one_in(generator, 6))
        asking->avoided = some_slots(generator, plan, 3);
    if (one_in(generator, 12)) {
        asking->masked = true;
        asking->mask = some_slots(generator, plan, 2) | 1;
    }
    if (one_in(generator, 8) && asking->min_free.known == false)
        asking->min_free = optional_number_of((4 + below(generator, 40)) * GIB);
    if (!generator->flavour.filters)
        return;
    if (one_in(generator, 3)) {
        asking->vendor_rule = VENDOR_RULE_EXACT;
        asking->vendor = (enum vendor)below(generator, 3);
    } else if (one_in(generator, 4)) {
        asking->vendor_rule = VENDOR_RULE_MIXED;
    }
    if (one_in(generator, 8))
        asking->model = one_in(generator, 2) ? "h100" : "nvidia";
    if (one_in(generator, 8))
        asking->min_memory = optional_number_of(40 * GIB);
    if (one_in(generator, 10))
        asking->min_cap = (struct capability){true, 8, 0};
}

static void choose_sharing(struct generator *generator, struct asking *asking)
{
    static const uint64_t shares[] = {1000000, 500000, 333333, 250000, 100000};

    if (!generator->flavour.sharing || one_in(generator, 3))
        return;
    asking->sharing = one_in(generator, 3) ? SHARING_MPS : SHARING_TIME_SLICE;
    if (one_in(generator, 2))
        asking->share = optional_number_of(shares[below(generator, COUNT(shares))]);
    if (one_in(generator, 3))
        asking->memory = optional_number_of((4 + below(generator, 30)) * GIB);
    if (one_in(generator, 4))
        asking->min_free = optional_number_of((4 + below(generator, 40)) * GIB);
    if (asking->sharing != SHARING_MPS)
        return;
    if (one_in(generator, 3))
        asking->pipe = 1 + below(generator, 2);
    if (one_in(generator, 5))
        asking->log = 1 + below(generator, 2);
    if (asking->vendor_rule == VENDOR_RULE_EXACT)
        asking->vendor = VENDOR_NVIDIA;
    if (asking->gpus.all || asking->gpus.max > 1) {
        if (one_in(generator, 2))
            asking->gpus = (struct device_count){.min = 1, .max = 1};
        else
            asking->ranks = true;
    }
    if (asking->ranks && asking->scheduling == SCHEDULING_BEST_EFFORT)
        asking->scheduling = SCHEDULING_GANG;
}

static void choose_order(struct generator *generator, struct asking *asking)
{
    const struct flavour *flavour = &generator->flavour;

    if (flavour->helpers && one_in(generator, 3))
        asking->opportunistic = true;
    else if (flavour->classes && one_in(generator, 2))
        asking->priority = (enum priority)below(generator, 4);
    if (flavour->times && !one_in(generator, 3))
        asking->time = optional_number_of(1 + below(generator, one_in(generator, 3) ? 400 : 30));
}

static void choose_party(struct generator *generator, struct asking *asking)
{
    /* Mostly the same user, because only tenants of one user can share a device by MPS. */
    asking->uid = FIRST_UID;
    if (asking->sharing != SHARING_MPS || one_in(generator, 3))
        asking->uid += below(generator, USERS);
    asking->group_count = generator->flavour.limits || generator->flavour.people
                              ? below(generator, PARTY_GROUPS_MAX + 1)
                              : 0;
    for (uint32_t i = 0; i < asking->group_count; i++)
        asking->groups[i] = 1 + (below(generator, GROUPS - 1) + i) % GROUPS;
    if (asking->group_count == 2 && asking->groups[0] == asking->groups[1])
        asking->group_count = 1;
}

void generate_asking(struct generator *generator, const struct plan *plan,
                     const struct model_lease *parent, struct asking *ret_asking)
{
    *ret_asking = (struct asking){0};
    choose_count(generator, ret_asking);
    if (one_in(generator, 2))
        choose_filters(generator, plan, ret_asking);
    choose_sharing(generator, ret_asking);
    choose_order(generator, ret_asking);
    choose_party(generator, ret_asking);
    if (generator->flavour.policies && one_in(generator, 2))
        ret_asking->policy = generate_policy(generator);
    if (one_in(generator, 4))
        ret_asking->affinity = one_in(generator, 2) ? "warm" : "cold";
    if (parent != NULL) {
        ret_asking->parent = parent->origin;
        /* Mostly requests that fit into the parent. */
        if (!one_in(generator, 4) && parent->asking->sharing != SHARING_EXCLUSIVE) {
            ret_asking->sharing = parent->asking->sharing;
            ret_asking->gpus = (struct device_count){.min = 1, .max = 1};
            ret_asking->share = optional_number_of(100000);
            ret_asking->memory = (struct optional_number){0};
            if (one_in(generator, 2) && parent->asking->memory.known)
                ret_asking->memory = optional_number_of(parent->asking->memory.value / 2);
            ret_asking->uid = parent->asking->uid;
            ret_asking->pipe = parent->asking->pipe;
            ret_asking->log = parent->asking->log;
            ret_asking->vendor_rule = VENDOR_RULE_ONE;
        }
        if (one_in(generator, 2) && !ret_asking->gpus.all)
            ret_asking->gpus = (struct device_count){.min = 1, .max = 1};
    }
}
