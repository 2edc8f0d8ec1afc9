/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes an engine in one line, requests from names and values, and texts from the engine's events.
 */
#ifndef TESTS_ENGINES_H
#define TESTS_ENGINES_H

#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/quantity.h"
#include "engine/engine.h"
#include "engine/journal/journal.h"
#include "support/engine/machines.h"

struct world {
    struct engine *engine;
    struct engine_settings settings;
    struct text told;    /* one line for each event since the last check */
    bool with_times;     /* each line begins with the time: "@5 " */
    struct text journal; /* all events since the start, encoded */
    bool in_steps;       /* the test uses engine_steps.h; world_finish() checks the replay */
    bool has_limits;     /* limits are set; no event contains them */
};

static inline void world_write_slots(struct text *out, const struct engine_event *event)
{
    for (uint32_t i = 0; i < event->slot_count; i++)
        text_append_format(out, "%s%u", i == 0 ? ": slots " : ",", event->slots[i]);
}

static inline void world_tell(void *context, const struct engine_event *event)
{
    static const char *const reasons[] = {
        [REFUSAL_CANCELLED] = "cancelled",
        [REFUSAL_TIMED_OUT] = "timed out",
        [REFUSAL_IMPOSSIBLE] = "impossible",
        [REFUSAL_PARENT_ENDED] = "its lease ended",
    };
    static const char *const names[EVENT_TYPES] = {
        [EVENT_NOTICE] = "notice",     [EVENT_REVOKED] = "revoked",   [EVENT_EXPIRED] = "expired",
        [EVENT_DRAINING] = "draining", [EVENT_RELEASED] = "released", [EVENT_EXTENDED] = "extended",
        [EVENT_PICKED] = "picked",     [EVENT_RETURNED] = "returned",
    };
    struct world *world = context;
    struct text *out = &world->told;

    assert_int_equal(journal_encode(event, &world->journal), 0);
    if (world->with_times)
        text_append_format(out, "@%lld ", (long long)event->time);
    switch (event->type) {
    case EVENT_REQUEST:
    case EVENT_FORGOTTEN:
        text_append_format(out, "%s %llu", event->type == EVENT_REQUEST ? "request" : "forgotten",
                           (unsigned long long)event->request);
        break;
    case EVENT_QUEUED:
        text_append_format(out, "queued claim %llu", (unsigned long long)event->claim);
        break;
    case EVENT_GRANTED:
        text_append_format(out, "granted lease %llu", (unsigned long long)event->lease);
        if (event->claim != 0)
            text_append_format(out, " of claim %llu", (unsigned long long)event->claim);
        world_write_slots(out, event);
        break;
    case EVENT_REFUSED:
        text_append_format(out, "refused claim %llu: %s", (unsigned long long)event->claim,
                           reasons[event->reason]);
        break;
    case EVENT_DEVICE:
        text_append_format(out, "device in slot %u", event->slot);
        break;
    default:
        text_append_format(out, "%s lease %llu", names[event->type],
                           (unsigned long long)event->lease);
        break;
    }
    text_append_char(out, '\n');
}

/* Creates an engine from a machine or from ids (see machine_add_ids), with settings or the default.
 */
static inline void world_init_with(struct world *world, struct machine *machine,
                                   const struct engine_settings *settings)
{
    struct event_sink sink = {.notify = world_tell, .context = world, .wanted = EVENT_ALL};

    *world = (struct world){0};
    if (settings != NULL)
        world->settings = *settings;
    assert_int_equal(engine_create(machine, settings, &world->engine, NULL), 0);
    engine_set_sink(world->engine, &sink);
}

static inline void world_init_settings(struct world *world, const char *ids,
                                       const struct engine_settings *settings)
{
    struct machine machine = {0};

    machine_add_ids(&machine, ids);
    world_init_with(world, &machine, settings);
}

static inline void world_init(struct world *world, const char *ids)
{
    world_init_settings(world, ids, NULL);
}

