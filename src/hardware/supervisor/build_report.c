/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/supervisor/supervisor_internal.h"

#include <stdlib.h>
#include <string.h>

#include "codec/device_tags.h"
#include "hardware/sysfs/locality.h"

/* With more devices, the PCIe paths between them are not computed. */
enum { PCIE_DEVICES_MAX = 1024 };

/* A device of the report, while the report is built. */
struct report_entry {
    struct device device;
    const char *path; /* NULL: unknown */
};

struct report_builder {
    const struct device_cache *cache;
    bool without_processes;
    struct {
        VECTOR_OF(struct report_entry);
    } entries;
    struct machine_report report;
};

static int copy_device(const struct device *from, struct device *ret_device)
{
    struct text packet = {0};
    int code = tagged_pack(&device_tagged, from, &packet);

    if (code == 0)
        code = tagged_unpack(&device_tagged, (const unsigned char *)packet.bytes, packet.length,
                             ret_device, NULL);
    text_finish(&packet);
    return code;
}

static int copy_text(char **place, const char *text)
{
    char *copy = text == NULL ? NULL : strdup(text);

    if (text != NULL && copy == NULL)
        return BERTH_ERROR_MEMORY;
    free(*place);
    *place = copy;
    return 0;
}

/* ---- Devices ---- */

/* Returns why the device's current state is unknown; NULL: it is known. */
static const char *failure_of(const struct cached_device *known)
{
    if (known->read.runs)
        return "does not answer";
    if (known->read.waits)
        return "was not reached in time";
    return known->failure;
}

static int add_entry(struct report_builder *builder, const struct cached_device *known,
                     const struct device_finding *found)
{
    const char *failure = failure_of(known);
    struct report_entry *entry = vector_append(&builder->entries);
    int code;

    if (entry == NULL)
        return BERTH_ERROR_MEMORY;
    code = copy_device(found->device, &entry->device);
    if (code < 0) {
        builder->entries.count--;
        return code;
    }
    entry->path = found->path;
    if (builder->without_processes)
        device_process_list_finish(&entry->device.processes);
    if (failure == NULL)
        return 0;
    entry->device.old = known->last.count > 0;
    if (known->read.waits)
        return 0;
    entry->device.health = HEALTH_SICK;
    return copy_text(&entry->device.health_reason, failure);
}

static int add_problems(struct report_builder *builder, const struct problem_list *from)
{
    const struct problem *problem;
    int code = 0;

    vector_for_each (problem, from) {
        if (code == 0)
            code = machine_report_add_problem(&builder->report.problems, problem->backend, "%s",
                                              problem->message);
    }
    return code;
}

static int add_device(struct report_builder *builder, const struct cached_device *known)
{
    const struct device *device = known->listed.device;
    const char *failure = failure_of(known);
    int code = add_problems(builder, &known->problems);

    for (size_t i = 0; i < device_cache_count_findings(known) && code == 0; i++)
        code = add_entry(builder, known, device_cache_finding_at(known, i));
    if (code == 0 && failure != NULL)
        code = machine_report_add_problem(&builder->report.problems, vendor_name(device->id.vendor),
                                          "%s%s%s%s: %s", device_id_format(device->id).text,
                                          device->pci.known ? " (" : "",
                                          device->pci.known ? pci_format(device->pci).text : "",
                                          device->pci.known ? ")" : "", failure);
    return code;
}

/* Returns why the vendor's devices could not be listed; NULL: they were listed. */
static const char *listing_failure(const struct cached_vendor *vendor)
{
    if (vendor->list.runs || vendor->list_candidates.runs)
        return "does not answer";
    return device_cache_is_listing(vendor) ? "was not reached in time" : vendor->list_failure;
}

static int add_vendor(struct report_builder *builder, const struct cached_vendor *vendor)
{
    const char *name = vendor_name(vendor->table->vendor);
    const char *failure = listing_failure(vendor);
    int code = add_problems(builder, &vendor->problems);

    if (vendor->listed && failure == NULL)
        builder->report.listed |= UINT32_C(1) << vendor->table->vendor;
    if (code == 0 && failure != NULL)
        code = machine_report_add_problem(&builder->report.problems, name,
                                          "cannot list the devices: %s", failure);
    if (code == 0 && (vendor->links_failure != NULL || vendor->links.runs))
        code = machine_report_add_problem(
            &builder->report.problems, name, "cannot find the links of the devices: %s",
            vendor->links.runs ? "does not answer" : vendor->links_failure);
    for (size_t i = 0; i < vendor->devices.count && code == 0; i++)
        code = add_device(builder, vendor->devices.items[i]);
    return code;
}

