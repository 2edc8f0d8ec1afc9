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
