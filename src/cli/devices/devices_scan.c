/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/devices/devices_scan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "launch/inherited_masks.h"

int devices_look_open(struct devices_look *look, const char *inventory, const char *deadline,
                      struct berth_error *error)
{
    struct devices_look opened = {0};
    int code = machine_source_open(&opened.source, inventory, deadline, error);

    if (code == 0 && !opened.source.is_virtual)
        code = inherited_masks_collect(environ, &opened.masks, error);
    if (code < 0)
        machine_source_close(&opened.source);
    else
        *look = opened;
    return code;
}

static void forget(struct devices_look *look)
{
    machine_report_finish(&look->report);
    free(look->slots);
    look->slots = NULL;
    look->has_report = false;
}

void devices_look_close(struct devices_look *look)
{
    forget(look);
    machine_source_close(&look->source);
    devices_pool_finish(&look->pool);
    string_list_finish(&look->masks);
    text_finish(&look->hidden_by);
}

/* The slots in the pool where it is known, else by the order of what was found. */
static int find_slots(struct devices_look *look, struct berth_error *error)
{
    const struct device_list *devices = &look->report.machine.devices;

    look->slots = calloc(devices->count + 1, sizeof(*look->slots));
    if (look->slots == NULL)
        return error_set_memory(error);
    for (size_t i = 0; i < devices->count; i++)
        look->slots[i] = look->pool.is_known ? devices_pool_slot(&look->pool, devices->items[i].id)
                                             : optional_number_of(i);
    return 0;
}

/* The processes of a recorded machine are nobody's here. */
static bool is_recorded(void)
{
    const char *root = getenv("BERTH_SYSROOT");

    return root != NULL && *root != '\0';
}

/* What the pool knows of the processes of a device. */
static void ask_about_processes(const struct devices_pool *pool, struct device *device)
{
    const struct device *known = devices_pool_device(pool, device->id);
    struct device_process *process;

    vector_for_each (process, &device->processes) {
        const struct device_process *there =
            known == NULL ? NULL : device_process_find(&known->processes, process->pid);

        if (there != NULL) {
            process->started = there->started != 0 ? there->started : process->started;
            process->lease = there->lease != 0 ? there->lease : process->lease;
            process->squats = there->squats;
        }
        if (process->lease == 0 && !is_recorded())
            process->lease = devices_pool_lease(pool, process->pid);
    }
}

static void find_leases(struct devices_look *look)
{
    struct device *device;

    if (!look->pool.is_known)
        return;
    vector_for_each (device, &look->report.machine.devices)
        ask_about_processes(&look->pool, device);
}

/* What one mask leaves without the others. */
static int find_visible_by(const struct devices_look *look, const char *mask,
                           struct bitset *ret_visible, struct berth_error *error)
{
    struct string_list alone = {0};
    char *const *entry;
    int code = 0;

    vector_for_each (entry, &look->masks) {
        if (code == 0 && (*entry == mask || inherited_masks_is_setting(*entry)))
            code = string_list_append(&alone, *entry);
    }
    code = code < 0
               ? error_set_memory(error)
               : inherited_masks_find_visible(&alone, &look->report.machine, ret_visible, error);
    string_list_finish(&alone);
    return code;
}

/* Names a mask if it would hide something by itself, and `all` of them where none would. */
static int name_masks(struct devices_look *look, bool all, struct berth_error *error)
{
    const struct machine *machine = &look->report.machine;
    char **mask;

    text_clear(&look->hidden_by);
    vector_for_each (mask, &look->masks) {
        struct bitset visible;
        bool hides;
        int code;

        if (inherited_masks_is_setting(*mask))
            continue;
        code = find_visible_by(look, *mask, &visible, error);
        if (code < 0)
            return code;
        hides = all || bitset_count(&visible) < machine->devices.count;
        bitset_finish(&visible);
        if (!hides)
            continue;
        text_append(&look->hidden_by, look->hidden_by.length > 0 ? ", " : "");
        text_append_bytes(&look->hidden_by, *mask, strcspn(*mask, "="));
    }
    if (look->hidden_by.length == 0 && !all && !text_failed(&look->hidden_by))
        return name_masks(look, true, error);
    return text_failed(&look->hidden_by) ? error_set_memory(error) : 0;
}

/* Leaves these; slots go along with their devices. */
static int keep_visible(struct devices_look *look, const struct bitset *visible,
                        struct berth_error *error)
{
    struct machine *machine = &look->report.machine;
    size_t *places = calloc(machine->devices.count, sizeof(*places));
    int code;

    if (places == NULL)
        return error_set_memory(error);
    code = machine_keep(machine, visible, places, error);
    for (size_t i = 0; code == 0 && i < machine->devices.count; i++)
        look->slots[i] = look->slots[places[i]];
    free(places);
    return code;
}

/* Takes out of the report what the masks hide. */
static int hide(struct devices_look *look, struct berth_error *error)
{
    struct machine *machine = &look->report.machine;
    struct bitset visible;
    int code = inherited_masks_find_visible(&look->masks, machine, &visible, error);

    if (code < 0)
        return code;
    look->hidden = machine->devices.count - bitset_count(&visible);
    if (look->hidden > 0)
        code = name_masks(look, false, error);
    if (code == 0 && look->hidden > 0)
        code = keep_visible(look, &visible, error);
    bitset_finish(&visible);
    return code;
}

int devices_look_take(struct devices_look *look, struct berth_error *error)
{
    struct machine_report report;
    int code;

    if (look->source.is_virtual && look->has_report)
        return 0;
    code = machine_source_look(&look->source, &report, error);
    if (code < 0)
        return code;
    forget(look);
    look->report = report;
    look->has_report = true;
    if (!look->source.is_virtual)
        devices_pool_ask(&look->pool);
    code = find_slots(look, error);
    if (code == 0)
        find_leases(look);
    if (code == 0)
        code = hide(look, error);
    return code;
}

void devices_look_spoil(struct devices_look *look, const struct berth_error *reason)
{
    struct device *device;

    vector_for_each (device, &look->report.machine.devices)
        device->old = true;
    /* Without memory there is one line less to read. */
    machine_report_add_problem(&look->report.problems, "probe", "%s", reason->message);
}

void devices_look_write_hidden(const struct devices_look *look, struct text *out)
{
    if (look->hidden == 1)
        text_append_format(out, "1 device is hidden by %s", text_string(&look->hidden_by));
    else if (look->hidden > 1)
        text_append_format(out, "%zu devices are hidden by %s", look->hidden,
                           text_string(&look->hidden_by));
}
