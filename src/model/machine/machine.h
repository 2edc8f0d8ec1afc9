/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices of one machine, or of several hosts, and the links between them. They come from the
 * hardware or from an inventory file. Zeroed memory is a machine without devices.
 */
#ifndef MODEL_MACHINE_MACHINE_H
#define MODEL_MACHINE_MACHINE_H

#include <berth/error.h>

#include "base/bitset.h"
#include "model/machine/device.h"
#include "model/machine/link.h"

/* A host. Its devices share its CPUs and memory. */
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
    struct host_list hosts; /* empty: one host, about which nothing is known */
};

/* Frees the machine's memory and leaves a machine without devices. */
void machine_finish(struct machine *machine);

/* Removes all devices but those of these slots, and the links of the removed devices. `slots`, if
 * it is not NULL, gets the old slot of each remaining device. Fails with BERTH_ERROR_MEMORY;
 * nothing is changed then. */
int machine_keep(struct machine *machine, const struct bitset *kept, size_t *slots,
                 struct berth_error *error);

#endif
