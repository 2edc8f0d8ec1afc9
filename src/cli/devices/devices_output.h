/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine's devices for people and for programs.
 */
#ifndef CLI_DEVICES_DEVICES_OUTPUT_H
#define CLI_DEVICES_DEVICES_OUTPUT_H

#include "base/text/json.h"
#include "base/text/table.h"
#include "base/text/terminal.h"
#include "base/text/text.h"
#include "model/machine_report.h"
#include "view/user_names.h"

struct devices_picture {
    const struct machine_report *report;
    const struct optional_number *slots; /* of the report's devices; NULL: by their order */
    struct user_names *users;
    struct terminal terminal;
    int64_t now;    /* nanoseconds since 1970, to tell how old facts are */
    bool pool_says; /* a pool has said what it knows of the processes */
};

/* All of these: a failed allocation is remembered by `out`. */

/* Appends the berth.devices/1 document. */
void devices_write_json(const struct devices_picture *picture, enum json_layout layout,
                        struct text *out);

/* Appends a table of the devices, one of the processes that use them if there are any, and a matrix
 * of the links, fitted to the terminal. */
void devices_write_table(const struct devices_picture *picture, struct text *out);

/* The parts of that after the first, each with an empty line before it; nothing when there is
 * nothing to show. */
void devices_write_processes(const struct devices_picture *picture, struct text *out);
void devices_write_links(const struct machine *machine, const struct terminal *terminal,
                         struct text *out);

#endif
