/* SPDX-License-Identifier: Apache-2.0 */
#include "model/machine/link.h"

const struct choice link_kind_names[] = {
    {"nvlink", LINK_NVLINK}, {"xgmi", LINK_XGMI}, {"psb", LINK_PSB},
    {"pix", LINK_PIX},       {"pxb", LINK_PXB},   {"phb", LINK_PHB},
    {"node", LINK_NODE},     {"sys", LINK_SYS},   {0},
};

bool link_is_fabric(enum link_kind kind)
{
    return kind == LINK_NVLINK || kind == LINK_XGMI;
}

const struct link *link_list_best(const struct link_list *links, size_t one, size_t other)
{
    size_t low = one < other ? one : other;
    size_t high = one < other ? other : one;
    const struct link *best = NULL;
    const struct link *link;

    vector_for_each (link, links) {
        if (link->between[0] != low || link->between[1] != high)
            continue;
        if (best == NULL || link_is_fabric(link->kind))
            best = link;
    }
    return best;
}
