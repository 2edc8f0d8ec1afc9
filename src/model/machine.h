/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices of one machine and the links between them, wherever the facts came from: hardware
 * or an inventory file. Zeroed memory is a machine without devices.
 */
#ifndef MODEL_MACHINE_H
#define MODEL_MACHINE_H

#include "model/device.h"
#include "model/link.h"

struct machine {
    struct device_list devices;
    struct link_list links;
};

/* Frees what the machine owns and leaves one without devices. */
void machine_finish(struct machine *machine);

#endif
