/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the links between AMD's devices with KFD. KFD lists XGMI links. PCIe paths come from sysfs
 * if the devices have directories there. Otherwise partitions of one GPU are on one board, and two
 * GPUs are as close as the CPUs that they are linked to.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "hardware/amd/amd.h"
#include "hardware/amd/kfd.h"

/* The maximum number of devices; their pairs are kept in a table. */
#define LINKED_MAX 1024

/* The maximum number of CPU nodes. */
#define OTHERS_MAX 1024

/* The maximum number of links between two GPUs. A larger number is wrong. */
#define LANES_MAX 64

struct amd_link_end {
    struct amd_key key;
    bool has_path;
    struct optional_number cpu_node;
};

/* The fabric link of a pair. */
struct fabric {
    bool is_there;
    uint32_t lanes; /* 0: unknown */
};

/* A KFD node and the position of its device. */
struct node_mapping {
    uint32_t node;
    size_t end;
};

/* A node that is not a device. */
struct other_node {
    uint64_t node;
    bool has_cpus;
};

struct linking {
    const struct sysroot *root;
    struct findings *findings;
    struct amd_link_end *ends;
    struct fabric *fabrics; /* count times count */
    size_t count;
    struct {
        VECTOR_OF(struct node_mapping); /* sorted by node */
    } mappings;
    struct {
        VECTOR_OF(struct other_node);
    } others;
};

static void linking_finish(struct linking *linking)
{
    free(linking->ends);
    free(linking->fabrics);
    vector_finish(&linking->mappings);
    vector_finish(&linking->others);
}

static int compare_mappings(const void *one, const void *other)
{
    const struct node_mapping *mine = one;
    const struct node_mapping *theirs = other;

    return (mine->node > theirs->node) - (mine->node < theirs->node);
}

static int linking_init(struct linking *linking, const struct finding_list *devices,
                        struct berth_error *error)
{
    linking->count = devices->count;
    linking->ends = calloc(devices->count + 1, sizeof(*linking->ends));
    linking->fabrics = calloc(devices->count * devices->count + 1, sizeof(*linking->fabrics));
    if (linking->ends == NULL || linking->fabrics == NULL)
        return error_set_memory(error);
    for (size_t i = 0; i < devices->count; i++) {
        struct amd_link_end *end = &linking->ends[i];
        struct node_mapping *mapping;
        int code = amd_key_parse(devices->items[i].key, &end->key, error);

        if (code < 0)
            return code;
        end->has_path = devices->items[i].path != NULL;
        if (!end->key.has_node)
            continue;
        mapping = vector_append(&linking->mappings);
        if (mapping == NULL)
            return error_set_memory(error);
        *mapping = (struct node_mapping){.node = end->key.node, .end = i};
    }
    if (linking->mappings.count > 1)
        qsort(linking->mappings.items, linking->mappings.count, sizeof(*linking->mappings.items),
              compare_mappings);
    return 0;
}

/* Returns the position of the node's device; `count` if the node is not a device. */
static size_t find_end(const struct linking *linking, uint64_t node)
{
    struct node_mapping wanted = {.node = (uint32_t)node};
    const struct node_mapping *found = NULL;

    if (node <= UINT32_MAX && linking->mappings.count > 0)
        found = bsearch(&wanted, linking->mappings.items, linking->mappings.count,
                        sizeof(*linking->mappings.items), compare_mappings);
    return found == NULL ? linking->count : found->end;
}

/* Returns whether a node that is not a device has CPUs. Reads each node once. */
static bool has_cpus(struct linking *linking, uint64_t number)
{
    struct kfd_node node = {0};
    struct other_node *other;

    vector_for_each (other, &linking->others)
        if (other->node == number)
            return other->has_cpus;
    if (number > UINT32_MAX || linking->others.count >= OTHERS_MAX)
        return false;
    other = vector_append(&linking->others);
    if (other == NULL)
        return false;
    other->node = number;
    other->has_cpus =
        kfd_read_node(linking->root, (uint32_t)number, &node) == 0 && kfd_has_cpus(&node);
    return other->has_cpus;
}

static bool is_one_gpu(const struct amd_link_end *one, const struct amd_link_end *other)
{
    return one->key.parent[0] != '\0' && strcmp(one->key.parent, other->key.parent) == 0;
}

