/* SPDX-License-Identifier: Apache-2.0
 *
 * A double of OpenCL's loader, libOpenCL.so.1, for devices that the test machines do not have
 * (opencl_machine.h). It creates contexts and queues, but computes nothing.
 *
 * OPENCL_DOUBLE_LOG names a file that gets a line for each object that is created or released:
 * "context 0.1", or "no context" if the released handle is invalid or was released before. "0.1#2"
 * is the third part of device 0.1.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doubles/opencl_machine.h"

/* Clients know the functions by these names. They have no header with prototypes, because no other
 * code calls them. */
#define EXPORTED __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { PARTS = 64, OBJECTS = 64 };

/* A part of a device. The address of a handle shows whether it is a device or a part. */
struct part {
    opencl_device parent; /* NULL: unused */
    unsigned number;
};

/* A context or a queue. */
struct object {
    const char *kind; /* NULL: unused */
    char device[16];
};

static struct part parts[PARTS];
static struct object objects[OBJECTS];

/* ---- Helpers ---- */

static void write_log(const char *what, const char *name)
{
    const char *path = getenv("OPENCL_DOUBLE_LOG");
    int descriptor =
        path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    char line[64];
    int length = snprintf(line, sizeof(line), "%s %s\n", what, name);

    if (descriptor < 0)
        return;
    if (write(descriptor, line, (size_t)length) != length)
        abort();
    close(descriptor);
}

static struct part *part_of(opencl_device device)
{
    for (size_t i = 0; i < PARTS; i++) {
        if ((struct part *)device == &parts[i])
            return &parts[i];
    }
    return NULL;
}

/* Returns the device, or the device of a part; NULL if it is neither. */
static opencl_device whole_of(opencl_device device)
{
    const struct part *part = part_of(device);

    if (part != NULL)
        return part->parent;
    for (unsigned i = 0; i < platforms_count; i++) {
        for (unsigned k = 0; k < platforms[i].count; k++) {
            if (device == &platforms[i].devices[k])
                return device;
        }
    }
    return NULL;
}

static unsigned platform_of(opencl_device whole)
{
    unsigned i = 0;

    while (whole < platforms[i].devices || whole >= platforms[i].devices + DEVICES)
        i++;
    return i;
}

static void name_device(opencl_device device, char name[16])
{
    const struct part *part = part_of(device);
    opencl_device whole = part == NULL ? device : part->parent;
    unsigned place = platform_of(whole);
    unsigned number = (unsigned)(whole - platforms[place].devices);

    if (part == NULL)
        snprintf(name, 16, "%u.%u", place, number);
    else
        snprintf(name, 16, "%u.%u#%u", place, number, part->number);
}

/* Returns a value as OpenCL does. */
static int32_t give(const void *value, size_t size, size_t room, void *out, size_t *ret_size)
{
    if (out != NULL && room < size)
        return OPENCL_INVALID_VALUE;
    if (out != NULL)
        memcpy(out, value, size);
    if (ret_size != NULL)
        *ret_size = size;
    return OPENCL_SUCCESS;
}

/* ---- Platforms and devices ---- */

EXPORTED int32_t clGetPlatformIDs(uint32_t room, opencl_platform *out, uint32_t *ret_count)
{
    int32_t status;

    if (machine_tells(__func__, &status))
        return status;
    for (uint32_t i = 0; out != NULL && i < room && i < platforms_count; i++)
        out[i] = &platforms[i];
    if (ret_count != NULL)
        *ret_count =
            platforms_said.count > 0 ? (uint32_t)platforms_said.numbers[0] : platforms_count;
    return OPENCL_SUCCESS;
}

EXPORTED int32_t clGetPlatformInfo(opencl_platform platform, uint32_t name, size_t room, void *out,
                                   size_t *ret_size)
{
    const char *text = name == OPENCL_PLATFORM_NAME ? platform->name : platform->vendor;
    int32_t status;

    if (machine_tells(__func__, &status))
        return status;
    return give(text, strlen(text) + !platform->is_unterminated, room, out, ret_size);
}

