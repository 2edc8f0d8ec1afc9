/* SPDX-License-Identifier: Apache-2.0 */
#include "view/view_facts.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"

int64_t view_time_between(int64_t from, int64_t to)
{
    int64_t span;

    if (to <= from)
        return 0;
    return __builtin_sub_overflow(to, from, &span) ? INT64_MAX : span;
}

struct quantity_text view_format_duration(int64_t from, int64_t to)
{
    int64_t span = view_time_between(from, to);

    return quantity_format_duration(span - span % DURATION_SECOND);
}

int64_t view_time_from_wire(uint64_t time)
{
    return time > INT64_MAX ? INT64_MAX : (int64_t)time;
}

const char *view_device_model(const struct device *device)
{
    static const char *const vendors[] = {"NVIDIA ", "AMD ", "Intel(R) ", "Intel ", "Apple "};

    for (size_t i = 0; device->name != NULL && i < COUNT(vendors); i++) {
        size_t length = strlen(vendors[i]);

        if (strncmp(device->name, vendors[i], length) == 0 && device->name[length] != '\0')
            return device->name + length;
    }
    return device->name;
}

struct optional_number view_memory_used(const struct device *device)
{
    const struct figure *free = &device->load.memory_free;
    uint64_t total = device->memory_total.value;

    if (!device->memory_total.known || !free->known || free->value < 0 ||
        (uint64_t)free->value > total)
        return (struct optional_number){0};
    return optional_number_of(total - (uint64_t)free->value);
}

void view_append_memory(struct text *out, const struct device *device, bool beside)
{
    struct quantity_text total = quantity_format_size(device->memory_total.value);
    struct optional_number used = view_memory_used(device);
    const char *unit = strchr(total.text, ' ');
    struct quantity_text part;
    char *part_unit;

    if (!device->memory_total.known)
        return;
    if (used.known) {
        part = quantity_format_size(used.value);
        part_unit = strchr(part.text, ' ');
        if (unit != NULL && part_unit != NULL && (strcmp(unit, part_unit) == 0 || used.value == 0))
            *part_unit = '\0';
        text_append_format(out, "%s/", part.text);
    } else if (beside) {
        text_append(out, "-/");
    }
    text_append(out, total.text);
}

void view_add_memory_cell(struct table *table, const struct device *device, bool beside)
{
    struct text memory = {0};

    view_append_memory(&memory, device, beside);
    table->failed |= text_failed(&memory);
    table_cell(table, memory.length == 0 ? NULL : text_string(&memory));
    text_finish(&memory);
}

const struct lease_info *view_find_lease(const struct pool_view *view, uint64_t id)
{
    const struct lease_info *lease;

    vector_for_each (lease, &view->snapshot.leases) {
        if (lease->id == id)
            return lease;
    }
    return NULL;
}

bool view_is_leftover(const struct pool_view *view, const struct slot_info *slot,
                      const struct device_process *process)
{
    const struct lease_info *lease;

    if (slot->state != SLOT_STATE_DRAINING && (slot->blocks & SLOT_BLOCK_DIRTY) == 0)
        return false;
    if (process->squats)
        return false;
    if (process->lease == 0)
        return !process->draws;
    lease = view_find_lease(view, process->lease);
    return lease == NULL || lease->draining;
}

bool view_is_squatted(const struct slot_info *slot)
{
    const struct device_process *process;

    vector_for_each (process, &slot->device->processes) {
        if (process->squats)
            return true;
    }
    return false;
}

bool view_append_hidden_use(struct text *out, const struct slot_info *slot)
{
    struct optional_number used = view_memory_used(slot->device);

    if (slot->state != SLOT_STATE_SQUATTED || view_is_squatted(slot) || !used.known)
        return false;
    text_append_format(out, "%s of %s's memory are in use, but its driver lists no process%s",
                       quantity_format_size(used.value).text,
                       device_id_format(slot->device->id).text,
                       slot->device->processes.count > 0 ? " that has it" : "");
    return true;
}

bool view_is_drained(const struct slot_info *slot)
{
    return slot->reason_time != 0 || (slot->blocks & SLOT_BLOCK_DRAINED) != 0;
}

struct view_census view_count_devices(const struct pool_view *view)
{
    struct view_census census = {0};
    const struct slot_info *slot;

    vector_for_each (slot, &view->snapshot.slots) {
        if (slot->device->partitioned || slot->state == SLOT_STATE_GONE)
            continue;
        census.devices++;
        if (pool_info_state_is_free(slot->state)) {
            census.free++;
        } else if (slot->state == SLOT_STATE_LEASED) {
            census.leased++;
        } else if (slot->state == SLOT_STATE_SHARED) {
            census.shared++;
            census.share_left += slot->share_used < SHARE_WHOLE;
        } else {
            census.others++;
        }
    }
    return census;
}

void view_append_pool_name(const struct pool_view *view, const struct pool_address *address,
                           struct text *out)
{
    const char *inventory = view->about.inventory;

    if (inventory == NULL)
        inventory = address->inventory;
    if (inventory != NULL)
        text_append_format(out, "pool of %s", inventory);
    else if (address->own)
        text_append(out, "your own pool");
    else if (pool_address_is_machine(address))
        text_append(out, "the machine's pool");
    else
        text_append_format(out, "pool at %s", address->socket);
}

struct quantity_text view_format_start(uint64_t estimate, int64_t past)
{
    int64_t left = view_time_between(past, view_time_from_wire(estimate));
    struct quantity_text start = {.text = "now"};

    if (left >= DURATION_SECOND)
        snprintf(start.text, sizeof(start.text), "in %.30s", view_format_duration(0, left).text);
    return start;
}

const char *view_device_note(const struct slot_info *slot)
{
    if (slot->device->health == HEALTH_SICK && slot->device->health_reason != NULL)
        return slot->device->health_reason;
    switch (slot->state) {
    case SLOT_STATE_SQUATTED:
        return view_is_squatted(slot) ? NULL : "in use without a lease";
    case SLOT_STATE_ELSEWHERE:
        return "held by another pool";
    case SLOT_STATE_DRAINED:
        return view_is_drained(slot) ? NULL : "out of service";
    case SLOT_STATE_GONE:
        return NULL;
    default:
        return slot->device->old ? "does not answer now" : NULL;
    }
}

enum style view_state_style(enum slot_state state)
{
    switch (state) {
    case SLOT_STATE_FREE:
        return STYLE_GOOD;
    case SLOT_STATE_LEASED:
    case SLOT_STATE_SHARED:
        return STYLE_PLAIN;
    case SLOT_STATE_SICK:
    case SLOT_STATE_GONE:
        return STYLE_BAD;
    case SLOT_STATE_ASLEEP:
        return STYLE_FAINT;
    default:
        return STYLE_WARNING;
    }
}

/* Without a warning, less than a minute is not idle: short pauses are normal. */
bool view_is_idle(const struct lease_info *lease)
{
    return lease->idle.known && (lease->idle_warned || lease->idle.value >= DURATION_MINUTE);
}

const char *view_claim_reason(const struct claim_info *claim)
{
    return claim->why == NULL || claim->why[0] == '\0' ? NULL : claim->why;
}
