/* SPDX-License-Identifier: Apache-2.0
 *
 * A look at a pool for people: the headline, and what follows it.
 */
#include <string.h>

#include "base/count.h"
#include "base/utf8.h"
#include "cli/status_output.h"

int64_t status_span(int64_t from, int64_t to)
{
    int64_t span;

    if (to <= from)
        return 0;
    return __builtin_sub_overflow(to, from, &span) ? INT64_MAX : span;
}

struct quantity_text status_duration(int64_t from, int64_t to)
{
    int64_t span = status_span(from, to);

    return quantity_format_duration(span - span % DURATION_SECOND);
}

int64_t status_time(uint64_t time)
{
    return time > INT64_MAX ? INT64_MAX : (int64_t)time;
}

const char *status_model(const struct device *device)
{
    static const char *const vendors[] = {"NVIDIA ", "AMD ", "Intel(R) ", "Intel ", "Apple "};

    for (size_t i = 0; device->name != NULL && i < COUNT(vendors); i++) {
        size_t length = strlen(vendors[i]);

        if (strncmp(device->name, vendors[i], length) == 0 && device->name[length] != '\0')
            return device->name + length;
    }
    return device->name;
}

struct census {
    size_t devices; /* that can be leased */
    size_t free;
    size_t shared; /* of which a share is left */
};

static struct census count_devices(const struct pool_view *view)
{
    struct census census = {0};
    const struct wire_slot *slot;

    vector_for_each (slot, &view->look.slots) {
        if (slot->device->partitioned || slot->state == WIRE_STATE_GONE)
            continue;
        census.devices++;
        census.free += wire_state_is_free(slot->state);
        census.shared += slot->state == WIRE_STATE_SHARED && slot->share_used < SHARE_WHOLE;
    }
    return census;
}

static void append_devices(struct census census, struct text *out)
{
    if (census.devices == 0)
        text_append(out, "No devices");
    else if (census.devices == 1)
        text_append(out, census.free == 1 ? "1 device, free" : "1 device, not free");
    else if (census.free == census.devices)
        text_append_format(out, "%zu devices, all free", census.devices);
    else if (census.free == 0)
        text_append_format(out, "%zu devices, none free", census.devices);
    else
        text_append_format(out, "%zu devices, %zu free", census.devices, census.free);
    if (census.shared > 0)
        text_append_format(out, ", %zu with a share left", census.shared);
}

static void append_waiting(size_t count, struct text *out)
{
    if (count == 0)
        text_append(out, ", nobody waits");
    else
        text_append_format(out, ", %zu %s waiting", count, count == 1 ? "claim" : "claims");
}

/* Which pool it is. */
static void append_pool(const struct status_picture *picture, struct text *out)
{
    const struct pool_address *address = picture->address;
    const char *inventory = picture->view->about.inventory;

    if (inventory == NULL)
        inventory = address->inventory;
    if (inventory != NULL)
        text_append_format(out, "pool of %s", inventory);
    else if (address->own)
        text_append(out, "your own pool");
    else if (address->machine || strcmp(address->socket, POOL_MACHINE_SOCKET) == 0)
        text_append(out, "the machine's pool");
    else
        text_append_format(out, "pool at %s", address->socket);
}

/* The model that all devices are; NULL when they differ or it is unknown. */
static const char *common_model(const struct pool_view *view)
{
    const struct wire_slot *slot;
    const char *model = NULL;

    vector_for_each (slot, &view->look.slots) {
        if (slot->device->name == NULL || (model != NULL && strcmp(model, slot->device->name) != 0))
            return NULL;
        model = slot->device->name;
    }
    return model;
}

void status_write_line(const struct status_picture *picture, enum style style, const char *line,
                       struct text *out)
{
    size_t room = picture->terminal.width == 0 ? SIZE_MAX : picture->terminal.width;
    size_t length = strlen(line);
    size_t used = 0;

    if (picture->terminal.colour)
        text_append(out, style_start(style));
    for (size_t i = 0; i < length;) {
        uint32_t character;

        i += utf8_decode_inert(line + i, length - i, &character);
        used += utf8_character_width(character);
        if (used > room)
            break;
        utf8_append(out, character);
    }
    if (picture->terminal.colour && style != STYLE_PLAIN)
        text_append(out, style_end());
    text_append_char(out, '\n');
}

void status_write_headline(const struct status_picture *picture, struct text *out)
{
    const struct pool_view *view = picture->view;
    struct text line = {0};
    struct text pool = {0};

    append_devices(count_devices(view), &line);
    if (view->look.slots.count + view->look.claims.count > 0)
        append_waiting(view->look.claims.count, &line);
    append_pool(picture, &pool);
    if (common_model(view) != NULL)
        text_append_format(&pool, ", %s%s", view->look.slots.count > 1 ? "all " : "",
                           common_model(view));
    status_write_line(picture, STYLE_STRONG, text_string(&line), out);
    status_write_line(picture, STYLE_FAINT, text_string(&pool), out);
    if (picture->note != NULL)
        status_write_line(picture, picture->stale ? STYLE_WARNING : STYLE_FAINT, picture->note,
                          out);
    out->failed |= line.failed || pool.failed;
    text_finish(&line);
    text_finish(&pool);
}

void status_write_problems(const struct status_picture *picture, struct text *out)
{
    const struct problem *problem;

    vector_for_each (problem, &picture->view->look.problems) {
        struct text line = {0};

        text_append_format(&line, "%s: %s", problem->backend, problem->message);
        status_write_line(picture, STYLE_WARNING, text_string(&line), out);
        out->failed |= line.failed;
        text_finish(&line);
    }
}

void status_write(const struct status_picture *picture, struct text *out)
{
    const struct wire_message *look = &picture->view->look;

    status_write_headline(picture, out);
    if (look->slots.count > 0) {
        text_append_char(out, '\n');
        status_write_devices(picture, out);
        status_write_hindrances(picture, out);
    }
    if (look->claims.count > 0) {
        text_append_char(out, '\n');
        status_write_queue(picture, out);
    }
    if (look->problems.count > 0) {
        text_append_char(out, '\n');
        status_write_problems(picture, out);
    }
}
