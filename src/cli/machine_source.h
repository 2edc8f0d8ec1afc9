/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose devices a command is about.
 */
#ifndef CLI_MACHINE_SOURCE_H
#define CLI_MACHINE_SOURCE_H

#include <berth/error.h>
#include <stdbool.h>

#include "model/machine.h"

/* The devices of the inventory file `inventory`, or when it is NULL of the file that
 * BERTH_INVENTORY names; without either, the hardware's, of which this version reads none. The
 * caller finishes *ret_machine, which is untouched on failure. *ret_virtual says whether it came
 * from a file. */
int machine_source_read(const char *inventory, struct machine *ret_machine, bool *ret_virtual,
                        struct berth_error *error);

#endif
