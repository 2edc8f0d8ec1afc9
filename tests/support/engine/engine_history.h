/* SPDX-License-Identifier: Apache-2.0
 *
 * A long history of one engine in which every kind of event happens at least once.
 */
#ifndef TESTS_ENGINE_HISTORY_H
#define TESTS_ENGINE_HISTORY_H

#include "support/unit.h"

#include "base/error.h"
#include "support/engine/engine_steps.h"

/* Fills a machine with two hosts, two vendors and some facts. */
static inline void history_machine(struct machine *machine)
{
    machine_add_ids(machine, "nvidia0,nvidia1,nvidia2,nvidia3,amd0,amd1");
    for (size_t i = 0; i < 2; i++) {
        struct host *host = vector_append(&machine->hosts);

        assert_non_null(host);
        host->cpus = optional_number_of(8000);
        host->memory = optional_number_of(64 * GIB);
    }
    for (size_t i = 0; i < machine->devices.count; i++) {
        machine->devices.items[i].memory_total = optional_number_of(1000);
        machine->devices.items[i].host = i >= 4;
    }
}

static const struct engine_settings history_settings = {
    .age_step = 40,
    .grace = 10,
    .slots_max = 70,
    .affinity_by_user = true,
};

static inline void history_init(struct world *world)
{
    struct machine machine = {0};

    history_machine(&machine);
    world_init_with(world, &machine, &history_settings);
}

/* The kinds of steps. */
enum history_kind {
    HISTORY_END,
    HISTORY_CLAIM, /* claim with a request of `words`, which is closed again */
    HISTORY_KEEP,  /* the same; the request stays open */
    HISTORY_TRY,
    HISTORY_PICK,
    HISTORY_GIVE, /* grant this slot directly */
    HISTORY_CANCEL,
    HISTORY_RELEASE,
    HISTORY_DRAIN,
    HISTORY_VACATE,
    HISTORY_EXTEND,
    HISTORY_RETURN, /* withdraw the grant of a claim that arrived at `number` */
    HISTORY_RULES,  /* change the maximum of time-slice tenants */
    HISTORY_ADVANCE,
    HISTORY_BLOCK,
    HISTORY_UNBLOCK,
    HISTORY_SICK,
    HISTORY_WELL,
    HISTORY_GONE,
    HISTORY_ADD,  /* add the device with the id in `words` */
    HISTORY_LOAD, /* set the free memory */
    HISTORY_WORK,
    HISTORY_EXPLAIN,
};

struct history_row {
    enum history_kind kind;
    uint64_t id; /* claim, lease, slot */
    const char *words;
    int64_t number; /* deadline (0: none), time, reason, amount */
};

