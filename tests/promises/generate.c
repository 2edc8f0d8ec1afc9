/* SPDX-License-Identifier: Apache-2.0 */
#include "promises/generate.h"

#include "base/count.h"
#include "support/units.h"

enum { WAITING_MAX = 14, HELD_MAX = 40 };

static const struct model_lease *any_lease(struct generator *generator, const struct run *run)
{
    return run->model.lease_count == 0
               ? NULL
               : &run->model.leases[below(generator, (uint32_t)run->model.lease_count)];
}

/* Chooses slots that the request accepts, in use or not; sometimes also any slot. */
static void choose_gift(struct generator *generator, struct run *run, uint64_t scope,
                        struct operation *operation)
{
    const struct asking *asking = &operation->asking;
    slot_set slots = model_accepts(&run->model, scope, asking);
    uint32_t min = 0;
    uint32_t max = 0;

    model_bounds(&run->model, scope, asking, &slots, &min, &max);
    max = min + below(generator, max - min + 1);
    for (uint32_t i = 0; i < 4 * SLOTS_MAX && operation->slots != slots &&
                         (uint32_t)__builtin_popcount(operation->slots) < max;
         i++) {
        unsigned slot = below(generator, SLOTS_MAX);

        if ((slots >> slot & 1) != 0 &&
            (operation->slots == 0 ||
             model_may_be_together(&run->model, asking, (unsigned)__builtin_ctz(operation->slots),
                                   slot)))
            operation->slots |= (slot_set)1 << slot;
    }
    if (operation->slots == 0 || one_in(generator, 10))
        operation->slots |= (slot_set)1 << below(generator, run->plan->planned);
}

static void choose_claim(struct generator *generator, struct run *run, struct operation *operation)
{
    const struct model_lease *parent = NULL;

    if (generator->flavour.within && one_in(generator, 2))
        parent = any_lease(generator, run);
    if (parent != NULL && (parent->state != LEASE_HELD || parent->scope != 0) &&
        !one_in(generator, 8))
        parent = NULL;
    do
        generate_asking(generator, run->plan, parent, &operation->asking);
    while (!one_in(generator, 3) &&
           model_impossible(&run->model, parent == NULL ? 0 : parent->id, &operation->asking));
    if (operation->kind == OPERATION_CLAIM && one_in(generator, 4)) {
        operation->known = true;
        operation->amount = 1 + below(generator, 100);
    }
    operation->keep = one_in(generator, 5);
    operation->asking.number = operation->number;
    if (operation->kind == OPERATION_GIVE)
        choose_gift(generator, run, parent == NULL ? 0 : parent->id, operation);
}

static void choose_lease(struct generator *generator, struct run *run, struct operation *operation)
{
    const struct model_lease *lease = any_lease(generator, run);
    bool over;

    if (lease == NULL)
        return;
    operation->reference = lease->origin;
    over = lease->state != LEASE_HELD && lease->state != LEASE_NOTICED;
    operation->kind = over || one_in(generator, 12) ? OPERATION_VACATED : OPERATION_RELEASE;
    if (over && one_in(generator, 4))
        operation->kind = OPERATION_RELEASE; /* refused for a draining lease */
    if (one_in(generator, 8))
        operation->kind = OPERATION_DRAIN;
    if (generator->flavour.times && one_in(generator, 6)) {
        operation->kind = OPERATION_EXTEND;
        operation->known = !one_in(generator, 4);
        operation->amount = 1 + below(generator, 100);
    }
    if (generator->flavour.gifts && run->model.claim_count < WAITING_MAX && one_in(generator, 5)) {
        operation->kind = OPERATION_RETURN;
        operation->what = generator->flavour.faults && !one_in(generator, 3);
        operation->known = one_in(generator, 3);
        operation->amount = 1 + below(generator, 100);
    }
}

/* Prefers leases that are over, so that their devices become free. */
static void choose_over(struct generator *generator, struct run *run, struct operation *operation)
{
    for (size_t i = 0; i < run->model.lease_count; i++) {
        const struct model_lease *lease = &run->model.leases[i];

        if (lease->state >= LEASE_REVOKED && one_in(generator, 2)) {
            operation->kind = lease->state == LEASE_DRAINING || one_in(generator, 2)
                                  ? OPERATION_VACATED
                                  : OPERATION_RELEASE;
            operation->reference = lease->origin;
            return;
        }
    }
    choose_lease(generator, run, operation);
}

static void choose_waiting(struct generator *generator, struct run *run,
                           struct operation *operation)
{
    size_t count = run->model.claim_count;

    if (count == 0)
        return;
    operation->kind = OPERATION_CANCEL;
    operation->reference = run->model.claims[below(generator, (uint32_t)count)].origin;
}

static void choose_request(struct generator *generator, struct run *run,
                           struct operation *operation)
{
    for (size_t i = 0; i < REQUESTS_MAX; i++) {
        const struct run_request *request = &run->requests[i];

        if (request->handle != NULL && one_in(generator, 2)) {
            operation->kind = one_in(generator, 3) ? OPERATION_CLOSE : OPERATION_AGAIN;
            operation->reference = (struct reference){request->operation, 0};
            return;
        }
    }
}

