/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the engine's events as bytes, and restores an engine from them (promise 9).
 */
#include <inttypes.h>
#include <string.h>

#include "engine/journal/journal.h"
#include "promises/run.h"

/* Adds the bytes of the journal from `at` on to the fingerprint. */
static void update_fingerprint(struct run *run, size_t at)
{
    for (; at < run->journal.length; at++)
        run->fingerprint =
            (run->fingerprint ^ (uint8_t)run->journal.bytes[at]) * UINT64_C(0x100000001B3);
}

void run_log(struct run *run, const struct engine_event *event)
{
    size_t at = run->journal.length;

    if (journal_encode(event, &run->journal) < 0)
        run_blame(run, 9, "cannot encode event %d at %" PRId64, event->type, event->time);
    run->event_count++;
    update_fingerprint(run, at);
    if (run->trace == NULL)
        return;
    text_append_format(run->trace, "  %" PRIu32 ": ",
                       run->operation == NULL ? 0 : run->operation->number);
    journal_describe(event, run->trace);
    text_append(run->trace, "\n");
}

struct dumping {
    struct text *out;
    size_t count;
    bool failed;
};

static void tell_dump(void *context, const struct engine_event *event)
{
    struct dumping *dumping = context;

    if (journal_encode(event, dumping->out) < 0)
        dumping->failed = true;
    dumping->count++;
}

size_t run_dump(struct run *run, struct engine *engine, struct text *out)
{
    struct dumping dumping = {.out = out};

    if (engine_dump(engine, &(struct event_sink){.notify = tell_dump,
                                                 .context = &dumping,
                                                 .wanted = EVENT_ALL}) < 0 ||
        dumping.failed)
        run_blame(run, 9, "cannot dump the state");
    return dumping.count;
}

/* Sets the limits, reserved devices and ranks again. The events do not contain them. */
static void tell_again(const struct run *run, struct engine *engine)
{
    const struct model *model = &run->model;

    for (uint32_t i = 0; i < USERS; i++)
        engine_limit_user(engine, FIRST_UID + i, model->user_limits[i], NULL);
    for (uint32_t i = 0; i < GROUPS; i++)
        engine_limit_group(engine, i + 1, model->group_limits[i], NULL);
    for (uint32_t slot = 0; slot < run->plan->planned; slot++) {
        run_reserve(engine, slot, &model->devices[slot]);
        engine_set_rank(engine, slot, model->devices[slot].rank);
    }
}

/* Sets all figures of the devices again. The engine then forgets the picks that it counted since
 * their last samples. */
static void tell_figures(const struct run *run, struct engine *engine)
{
    for (uint32_t slot = 0; slot < run->plan->planned; slot++) {
        const struct model_device *device = &run->model.devices[slot];

        if (!device->here)
            continue;
        run_load(run, engine, slot);
        engine_set_work(engine, slot, device->queued, device->active);
        engine_set_weight(engine, slot, device->weight);
    }
}

static void replay_all(struct run *run, struct engine *engine)
{
    struct berth_error error = BERTH_ERROR_INIT;
    const char *bytes = text_string(&run->journal);
    size_t left = run->journal.length;

    for (size_t event = 0; event < run->event_count; event++) {
        struct journal_record record = {0};
        size_t used = 0;

        if (journal_decode(bytes, left, &record, &used, &error) != JOURNAL_COMPLETE) {
            run_blame(run, 9, "cannot decode event %zu of %zu: %s", event + 1, run->event_count,
                      error.message);
            return;
        }
        if (engine_replay(engine, &record.event, &error) < 0)
            run_blame(run, 9, "cannot replay event %zu of %zu (%s): %s", event + 1,
                      run->event_count, journal_name(record.event.type), error.message);
        journal_record_finish(&record);
        if (run->verdict.promise != 0)
            return;
        bytes += used;
        left -= used;
    }
}

/* Blames the engine with a description of the first records in which two dumps differ. */
static void blame_difference(struct run *run, const struct text *one, const struct text *other)
{
    const struct text *texts[] = {one, other};
    struct text words[2] = {{0}, {0}};
    size_t at = 0;
    bool same = true;

    while (same) {
        size_t used[2] = {0, 0};

        for (size_t i = 0; i < 2; i++) {
            struct journal_record record = {0};

            text_clear(&words[i]);
            if (at < texts[i]->length &&
                journal_decode(texts[i]->bytes + at, texts[i]->length - at, &record, &used[i],
                               NULL) == JOURNAL_COMPLETE)
                journal_describe(&record.event, &words[i]);
            journal_record_finish(&record);
        }
        same = used[0] > 0 && used[0] == used[1] &&
               memcmp(one->bytes + at, other->bytes + at, used[0]) == 0;
        at += used[0];
    }
    run_blame(run, 9, "the restored state differs: was \"%s\", is \"%s\"", text_string(&words[0]),
              text_string(&words[1]));
    text_finish(&words[0]);
    text_finish(&words[1]);
}

static struct engine *make_again(struct run *run)
{
    const struct plan *plan = run->plan;
    struct engine *engine = NULL;
    struct machine machine;
    unsigned here = 0;

    while (here < plan->planned && run->model.devices[here].here)
        here++;
    machine = plan_machine(plan, here);
    if (run_create(plan, &run->model.rules, &machine, &engine) < 0)
        run_blame(run, 9, "cannot create a new engine");
    machine_finish(&machine);
    return engine;
}

/* Closes all handles, because they belong to the old engine. Requests that are not in use are
 * forgotten with them. */
static void close_all(struct run *run)
{
    for (size_t i = 0; i < REQUESTS_MAX; i++) {
        if (run->requests[i].handle != NULL)
            run_close(run, &run->requests[i]);
    }
}

/* Replaces all events so far with those of a dump. */
static void forget_events(struct run *run, const struct text *state, size_t count)
{
    text_clear(&run->journal);
    text_append_bytes(&run->journal, state->bytes, state->length);
    run->event_count = count;
}

void run_restore(struct run *run, bool from_state)
{
    struct text was = {0};
    struct text is = {0};
    struct engine *engine;
    size_t events;

    close_all(run);
    tell_figures(run, run->engine);
    events = run_dump(run, run->engine, &was);
    if (from_state)
        forget_events(run, &was, events);
    events = run->event_count;
    engine = make_again(run);
    if (engine != NULL) {
        tell_again(run, engine);
        replay_all(run, engine);
        engine_pause(engine);
        tell_figures(run, engine);
        if (run->verdict.promise == 0) {
            engine_set_sink(engine, &run->sink);
            engine_advance(engine, run->model.now);
            engine_resume(engine);
        }
        run_dump(run, engine, &is);
        if (run->event_count != events)
            run_blame(run, 9, "a restored engine made a new decision");
        if (was.length != is.length || memcmp(was.bytes, is.bytes, was.length) != 0)
            blame_difference(run, &was, &is);
        engine_destroy(run->engine);
        run->engine = engine;
    }
    text_finish(&was);
    text_finish(&is);
    run->tally->restores++;
}
