/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/sysfs/locality.h"

#include <stdlib.h>
#include <string.h>

#include "base/bitset.h"
#include "base/error.h"

/* More CPUs and NUMA nodes than any kernel supports. A larger number is wrong. */
#define CPUS_MAX       65536
#define NUMA_NODES_MAX 65536

/* A component of a path. */
struct path_part {
    const char *start;
    size_t length;
};

/* Returns the next component of the path; empty at its end. */
static struct path_part next_part(const char *path)
{
    size_t slashes = strspn(path, "/");

    return (struct path_part){.start = path + slashes, .length = strcspn(path + slashes, "/")};
}

/* Returns the PCI address that the component names; unknown if it names none. Sysfs always writes
 * the domain. */
static struct pci_address part_pci(struct path_part part)
{
    struct pci_address address = {0};
    char name[24];

    if (part.length < strlen("0000:00:00.0") || part.length >= sizeof(name))
        return address;
    memcpy(name, part.start, part.length);
    name[part.length] = '\0';
    pci_parse(name, &address, NULL);
    return address;
}

/* Returns whether the component is a host bridge: pci0000:00. */
static bool part_is_host(struct path_part part)
{
    static const char digits[] = "0123456789abcdef";
    size_t domain;

    if (part.length < strlen("pci0000:00") || strncmp(part.start, "pci", 3) != 0)
        return false;
    domain = strspn(part.start + 3, digits);
    return domain >= 4 && domain <= 8 && part.start[3 + domain] == ':' &&
           strspn(part.start + 3 + domain + 1, digits) == 2 && part.length == 3 + domain + 1 + 2;
}

char *locality_pci_path(const struct sysroot *root, struct pci_address pci)
{
    if (!pci.known)
        return NULL;
    return sysroot_resolve(root, "/sys/bus/pci/devices/%s", pci_format(pci).text);
}

struct pci_address locality_pci_of(const char *path, size_t *ret_length)
{
    struct pci_address parent = {0};
    struct pci_address own = {0};
    struct path_part part = {.start = path};
    struct path_part before = part;

    for (struct path_part next = next_part(path); next.length > 0;
         next = next_part(next.start + next.length)) {
        before = part;
        part = next;
    }
    own = part_pci(part);
    parent = own.known ? own : part_pci(before);
    if (!own.known)
        part = before;
    if (parent.known && ret_length != NULL)
        *ret_length = (size_t)(part.start + part.length - path);
    return parent;
}

int locality_parse_cpus(const char *list, char **ret_cpus, struct berth_error *error)
{
    struct text text = {0};
    struct bitset cpus;
    int code = bitset_parse_ranges(list, CPUS_MAX, &cpus, NULL);

    if (code == BERTH_ERROR_MEMORY)
        return error_set_memory(error);
    if (code < 0) {
        *ret_cpus = NULL;
        return 0;
    }
    bitset_format_ranges(&cpus, &text);
    bitset_finish(&cpus);
    if (text_failed(&text)) {
        text_finish(&text);
        return error_set_memory(error);
    }
    *ret_cpus = text.length == 0 ? NULL : text_detach(&text);
    text_finish(&text);
    return 0;
}

int locality_read(const struct sysroot *root, const char *path, struct device *device,
                  struct berth_error *error)
{
    size_t length = strlen(path);
    struct sysroot_value list;
    int64_t node;

    /* A virtio device has no locality of its own. */
    locality_pci_of(path, &length);
    if (!device->numa.known && sysroot_signed(root, &node, "%.*s/numa_node", (int)length, path) &&
        node >= 0 && node < NUMA_NODES_MAX)
        device->numa = optional_number_of((uint64_t)node);
    /* A list that fills the page may be truncated within a number. */
    if (device->cpus != NULL ||
        sysroot_read(root, &list, "%.*s/local_cpulist", (int)length, path) != 0 ||
        list.length == SYSROOT_VALUE_SIZE - 1 || strlen(list.text) != list.length)
        return 0;
    return locality_parse_cpus(list.text, &device->cpus, error);
}

bool locality_is_asleep(const struct sysroot *root, const char *path)
{
    struct sysroot_value status;

    return sysroot_read(root, &status, "%s/power/runtime_status", path) == 0 &&
           strcmp(status.text, "suspended") == 0;
}

/* Returns the number of bridges between the point where two paths diverge and the device at the end
 * of one; unknown if there is no device. */
static struct optional_number bridges_below(const char *rest, struct pci_address *ret_device)
{
    struct optional_number bridges = {0};

    for (struct path_part part = next_part(rest); part.length > 0;
         part = next_part(part.start + part.length)) {
        struct pci_address address = part_pci(part);

        if (!address.known)
            continue; /* a host bridge of another domain, or a virtio device at the end */
        bridges = bridges.known ? optional_number_of(bridges.value + 1) : optional_number_of(0);
        *ret_device = address;
    }
    return bridges;
}

/* The common beginning of two paths. */
struct common {
    size_t length;   /* of the common beginning, in whole components */
    bool has_host;   /* it contains a host bridge */
    bool has_bridge; /* it contains a bridge or a device below the last host bridge */
};

static struct common find_common(const char *one, const char *other)
{
    struct common common = {0};

    for (;;) {
        struct path_part mine = next_part(one + common.length);
        struct path_part theirs = next_part(other + common.length);

        if (mine.length == 0 || mine.length != theirs.length ||
            memcmp(mine.start, theirs.start, mine.length) != 0 ||
            mine.start - one != theirs.start - other)
            return common;
        common.length = (size_t)(mine.start + mine.length - one);
        if (part_is_host(mine)) {
            common.has_host = true;
            common.has_bridge = false;
        } else if (common.has_host && part_pci(mine).known) {
            common.has_bridge = true;
        }
    }
}

static bool has_host(const char *path)
{
    for (struct path_part part = next_part(path); part.length > 0;
         part = next_part(part.start + part.length))
        if (part_is_host(part))
            return true;
    return false;
}

/* Returns the kind of a path below the common beginning. A switch has one upstream port, which both
 * paths share, and a downstream port for each path. So below one switch each path has at most one
 * bridge of its own. Shared bridges above do not matter. */
static enum link_kind below_common(struct common common, const char *one, const char *other)
{
    struct pci_address one_device = {0};
    struct pci_address other_device = {0};
    struct optional_number mine = bridges_below(one + common.length, &one_device);
    struct optional_number theirs = bridges_below(other + common.length, &other_device);

    if (!mine.known && !theirs.known && common.has_bridge)
        return LINK_PSB; /* parts of one device */
    if (mine.known && theirs.known && mine.value == 0 && theirs.value == 0 &&
        one_device.domain == other_device.domain && one_device.bus == other_device.bus &&
        one_device.device == other_device.device)
        return LINK_PSB;
    if (!common.has_bridge)
        return LINK_PHB;
    return mine.value <= 1 && theirs.value <= 1 ? LINK_PIX : LINK_PXB;
}

bool locality_between(const char *one_path, struct optional_number one_numa, const char *other_path,
                      struct optional_number other_numa, enum link_kind *ret_kind)
{
    struct common common = find_common(one_path, other_path);

    if (strcmp(one_path, other_path) == 0) {
        *ret_kind = LINK_PSB;
        return true;
    }
    if (!has_host(one_path) || !has_host(other_path))
        return false;
    if (common.has_host) {
        *ret_kind = below_common(common, one_path, other_path);
        return true;
    }
    if (!one_numa.known || !other_numa.known)
        return false;
    *ret_kind = one_numa.value == other_numa.value ? LINK_NODE : LINK_SYS;
    return true;
}
