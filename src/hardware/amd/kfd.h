/* SPDX-License-Identifier: Apache-2.0
 *
 * KFD, the kernel's list of nodes that AMD's runtime can compute on. Each node has a directory and
 * is the CPUs of a NUMA node, a GPU, or a partition of a GPU. The kernel answers reads of its files
 * from memory, without the hardware. A value in an unexpected format is unknown.
 */
#ifndef HARDWARE_AMD_KFD_H
#define HARDWARE_AMD_KFD_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/optional.h"
#include "base/text/text.h"
#include "base/vector.h"
#include "hardware/sysfs/sysroot.h"
#include "model/machine/pci.h"

struct kfd_node {
    uint32_t number;               /* the name of its directory */
    bool is_hidden;                /* it exists, but this container has no permission */
    bool is_stuck;                 /* it has not answered; only its number is known */
    struct optional_number gpu_id; /* 0: CPUs */

    /* From its properties; unknown if they cannot be read. */
    struct optional_number cpu_cores_count;
    struct optional_number simd_count;
    struct optional_number gfx_target_version; /* 90402: gfx942 */
    struct optional_number device_id;
    struct optional_number location_id;
    struct optional_number domain;
    struct optional_number drm_render_minor;
    struct optional_number unique_id;
};

struct kfd_node_list {
    VECTOR_OF(struct kfd_node);
};

struct kfd_number_list {
    VECTOR_OF(uint32_t);
};

/* Adds the numbers of all nodes in ascending order, by the names of their directories. A machine
 * without KFD has none. Fails with BERTH_ERROR_IO, _PERMISSION or _MEMORY. */
int kfd_list(const struct sysroot *root, struct kfd_number_list *ret_numbers,
             struct berth_error *error);

/* Appends the node as text, in lines like those of its properties. A stuck node needs only its
 * number. Pure; the text remembers a failed allocation. */
void kfd_pack_node(const struct kfd_node *node, struct text *out);
/* Reads that text. Returns false if it has no number; *ret_node is unchanged then. Pure. */
bool kfd_unpack_node(const char *text, struct kfd_node *ret_node);

/* Reads one node. Returns 0, or a negative errno if nothing is known about it. */
int kfd_read_node(const struct sysroot *root, uint32_t number, struct kfd_node *ret_node);

/* Fills in the properties from the text of the node's properties file. Pure. */
void kfd_parse_node(const char *text, size_t length, struct kfd_node *node);

bool kfd_is_gpu(const struct kfd_node *node);
bool kfd_has_cpus(const struct kfd_node *node);

/* Returns the GPU's address, which all its partitions share, and the number of the partition (0:
 * the first or only one). Without a location the address is unknown and the number 0. */
struct pci_address kfd_pci(const struct sysroot *root, const struct kfd_node *node,
                           uint32_t *ret_partition);

/* The node's own memory. */
struct kfd_memory {
    bool is_listed; /* KFD lists the node's memory; then an unknown total means none */
    struct optional_number total;
    struct optional_number used; /* reported by the driver, and only by some drivers */
};

void kfd_read_memory(const struct sysroot *root, uint32_t number, bool with_used,
                     struct kfd_memory *ret_memory);

#define KFD_LINK_PCIE 2
#define KFD_LINK_XGMI 11

struct kfd_link {
    struct optional_number type;
    struct optional_number node_to;
    struct optional_number min_bandwidth; /* of one link, in MB/s; 0: unknown */
    struct optional_number max_bandwidth; /* of all links of the pair, in MB/s */
};

struct kfd_link_list {
    VECTOR_OF(struct kfd_link);
};

/* Adds at most `max` links that lead from the node to others. Skips links that cannot be read.
 * Returns 0 or -ENOMEM. */
int kfd_read_links(const struct sysroot *root, uint32_t number, size_t max,
                   struct kfd_link_list *ret_links);

void kfd_parse_link(const char *text, size_t length, struct kfd_link *ret_link);

/* Returns the node's NUMA node: that of its own CPUs, or of the CPUs that it is linked to. */
struct optional_number kfd_numa(const struct sysroot *root, const struct kfd_node *node);

#endif