/* Orders by PCI address, a GPU before its partitions; devices without an address come last. */
static int compare_entries(const void *one, const void *other)
{
    const struct report_entry *a = one;
    const struct report_entry *b = other;
    int order = 0;

    if (a->device.pci.known != b->device.pci.known)
        return a->device.pci.known ? -1 : 1;
    if (a->device.pci.known)
        order = pci_compare(a->device.pci, b->device.pci);
    else if (a->path != NULL && b->path != NULL)
        order = strverscmp(a->path, b->path);
    if (order != 0)
        return order;
    if (a->device.id.vendor != b->device.id.vendor)
        return a->device.id.vendor < b->device.id.vendor ? -1 : 1;
    if (a->device.id.index != b->device.id.index)
        return a->device.id.index < b->device.id.index ? -1 : 1;
    /* DEVICE_NO_MIG is the largest number: with 1 added it is 0, so the whole GPU comes first. */
    return (a->device.id.mig + 1 > b->device.id.mig + 1) -
           (a->device.id.mig + 1 < b->device.id.mig + 1);
}

/* ---- Processes ---- */

static bool has_node(const struct device *device, const char *node)
{
    char **own;

    vector_for_each (own, &device->nodes) {
        if (strcmp(*own, node) == 0)
            return true;
    }
    return false;
}

/* Finds the device that the scan saw in use: by its device file, or by its PCI address if only one
 * device has it. Returns NULL if it is none of these devices. */
static struct device *find_used_device(const struct report_builder *builder,
                                       const struct device *used)
{
    struct device *found = NULL;
    struct report_entry *entry;
    char **node;

    vector_for_each (entry, &builder->entries) {
        vector_for_each (node, &used->nodes) {
            if (has_node(&entry->device, *node))
                return &entry->device;
        }
    }
    vector_for_each (entry, &builder->entries) {
        if (!used->pci.known || !entry->device.pci.known ||
            pci_compare(used->pci, entry->device.pci) != 0)
            continue;
        if (found != NULL)
            return NULL;
        found = &entry->device;
    }
    return found;
}

/* Returns whether the scan of /proc may set the device's utilization: only if the device is known
 * to work. */
static bool is_working(const struct device *device)
{
    return !device->old && !device->asleep && device->health != HEALTH_SICK;
}

/* Returns whether a process that has the device file open only draws. NVML lists the processes that
 * compute on NVIDIA's GPUs. A process that computes on AMD's GPUs has /dev/kfd open as well. */
static bool only_draws(const struct device *device, const struct device_process *user)
{
    return device->id.vendor == VENDOR_NVIDIA || (device->id.vendor == VENDOR_AMD && user->draws);
}

static int add_use(struct device *device, const struct device *used)
{
    const struct device_process *user;

    if (!device->load.utilization.known && is_working(device))
        device->load.utilization = used->load.utilization;
    vector_for_each (user, &used->processes) {
        size_t known = device->processes.count;
        struct device_process *process = device_process_find_or_add(&device->processes, user->pid);

        if (process != NULL && device->processes.count > known)
            process->draws = only_draws(device, user);
        if (process == NULL)
            return device->processes.count < DEVICE_PROCESSES_MAX ? BERTH_ERROR_MEMORY : 0;
        if (!process->memory.known)
            process->memory = user->memory;
    }
    return 0;
}

static int copy_ancestors(struct device_process *process, const struct device_process *from)
{
    size_t size = from->ancestor_count * sizeof(*from->ancestors);
    uint32_t *copy = size == 0 ? NULL : malloc(size);

    if (size != 0 && copy == NULL)
        return BERTH_ERROR_MEMORY;
    if (copy != NULL)
        memcpy(copy, from->ancestors, size);
    free((void *)process->ancestors);
    process->ancestors = copy;
    process->ancestor_count = from->ancestor_count;
    return 0;
}

/* Returns whether the process has not been described by the time of the report. */
static bool is_late(const struct cached_process *cached)
{
    return !cached->one.items[0].uid.known && (cached->describe.waits || cached->describe.runs);
}

static int describe_process(const struct device_cache *cache, struct device_process *process)
{
    int code;

    for (size_t i = 0; i < cache->processes.count; i++) {
        const struct device_process *known = &cache->processes.items[i]->one.items[0];

        if (known->pid != process->pid)
            continue;
        process->uid = known->uid;
        process->undecided = known->undecided;
        if (is_late(cache->processes.items[i])) {
            process->undecided = true;
            process->uid = stalled_uid(process->pid);
        }
        process->started = known->started;
        process->said_lease = known->said_lease;
        process->owner = known->owner;
        code = copy_text(&process->command, known->command);
        if (code == 0)
            code = copy_text(&process->said_socket, known->said_socket);
        if (code == 0)
            code = copy_ancestors(process, known);
        return code < 0 ? code : copy_text(&process->container, known->container);
    }
    return 0;
}

