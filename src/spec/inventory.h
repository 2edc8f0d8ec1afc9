/* SPDX-License-Identifier: Apache-2.0
 *
 * The inventory file: devices that are not this machine's hardware, for trying berth out, for
 * tests, for planning and simulating.
 */
#ifndef SPEC_INVENTORY_H
#define SPEC_INVENTORY_H

#include <berth/error.h>
#include <stddef.h>

#include "model/machine.h"

/* Reads the inventory file `path` into *ret_machine, which the caller finishes. Fails with the
 * codes of document_read and field.h and a message "file:line:column: …"; *ret_machine is
 * untouched then. Blocks as long as the file does. */
int inventory_read(const char *path, struct machine *ret_machine, struct berth_error *error);

/* The same for a text in memory, called `file` in messages. Never blocks. */
int inventory_parse(const char *file, const char *text, size_t length, struct machine *ret_machine,
                    struct berth_error *error);

#endif