/* Creates an engine with the same devices, hosts and settings, before its first event. */
static inline struct engine *world_twin(const struct world *world)
{
    const struct machine *machine = engine_machine(world->engine);
    struct engine_settings settings = world->settings;
    struct machine copy = {0};
    struct engine *twin;
    const struct device *device;
    const struct host *host;

    vector_for_each (device, &machine->devices) {
        struct device *place = machine_add(&copy, device->id);

        *place = *device;
        place->name = device->name == NULL ? NULL : copy_of(device->name);
        place->uuid = place->parent = place->cpus = place->health_reason = NULL;
        place->processes = (struct device_process_list){0};
        place->nodes = (struct string_list){0};
    }
    vector_for_each (host, &machine->hosts) {
        struct host *place = vector_append(&copy.hosts);

        assert_non_null(place);
        *place = (struct host){.cpus = host->cpus, .memory = host->memory};
    }
    settings.slots_max = engine_slots_max(world->engine);
    assert_int_equal(engine_create(&copy, &settings, &twin, NULL), 0);
    return twin;
}

static inline void world_record(void *context, const struct engine_event *event)
{
    assert_int_equal(journal_encode(event, context), 0);
}

/* Returns the engine's state as encoded events. The caller finishes it. */
static inline struct text engine_state(const struct engine *engine)
{
    struct text bytes = {0};
    struct event_sink sink = {.notify = world_record, .context = &bytes, .wanted = EVENT_ALL};

    assert_int_equal(engine_dump(engine, &sink), 0);
    assert_false(text_failed(&bytes));
    return bytes;
}

static inline void replay_bytes(struct engine *engine, const struct text *journal)
{
    for (size_t at = 0; at < journal->length;) {
        struct journal_record record = {0};
        struct berth_error error = {0};
        size_t used = 0;

        assert_int_equal(
            journal_decode(journal->bytes + at, journal->length - at, &record, &used, &error),
            JOURNAL_COMPLETE);
        if (engine_replay(engine, &record.event, &error) != 0)
            fail_msg("cannot replay the event at byte %zu: %s", at, error.message);
        journal_record_finish(&record);
        at += used;
    }
}

/* Returns the records of a journal as text. The caller finishes it. */
static inline struct text describe_bytes(const struct text *journal)
{
    struct text words = {0};

    for (size_t at = 0; at < journal->length;) {
        struct journal_record record = {0};
        size_t used = 0;

        assert_int_equal(
            journal_decode(journal->bytes + at, journal->length - at, &record, &used, NULL),
            JOURNAL_COMPLETE);
        journal_describe(&record.event, &words);
        text_append_char(&words, '\n');
        journal_record_finish(&record);
        at += used;
    }
    return words;
}

/* Checks that two engines are in the same state. */
static inline void check_same_state(const struct engine *one, const struct engine *other)
{
    struct text first = engine_state(one);
    struct text second = engine_state(other);

    if (first.length != second.length || memcmp(first.bytes, second.bytes, first.length) != 0) {
        struct text first_words = describe_bytes(&first);
        struct text second_words = describe_bytes(&second);

        assert_string_equal(text_string(&first_words), text_string(&second_words));
        fail_msg("the states differ, but their descriptions are equal");
    }
    text_finish(&first);
    text_finish(&second);
}

/* Checks that the events so far restore the state, that a dump restores it as well, and that a
 * restored engine makes no new decision. */
static inline void world_check_replay(struct world *world)
{
    struct text state = engine_state(world->engine);
    struct engine *twin = world_twin(world);

    assert_false(text_failed(&world->journal));
    replay_bytes(twin, &world->journal);
    engine_advance(twin, engine_now(world->engine));
    check_same_state(world->engine, twin);
    engine_destroy(twin);
    twin = world_twin(world);
    replay_bytes(twin, &state);
    check_same_state(world->engine, twin);
    if (!world->has_limits)
        engine_resume(twin);
    check_same_state(world->engine, twin);
    engine_destroy(twin);
    text_finish(&state);
}

