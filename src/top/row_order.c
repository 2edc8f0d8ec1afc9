/* SPDX-License-Identifier: Apache-2.0 */
#include "top/row_order.h"

#include <inttypes.h>
#include <string.h>

#include "base/text/text.h"
#include "view/view_facts.h"

static struct row_key number_key(int64_t number)
{
    return (struct row_key){.known = true, .number = number};
}

static struct row_key optional_key(struct optional_number number)
{
    return (struct row_key){.known = number.known, .number = view_time_from_wire(number.value)};
}

static struct row_key figure_key(const struct figure *figure)
{
    return (struct row_key){.known = figure->known, .number = figure->value};
}

static struct row_key text_key(const char *text, bool *ret_failed)
{
    struct row_key key = {.known = text != NULL};

    if (text != NULL) {
        key.text = strdup(text);
        *ret_failed |= key.text == NULL;
    }
    return key;
}

/* Returns the rank of a state. States that need attention come first. */
static int64_t state_rank(enum slot_state state)
{
    static const enum slot_state ranks[] = {
        SLOT_STATE_SICK,      SLOT_STATE_GONE,   SLOT_STATE_SQUATTED, SLOT_STATE_DRAINING,
        SLOT_STATE_ELSEWHERE, SLOT_STATE_LEASED, SLOT_STATE_SHARED,   SLOT_STATE_FREE,
        SLOT_STATE_ASLEEP,    SLOT_STATE_DRAINED};

    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        if (ranks[i] == state)
            return (int64_t)i;
    }
    return -1;
}

static struct row_key device_key(const struct slot_info *slot, enum view_column column,
                                 bool *ret_failed)
{
    switch (column) {
    case VIEW_COLUMN_MODEL:
        return text_key(view_device_model(slot->device), ret_failed);
    case VIEW_COLUMN_LOAD:
        return figure_key(&slot->device->load.utilization);
    case VIEW_COLUMN_MEMORY:
        return optional_key(view_memory_used(slot->device));
    case VIEW_COLUMN_TEMPERATURE:
        return figure_key(&slot->device->load.temperature);
    case VIEW_COLUMN_POWER:
        return figure_key(&slot->device->load.power);
    case VIEW_COLUMN_STATE:
        return number_key(state_rank(slot->state));
    default:
        return (struct row_key){0};
    }
}

static struct row_key lease_key(const struct lease_info *lease, enum view_column column,
                                const struct pool_view *view, struct user_names *users,
                                bool *ret_failed)
{
    switch (column) {
    case VIEW_COLUMN_LEASE:
        return number_key(view_time_from_wire(lease->id));
    case VIEW_COLUMN_USER:
        return text_key(user_names_find(users, lease->uid), ret_failed);
    case VIEW_COLUMN_HELD:
        return number_key(view_time_between(lease->granted, view->snapshot.time));
    case VIEW_COLUMN_LEFT:
        return optional_key(lease->expires);
    case VIEW_COLUMN_JOB:
        return text_key(lease->name != NULL ? lease->name : lease->command, ret_failed);
    case VIEW_COLUMN_DEVICES:
        return number_key((int64_t)lease->devices.count);
    case VIEW_COLUMN_IDLE:
        return optional_key(lease->idle);
    default:
        return (struct row_key){0};
    }
}

static struct row_key claim_key(const struct claim_info *claim, enum view_column column,
                                const struct pool_view *view, struct user_names *users,
                                bool *ret_failed)
{
    switch (column) {
    case VIEW_COLUMN_QUEUE:
        return number_key(claim->position);
    case VIEW_COLUMN_CLAIM:
        return number_key(view_time_from_wire(claim->id));
    case VIEW_COLUMN_USER:
        return text_key(user_names_find(users, claim->uid), ret_failed);
    case VIEW_COLUMN_WAITING:
        return number_key(view_time_between(claim->since, view->snapshot.time));
    case VIEW_COLUMN_STARTS:
        return optional_key(claim->estimate);
    case VIEW_COLUMN_JOB:
        return text_key(claim->name != NULL ? claim->name : claim->command, ret_failed);
    default:
        return (struct row_key){0};
    }
}

