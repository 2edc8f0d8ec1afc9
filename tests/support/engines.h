/* SPDX-License-Identifier: Apache-2.0
 *
 * Engines for tests: made in a line, requests by name and value, and what they told in words.
 */
#ifndef TESTS_ENGINES_H
#define TESTS_ENGINES_H

#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "engine/engine.h"
#include "support/machines.h"

struct world {
    struct engine *engine;
    struct text told; /* since the last check: one line for each event, without times */
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
        [EVENT_PICKED] = "picked",
    };
    struct text *out = &((struct world *)context)->told;

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

/* An engine of these devices (see machine_add_ids), of the machine's facts and of settings. */
static inline void world_init_with(struct world *world, struct machine *machine,
                                   const struct engine_settings *settings)
{
    struct event_sink sink = {.tell = world_tell, .context = world, .wanted = EVENT_ALL};

    *world = (struct world){0};
    assert_int_equal(engine_create(machine, settings, &world->engine, NULL), 0);
    engine_listen(world->engine, &sink);
}

static inline void world_init(struct world *world, const char *ids)
{
    struct machine machine = {0};

    machine_add_ids(&machine, ids);
    world_init_with(world, &machine, NULL);
}

static inline void world_finish(struct world *world)
{
    engine_destroy(world->engine);
    text_finish(&world->told);
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

/* Sets one member of a request: "gpus=2-4", "sharing=mps", "time=10". */
static inline void world_set(struct request *request, const char *word)
{
    const char *value = strchr(word, '=');
    size_t length = value == NULL ? strlen(word) : (size_t)(value - word);
    uint64_t number = value == NULL ? 0 : strtoull(value + 1, NULL, 10);

    value = value == NULL ? "" : value + 1;
#define WORD(name) (strlen(name) == length && strncmp(word, name, length) == 0)
    if (WORD("gpus"))
        assert_int_equal(device_count_parse(value, &request->gpus, NULL), 0);
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
    else if (WORD("min-free"))
        request->min_free = optional_number_of(number);
    else if (WORD("cpus"))
        request->cpus = optional_number_of(number);
    else if (WORD("time"))
        request->time = optional_number_of(number);
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
        fail_msg("%s: no such word", word);
#undef WORD
}

/* A compiled request from words with blanks between ("gpus=2 time=10"), NULL: one device. It lives
 * as long as the world unless closed. */
static inline struct engine_request *world_request_by(struct world *world, const char *words,
                                                      const struct party *party)
{
    struct engine_request *compiled;
    struct request request;
    char *copy = copy_of(words == NULL ? "" : words);
    char *rest = copy;
    char *word;

    request_init(&request);
    while ((word = strsep(&rest, " ")) != NULL) {
        if (*word != '\0')
            world_set(&request, word);
    }
    assert_int_equal(engine_request_open(world->engine, &request, party, NULL, &compiled, NULL), 0);
    request_finish(&request);
    free(copy);
    return compiled;
}

static inline struct engine_request *world_request(struct world *world, const char *words)
{
    return world_request_by(world, words, NULL);
}

#endif
