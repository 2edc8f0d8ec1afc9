/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices of one machine (or of several hosts) and the links between them, wherever the facts
 * came from: hardware or an inventory file. Zeroed memory is a machine without devices.
 */
#ifndef MODEL_MACHINE_H
#define MODEL_MACHINE_H

#include <berth/error.h>

#include "base/bitset.h"
#include "model/device.h"
#include "model/link.h"

/* A host: its devices share CPUs and memory. */
struct host {
    char *name;                    /* NULL: unknown */
    struct optional_number cpus;   /* thousandths of a CPU */
    struct optional_number memory; /* bytes */
};

struct host_list {
    VECTOR_OF(struct host);
};

struct machine {
    struct device_list devices;
    struct link_list links;
    struct host_list hosts; /* empty: one host of which nothing is known */
};

/* Frees what the machine owns and leaves one without devices. */
void machine_finish(struct machine *machine);

/* Leaves only the devices of these slots, and the links between them. `slots`, which has room for
 * as many, gets the slots that they had; NULL: nobody wants to know. Fails with BERTH_ERROR_MEMORY;
 * nothing is changed then. */
int machine_keep(struct machine *machine, const struct bitset *kept, size_t *slots,
                 struct berth_error *error);

#endif