static int add_uses(struct report_builder *builder)
{
    const struct device_cache *cache = builder->cache;
    const char *failure = cache->scan.runs ? "does not answer" : cache->scan_failure;
    struct device_process *process;
    const struct device_finding *found;
    struct report_entry *entry;
    int code = add_problems(builder, &cache->scanned.problems);

    if (code == 0 && failure != NULL)
        code = machine_report_add_problem(&builder->report.problems, "processes",
                                          "cannot find the processes on the devices: %s", failure);
    vector_for_each (found, &cache->scanned.found) {
        struct device *device = find_used_device(builder, found->device);

        if (device != NULL && code == 0)
            code = add_use(device, found->device);
    }
    vector_for_each (entry, &builder->entries) {
        vector_for_each (process, &entry->device.processes) {
            if (code == 0)
                code = describe_process(cache, process);
        }
    }
    return code;
}

/* ---- Links ---- */

static bool is_linkable(const struct device *device)
{
    return device->id.mig == DEVICE_NO_MIG;
}

static int add_link(struct machine_report *report, size_t one, size_t other, enum link_kind kind,
                    uint32_t lanes)
{
    struct link *link = vector_append(&report->machine.links);

    if (link == NULL)
        return BERTH_ERROR_MEMORY;
    link->between[0] = one < other ? one : other;
    link->between[1] = one < other ? other : one;
    link->kind = kind;
    link->lanes = lanes;
    return 0;
}

/* Adds the vendor's links if both devices are in the report. Marks the pairs whose PCIe path is
 * known. */
static int add_vendor_links(struct report_builder *builder, const struct cached_vendor *vendor,
                            bool *has_path)
{
    const struct device_list *devices = &builder->report.machine.devices;
    size_t count = devices->count;
    int code = 0;

    for (size_t i = 0; i < vendor->cached_links.count && code == 0; i++) {
        const struct cached_link *link = &vendor->cached_links.items[i];
        size_t one = device_list_find(devices, link->between[0]);
        size_t other = device_list_find(devices, link->between[1]);

        if (one >= count || other >= count || one == other)
            continue;
        code = add_link(&builder->report, one, other, link->kind, link->lanes);
        if (has_path != NULL && !link_is_fabric(link->kind))
            has_path[one * count + other] = has_path[other * count + one] = true;
    }
    return code;
}

/* Adds the PCIe paths of the other pairs, which sysfs shows. */
static int add_paths(struct report_builder *builder, const bool *has_path)
{
    size_t count = builder->entries.count;
    int code = 0;

    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count && code == 0; j++) {
            const struct report_entry *one = &builder->entries.items[i];
            const struct report_entry *other = &builder->entries.items[j];
            const struct device *devices = builder->report.machine.devices.items;
            enum link_kind kind;

            if (has_path[i * count + j] || one->path == NULL || other->path == NULL ||
                !is_linkable(&devices[i]) || !is_linkable(&devices[j]))
                continue;
            if (locality_between(one->path, devices[i].numa, other->path, devices[j].numa, &kind))
                code = add_link(&builder->report, i, j, kind, 0);
        }
    }
    return code;
}

static int add_links(struct report_builder *builder)
{
    const struct device_cache *cache = builder->cache;
    size_t count = builder->entries.count;
    bool *has_path = count > PCIE_DEVICES_MAX ? NULL : calloc(count * count + 1, sizeof(bool));
    int code = has_path == NULL && count <= PCIE_DEVICES_MAX ? BERTH_ERROR_MEMORY : 0;

    for (size_t i = 0; i < cache->vendor_count && code == 0; i++)
        code = add_vendor_links(builder, &cache->vendors[i], has_path);
    if (code == 0 && has_path != NULL)
        code = add_paths(builder, has_path);
    free(has_path);
    return code;
}

/* ---- The report ---- */

/* Moves the devices into the report. */
static int move_devices(struct report_builder *builder)
{
    struct device_list *devices = &builder->report.machine.devices;
    struct report_entry *entry;
    int code = vector_reserve(devices, builder->entries.count);

    if (code < 0)
        return code;
    vector_for_each (entry, &builder->entries) {
        struct device *place = vector_append(devices);

        *place = entry->device;
        entry->device = (struct device){0};
    }
    return 0;
}

static int fill_report(struct report_builder *builder)
{
    const struct device_cache *cache = builder->cache;
    int code = 0;

    for (size_t i = 0; i < cache->vendor_count && code == 0; i++)
        code = add_vendor(builder, &cache->vendors[i]);
    if (builder->entries.count > 1)
        qsort(builder->entries.items, builder->entries.count, sizeof(struct report_entry),
              compare_entries);
    if (code == 0 && !builder->without_processes)
        code = add_uses(builder);
    if (code == 0)
        code = move_devices(builder);
    return code < 0 ? code : add_links(builder);
}

int build_report(const struct device_cache *cache, bool without_processes,
                 struct machine_report *ret_report)
{
    struct report_builder builder = {.cache = cache, .without_processes = without_processes};
    struct report_entry *entry;
    int code = fill_report(&builder);

    vector_for_each (entry, &builder.entries)
        device_finish(&entry->device);
    vector_finish(&builder.entries);
    if (code < 0)
        machine_report_finish(&builder.report);
    else
        *ret_report = builder.report;
    return code;
}