/* The ids of claims and leases are those that the engine assigns. */
static const struct history_row history_rows[] = {
    {HISTORY_CLAIM, 0, "gpus=2 time=100 uid=1", 0},                    /* lease 1: 0,1 */
    {HISTORY_CLAIM, 0, "device=nvidia2 sharing=mps uid=2 time=50", 0}, /* lease 2 */
    {HISTORY_CLAIM, 0, "sharing=mps uid=2 memory=300 share=500", 0},   /* lease 3: 2 */
    {HISTORY_CLAIM, 0, "vendor=amd sharing=time-slice replicas=3 cpus=1000 affinity=x", 0}, /* 4 */
    {HISTORY_CLAIM, 0, "opportunistic device=amd1 uid=3", 0},                 /* lease 5 */
    {HISTORY_PICK, 0, "vendor=amd sharing=time-slice policy=round-robin", 0}, /* 6 */
    {HISTORY_KEEP, 0, "gpus=4 device=nvidia0,nvidia1,nvidia2,nvidia3", 90},   /* claim 7 */
    {HISTORY_CLAIM, 0, "priority=low device=amd1", 0},                      /* claim 8: notice 5 */
    {HISTORY_CLAIM, 0, "opportunistic gpus=1-2 device=nvidia3,nvidia2", 0}, /* claim 9 */
    {HISTORY_EXPLAIN, 7, NULL, 0},
    {HISTORY_EXPLAIN, 8, NULL, 0},
    {HISTORY_KEEP, 0, "parent=1", 0},                                /* lease 10: 0 */
    {HISTORY_CLAIM, 0, "parent=1 sharing=time-slice time=500", 0},   /* lease 11: 1 */
    {HISTORY_KEEP, 0, "parent=1 gpus=2 priority=low", 300},          /* claim 12 */
    {HISTORY_CLAIM, 0, "parent=11 sharing=time-slice share=100", 0}, /* lease 13 */
    {HISTORY_ADVANCE, 0, NULL, 5},
    {HISTORY_TRY, 0, "sharing=mps uid=2 device=nvidia2 time=20", 0},
    {HISTORY_ADVANCE, 0, NULL, 10}, /* 5 is revoked */
    {HISTORY_VACATE, 5, NULL, 0},   /* 8 starts */
    {HISTORY_BLOCK, 4, NULL, BLOCK_DIRTY},
    {HISTORY_WORK, 5, NULL, 3},
    {HISTORY_EXTEND, 1, NULL, 120},
    {HISTORY_ADVANCE, 0, NULL, 50}, /* 2 expires */
    {HISTORY_DRAIN, 3, NULL, 0},
    {HISTORY_VACATE, 2, NULL, 0},
    {HISTORY_SICK, 5, NULL, 0},
    {HISTORY_RELEASE, 4, NULL, 0},
    {HISTORY_ADD, 0, "intel0", 0}, /* slot 6 */
    {HISTORY_CLAIM, 0, "vendor=any min-free=100 device=intel0", 0},
    {HISTORY_LOAD, 6, NULL, 200},
    {HISTORY_VACATE, 3, NULL, 0},
    {HISTORY_UNBLOCK, 4, NULL, BLOCK_DIRTY},
    {HISTORY_ADVANCE, 0, NULL, 90}, /* 7 times out */
    {HISTORY_CLAIM, 0, "gpus=all vendor=nvidia", 0},
    {HISTORY_CLAIM, 0, "gpus=2 vendor=amd", 0},
    {HISTORY_GONE, 4, NULL, 0},
    {HISTORY_WELL, 5, NULL, 0},
    {HISTORY_ADD, 4, "amd0", 0},
    {HISTORY_RELEASE, 11, NULL, 0},
    {HISTORY_CANCEL, 12, NULL, 0},
    {HISTORY_ADVANCE, 0, NULL, 120}, /* 1 expires */
    {HISTORY_VACATE, 1, NULL, 0},
    {HISTORY_CLAIM, 0, "gpus=9-10 vendor=any", 0},
    {HISTORY_CLAIM, 0, "parent=1", 0},
    {HISTORY_CLAIM, 0, "replicas=2 scheduling=spread sharing=time-slice avoid=amd1", 0},
    {HISTORY_KEEP, 0, "replicas=2 scheduling=best-effort time=7", 200},
    {HISTORY_PICK, 0, "sharing=time-slice policy=least-loaded", 0},
    {HISTORY_ADVANCE, 0, NULL, 130},
    {HISTORY_ADVANCE, 0, NULL, 200},                                       /* it times out */
    {HISTORY_CLAIM, 0, "vendor=nvidia sharing=time-slice replicas=10", 0}, /* claim 23 */
    {HISTORY_RELEASE, 17, NULL, 0}, /* lease 24 of claim 18 */
    {HISTORY_RELEASE, 24, NULL, 0}, /* lease 25 of claim 23 */
    {HISTORY_BLOCK, 3, NULL, BLOCK_SQUATTED},
    {HISTORY_GIVE, 3, "device=nvidia3 uid=4 time=1000", 0}, /* lease 26 */
    {HISTORY_GIVE, 3, "sharing=time-slice", 0},             /* there is no room */
    {HISTORY_KEEP, 0, "parent=26", 0},                      /* lease 27 */
    {HISTORY_CLAIM, 0, "parent=26 sharing=time-slice", 0},  /* claim 28 */
    {HISTORY_RETURN, 26, NULL, 200},                        /* claim 26 */
    {HISTORY_UNBLOCK, 3, NULL, BLOCK_SQUATTED},             /* lease 29 of claim 26 */
    {HISTORY_RULES, 0, NULL, 6},
    {HISTORY_RELEASE, 25, NULL, 0},
    {HISTORY_CLAIM, 0, "vendor=nvidia sharing=time-slice replicas=18", 0}, /* lease 30 */
    {HISTORY_RETURN, 20, NULL, 120}, /* lease 31 of claim 20 */
    {HISTORY_RULES, 0, NULL, 2},
    {HISTORY_RETURN, 30, NULL, 200}, /* impossible by now */
    {HISTORY_RETURN, 31, NULL, 120}, /* lease 32 of claim 20 */
    {HISTORY_END, 0, NULL, 0},
};

static inline bool history_is_claim(const struct history_row *row)
{
    return row->kind == HISTORY_CLAIM || row->kind == HISTORY_KEEP || row->kind == HISTORY_TRY ||
           row->kind == HISTORY_PICK || row->kind == HISTORY_GIVE;
}

