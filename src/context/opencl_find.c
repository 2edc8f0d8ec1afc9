/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds OpenCL's device for a device of the pool. Searches all platforms, because a GPU may be in
 * several. The vendor's own driver is preferred to others (PoCL, Mesa), then the platform whose
 * name comes first, then the loader's order.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "context/opencl_internal.h"
#include "context/uuid.h"

/* The identity of the device that is searched for. */
struct wanted {
    const struct context_target *target;
    struct uuid uuid;
    bool has_address; /* its PCI address identifies it */
};

/* A platform that has the device. */
struct platform_match {
    opencl_device device;
    size_t count; /* number of its devices that match */
    bool is_vendors;
    char name[64];
};

struct opencl_search {
    struct opencl *opencl;
    struct wanted wanted;
    struct platform_match best; /* device NULL: none yet */
    size_t others;              /* number of devices that do not match */
    size_t without_address;     /* number of those without UUID and PCI address */
    int status;                 /* the first failure of a platform */
};

/* ---- Identities ---- */

static struct uuid query_uuid(struct opencl *opencl, opencl_device device)
{
    uint8_t bytes[UUID_SIZE];

    if (opencl_device_info(opencl, device, OPENCL_DEVICE_UUID_KHR, bytes, sizeof(bytes)) !=
        OPENCL_SUCCESS)
        return (struct uuid){0};
    return uuid_of(bytes);
}

static struct pci_address make_address(uint32_t domain, uint32_t bus, uint32_t device,
                                       uint32_t function)
{
    if (bus > 255 || device > 31 || function > 7)
        return (struct pci_address){0};
    return (struct pci_address){.known = true,
                                .domain = domain,
                                .bus = (uint8_t)bus,
                                .device = (uint8_t)device,
                                .function = (uint8_t)function};
}

static struct pci_address address_by_khronos(struct opencl *opencl, opencl_device device)
{
    struct opencl_pci_bus_info info;

    if (opencl_device_info(opencl, device, OPENCL_DEVICE_PCI_BUS_INFO_KHR, &info, sizeof(info)) !=
        OPENCL_SUCCESS)
        return (struct pci_address){0};
    return make_address(info.domain, info.bus, info.device, info.function);
}

/* Drivers before 2020 do not report the domain. */
static struct pci_address address_by_nvidia(struct opencl *opencl, opencl_device device)
{
    uint32_t domain;
    uint32_t slot;
    uint32_t bus;

    if (opencl_device_info(opencl, device, OPENCL_DEVICE_PCI_BUS_ID_NV, &bus, sizeof(bus)) !=
            OPENCL_SUCCESS ||
        opencl_device_info(opencl, device, OPENCL_DEVICE_PCI_SLOT_ID_NV, &slot, sizeof(slot)) !=
            OPENCL_SUCCESS)
        return (struct pci_address){0};
    if (opencl_device_info(opencl, device, OPENCL_DEVICE_PCI_DOMAIN_ID_NV, &domain,
                           sizeof(domain)) != OPENCL_SUCCESS)
        domain = 0;
    return make_address(domain, bus, slot >> 3, slot & 7);
}

/* AMD's drivers never report the domain. */
static struct pci_address address_by_amd(struct opencl *opencl, opencl_device device)
{
    struct opencl_topology_amd topology;

    if (opencl_device_info(opencl, device, OPENCL_DEVICE_TOPOLOGY_AMD, &topology,
                           sizeof(topology)) != OPENCL_SUCCESS ||
        topology.type != OPENCL_DEVICE_TOPOLOGY_TYPE_PCIE_AMD)
        return (struct pci_address){0};
    return make_address(0, topology.bus, topology.device, topology.function);
}

/* If the domain is not reported, it is assumed to be 0, as on nearly all machines. Devices in other
 * domains are not found then, and two devices that differ only in the domain cannot be told apart.
 */
static struct pci_address query_address(struct opencl *opencl, opencl_device device)
{
    struct pci_address address = address_by_khronos(opencl, device);

    if (!address.known)
        address = address_by_nvidia(opencl, device);
    if (!address.known)
        address = address_by_amd(opencl, device);
    return address;
}

/* ---- Matching ---- */

/* If both have a UUID, it decides: a partition has the address of its GPU. */
static bool is_target(struct opencl_search *search, opencl_device device)
{
    const struct wanted *wanted = &search->wanted;
    struct uuid uuid = query_uuid(search->opencl, device);
    struct pci_address address = query_address(search->opencl, device);
    bool is_it = false;

    if (wanted->uuid.known && uuid.known)
        is_it = uuid_equals(&wanted->uuid, &uuid);
    else if (wanted->has_address && address.known)
        is_it = pci_compare(wanted->target->pci, address) == 0;
    search->others += !is_it;
    search->without_address += !uuid.known && !address.known;
    return is_it;
}

/* Checks the device's type, because a driver may return other types than requested. */
static bool is_cpu(struct opencl *opencl, opencl_device device)
{
    uint64_t type;

    return opencl_device_info(opencl, device, OPENCL_DEVICE_TYPE, &type, sizeof(type)) !=
               OPENCL_SUCCESS ||
           (type & OPENCL_DEVICE_TYPE_CPU) != 0;
}

