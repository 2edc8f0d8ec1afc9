/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/text/choice.h"
#include "base/text/quantity.h"
#include "base/text/utf8.h"
#include "engine/journal/journal.h"
#include "model/machine/device.h"

enum { TIME_DECIMALS = 9 };

static const struct choice event_names[] = {
    {"request", EVENT_REQUEST},
    {"forgotten", EVENT_FORGOTTEN},
    {"queued", EVENT_QUEUED},
    {"granted", EVENT_GRANTED},
    {"refused", EVENT_REFUSED},
    {"notice", EVENT_NOTICE},
    {"revoked", EVENT_REVOKED},
    {"expired", EVENT_EXPIRED},
    {"draining", EVENT_DRAINING},
    {"released", EVENT_RELEASED},
    {"extended", EVENT_EXTENDED},
    {"device", EVENT_DEVICE},
    {"picked", EVENT_PICKED},
    {"slot", EVENT_SLOT},
    {"counters", EVENT_COUNTERS},
    {"returned", EVENT_RETURNED},
    {0},
};

static const struct choice refusal_names[] = {
    {"cancelled", REFUSAL_CANCELLED},
    {"timed out", REFUSAL_TIMED_OUT},
    {"impossible", REFUSAL_IMPOSSIBLE},
    {"parent ended", REFUSAL_PARENT_ENDED},
    {0},
};

static const struct choice block_names[] = {
    {"squatted", BLOCK_SQUATTED},   {"dirty", BLOCK_DIRTY},   {"drained", BLOCK_DRAINED},
    {"elsewhere", BLOCK_ELSEWHERE}, {"asleep", BLOCK_ASLEEP}, {0},
};

const char *journal_name(enum event_type type)
{
    return choice_name(event_names, (int)type);
}

static void append_time(struct text *out, const char *lead, int64_t time)
{
    text_append(out, lead);
    text_append(out, quantity_format_decimal(time, TIME_DECIMALS).text);
}

/* Appends the end of a time limit or a timeout; nothing if there is none. */
static void append_until(struct text *out, int64_t time)
{
    if (time != TIME_NEVER)
        append_time(out, ", until ", time);
}

static void append_choice(struct text *out, const char *lead, const struct choice *names, int value)
{
    const char *name = choice_name(names, value);

    text_append(out, lead);
    if (name != NULL)
        text_append(out, name);
    else
        text_append_format(out, "%d", value);
}

static void append_list(struct text *out, const char *lead, const uint32_t *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_append_format(out, "%s%" PRIu32, i == 0 ? lead : ",", items[i]);
}

static void append_text(struct text *out, const char *lead, const char *string)
{
    if (string == NULL)
        return;
    text_append(out, lead);
    utf8_append_inert(out, string);
}

static void append_party(struct text *out, const struct party *party)
{
    const struct device_id *id;

    text_append_format(out, " of uid %" PRIu32, party->uid);
    append_list(out, ", groups ", party->groups, party->group_count);
    if (party->parent != 0)
        text_append_format(out, ", within lease %" PRIu64, party->parent);
    if (party->mask == NULL)
        return;
    text_append(out, party->mask->count == 0 ? ", masked to nothing" : ", masked to ");
    vector_for_each (id, party->mask)
        text_append_format(out, "%s%s", id == party->mask->items ? "" : ",",
                           device_id_format(*id).text);
}

/* Appends the members that request_describe() leaves out because they do not describe devices. */
static void append_manner(struct text *out, const struct request *what)
{
    if (what->scheduling != SCHEDULING_UNSAID)
        append_choice(out, ", ", scheduling_names, (int)what->scheduling);
    if (what->priority != PRIORITY_UNSAID)
        append_choice(out, ", priority ", priority_names, (int)what->priority);
    append_text(out, ", policy ", what->policy);
    append_text(out, ", affinity ", what->affinity);
    text_append(out, what->opportunistic ? ", opportunistic" : "");
    text_append(out, what->ranks ? ", ranks" : "");
    text_append(out, what->or_cpu ? ", or on the CPU" : "");
    text_append(out, what->nonblock ? ", not waiting" : "");
    if (what->wait.known)
        text_append_format(out, ", waiting %" PRIu64 " ns", what->wait.value);
    append_text(out, ", called ", what->name);
}

static void append_device(struct text *out, const struct engine_event *event)
{
    const struct choice *block;

    text_append(out, event->present ? ": present" : ": gone");
    if (event->health != HEALTH_UNKNOWN)
        append_choice(out, ", ", health_names, event->health);
    for (block = block_names; block->name != NULL; block++) {
        if ((event->blocks & (uint32_t)block->value) != 0)
            text_append_format(out, ", %s", block->name);
    }
}

/* Appends the ids in the event. */
static void append_numbers(struct text *out, const struct engine_event *event)
{
    if (event->type == EVENT_DEVICE || event->type == EVENT_SLOT)
        text_append_format(out, " %" PRIu32, event->slot);
    if (event->lease != 0)
        text_append_format(out, " lease %" PRIu64, event->lease);
    if (event->claim != 0)
        text_append_format(out, "%s claim %" PRIu64, event->lease != 0 ? " of" : "", event->claim);
    if (event->request != 0)
        text_append_format(out, "%s %" PRIu64, event->type == EVENT_REQUEST ? "" : " request",
                           event->request);
}

static void append_details(struct text *out, const struct engine_event *event)
{
    switch (event->type) {
    case EVENT_REQUEST:
        if (event->party != NULL)
            append_party(out, event->party);
        if (event->what != NULL) {
            text_append(out, ": ");
            request_describe(event->what, out);
            append_manner(out, event->what);
        }
        if (event->share != 0)
            text_append_format(out, ", taking %" PRIu32 " millionths of each", event->share);
        break;
    case EVENT_QUEUED:
    case EVENT_RETURNED:
        append_until(out, event->deadline);
        break;
    case EVENT_GRANTED:
    case EVENT_NOTICE:
    case EVENT_EXTENDED:
        append_until(out, event->expires);
        break;
    case EVENT_REFUSED:
        append_choice(out, ": ", refusal_names, (int)event->reason);
        break;
    case EVENT_DEVICE:
        append_device(out, event);
        break;
    case EVENT_SLOT:
        text_append_format(out, ": stamp %" PRIu64 ", served %" PRIu64 ", affinity %" PRIu64,
                           event->stamp, event->served, event->affinity);
        break;
    default:
        break;
    }
}

void journal_describe(const struct engine_event *event, struct text *out)
{
    const char *name = journal_name(event->type);

    append_time(out, "", event->time);
    if (name == NULL) {
        text_append_format(out, " unknown type %d", (int)event->type);
        return;
    }
    text_append_format(out, " %s", name);
    append_numbers(out, event);
    append_list(out, ": slots ", event->slots, event->slot_count);
    if (event->replicas > 1)
        text_append_format(out, " in %" PRIu32 " replicas", event->replicas);
    append_details(out, event);
}