/* Claims, tries, picks or grants directly. */
static inline int history_use(struct world *world, const struct history_row *row,
                              struct engine_request *request, struct berth_error *error)
{
    uint32_t slots[4];
    uint64_t id;

    if (row->kind == HISTORY_TRY)
        return engine_try(world->engine, request, &id, error);
    if (row->kind == HISTORY_PICK)
        return engine_pick(world->engine, request, slots, 4, error);
    slots[0] = (uint32_t)row->id;
    if (row->kind == HISTORY_GIVE)
        return engine_grant_slots(world->engine, request, slots, 1, &id, error);
    return engine_claim(world->engine, request, row->number > 0 ? row->number : TIME_NEVER, NULL,
                        &id, error);
}

/* Opens a request of `words`, and uses it. */
static inline int history_claim(struct world *world, const struct history_row *row,
                                struct berth_error *error)
{
    struct engine_request *request = NULL;
    int code = world_open(world, row->words, &request, error);

    if (code < 0)
        return code;
    code = history_use(world, row, request, error);
    if (row->kind != HISTORY_KEEP)
        engine_request_close(world->engine, request);
    return code;
}

static inline int history_add(struct world *world, const struct history_row *row,
                              struct berth_error *error)
{
    struct device device = {.id = id_of(row->words), .host = row->words[0] == 'a'};
    uint32_t slot;

    return engine_device_add(world->engine, &device, &slot, error);
}

static inline int history_rules(struct world *world, const struct history_row *row,
                                struct berth_error *error)
{
    int code;

    world->settings.time_slice_tenants = (uint32_t)row->number;
    code = engine_set_rules(world->engine, &world->settings);
    return code < 0 ? error_set_memory(error) : code;
}

static inline int history_explain(struct world *world, const struct history_row *row,
                                  struct berth_error *error)
{
    struct text why = {0};
    int64_t start;
    int code = engine_explain(world->engine, row->id, &why, &start, error);

    text_finish(&why);
    return code;
}

/* Does a step whose call returns no result. */
static inline void history_tell(struct world *world, const struct history_row *row)
{
    struct load load = {.memory_free = load_figure_sampled(row->number, 1)};
    struct engine *engine = world->engine;
    uint32_t slot = (uint32_t)row->id;

    if (row->kind == HISTORY_ADVANCE)
        engine_advance(engine, row->number);
    else if (row->kind == HISTORY_BLOCK)
        engine_block(engine, slot, (enum block)row->number);
    else if (row->kind == HISTORY_UNBLOCK)
        engine_unblock(engine, slot, (enum block)row->number);
    else if (row->kind == HISTORY_SICK || row->kind == HISTORY_WELL)
        engine_device_health(engine, slot, row->kind == HISTORY_SICK ? HEALTH_SICK : HEALTH_OK);
    else if (row->kind == HISTORY_GONE)
        engine_device_gone(engine, slot);
    else if (row->kind == HISTORY_LOAD)
        engine_set_load(engine, slot, &load);
    else
        engine_set_work(engine, slot, (uint64_t)row->number, 0);
}

/* Does a step. Returns the engine's result: at least 0, or an error. */
static inline int history_do(struct world *world, const struct history_row *row,
                             struct berth_error *error)
{
    struct engine *engine = world->engine;

    if (history_is_claim(row))
        return history_claim(world, row, error);
    switch (row->kind) {
    case HISTORY_CANCEL:
        return engine_cancel(engine, row->id, error);
    case HISTORY_RELEASE:
        return engine_release(engine, row->id, error);
    case HISTORY_DRAIN:
        return engine_drain_lease(engine, row->id, error);
    case HISTORY_VACATE:
        return engine_vacated(engine, row->id, error);
    case HISTORY_EXTEND:
        return engine_extend(engine, row->id, row->number, error);
    case HISTORY_RETURN:
        return engine_return(engine, row->id, row->number, TIME_NEVER, error);
    case HISTORY_RULES:
        return history_rules(world, row, error);
    case HISTORY_ADD:
        return history_add(world, row, error);
    case HISTORY_EXPLAIN:
        return history_explain(world, row, error);
    default:
        history_tell(world, row);
        return 0;
    }
}

/* Does step number `step`. Returns false after the last one. */
static inline bool history_step(struct world *world, unsigned step)
{
    const struct history_row *row = &history_rows[step];

    if (row->kind == HISTORY_END)
        return false;
    (void)history_do(world, row, NULL);
    return true;
}

#endif
