/* SPDX-License-Identifier: Apache-2.0
 *
 * What makes an inventory whole: rules between fields, devices and links, and links from ids to
 * slots. All in O(n log n), since a cluster's inventory is long.
 */
#ifndef SPEC_INVENTORY_CHECKS_H
#define SPEC_INVENTORY_CHECKS_H

#include "model/machine.h"
#include "spec/field.h"

struct described_link {
    struct device_id between[2];
    const struct document_node *nodes[2]; /* where the ids stand */
    enum link_kind kind;
    uint32_t lanes;
};

struct described_link_list {
    VECTOR_OF(struct described_link);
};

/* The file as it stands, links still by id. */
struct described_machine {
    struct device_list devices;
    struct described_link_list links;
};

/* Checks of records, as struct record asks for. */
int inventory_check_device(const struct field_reading *reading, const struct document_node *node,
                           void *target);
int inventory_check_link(const struct field_reading *reading, const struct document_node *node,
                         void *target);
/* Also marks the devices that others name as their parent. */
int inventory_check_machine(const struct field_reading *reading, const struct document_node *node,
                            void *target);

/* Fills machine->links; machine->devices is already there. Fails with BERTH_ERROR_SYNTAX for an
 * unknown device or a pair given twice, or with BERTH_ERROR_MEMORY. */
int inventory_checks_resolve_links(const struct field_reading *reading,
                                   const struct described_machine *described,
                                   struct machine *machine);

#endif