EXPORTED int32_t clGetDeviceIDs(opencl_platform platform, uint64_t types, uint32_t room,
                                opencl_device *out, uint32_t *ret_count)
{
    uint32_t count = 0;
    int32_t status;

    if (machine_tells(__func__, &status))
        return status;
    if (platform == NULL)
        return OPENCL_INVALID_PLATFORM;
    if (platform->fails.count > 0)
        return (int32_t)platform->fails.numbers[0];
    for (unsigned i = 0; i < platform->count; i++) {
        opencl_device device = &platform->devices[i];
        uint64_t type = device->shown_as != 0 ? device->shown_as : device->type;

        for (unsigned times = 0; (type & types) != 0 && times <= device->is_twice; times++) {
            if (out != NULL && count < room)
                out[count] = device;
            count++;
        }
    }
    if (count == 0)
        return OPENCL_DEVICE_NOT_FOUND;
    if (platform->devices_said.count > 0)
        count = (uint32_t)platform->devices_said.numbers[0];
    if (ret_count != NULL)
        *ret_count = count;
    return OPENCL_SUCCESS;
}

/* Gets one number of a fact. Returns OPENCL_INVALID_VALUE if the fact does not have it. */
static int32_t give_number(const struct fact *fact, unsigned place, size_t size, size_t room,
                           void *out, size_t *ret_size)
{
    if (place >= fact->count)
        return OPENCL_INVALID_VALUE;
    return give(&fact->numbers[place], size, room, out, ret_size); /* on a little-endian machine */
}

static int32_t give_amd(const struct fact *fact, size_t room, void *out, size_t *ret_size)
{
    const struct opencl_topology_amd topology = {.type = OPENCL_DEVICE_TOPOLOGY_TYPE_PCIE_AMD,
                                                 .bus = (uint8_t)fact->numbers[0],
                                                 .device = (uint8_t)fact->numbers[1],
                                                 .function = (uint8_t)fact->numbers[2]};

    return fact->count == 0 ? OPENCL_INVALID_VALUE
                            : give(&topology, sizeof(topology), room, out, ret_size);
}

static int32_t give_khronos(const struct fact *fact, size_t room, void *out, size_t *ret_size)
{
    const struct opencl_pci_bus_info info = {
        .domain = (uint32_t)fact->numbers[0],
        .bus = (uint32_t)fact->numbers[1],
        .device = (uint32_t)fact->numbers[2],
        .function = (uint32_t)fact->numbers[3],
    };

    return fact->count == 0 ? OPENCL_INVALID_VALUE : give(&info, sizeof(info), room, out, ret_size);
}

static int32_t give_fact(opencl_device whole, uint32_t name, size_t room, void *out,
                         size_t *ret_size)
{
    opencl_platform platform = &platforms[platform_of(whole)];
    const uint32_t is_available = !whole->is_unavailable;

    switch (name) {
    case OPENCL_DEVICE_TYPE:
        return give(&whole->type, sizeof(uint64_t), room, out, ret_size);
    case OPENCL_DEVICE_PLATFORM:
        return give(&platform, sizeof(platform), room, out, ret_size);
    case OPENCL_DEVICE_AVAILABLE:
        return give(&is_available, sizeof(is_available), room, out, ret_size);
    case OPENCL_DEVICE_MAX_COMPUTE_UNITS:
        return give_number(&whole->units, 0, sizeof(uint32_t), room, out, ret_size);
    case OPENCL_DEVICE_GLOBAL_MEM_SIZE:
        return give_number(&whole->memory, 0, sizeof(uint64_t), room, out, ret_size);
    case OPENCL_DEVICE_GLOBAL_FREE_MEMORY_AMD:
        return give_number(&whole->free, 0, whole->free.count * sizeof(size_t), room, out,
                           ret_size);
    case OPENCL_DEVICE_PCI_BUS_INFO_KHR:
        return give_khronos(&whole->khronos, room, out, ret_size);
    case OPENCL_DEVICE_TOPOLOGY_AMD:
        return give_amd(&whole->amd, room, out, ret_size);
    case OPENCL_DEVICE_PCI_BUS_ID_NV:
    case OPENCL_DEVICE_PCI_SLOT_ID_NV:
    case OPENCL_DEVICE_PCI_DOMAIN_ID_NV:
        return give_number(&whole->nvidia, name - OPENCL_DEVICE_PCI_BUS_ID_NV, sizeof(uint32_t),
                           room, out, ret_size);
    case OPENCL_DEVICE_UUID_KHR:
        return whole->has_uuid ? give(whole->uuid, sizeof(whole->uuid), room, out, ret_size)
                               : OPENCL_INVALID_VALUE;
    default:
        return OPENCL_INVALID_VALUE;
    }
}

