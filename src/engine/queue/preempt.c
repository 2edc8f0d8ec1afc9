/* SPDX-License-Identifier: Apache-2.0
 *
 * Opportunistic leases give way: which of them get notice so that waiting claims can start. It is
 * worked out on an imagined ledger, on which claims start one after the other as leases go.
 */
#include <string.h>

#include "engine/internal.h"

bool lease_is_going(const struct held *held)
{
    return held->request->what.opportunistic && held->state != LEASE_HELD;
}

/* What goes makes room for what starts, but not below what is held now. */
static void imagine_use(struct account *account)
{
    uint64_t more = account->started > account->gone ? account->started - account->gone : 0;

    account->used += more - account->imagined;
    account->imagined = more;
}

static void imagine_refund(const struct held *held, uint64_t sign)
{
    const struct engine_request *request = held->request;

    for (size_t i = 0; i < request->account_count; i++) {
        request->accounts[i]->gone += sign * request->share * held->slot_count;
        imagine_use(request->accounts[i]);
    }
}

static void imagine_gone(struct engine *engine, const struct held *held)
{
    imagine_refund(held, 1);
    for (uint32_t i = 0; i < held->slot_count; i++)
        usage_subtract(&engine->imagined[held->slots[i]], held->request);
    hosts_subtract(engine->imagined_hosts, held->request, held->slots, held->slot_count);
}

static void imagine_back(struct engine *engine, const struct held *held)
{
    imagine_refund(held, UINT64_MAX);
    for (uint32_t i = 0; i < held->slot_count; i++)
        usage_add(&engine->imagined[held->slots[i]], held->request);
    hosts_add(engine->imagined_hosts, held->request, held->slots, held->slot_count);
}

/* The ledger as it is, but without the leases that are going. */
static void imagine_start(struct scope *scope)
{
    struct engine *engine = scope->engine;

    for (size_t slot = 0; slot < engine->machine.devices.count; slot++)
        engine->imagined[slot] = scope->ledger[slot].usage;
    memcpy(engine->imagined_hosts, scope->host_usage,
           engine->host_count * sizeof(*engine->imagined_hosts));
    list_for_each (link, &engine->leases) {
        struct held *held = container_of(link, struct held, in_engine);

        held->chosen = false;
        if (held->request->scope == scope && lease_is_going(held))
            imagine_gone(engine, held);
    }
}

static int place_imagined(const struct engine_request *request, struct walk *walk)
{
    struct engine *engine = request->engine;

    bitset_fill(&engine->legal);
    if (walk_bar(walk, request, &engine->legal) < 0)
        return BERTH_ERROR_MEMORY;
    return place_request(request, &engine->legal, engine->imagined, engine->imagined_hosts, NULL);
}

/* Whether the lease holds a slot that the request may use. */
static bool is_in_the_way(const struct held *held, const struct engine_request *request,
                          struct walk *walk)
{
    struct engine *engine = request->engine;

    bitset_copy(&engine->legal, &request->accepts);
    /* With helpers about, sets are known from the beginning: nothing can fail. */
    (void)walk_bar(walk, request, &engine->legal);
    for (uint32_t i = 0; i < held->slot_count; i++) {
        if (bitset_has(&engine->legal, held->slots[i]))
            return true;
    }
    return false;
}

static bool may_be_chosen(const struct held *held, const struct scope *scope)
{
    return held->request->scope == scope && held->request->what.opportunistic &&
           held->state == LEASE_HELD && !held->chosen;
}

/* Leaves alone what turned out not to be needed, the oldest first. */
static int spare_some(const struct engine_request *request, struct walk *walk,
                      const struct held *oldest)
{
    struct engine *engine = request->engine;

    list_for_each (link, &engine->leases) {
        struct held *held = container_of(link, struct held, in_engine);
        int code;

        if (held->entry.link.id < oldest->entry.link.id || !held->candidate)
            continue;
        imagine_back(engine, held);
        code = place_imagined(request, walk);
        if (code < 0)
            return code;
        if (code == 1)
            held->candidate = false;
        else
            imagine_gone(engine, held);
    }
    return place_imagined(request, walk);
}

/* Ends the choice for one claim: what is still a candidate goes when the claim could start, or all
 * of them stay. */
static void end_choice(struct engine *engine, bool starts)
{
    list_for_each (link, &engine->leases) {
        struct held *held = container_of(link, struct held, in_engine);

        if (!held->candidate)
            continue;
        held->candidate = false;
        held->chosen = starts;
        if (!starts)
            imagine_back(engine, held);
    }
}

/* Chooses leases that let the claim start: none, or the youngest. Returns as place_request. */
static int choose_leases(const struct engine_request *request, struct walk *walk)
{
    struct engine *engine = request->engine;
    struct list_link *link = engine->leases.ends.previous;
    int code = place_imagined(request, walk);

    for (; code == 0 && link != &engine->leases.ends; link = link->previous) {
        struct held *held = container_of(link, struct held, in_engine);

        if (!may_be_chosen(held, request->scope) || !is_in_the_way(held, request, walk))
            continue;
        held->candidate = true;
        imagine_gone(engine, held);
        code = place_imagined(request, walk);
        if (code == 1)
            code = spare_some(request, walk, held);
    }
    end_choice(engine, code == 1);
    return code;
}

/* The claim takes its imagined slots; limits count it for the time being. */
static void imagine_started(const struct engine_request *request)
{
    struct engine *engine = request->engine;

    for (size_t i = 0; i < engine->chosen_count; i++)
        usage_add(&engine->imagined[engine->chosen[i]], request);
    hosts_add(engine->imagined_hosts, request, engine->chosen, engine->chosen_count);
    for (size_t i = 0; i < request->account_count; i++) {
        request->accounts[i]->started += (uint64_t)request->share * engine->chosen_count;
        imagine_use(request->accounts[i]);
    }
}

static void end_imagining(struct engine *engine)
{
    list_for_each (link, &engine->accounts) {
        struct account *account = container_of(link, struct account, in_engine);

        account->started = account->gone = 0;
        imagine_use(account);
    }
}

/* Goes through the waiting claims and chooses leases. Returns 0 or BERTH_ERROR_MEMORY. */
static int choose_for_all(struct scope *scope)
{
    struct walk *walk = &scope->engine->walk;
    struct claim *claim;

    walk_begin(walk);
    imagine_start(scope);
    lanes_rewind(scope);
    while ((claim = lanes_next(scope)) != NULL) {
        struct engine_request *request = claim->request;
        int code;

        if (request->what.opportunistic)
            break;
        code = choose_leases(request, walk);
        if (code == 1) {
            imagine_started(request);
            continue;
        }
        lane_skip(request);
        if (code == 0)
            code = walk_block(walk, request);
        if (code < 0)
            return code;
    }
    return 0;
}

bool give_way(struct scope *scope)
{
    struct engine *engine = scope->engine;
    int code = choose_for_all(scope);
    bool given = false;

    end_imagining(engine);
    if (code < 0) {
        engine->retry = true;
        return false;
    }
    list_for_each (link, &engine->leases) {
        struct held *held = container_of(link, struct held, in_engine);

        if (held->request->scope == scope && held->chosen && held->state == LEASE_HELD) {
            give_notice(held);
            given = true;
        }
        held->chosen = false;
    }
    return given;
}