/* Returns the number of links of a pair; 0: unknown. KFD reports the bandwidth of one link and of
 * all links. Within a GPU both are its memory bandwidth, which says nothing about links. */
static uint32_t lanes_of(const struct linking *linking, const struct kfd_link *link, size_t one,
                         size_t other)
{
    uint64_t each = link->min_bandwidth.known ? link->min_bandwidth.value : 0;
    uint64_t all = link->max_bandwidth.known ? link->max_bandwidth.value : 0;

    if (each == 0 || all % each != 0 || all / each > LANES_MAX ||
        is_one_gpu(&linking->ends[one], &linking->ends[other]))
        return 0;
    return (uint32_t)(all / each);
}

/* Records the link of a pair. The kernel lists both directions; one is enough. */
static void note_link(struct linking *linking, size_t one, const struct kfd_link *link)
{
    struct fabric *fabric;
    size_t other;

    if (!link->type.known || !link->node_to.known)
        return;
    other = find_end(linking, link->node_to.value);
    if (other == linking->count && !linking->ends[one].cpu_node.known &&
        has_cpus(linking, link->node_to.value))
        linking->ends[one].cpu_node = link->node_to;
    if (link->type.value != KFD_LINK_XGMI || other == linking->count || other == one)
        return;
    fabric =
        &linking
             ->fabrics[one < other ? one * linking->count + other : other * linking->count + one];
    fabric->is_there = true;
    if (fabric->lanes == 0)
        fabric->lanes = lanes_of(linking, link, one, other);
}

static int read_links(struct linking *linking, struct berth_error *error)
{
    struct kfd_link_list links = {0};
    int result = 0;

    for (size_t i = 0; i < linking->count && result == 0; i++) {
        const struct kfd_link *link;

        if (!linking->ends[i].key.has_node)
            continue;
        links.count = 0;
        result =
            kfd_read_links(linking->root, linking->ends[i].key.node, SYSROOT_NAMES_MAX, &links);
        vector_for_each (link, &links)
            note_link(linking, i, link);
    }
    vector_finish(&links);
    return result < 0 ? error_set_memory(error) : 0;
}

/* Finds the path of a pair with KFD. Returns false if sysfs has the path, or if KFD does not. */
static bool find_path(const struct amd_link_end *one, const struct amd_link_end *other,
                      enum link_kind *ret_kind)
{
    if (one->has_path && other->has_path)
        return false;
    if (is_one_gpu(one, other)) {
        *ret_kind = LINK_PSB;
        return true;
    }
    if (!one->cpu_node.known || !other->cpu_node.known)
        return false;
    *ret_kind = one->cpu_node.value == other->cpu_node.value ? LINK_NODE : LINK_SYS;
    return true;
}

static int add_link(struct linking *linking, size_t one, size_t other, enum link_kind kind,
                    uint32_t lanes, struct berth_error *error)
{
    struct link *link = vector_append(&linking->findings->links);

    if (link == NULL)
        return error_set_memory(error);
    *link = (struct link){.between = {one, other}, .kind = kind, .lanes = lanes};
    return 0;
}

static int add_links(struct linking *linking, struct berth_error *error)
{
    int code = 0;

    for (size_t one = 0; one < linking->count; one++)
        for (size_t other = one + 1; other < linking->count && code == 0; other++) {
            const struct fabric *fabric = &linking->fabrics[one * linking->count + other];
            enum link_kind kind;

            if (fabric->is_there)
                code = add_link(linking, one, other, LINK_XGMI, fabric->lanes, error);
            if (code == 0 && find_path(&linking->ends[one], &linking->ends[other], &kind))
                code = add_link(linking, one, other, kind, 0, error);
        }
    return code;
}

int amd_links(struct vendor_context *context, const struct finding_list *devices,
              struct findings *findings, struct berth_error *error)
{
    struct linking linking = {.root = context->root, .findings = findings};
    int code;

    if (devices->count > LINKED_MAX)
        return error_set(error, BERTH_ERROR_LIMIT, "expected at most %d AMD devices, got %zu",
                         LINKED_MAX, devices->count);
    code = linking_init(&linking, devices, error);
    if (code == 0)
        code = read_links(&linking, error);
    if (code == 0)
        code = add_links(&linking, error);
    linking_finish(&linking);
    return code;
}
