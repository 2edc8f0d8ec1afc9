/* SPDX-License-Identifier: Apache-2.0 */
#include "top/row_order.h"

#include <inttypes.h>
#include <string.h>

#include "base/text/text.h"
#include "view/judge.h"

static struct order_key key_of_number(int64_t number)
{
    return (struct order_key){.known = true, .number = number};
}

static struct order_key key_of_optional(struct optional_number number)
{
    return (struct order_key){.known = number.known, .number = view_time(number.value)};
}

static struct order_key key_of_figure(const struct figure *figure)
{
    return (struct order_key){.known = figure->known, .number = figure->value};
}

static struct order_key key_of_text(const char *text, bool *ret_failed)
{
    struct order_key key = {.known = text != NULL};

    if (text != NULL) {
        key.text = strdup(text);
        *ret_failed |= key.text == NULL;
    }
    return key;
}

/* What needs somebody comes first. */
static int64_t rank_of_state(enum wire_state state)
{
    static const enum wire_state ranks[] = {
        WIRE_STATE_SICK,      WIRE_STATE_GONE,   WIRE_STATE_SQUATTED, WIRE_STATE_DRAINING,
        WIRE_STATE_ELSEWHERE, WIRE_STATE_LEASED, WIRE_STATE_SHARED,   WIRE_STATE_FREE,
        WIRE_STATE_ASLEEP,    WIRE_STATE_DRAINED};

    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        if (ranks[i] == state)
            return (int64_t)i;
    }
    return -1;
}

static struct order_key key_of_device(const struct wire_slot *slot, enum view_column column,
                                      bool *ret_failed)
{
    switch (column) {
    case VIEW_COLUMN_MODEL:
        return key_of_text(view_model(slot->device), ret_failed);
    case VIEW_COLUMN_LOAD:
        return key_of_figure(&slot->device->load.utilization);
    case VIEW_COLUMN_MEMORY:
        return key_of_optional(view_memory_used(slot->device));
    case VIEW_COLUMN_TEMPERATURE:
        return key_of_figure(&slot->device->load.temperature);
    case VIEW_COLUMN_POWER:
        return key_of_figure(&slot->device->load.power);
    case VIEW_COLUMN_STATE:
        return key_of_number(rank_of_state(slot->state));
    default:
        return (struct order_key){0};
    }
}

static struct order_key key_of_lease(const struct wire_lease *lease, enum view_column column,
                                     const struct pool_view *view, struct user_names *users,
                                     bool *ret_failed)
{
    switch (column) {
    case VIEW_COLUMN_LEASE:
        return key_of_number(view_time(lease->id));
    case VIEW_COLUMN_USER:
        return key_of_text(user_names_find(users, lease->uid), ret_failed);
    case VIEW_COLUMN_HELD:
        return key_of_number(view_span(lease->granted, view->look.time));
    case VIEW_COLUMN_LEFT:
        return key_of_optional(lease->expires);
    case VIEW_COLUMN_JOB:
        return key_of_text(lease->name != NULL ? lease->name : lease->command, ret_failed);
    case VIEW_COLUMN_DEVICES:
        return key_of_number((int64_t)lease->devices.count);
    case VIEW_COLUMN_IDLE:
        return key_of_optional(lease->idle);
    default:
        return (struct order_key){0};
    }
}

static struct order_key key_of_claim(const struct wire_claim *claim, enum view_column column,
                                     const struct pool_view *view, struct user_names *users,
                                     bool *ret_failed)
{
    switch (column) {
    case VIEW_COLUMN_QUEUE:
        return key_of_number(claim->position);
    case VIEW_COLUMN_CLAIM:
        return key_of_number(view_time(claim->id));
    case VIEW_COLUMN_USER:
        return key_of_text(user_names_find(users, claim->uid), ret_failed);
    case VIEW_COLUMN_WAITING:
        return key_of_number(view_span(claim->since, view->look.time));
    case VIEW_COLUMN_STARTS:
        return key_of_optional(claim->estimate);
    case VIEW_COLUMN_JOB:
        return key_of_text(claim->name != NULL ? claim->name : claim->command, ret_failed);
    default:
        return (struct order_key){0};
    }
}