EXPORTED int32_t clGetDeviceInfo(opencl_device device, uint32_t name, size_t room, void *out,
                                 size_t *ret_size)
{
    opencl_device whole = whole_of(device);
    int32_t status;

    if (machine_tells(__func__, &status))
        return status;
    if (whole == NULL)
        return OPENCL_INVALID_DEVICE;
    status = give_fact(whole, name, room, out, ret_size);
    if (status == OPENCL_SUCCESS && ret_size != NULL && whole->size.count == 2 &&
        whole->size.numbers[0] == name)
        *ret_size = (size_t)whole->size.numbers[1];
    return status;
}

/* ---- Creating and releasing ---- */

EXPORTED int32_t clCreateSubDevices(opencl_device device, const intptr_t *properties, uint32_t room,
                                    opencl_device *out, uint32_t *ret_count)
{
    uint32_t count;
    uint32_t made = 0;
    char name[16];
    int32_t status;

    if (machine_tells(__func__, &status))
        return status;
    if (device->is_unsplittable || properties[0] != OPENCL_DEVICE_PARTITION_EQUALLY)
        return OPENCL_INVALID_VALUE;
    count = (uint32_t)(device->units.numbers[0] / (unsigned long long)properties[1]);
    if (count > room)
        return OPENCL_INVALID_VALUE;
    for (size_t i = 0; i < PARTS && made < count; i++) {
        if (parts[i].parent != NULL)
            continue;
        parts[i] = (struct part){.parent = device, .number = made};
        out[made++] = (opencl_device)(void *)&parts[i];
        name_device(out[made - 1], name);
        write_log("part", name);
    }
    *ret_count = device->splits.count > 0 ? (uint32_t)device->splits.numbers[0] : made;
    return made == count ? OPENCL_SUCCESS : OPENCL_OUT_OF_HOST_MEMORY;
}

static void *make(const char *kind, opencl_device device, int32_t *ret_status)
{
    for (size_t i = 0; i < OBJECTS; i++) {
        if (objects[i].kind != NULL)
            continue;
        objects[i].kind = kind;
        name_device(device, objects[i].device);
        write_log(kind, objects[i].device);
        *ret_status = OPENCL_SUCCESS;
        return &objects[i];
    }
    *ret_status = OPENCL_OUT_OF_HOST_MEMORY;
    return NULL;
}

static int32_t give_back(const char *kind, struct object *object, int32_t absent)
{
    char what[32];

    if (object < objects || object >= objects + OBJECTS || object->kind != kind) {
        write_log("no", kind);
        return absent;
    }
    snprintf(what, sizeof(what), "end of %s", kind);
    write_log(what, object->device);
    object->kind = NULL;
    return OPENCL_SUCCESS;
}

static const char context_kind[] = "context";
static const char queue_kind[] = "queue";

EXPORTED opencl_context clCreateContext(const intptr_t *properties, uint32_t count,
                                        const opencl_device *devices,
                                        void (*notify)(const char *, const void *, size_t, void *),
                                        void *data, int32_t *ret_status)
{
    opencl_device whole = count == 1 ? whole_of(devices[0]) : NULL;

    (void)notify;
    (void)data;
    if (machine_tells(__func__, ret_status))
        return NULL;
    *ret_status = OPENCL_INVALID_DEVICE;
    if (whole == NULL)
        return NULL;
    *ret_status = OPENCL_INVALID_PLATFORM;
    if (properties == NULL || properties[0] != OPENCL_CONTEXT_PLATFORM ||
        properties[1] != (intptr_t)&platforms[platform_of(whole)] || properties[2] != 0)
        return NULL;
    return make(context_kind, devices[0], ret_status);
}

EXPORTED int32_t clReleaseContext(opencl_context context)
{
    int32_t status;

    if (machine_tells(__func__, &status))
        return status;
    return give_back(context_kind, (struct object *)context, OPENCL_INVALID_CONTEXT);
}

EXPORTED opencl_queue clCreateCommandQueue(opencl_context context, opencl_device device,
                                           uint64_t properties, int32_t *ret_status)
{
    if (machine_tells(__func__, ret_status))
        return NULL;
    *ret_status = OPENCL_INVALID_CONTEXT;
    if (((struct object *)context)->kind != context_kind || properties != 0)
        return NULL;
    return make(queue_kind, device, ret_status);
}

EXPORTED int32_t clReleaseCommandQueue(opencl_queue queue)
{
    int32_t status;

    if (machine_tells(__func__, &status))
        return status;
    return give_back(queue_kind, (struct object *)queue, OPENCL_INVALID_COMMAND_QUEUE);
}
