/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the rules between fields, devices and links of an inventory, and resolves links from ids
 * to slots. Each check takes O(n log n) time, because the inventory of a cluster is long.
 */
#ifndef SPEC_INVENTORY_CHECKS_H
#define SPEC_INVENTORY_CHECKS_H

#include "model/machine/machine.h"
#include "spec/field.h"

struct described_link {
    struct device_id between[2];
    const struct document_node *nodes[2]; /* the nodes of the ids, for messages */
    enum link_kind kind;
    uint32_t lanes;
};

struct described_link_list {
    VECTOR_OF(struct described_link);
};

/* The contents of the file. Its links name devices by id, not by slot. */
struct described_machine {
    struct device_list devices;
    struct described_link_list links;
};

/* The `check` functions of the records. */
int inventory_check_device(const struct field_reading *reading, const struct document_node *node,
                           void *target);
int inventory_check_link(const struct field_reading *reading, const struct document_node *node,
                         void *target);
/* Also marks the devices that are the parent of another device. */
int inventory_check_machine(const struct field_reading *reading, const struct document_node *node,
                            void *target);

/* Fills machine->links; machine->devices must be complete. Fails with BERTH_ERROR_SYNTAX for an
 * unknown device or a repeated pair, or with BERTH_ERROR_MEMORY. */
int inventory_checks_resolve_links(const struct field_reading *reading,
                                   const struct described_machine *described,
                                   struct machine *machine);

#endif