struct order_key order_key_of(const struct model_row *row, enum view_column column,
                              const struct pool_view *view, struct user_names *users,
                              bool *ret_failed)
{
    const struct wire_message *look = &view->look;
    struct order_key key = {0};

    if (row->claim != MODEL_NOTHING)
        return key_of_claim(&look->claims.items[row->claim], column, view, users, ret_failed);
    if (row->slot != MODEL_NOTHING)
        key = key_of_device(&look->slots.items[row->slot], column, ret_failed);
    if (!key.known && row->lease != MODEL_NOTHING)
        key = key_of_lease(&look->leases.items[row->lease], column, view, users, ret_failed);
    return key;
}

static int compare(const struct order_key *a, const struct order_key *b, bool falling)
{
    int order;

    if (a->known != b->known)
        return a->known ? -1 : 1;
    if (a->text != NULL && b->text != NULL)
        order = strcasecmp(a->text, b->text);
    else
        order = (a->number > b->number) - (a->number < b->number);
    if (!a->known || order == 0)
        return (a->place > b->place) - (a->place < b->place);
    return falling ? -order : order;
}

static int compare_rising(const void *one, const void *other)
{
    return compare(one, other, false);
}

static int compare_falling(const void *one, const void *other)
{
    return compare(one, other, true);
}

void order_sort(struct order_key *keys, size_t count, bool falling)
{
    if (count > 0)
        qsort(keys, count, sizeof(*keys), falling ? compare_falling : compare_rising);
}

/* Fields are apart, so that no word is found across two of them. */
static void append_field(struct text *fields, const char *field)
{
    if (field != NULL)
        text_append(fields, field);
    text_append_char(fields, '\n');
}

static void append_lease(struct text *fields, const struct wire_lease *lease,
                         struct user_names *users)
{
    text_append_format(fields, "%" PRIu64 "\n", lease->id);
    append_field(fields, user_names_find(users, lease->uid));
    append_field(fields, lease->name);
    append_field(fields, lease->command);
}

/* The device and all who use it, with a lease or without. */
static void append_device(struct text *fields, const struct pool_view *view, size_t place,
                          struct user_names *users)
{
    const struct wire_slot *slot = &view->look.slots.items[place];
    const struct device_process *process;

    append_field(fields, device_id_format(slot->device->id).text);
    append_field(fields, slot->device->name);
    append_field(fields, choice_name(wire_state_names, (int)slot->state));
    if (slot->state == WIRE_STATE_SHARED)
        append_field(fields, choice_name(sharing_names, (int)slot->sharing));
    append_field(fields, slot->reason);
    vector_for_each (process, &slot->device->processes) {
        if (!process->squats)
            continue;
        append_field(fields, user_names_find_known(users, process->uid));
        append_field(fields, process->command);
    }
    for (size_t use = pool_view_first_use(view, place);
         use < view->uses.count && view->uses.items[use].slot == place; use++)
        append_lease(fields, &view->look.leases.items[view->uses.items[use].lease], users);
}

static void append_claim(struct text *fields, const struct wire_claim *claim,
                         struct user_names *users)
{
    text_append_format(fields, "%" PRIu64 "\n", claim->id);
    append_field(fields, user_names_find(users, claim->uid));
    append_field(fields, claim->name);
    append_field(fields, claim->command);
    append_field(fields, claim->request);
}

static void append_row(struct text *fields, const struct model_row *row,
                       const struct pool_view *view, struct user_names *users)
{
    const struct device_id *id;

    if (row->claim != MODEL_NOTHING) {
        append_claim(fields, &view->look.claims.items[row->claim], users);
    } else if (row->slot != MODEL_NOTHING) {
        append_device(fields, view, row->slot, users);
    } else {
        append_lease(fields, &view->look.leases.items[row->lease], users);
        vector_for_each (id, &view->look.leases.items[row->lease].devices)
            append_field(fields, device_id_format(*id).text);
    }
}

bool order_row_passes(const struct model_row *row, const char *filter, const struct pool_view *view,
                      struct user_names *users, bool *ret_failed)
{
    char words[MODEL_FILTER_MAX + 1];
    struct text fields = {0};
    char *rest = words;
    char *word;
    bool passes = true;

    if (filter[0] == '\0')
        return true;
    memcpy(words, filter, sizeof(words));
    append_row(&fields, row, view, users);
    while (passes && (word = strsep(&rest, " ")) != NULL)
        passes = strcasestr(text_string(&fields), word) != NULL;
    *ret_failed |= text_failed(&fields);
    text_finish(&fields);
    return passes;
}
