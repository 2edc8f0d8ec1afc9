/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection between two devices. A pair may have a fabric link (NVLink or XGMI) and a PCIe
 * path.
 */
#ifndef MODEL_MACHINE_LINK_H
#define MODEL_MACHINE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/choice.h"
#include "base/vector.h"

enum link_kind {
    LINK_NVLINK,
    LINK_XGMI,
    LINK_PSB,  /* the same board */
    LINK_PIX,  /* one PCIe switch */
    LINK_PXB,  /* several PCIe switches */
    LINK_PHB,  /* the same host bridge */
    LINK_NODE, /* the same NUMA node */
    LINK_SYS,  /* across NUMA nodes */
};

/* nvlink, xgmi, psb, pix, pxb, phb, node, sys. */
extern const struct choice link_kind_names[];

struct link {
    size_t between[2]; /* slots, the smaller first */
    enum link_kind kind;
    uint32_t lanes; /* of a fabric link; 0: unknown or a PCIe path */
};

struct link_list {
    VECTOR_OF(struct link);
};

/* Returns whether the kind is a fabric link, not a PCIe path. */
bool link_is_fabric(enum link_kind kind);

#endif
