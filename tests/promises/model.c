/* SPDX-License-Identifier: Apache-2.0 */
#include "promises/model.h"

#include <string.h>

void model_init(struct model *model, const struct plan *plan)
{
    *model = (struct model){.plan = plan, .rules = plan->rules};
    for (unsigned slot = 0; slot < plan->planned; slot++) {
        const struct device_plan *device = &plan->devices[slot];

        model->devices[slot] = (struct model_device){
            .plan = device,
            .here = slot < plan->initial,
            .present = slot < plan->initial,
            .health = device->health,
            .free_known = device->free_known,
            .free = device->free,
        };
    }
    for (size_t i = 0; i < USERS; i++)
        model->user_limits[i] = UINT64_MAX;
    for (size_t i = 0; i < GROUPS; i++)
        model->group_limits[i] = UINT64_MAX;
}

struct model_lease *model_lease(struct model *model, uint64_t id)
{
    for (size_t i = 0; i < model->lease_count; i++) {
        if (model->leases[i].id == id)
            return &model->leases[i];
    }
    return NULL;
}

struct model_claim *model_claim(struct model *model, uint64_t id)
{
    for (size_t i = 0; i < model->claim_count; i++) {
        if (model->claims[i].id == id)
            return &model->claims[i];
    }
    return NULL;
}

void model_remove_lease(struct model *model, uint64_t id)
{
    struct model_lease *lease = model_lease(model, id);
    size_t index = (size_t)(lease - model->leases);

    memmove(lease, lease + 1, (model->lease_count - index - 1) * sizeof(*lease));
    model->lease_count--;
}

void model_remove_claim(struct model *model, uint64_t id)
{
    struct model_claim *claim = model_claim(model, id);
    size_t index = (size_t)(claim - model->claims);

    memmove(claim, claim + 1, (model->claim_count - index - 1) * sizeof(*claim));
    model->claim_count--;
}

void model_add_claim(struct model *model, const struct model_claim *claim)
{
    size_t place = model->claim_count++;

    for (; place > 0 && model->claims[place - 1].id > claim->id; place--)
        model->claims[place] = model->claims[place - 1];
    model->claims[place] = *claim;
}

bool model_is_within(struct model *model, const struct model_lease *lease, uint64_t ancestor)
{
    while (lease != NULL && lease->id != ancestor)
        lease = lease->scope == 0 ? NULL : model_lease(model, lease->scope);
    return lease != NULL;
}

void model_excuse(struct model *model, uint64_t scope)
{
    for (size_t i = 0; i < model->claim_count; i++) {
        if (scope == SCOPE_ALL || model->claims[i].scope == scope)
            model->claims[i].promised = false;
    }
}