/* Ends the world. After a test with engine_steps.h, first checks that its events can be replayed.
 */
static inline void world_finish(struct world *world)
{
    if (world->in_steps)
        world_check_replay(world);
    engine_destroy(world->engine);
    text_finish(&world->told);
    text_finish(&world->journal);
}

static inline void world_forget(struct world *world)
{
    text_clear(&world->told);
}

/* Macros, so that the report names the caller's line. */
#define check_told(world, wanted)                                 \
    do {                                                          \
        assert_string_equal(text_string(&(world)->told), wanted); \
        world_forget(world);                                      \
    } while (0)

#define check_why(world, claim, wanted, wanted_start)                                        \
    do {                                                                                     \
        struct text why_ = {0};                                                              \
        int64_t start_ = 0;                                                                  \
        assert_int_equal(engine_explain((world)->engine, (claim), &why_, &start_, NULL), 0); \
        assert_string_equal(text_string(&why_), wanted);                                     \
        assert_int_equal(start_, wanted_start);                                              \
        text_finish(&why_);                                                                  \
    } while (0)

static inline void world_set_vendor(struct request *request, const char *name)
{
    if (strcmp(name, "any") == 0) {
        request->vendor_rule = VENDOR_RULE_MIXED;
        return;
    }
    request->vendor_rule = VENDOR_RULE_EXACT;
    assert_int_equal(choice_parse(vendor_names, name, (int *)&request->vendor, NULL), 0);
}

/* Sets one member of a request: "gpus=2-4", "sharing=mps", "time=10". */
static inline void world_set(struct request *request, const char *word)
{
    const char *value = strchr(word, '=');
    size_t length = value == NULL ? strlen(word) : (size_t)(value - word);
    uint64_t number = value == NULL ? 0 : strtoull(value + 1, NULL, 10);

    value = value == NULL ? "" : value + 1;
#define WORD(name) (strlen(name) == length && strncmp(word, name, length) == 0)
    if (WORD("gpus"))
        assert_int_equal(request_parse_device_count(value, &request->gpus, NULL), 0);
    else if (WORD("replicas"))
        request->replicas = (uint32_t)number;
    else if (WORD("scheduling"))
        assert_int_equal(choice_parse(scheduling_names, value, (int *)&request->scheduling, NULL),
                         0);
    else if (WORD("sharing"))
        assert_int_equal(choice_parse(sharing_names, value, (int *)&request->sharing, NULL), 0);
    else if (WORD("priority"))
        assert_int_equal(choice_parse(priority_names, value, (int *)&request->priority, NULL), 0);
    else if (WORD("share")) /* thousandths */
        request->share = optional_number_of(number * 1000);
    else if (WORD("memory"))
        request->memory = optional_number_of(number);
    else if (WORD("pipe"))
        request->mps_pipe_dir = copy_of(value);
    else if (WORD("log"))
        request->mps_log_dir = copy_of(value);
    else if (WORD("min-free"))
        request->min_free = optional_number_of(number);
    else if (WORD("cpus"))
        request->cpus = optional_number_of(number);
    else if (WORD("host-memory"))
        request->host_memory = optional_number_of(number);
    else if (WORD("min-memory"))
        request->min_memory = optional_number_of(number);
    else if (WORD("min-cap"))
        assert_int_equal(capability_parse(value, &request->min_cap, NULL), 0);
    else if (WORD("model"))
        request->model = copy_of(value);
    else if (WORD("vendor"))
        world_set_vendor(request, value);
    else if (WORD("ranks"))
        request->ranks = true;
    else if (WORD("time")) /* nanoseconds, or seconds: "10s" */
        request->time =
            optional_number_of(strchr(value, 's') == NULL ? number : number * UINT64_C(1000000000));
    else if (WORD("device"))
        assert_int_equal(device_id_list_parse(&request->wanted, value, NULL), 0);
    else if (WORD("avoid"))
        assert_int_equal(device_id_list_parse(&request->avoided, value, NULL), 0);
    else if (WORD("policy"))
        request->policy = copy_of(value);
    else if (WORD("affinity"))
        request->affinity = copy_of(value);
    else if (WORD("opportunistic"))
        request->opportunistic = true;
    else
        fail_msg("%s: no such member of a request", word);
#undef WORD
}

