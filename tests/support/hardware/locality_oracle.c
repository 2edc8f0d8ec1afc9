/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads one machine with berth's own code and with hwloc, and prints both results as JSON:
 *
 *     BERTH_SYSROOT=ROOT HWLOC_FSROOT=ROOT locality-oracle
 *
 * For each PCI device: its NUMA node and nearby CPUs by berth; the NUMA nodes and CPUs of its
 * nearest ancestor outside the I/O tree by hwloc. For each pair of devices: berth's kind of path;
 * hwloc's common ancestor (a bridge, a host bridge, or only the machine), and the number of bridges
 * between it and each device.
 */
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/json.h"
#include "hardware/sysfs/locality.h"
#include "support/require.h"

struct seen {
    hwloc_obj_t object;
    char *path;
    struct device device; /* what berth reads */
};

struct seen_list {
    VECTOR_OF(struct seen);
};

static hwloc_topology_t load(void)
{
    hwloc_topology_t topology;

    require(hwloc_topology_init(&topology) == 0);
    require(hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) == 0);
    require(hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL) == 0);
    require(hwloc_topology_load(topology) == 0);
    return topology;
}

static bool is_pci_bridge(hwloc_obj_t object)
{
    return object->type == HWLOC_OBJ_BRIDGE &&
           object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

static struct pci_address address_of(hwloc_obj_t object)
{
    const struct hwloc_pcidev_attr_s *pci = &object->attr->pcidev;

    return (struct pci_address){
        .known = true,
        .domain = pci->domain,
        .bus = pci->bus,
        .device = pci->dev,
        .function = pci->func,
    };
}

static void see_all(hwloc_topology_t topology, const struct sysroot *root, struct seen_list *list)
{
    hwloc_obj_t object = NULL;

    while ((object = hwloc_get_next_pcidev(topology, object)) != NULL) {
        struct seen *seen = vector_append(list);

        require(seen != NULL);
        seen->object = object;
        seen->device.pci = address_of(object);
        seen->path = locality_pci_path(root, seen->device.pci);
        require(seen->path != NULL);
        require(locality_read(root, seen->path, &seen->device, NULL) == 0);
    }
}

static void write_set(struct json *json, const char *key, hwloc_const_bitmap_t set)
{
    char *string = NULL;

    require(hwloc_bitmap_list_asprintf(&string, set) >= 0);
    json_key(json, key);
    json_string(json, string);
    free(string);
}

static void write_device(struct json *json, hwloc_topology_t topology, const struct seen *seen)
{
    hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(topology, seen->object);

    require(place != NULL);
    json_object_begin(json);
    json_key(json, "pci");
    json_string(json, pci_format(seen->device.pci).text);
    json_key(json, "numa");
    if (seen->device.numa.known)
        json_unsigned(json, seen->device.numa.value);
    else
        json_null(json);
    json_key(json, "cpus");
    json_string(json, seen->device.cpus);
    write_set(json, "hwloc_nodes", place->nodeset);
    write_set(json, "hwloc_cpus", place->cpuset);
    json_object_end(json);
}

static bool is_above(hwloc_obj_t ancestor, hwloc_obj_t object)
{
    while (object != NULL && object != ancestor)
        object = object->parent;
    return object != NULL;
}

static uint64_t bridges_below(hwloc_obj_t ancestor, hwloc_obj_t object)
{
    uint64_t bridges = 0;

    for (object = object->parent; object != ancestor; object = object->parent)
        bridges += is_pci_bridge(object);
    return bridges;
}

static const char *kind_of(hwloc_obj_t common)
{
    if (common->type != HWLOC_OBJ_BRIDGE)
        return "machine";
    return is_pci_bridge(common) ? "bridge" : "host";
}

static void write_pair(struct json *json, const struct seen *one, const struct seen *other)
{
    hwloc_obj_t common = one->object->parent;
    enum link_kind kind;
    bool known =
        locality_between(one->path, one->device.numa, other->path, other->device.numa, &kind);

    while (!is_above(common, other->object))
        common = common->parent;
    json_object_begin(json);
    json_key(json, "one");
    json_string(json, pci_format(one->device.pci).text);
    json_key(json, "other");
    json_string(json, pci_format(other->device.pci).text);
    json_key(json, "kind");
    json_string(json, known ? choice_name(link_kind_names, (int)kind) : NULL);
    json_key(json, "hwloc_common");
    json_string(json, kind_of(common));
    json_key(json, "hwloc_bridges");
    json_array_begin(json);
    json_unsigned(json, bridges_below(common, one->object));
    json_unsigned(json, bridges_below(common, other->object));
    json_array_end(json);
    json_object_end(json);
}

int main(void)
{
    hwloc_topology_t topology = load();
    struct seen_list list = {0};
    struct text out = {0};
    struct sysroot root;
    struct seen *seen;
    struct json json;

    require(sysroot_init(&root, NULL) == 0);
    see_all(topology, &root, &list);
    json_start(&json, &out, JSON_COMPACT);
    json_object_begin(&json);
    json_key(&json, "devices");
    json_array_begin(&json);
    vector_for_each (seen, &list)
        write_device(&json, topology, seen);
    json_array_end(&json);
    json_key(&json, "pairs");
    json_array_begin(&json);
    for (size_t i = 0; i < list.count; i++)
        for (size_t j = i + 1; j < list.count; j++)
            write_pair(&json, &list.items[i], &list.items[j]);
    json_array_end(&json);
    json_object_end(&json);
    json_finish(&json);
    require(!text_failed(&out));
    fputs(text_string(&out), stdout);
    vector_for_each (seen, &list) {
        device_finish(&seen->device);
        free(seen->path);
    }
    vector_finish(&list);
    text_finish(&out);
    sysroot_finish(&root);
    hwloc_topology_destroy(topology);
    return 0;
}
