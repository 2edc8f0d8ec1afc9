/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses any text as the properties of a KFD node and of a link.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "hardware/amd/kfd.h"
#include "support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_number(struct optional_number number)
{
    require(number.known || number.value == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char nowhere[] = "/nonexistent";
    const struct sysroot root = {.prefix = nowhere, .recorded = true};
    struct kfd_node node = {0};
    struct kfd_link link;
    struct pci_address pci;
    uint32_t partition;

    kfd_parse_node((const char *)data, size, &node);
    check_number(node.cpu_cores_count);
    check_number(node.simd_count);
    check_number(node.gfx_target_version);
    check_number(node.device_id);
    check_number(node.location_id);
    check_number(node.domain);
    check_number(node.drm_render_minor);
    check_number(node.unique_id);
    pci = kfd_pci(&root, &node, &partition);
    require(pci.device <= 31 && pci.function <= 7 && partition <= 15);
    require(pci.known || partition == 0);
    kfd_parse_link((const char *)data, size, &link);
    check_number(link.type);
    check_number(link.node_to);
    check_number(link.min_bandwidth);
    check_number(link.max_bandwidth);
    return 0;
}