/* A party that owns its lists. */
struct world_party {
    struct party party;
    uint32_t groups[4];
    struct device_id_list mask;
};

/* Sets one member of a party: "uid=5", "group=7" (again for another), "mask=nvidia0,nvidia1",
 * "parent=3". Returns whether the word is one of these. */
static inline bool world_set_party(struct world_party *of, const char *word)
{
    const char *value = strchr(word, '=');
    uint64_t number = value == NULL ? 0 : strtoull(value + 1, NULL, 10);

    if (strncmp(word, "uid=", 4) == 0) {
        of->party.uid = (uint32_t)number;
    } else if (strncmp(word, "parent=", 7) == 0) {
        of->party.parent = number;
    } else if (strncmp(word, "group=", 6) == 0) {
        assert_true(of->party.group_count < 4);
        of->party.groups = of->groups;
        of->groups[of->party.group_count++] = (uint32_t)number;
    } else if (strncmp(word, "mask=", 5) == 0) {
        assert_int_equal(device_id_list_parse(&of->mask, value + 1, NULL), 0);
        of->party.mask = &of->mask;
    } else {
        return false;
    }
    return true;
}

/* A request and its party, from words with blanks between them ("gpus=2 time=10 uid=5"); NULL: a
 * request for one device. The caller finishes it, and must not move it. */
struct world_asking {
    struct request what;
    struct world_party own;
    const struct party *party; /* NULL: the words name none */
};

static inline void asking_init(struct world_asking *asking, const char *words)
{
    char *copy = copy_of(words == NULL ? "" : words);
    char *rest = copy;
    char *word;

    *asking = (struct world_asking){0};
    request_init(&asking->what);
    while ((word = strsep(&rest, " ")) != NULL) {
        if (*word == '\0')
            continue;
        if (world_set_party(&asking->own, word))
            asking->party = &asking->own.party;
        else
            world_set(&asking->what, word);
    }
    free(copy);
}

static inline void asking_finish(struct world_asking *asking)
{
    request_finish(&asking->what);
    vector_finish(&asking->own.mask);
}

/* Opens a request from words. Its party is that of the words or, if they name none, `party`.
 * Returns the result of engine_request_open(). */
static inline int world_open_by(struct world *world, const char *words, const struct party *party,
                                struct engine_request **ret_request, struct berth_error *error)
{
    struct world_asking asking;
    int code;

    asking_init(&asking, words);
    code =
        engine_request_open(world->engine, &asking.what,
                            asking.party != NULL ? asking.party : party, NULL, ret_request, error);
    asking_finish(&asking);
    return code;
}

static inline int world_open(struct world *world, const char *words,
                             struct engine_request **ret_request, struct berth_error *error)
{
    return world_open_by(world, words, NULL, ret_request, error);
}

/* Opens a request from words, which must be valid. It stays open as long as the world exists,
 * unless the caller closes it. */
static inline struct engine_request *world_request_by(struct world *world, const char *words,
                                                      const struct party *party)
{
    struct engine_request *compiled = NULL;
    struct berth_error error = {0};

    if (world_open_by(world, words, party, &compiled, &error) != 0)
        fail_msg("%s: %s", words != NULL ? words : "", error.message);
    return compiled;
}

static inline struct engine_request *world_request(struct world *world, const char *words)
{
    return world_request_by(world, words, NULL);
}

#endif
