/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "context/opencl_parts.h"

static bool is_available(struct opencl *opencl, opencl_device device)
{
    uint32_t available;

    return opencl_device_fact(opencl, device, OPENCL_DEVICE_AVAILABLE, &available,
                              sizeof(available)) == OPENCL_SUCCESS &&
           available != 0;
}

/* The first CPU that there is. */
static int find_cpu(struct opencl *opencl, opencl_device *ret_cpu, struct berth_error *error)
{
    struct opencl_platforms platforms;
    struct opencl_devices devices;
    int code = opencl_list_platforms(opencl, &platforms, error);
    int failure = OPENCL_SUCCESS;

    if (code < 0)
        return code;
    for (uint32_t i = 0; i < platforms.count; i++) {
        int status =
            opencl_list_devices(opencl, platforms.items[i], OPENCL_DEVICE_TYPE_CPU, &devices);

        failure = failure == OPENCL_SUCCESS ? status : failure;
        for (uint32_t k = 0; k < devices.count; k++) {
            if (is_available(opencl, devices.items[k])) {
                *ret_cpu = devices.items[k];
                return 0;
            }
        }
    }
    if (failure != OPENCL_SUCCESS)
        return driver_refuse(&opencl->driver, failure, BERTH_ERROR_DRIVER, error,
                             "OpenCL: wanted a device that is a CPU to stand in");
    return error_set(error, BERTH_ERROR_NOT_FOUND,
                     "OpenCL: wanted a device that is a CPU to stand in, found none");
}

/* Splits the CPU and keeps one part. NULL: it cannot be split. */
static int split(struct opencl *opencl, opencl_device cpu, uint32_t units_each, size_t number,
                 opencl_device *ret_part)
{
    const intptr_t properties[] = {OPENCL_DEVICE_PARTITION_EQUALLY, (intptr_t)units_each, 0};
    struct opencl_devices parts = {0};
    int status = opencl->calls.create_sub_devices(cpu, properties, OPENCL_DEVICES_MOST, parts.items,
                                                  &parts.count);

    *ret_part = NULL;
    if (parts.count > OPENCL_DEVICES_MOST)
        parts.count = OPENCL_DEVICES_MOST;
    for (uint32_t i = 0; i < parts.count && status == OPENCL_SUCCESS; i++) {
        if (i == number % parts.count)
            *ret_part = parts.items[i];
        else if (parts.items[i] != NULL)
            opencl->calls.release_device(parts.items[i]);
    }
    return status;
}

int opencl_stand_in(struct driver *driver, size_t number, size_t count,
                    struct native_device *ret_device, struct berth_error *error)
{
    struct opencl *opencl = opencl_of(driver);
    opencl_device part = NULL;
    opencl_device cpu = NULL;
    uint32_t units;
    size_t parts;
    int status = OPENCL_SUCCESS;
    int code = find_cpu(opencl, &cpu, error);

    if (code < 0)
        return code;
    if (opencl_device_fact(opencl, cpu, OPENCL_DEVICE_MAX_COMPUTE_UNITS, &units, sizeof(units)) !=
        OPENCL_SUCCESS)
        units = 1;
    parts = count < units ? count : units;
    if (parts > 1 && opencl->calls.create_sub_devices != NULL &&
        opencl->calls.release_device != NULL)
        status = split(opencl, cpu, units / (uint32_t)parts, number % parts, &part);
    if (opencl_judge(status) == DRIVER_RETRY)
        return driver_refuse(driver, status, BERTH_ERROR_DRIVER, error,
                             "OpenCL: wanted the CPU in %zu parts", parts);
    *ret_device = (struct native_device){.pointer = part == NULL ? cpu : part, .number = -1};
    return 0;
}

void opencl_forget(struct driver *driver, struct native_device device)
{
    struct opencl *opencl = opencl_of(driver);
    opencl_device parent;

    /* Whole devices are the platform's. */
    if (device.pointer != NULL && opencl->calls.release_device != NULL &&
        opencl_device_fact(opencl, device.pointer, OPENCL_DEVICE_PARENT_DEVICE, &parent,
                           sizeof(parent)) == OPENCL_SUCCESS &&
        parent != NULL)
        opencl->calls.release_device(device.pointer);
}