static void choose_advance(struct generator *generator, struct operation *operation)
{
    operation->kind = OPERATION_ADVANCE;
    operation->known = one_in(generator, 2);
    operation->amount = 1 + below(generator, 20);
    if (one_in(generator, 8))
        operation->amount = 1 + below(generator, 500);
    if (one_in(generator, 60))
        operation->amount = INT64_C(3600000000000) + below(generator, 10);
}

static void choose_device(struct generator *generator, struct run *run, struct operation *operation)
{
    uint32_t slot = below(generator, run->plan->planned);
    const struct model_device *device = &run->model.devices[slot];

    operation->slot = slot;
    operation->what = 1U << below(generator, 5);
    if (!device->present) {
        operation->kind = OPERATION_BACK;
    } else if (device->blocks != 0) {
        operation->kind = OPERATION_UNBLOCK;
        operation->what = one_in(generator, 8) ? operation->what : device->blocks & -device->blocks;
    } else if (device->health == HEALTH_SICK) {
        operation->kind = OPERATION_HEALTH;
        operation->what = HEALTH_OK;
    } else if (one_in(generator, 4)) {
        operation->kind = OPERATION_GONE;
    } else if (one_in(generator, 3)) {
        operation->kind = OPERATION_HEALTH;
        operation->what = HEALTH_SICK;
    } else {
        operation->kind = OPERATION_BLOCK;
    }
}

static void choose_figures(struct generator *generator, struct run *run,
                           struct operation *operation)
{
    static const enum operation_kind kinds[] = {OPERATION_LOAD, OPERATION_LOAD, OPERATION_WORK,
                                                OPERATION_WEIGHT};

    operation->kind = kinds[below(generator, COUNT(kinds))];
    operation->slot = below(generator, run->plan->planned);
    operation->known = operation->kind != OPERATION_LOAD || !one_in(generator, 4);
    operation->amount = operation->kind == OPERATION_LOAD ? (int64_t)(below(generator, 80) * GIB)
                                                          : below(generator, 5);
    operation->what = 1 + below(generator, 4);
}

static void choose_limit(struct generator *generator, struct operation *operation)
{
    bool user = one_in(generator, 2);

    operation->kind = user ? OPERATION_LIMIT_USER : OPERATION_LIMIT_GROUP;
    operation->what = user ? FIRST_UID + below(generator, USERS) : 1 + below(generator, GROUPS);
    operation->known = !one_in(generator, 3);
    operation->amount = (1 + below(generator, 8)) * (SHARE_WHOLE / 2);
}

static void choose_people(struct generator *generator, struct run *run, struct operation *operation)
{
    operation->slot = below(generator, run->plan->planned);
    if (one_in(generator, 2)) {
        operation->kind = OPERATION_PREFER;
        operation->what = below(generator, 4);
        return;
    }
    operation->kind = OPERATION_RESERVE;
    operation->known = one_in(generator, 2);
    if (!operation->known)
        return;
    operation->people.users = below(generator, 1U << USERS);
    operation->people.groups = below(generator, 1U << GROUPS);
}

static void choose_other(struct generator *generator, struct run *run, struct operation *operation)
{
    uint32_t kind = below(generator, 8);

    if (generator->flavour.people && one_in(generator, 8)) {
        choose_people(generator, run, operation);
    } else if (generator->flavour.rules && one_in(generator, 12)) {
        operation->kind = OPERATION_RULES;
        generate_rules(generator, &operation->rules);
    } else if (kind == 0) {
        choose_waiting(generator, run, operation);
    } else if (kind == 1) {
        choose_request(generator, run, operation);
    } else if (kind == 2 && generator->flavour.limits) {
        choose_limit(generator, operation);
    } else if (kind == 3) {
        choose_figures(generator, run, operation);
    } else if (kind <= 5 && generator->flavour.faults) {
        choose_device(generator, run, operation);
    } else if (kind == 6 && one_in(generator, 8)) {
        operation->kind = OPERATION_RESTORE;
        operation->known = one_in(generator, 2);
    } else {
        choose_advance(generator, operation);
    }
}

void generate_operation(struct generator *generator, struct run *run, uint32_t number,
                        struct operation *ret_operation)
{
    bool crowded = run->model.claim_count >= WAITING_MAX || run->model.lease_count >= HELD_MAX;
    uint32_t kind = below(generator, 10);

    /* If nothing below chooses an operation, one nanosecond passes. */
    *ret_operation = (struct operation){.number = number, .kind = OPERATION_ADVANCE, .amount = 1};
    if (kind <= 3 && !crowded) {
        uint32_t how = below(generator, 12);

        ret_operation->kind = how == 0   ? OPERATION_PICK
                              : how <= 3 ? OPERATION_TRY
                                         : OPERATION_CLAIM;
        if (generator->flavour.gifts && one_in(generator, 8))
            ret_operation->kind = OPERATION_GIVE;
        choose_claim(generator, run, ret_operation);
    } else if (kind <= 6) {
        choose_over(generator, run, ret_operation);
    } else {
        choose_other(generator, run, ret_operation);
    }
}