struct row_key row_order_key(const struct top_row *row, enum view_column column,
                             const struct pool_view *view, struct user_names *users,
                             bool *ret_failed)
{
    const struct pool_snapshot *snapshot = &view->snapshot;
    struct row_key key = {0};

    if (row->claim != TOP_NOTHING)
        return claim_key(&snapshot->claims.items[row->claim], column, view, users, ret_failed);
    if (row->slot != TOP_NOTHING)
        key = device_key(&snapshot->slots.items[row->slot], column, ret_failed);
    if (!key.known && row->lease != TOP_NOTHING)
        key = lease_key(&snapshot->leases.items[row->lease], column, view, users, ret_failed);
    return key;
}

static int compare_keys(const struct row_key *a, const struct row_key *b, bool falling)
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
    return compare_keys(one, other, false);
}

static int compare_falling(const void *one, const void *other)
{
    return compare_keys(one, other, true);
}

void row_order_sort(struct row_key *keys, size_t count, bool falling)
{
    if (count > 0)
        qsort(keys, count, sizeof(*keys), falling ? compare_falling : compare_rising);
}

/* Appends a field and a separator, so that no word matches across two fields. */
static void append_field(struct text *fields, const char *field)
{
    if (field != NULL)
        text_append(fields, field);
    text_append_char(fields, '\n');
}

static void append_lease(struct text *fields, const struct lease_info *lease,
                         struct user_names *users)
{
    text_append_format(fields, "%" PRIu64 "\n", lease->id);
    append_field(fields, user_names_find(users, lease->uid));
    append_field(fields, lease->name);
    append_field(fields, lease->command);
}

/* Appends the texts of a device, of its leases, and of its squatters. */
static void append_device(struct text *fields, const struct pool_view *view, size_t place,
                          struct user_names *users)
{
    const struct slot_info *slot = &view->snapshot.slots.items[place];
    const struct device_process *process;

    append_field(fields, device_id_format(slot->device->id).text);
    append_field(fields, slot->device->name);
    append_field(fields, choice_name(slot_state_names, (int)slot->state));
    if (slot->state == SLOT_STATE_SHARED)
        append_field(fields, choice_name(sharing_names, (int)slot->sharing));
    append_field(fields, slot->reason);
    vector_for_each (process, &slot->device->processes) {
        if (!process->squats)
            continue;
        append_field(fields, user_names_find_optional(users, process->uid));
        append_field(fields, process->command);
    }
    for (size_t use = pool_view_first_use(view, place);
         use < view->uses.count && view->uses.items[use].slot == place; use++)
        append_lease(fields, &view->snapshot.leases.items[view->uses.items[use].lease], users);
}

static void append_claim(struct text *fields, const struct claim_info *claim,
                         struct user_names *users)
{
    text_append_format(fields, "%" PRIu64 "\n", claim->id);
    append_field(fields, user_names_find(users, claim->uid));
    append_field(fields, claim->name);
    append_field(fields, claim->command);
    append_field(fields, claim->request);
}

static void append_row(struct text *fields, const struct top_row *row, const struct pool_view *view,
                       struct user_names *users)
{
    const struct device_id *id;

    if (row->claim != TOP_NOTHING) {
        append_claim(fields, &view->snapshot.claims.items[row->claim], users);
    } else if (row->slot != TOP_NOTHING) {
        append_device(fields, view, row->slot, users);
    } else {
        append_lease(fields, &view->snapshot.leases.items[row->lease], users);
        vector_for_each (id, &view->snapshot.leases.items[row->lease].devices)
            append_field(fields, device_id_format(*id).text);
    }
}

bool row_order_matches_filter(const struct top_row *row, const char *filter,
                              const struct pool_view *view, struct user_names *users,
                              bool *ret_failed)
{
    char words[TOP_FILTER_MAX + 1];
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