/* Returns whether the platform belongs to the device's vendor. */
static bool is_platform_of(struct opencl *opencl, opencl_platform platform, enum vendor vendor)
{
    static const char *const makers[] = {
        [VENDOR_NVIDIA] = "NVIDIA", [VENDOR_AMD] = "Advanced Micro Devices",
        [VENDOR_INTEL] = "Intel",   [VENDOR_APPLE] = "Apple",
        [VENDOR_DRI] = NULL, /* any platform */
    };
    char text[128];

    opencl_platform_text(opencl, platform, OPENCL_PLATFORM_VENDOR, text, sizeof(text));
    return makers[vendor] != NULL && strstr(text, makers[vendor]) != NULL;
}

static bool is_better(const struct platform_match *one, const struct platform_match *other)
{
    if (other->device == NULL || one->is_vendors != other->is_vendors)
        return other->device == NULL || one->is_vendors;
    return strcmp(one->name, other->name) < 0;
}

static void search_platform(struct opencl_search *search, opencl_platform platform,
                            struct opencl_devices *devices)
{
    struct opencl *opencl = search->opencl;
    int status = opencl_list_devices(
        opencl, platform, OPENCL_DEVICE_TYPE_GPU | OPENCL_DEVICE_TYPE_ACCELERATOR, devices);
    struct platform_match match = {0};

    if (search->status == OPENCL_SUCCESS)
        search->status = status;
    for (uint32_t i = 0; i < devices->count; i++) {
        if (is_cpu(opencl, devices->items[i]) || !is_target(search, devices->items[i]))
            continue;
        match.device = devices->items[i];
        match.count++;
    }
    if (match.count == 0)
        return;
    match.is_vendors = is_platform_of(opencl, platform, search->wanted.target->id.vendor);
    opencl_platform_text(opencl, platform, OPENCL_PLATFORM_NAME, match.name, sizeof(match.name));
    if (is_better(&match, &search->best))
        search->best = match;
}

/* ---- Errors ---- */

struct target_text {
    char text[192];
};

/* Returns the identity that was searched for, "GPU-..., 0000:07:00.0", for use within one
 * expression. */
static struct target_text describe_target(const struct context_target *target)
{
    struct target_text out;
    bool has_uuid = target->uuid != NULL;
    bool has_address = target->pci.known;

    snprintf(out.text, sizeof(out.text), "%.96s%s%s", has_uuid ? target->uuid : "",
             has_uuid && has_address ? ", " : "", has_address ? pci_format(target->pci).text : "");
    return out;
}

static int set_unknown_error(const struct context_target *target, struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_NOT_FOUND,
                     "OpenCL: cannot find the device: expected %s, got %s",
                     target->is_partition ? "a partition's UUID" : "a UUID or a PCI address",
                     target->uuid == NULL ? "none" : target->uuid);
}

static int set_missing_error(const struct opencl_search *search, struct berth_error *error)
{
    struct target_text target = describe_target(search->wanted.target);

    if (search->status != OPENCL_SUCCESS)
        return context_driver_set_error(&search->opencl->driver, search->status, BERTH_ERROR_DRIVER,
                                        error, "OpenCL: cannot find %s: a platform fails",
                                        target.text);
    if (search->others == 0)
        return error_set(error, BERTH_ERROR_NOT_FOUND, "OpenCL: cannot find %s: no GPU",
                         target.text);
    return error_set(
        error, BERTH_ERROR_NOT_FOUND,
        "OpenCL: cannot find %s among %zu other device%s, %zu without UUID and PCI address",
        target.text, search->others, search->others == 1 ? "" : "s", search->without_address);
}

static int set_ambiguous_error(const struct opencl_search *search, struct berth_error *error)
{
    return error_set(
        error, BERTH_ERROR_NOT_FOUND, "OpenCL: expected one device %s, got %zu in the platform %s",
        describe_target(search->wanted.target).text, search->best.count, search->best.name);
}

int opencl_find(struct driver *driver, const struct context_target *target,
                struct native_device *ret_device, struct berth_error *error)
{
    struct opencl_search search = {
        .opencl = opencl_of(driver),
        .wanted = {.target = target, .has_address = target->pci.known && !target->is_partition},
    };
    struct opencl_platforms platforms;
    struct opencl_devices devices;
    int code;

    search.wanted.uuid = uuid_parse(target->uuid, target->is_partition);
    if (!search.wanted.uuid.known && !search.wanted.has_address)
        return set_unknown_error(target, error);
    code = opencl_list_platforms(search.opencl, &platforms, error);
    if (code < 0)
        return code;
    for (uint32_t i = 0; i < platforms.count; i++)
        search_platform(&search, platforms.items[i], &devices);
    if (search.best.device == NULL)
        return set_missing_error(&search, error);
    if (search.best.count > 1)
        return set_ambiguous_error(&search, error);
    *ret_device = (struct native_device){.pointer = search.best.device, .number = -1};
    return 0;
}
