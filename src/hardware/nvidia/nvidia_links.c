/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the links between NVIDIA's GPUs.
 */
#include <stdlib.h>

#include "base/count.h"
#include "base/error.h"
#include "hardware/nvidia/nvidia.h"
#include "hardware/sysfs/locality.h"

/* A GPU whose links are requested. */
struct nvlink_end {
    struct nvidia_query query;
    struct pci_address pci;
    bool is_reachable;
    uint32_t to_switches; /* number of active lanes to switches */
};

struct nvlink_ends {
    struct nvlink_end *items;
    uint32_t *lanes; /* from one GPU to another; count * count */
    size_t count;
};

/* Returns whether the GPU's links are read. Instances have no links of their own, and a sleeping
 * GPU must not be woken. */
static bool is_queried(const struct sysroot *root, const struct device_finding *found)
{
    return found->device->id.mig == DEVICE_NO_MIG && !found->device->asleep &&
           !(found->path != NULL && locality_is_asleep(root, found->path));
}

/* Gets the handles of the GPUs. The caller frees the members of `ends`, also on failure. */
static int ends_init(struct nvlink_ends *ends, const struct vendor_context *context,
                     const struct nvml *nvml, const struct finding_list *devices,
                     struct berth_error *error)
{
    ends->count = devices->count;
    ends->items = calloc(devices->count, sizeof(*ends->items));
    ends->lanes = calloc(devices->count, devices->count * sizeof(*ends->lanes));
    if (ends->items == NULL || ends->lanes == NULL)
        return error_set_memory(error);
    for (size_t i = 0; i < devices->count; i++) {
        const struct device_finding *found = &devices->items[i];
        struct nvlink_end *end = &ends->items[i];

        end->query =
            (struct nvidia_query){.root = context->root, .nvml = nvml, .device = found->device};
        end->pci = found->device->pci;
        end->is_reachable = is_queried(context->root, found) &&
                            nvidia_handle(nvml, found, &end->query.handle, NULL) == 0;
    }
    return 0;
}

/* Returns the position of the GPU with this address; `count` if there is none. */
static size_t ends_find(const struct nvlink_ends *ends, struct pci_address pci)
{
    size_t i = 0;

    while (i < ends->count && !(ends->items[i].is_reachable && ends->items[i].pci.known &&
                                pci_compare(ends->items[i].pci, pci) == 0))
        i++;
    return i;
}

/* Returns whether the device is an NVSwitch: a bridge made by NVIDIA, but not a PCI bridge. */
static bool is_switch(const struct sysroot *root, struct pci_address pci)
{
    struct pci_text address = pci_format(pci);
    struct optional_number vendor =
        sysroot_number(root, "/sys/bus/pci/devices/%s/vendor", address.text);
    struct optional_number class =
        sysroot_number(root, "/sys/bus/pci/devices/%s/class", address.text);

    return vendor.known && vendor.value == 0x10de && class.known && class.value >> 8 == 0x0680;
}

/* Counts an active lane by its other end. Lanes to a CPU (POWER) link no GPUs. Older libraries do
 * not report the type of the other end. */
static void follow_lane(struct nvlink_ends *ends, size_t from, unsigned lane)
{
    struct nvlink_end *end = &ends->items[from];
    struct nvml_pci_info info = {0};
    struct pci_address pci = {0};
    int type = NVML_NVLINK_DEVICE_UNKNOWN;
    size_t to = ends->count;

    if (!nvidia_call(&end->query, link_remote_type, lane, &type))
        type = NVML_NVLINK_DEVICE_UNKNOWN;
    if (type == NVML_NVLINK_DEVICE_SWITCH) {
        end->to_switches++;
        return;
    }
    if (type == NVML_NVLINK_DEVICE_IBM_NPU ||
        !nvidia_call(&end->query, link_remote_pci, lane, &info))
        return;
    pci = nvidia_pci(&info);
    if (pci.known)
        to = ends_find(ends, pci);
    if (to < ends->count && to != from)
        ends->lanes[from * ends->count + to]++;
    else if (to == ends->count && type == NVML_NVLINK_DEVICE_UNKNOWN && pci.known &&
             is_switch(end->query.root, pci))
        end->to_switches++;
}

static void follow_lanes(struct nvlink_ends *ends, size_t from)
{
    struct nvidia_query *query = &ends->items[from].query;

    if (query->nvml->link_state == NULL)
        return;
    for (unsigned lane = 0; lane < NVML_LINKS_MAX && query->lost == 0; lane++) {
        int active = 0;
        int code = query->nvml->link_state(query->handle, lane, &active);

        /* The GPU has no more lanes, or none at all. */
        if (code == NVML_ERROR_INVALID_ARGUMENT || (code == NVML_ERROR_NOT_SUPPORTED && lane == 0))
            return;
        if (nvidia_answered(query, code) && active == NVML_FEATURE_ENABLED)
            follow_lane(ends, from, lane);
    }
}

