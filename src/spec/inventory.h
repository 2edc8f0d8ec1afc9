/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads inventory files: they describe devices to use instead of the hardware, for trials, tests,
 * plans and simulations.
 */
#ifndef SPEC_INVENTORY_H
#define SPEC_INVENTORY_H

#include <berth/error.h>
#include <stddef.h>

#include "model/machine/machine.h"

/* Reads the inventory file `path` into *ret_machine, which the caller finishes. Fails with the
 * codes of document_read and field.h and a message "file:line:column: …"; *ret_machine is
 * untouched then. May block while it reads the file. */
int inventory_read(const char *path, struct machine *ret_machine, struct berth_error *error);

/* Reads an inventory from a text in memory; `file` is the name for messages. Never blocks. */
int inventory_parse(const char *file, const char *text, size_t length, struct machine *ret_machine,
                    struct berth_error *error);

#endif
