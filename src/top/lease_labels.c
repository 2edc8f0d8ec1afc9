/* SPDX-License-Identifier: Apache-2.0 */
#include "top/lease_labels.h"

/* Returns the length of the run of consecutive devices that starts at `from`. */
static size_t count_run(const struct device_id_list *devices, size_t from)
{
    size_t count = 1;

    while (from + count < devices->count) {
        struct device_id last = devices->items[from + count - 1];
        struct device_id next = devices->items[from + count];

        if (next.vendor != last.vendor || next.index != last.index + 1 ||
            next.mig != DEVICE_NO_MIG || last.mig != DEVICE_NO_MIG)
            break;
        count++;
    }
    return count;
}

void lease_label_append_devices(struct text *out, const struct device_id_list *devices)
{
    for (size_t i = 0; i < devices->count;) {
        size_t run = count_run(devices, i);

        if (i > 0)
            text_append_char(out, ',');
        device_id_append(devices->items[i], out);
        if (run > 2)
            text_append_format(out, "-%u", devices->items[i + run - 1].index);
        i += run > 2 ? run : 1;
    }
}

const char *lease_label_job(const struct lease_info *lease)
{
    if (lease->name != NULL)
        return lease->name;
    if (lease->command != NULL)
        return lease->command;
    return lease->pid == 0 ? "(reserved)" : "-";
}
