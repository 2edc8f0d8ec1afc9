/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine's devices for people and for programs.
 */
#ifndef CLI_DEVICES_OUTPUT_H
#define CLI_DEVICES_OUTPUT_H

#include "base/json.h"
#include "base/terminal.h"
#include "base/text.h"
#include "model/machine.h"

/* Appends the berth.devices/1 document. A failed allocation is remembered by `out`. */
void devices_write_json(const struct machine *machine, struct text *out);

/* The members of one device in that document, within an object. */
void devices_write_members(struct json *json, const struct device *device, size_t slot);

/* Appends a table of the devices and a matrix of their links, fitted to the terminal. A failed
 * allocation is remembered by `out`. */
void devices_write_table(const struct machine *machine, const struct terminal *terminal,
                         struct text *out);

/* The second half of that: nothing when no link is known. */
void links_write_matrix(const struct machine *machine, const struct terminal *terminal,
                        struct text *out);

#endif