static int add_link(struct findings *findings, size_t one, size_t other, enum link_kind kind,
                    uint32_t lanes, struct berth_error *error)
{
    struct link *link = vector_append(&findings->links);

    if (link == NULL)
        return error_set_memory(error);
    *link = (struct link){.between = {one, other}, .kind = kind, .lanes = lanes};
    return 0;
}

/* Returns the number of lanes of a pair. Direct lanes are counted at both ends, because one end may
 * not have answered. Through switches each GPU reaches every other GPU with all its lanes, so a
 * pair has as many lanes as the end with fewer: NV6 on a DGX-2, NV12 on a DGX A100. */
static uint32_t lanes_between(const struct nvlink_ends *ends, size_t one, size_t other)
{
    uint32_t there = ends->lanes[one * ends->count + other];
    uint32_t back = ends->lanes[other * ends->count + one];
    uint32_t first = ends->items[one].to_switches;
    uint32_t second = ends->items[other].to_switches;

    return (there > back ? there : back) + (first < second ? first : second);
}

/* Translates NVML's number for the closest common ancestor. */
static bool path_kind(int level, enum link_kind *ret_kind)
{
    static const struct {
        int level;
        enum link_kind kind;
    } kinds[] = {
        {NVML_TOPOLOGY_INTERNAL, LINK_PSB}, {NVML_TOPOLOGY_SINGLE, LINK_PIX},
        {NVML_TOPOLOGY_MULTIPLE, LINK_PXB}, {NVML_TOPOLOGY_HOSTBRIDGE, LINK_PHB},
        {NVML_TOPOLOGY_NODE, LINK_NODE},    {NVML_TOPOLOGY_SYSTEM, LINK_SYS},
    };

    for (size_t i = 0; i < COUNT(kinds); i++) {
        if (kinds[i].level == level) {
            *ret_kind = kinds[i].kind;
            return true;
        }
    }
    return false;
}

static int add_path(struct nvlink_ends *ends, size_t one, size_t other, bool *is_supported,
                    struct findings *findings, struct berth_error *error)
{
    struct nvidia_query *query = &ends->items[one].query;
    enum link_kind kind;
    int level = -1;
    int code;

    if (!*is_supported || query->lost != 0 || ends->items[other].query.lost != 0)
        return 0;
    code = query->nvml->common_ancestor(query->handle, ends->items[other].query.handle, &level);
    /* If one pair is not supported, none is. */
    *is_supported = code != NVML_ERROR_NOT_SUPPORTED;
    return code == NVML_SUCCESS && path_kind(level, &kind)
               ? add_link(findings, one, other, kind, 0, error)
               : 0;
}

static int add_links(struct nvlink_ends *ends, bool is_supported, struct findings *findings,
                     struct berth_error *error)
{
    int code = 0;

    for (size_t one = 0; one < ends->count; one++) {
        for (size_t other = one + 1; other < ends->count && code == 0; other++) {
            uint32_t lanes;

            if (!ends->items[one].is_reachable || !ends->items[other].is_reachable)
                continue;
            lanes = lanes_between(ends, one, other);
            if (lanes > 0)
                code = add_link(findings, one, other, LINK_NVLINK, lanes, error);
            if (code == 0)
                code = add_path(ends, one, other, &is_supported, findings, error);
        }
    }
    return code;
}

int nvidia_links(struct vendor_context *context, const struct finding_list *devices,
                 struct findings *findings, struct berth_error *error)
{
    const struct nvml *nvml = NULL;
    struct nvlink_ends ends = {0};
    int code;

    if (devices->count < 2)
        return 0;
    code = nvidia_begin(context, NULL, &nvml, error);
    if (code == BERTH_ERROR_NOT_FOUND || code == BERTH_ERROR_NO_DEVICE)
        return 0;
    if (code == 0)
        code = ends_init(&ends, context, nvml, devices, error);
    for (size_t i = 0; i < ends.count && code == 0; i++) {
        if (ends.items[i].is_reachable)
            follow_lanes(&ends, i);
    }
    if (code == 0)
        code = add_links(&ends, nvml->common_ancestor != NULL, findings, error);
    free(ends.items);
    free(ends.lanes);
    nvidia_end(context);
    return code;
}
