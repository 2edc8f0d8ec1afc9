/* SPDX-License-Identifier: Apache-2.0
 *
 * KFD, the kernel's list of what can compute for AMD's runtime: a directory for each node, which is
 * a NUMA node's CPUs, a GPU or one partition of it. Its files are KFD's own words out of memory, no
 * hardware is asked for them; anything that is not as the kernel writes it reads as unknown.
 */
#ifndef HARDWARE_AMD_KFD_H
#define HARDWARE_AMD_KFD_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"
#include "base/vector.h"
#include "hardware/sysfs/sysroot.h"
#include "model/optional.h"
#include "model/pci.h"

struct kfd_node {
    uint32_t number; /* that its directory is called by */
    bool is_hidden;  /* it is there, but not for us: a container that was not given it */
    bool is_stuck;   /* a file of its does not answer */
    struct optional_number gpu_id; /* 0: CPUs */

    /* Out of its properties; all unknown when they cannot be read. */
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

/* Reads one node. Returns 0, or a negative errno when nothing can be known of it. */
int kfd_read_node(const struct sysroot *root, uint32_t number, struct kfd_node *ret_node);

/* Fills in the properties out of the text of such a file. Pure. */
void kfd_parse_node(const char *text, size_t length, struct kfd_node *node);

bool kfd_is_gpu(const struct kfd_node *node);
bool kfd_has_cpus(const struct kfd_node *node);

/* The GPU's address, the same for all its partitions, and which of them the node is (0: the first,
 * or the only one); unknown and 0 without a location. */
struct pci_address kfd_pci(const struct sysroot *root, const struct kfd_node *node,
                           uint32_t *ret_partition);

/* Memory of a node's own. */
struct kfd_memory {
    bool is_listed; /* KFD says what the node has, so that unknown is none */
    struct optional_number total;
    struct optional_number used; /* asks the driver, and only some drivers answer */
};

void kfd_read_memory(const struct sysroot *root, uint32_t number, bool with_used,
                     struct kfd_memory *ret_memory);

#define KFD_LINK_PCIE 2
#define KFD_LINK_XGMI 11

struct kfd_link {
    struct optional_number type;
    struct optional_number node_to;
    struct optional_number min_bandwidth; /* of one link, MB/s; 0: unknown */
    struct optional_number max_bandwidth; /* of all links of the pair */
};

struct kfd_link_list {
    VECTOR_OF(struct kfd_link);
};

/* Adds what leads from the node straight to others, at most `most`. Returns 0 or -ENOMEM: links
 * that cannot be read are left out. */
int kfd_read_links(const struct sysroot *root, uint32_t number, size_t max,
                   struct kfd_link_list *ret_links);

void kfd_parse_link(const char *text, size_t length, struct kfd_link *ret_link);

/* The NUMA node that the node belongs to: that of its own CPUs, else of those that it is linked
 * with. */
struct optional_number kfd_numa(const struct sysroot *root, const struct kfd_node *node);

#endif
