/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the parts of `berth devices`, tables and JSON, and the lines of drain and undrain. A
 * failed allocation is recorded in `out`.
 */
#ifndef CLI_DEVICES_DEVICES_OUTPUT_H
#define CLI_DEVICES_DEVICES_OUTPUT_H

#include "base/system/user_names.h"
#include "base/text/json.h"
#include "base/text/table.h"
#include "base/text/terminal.h"
#include "base/text/text.h"
#include "model/machine/machine_report.h"
#include "view/pool_view.h"

/* The input of the functions that write `berth devices`. It borrows all that it points to. */
struct devices_picture {
    const struct machine_report *report;
    const struct optional_number *slots; /* by device of the report; NULL: the device's position */
    struct user_names *users;
    struct terminal terminal;
    int64_t now;    /* nanoseconds since 1970; the ages of values are relative to this */
    bool pool_says; /* the report contains the pool's facts about processes */
};

/* Appends the berth.devices/1 document. */
void devices_write_json(const struct devices_picture *picture, enum json_layout layout,
                        struct text *out);

/* Appends a table of the devices, a table of the processes that use them, and a matrix of the
 * links, fitted to the terminal. */
void devices_write_table(const struct devices_picture *picture, struct text *out);

/* Append the last two parts of devices_write_table(), each after an empty line. Append nothing if
 * there are no processes or links. */
void devices_write_processes(const struct devices_picture *picture, struct text *out);
void devices_write_links(const struct machine *machine, const struct terminal *terminal,
                         struct text *out);

/* Appends the state of a device: "nvidia3: out of service once lease 12 (alice) ends\n". */
void drain_describe(const struct pool_view *view, struct device_id id, struct user_names *users,
                    struct text *out);

#endif
