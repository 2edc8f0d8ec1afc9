/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/error.h"
#include "context/opencl_internal.h"

/* A CPU divided into parts. The parts are kept until the process ends and reused, never released:
 * the driver's threads may still use a part after all work on it has ended, as PoCL's do. */
struct opencl_split {
    opencl_device cpu;
    uint32_t units_each;
    struct opencl_devices parts;
    struct opencl_split *next;
};

static bool is_available(struct opencl *opencl, opencl_device device)
{
    uint32_t available;

    return opencl_device_info(opencl, device, OPENCL_DEVICE_AVAILABLE, &available,
                              sizeof(available)) == OPENCL_SUCCESS &&
           available != 0;
}

/* Finds the first CPU. */
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
        return context_driver_set_error(&opencl->driver, failure, BERTH_ERROR_DRIVER, error,
                                        "OpenCL: cannot find a CPU to stand in");
    return error_set(error, BERTH_ERROR_NOT_FOUND, "OpenCL: no CPU to stand in");
}

/* Divides the CPU; there are no parts if it cannot be divided. */
static int split_cpu(struct opencl *opencl, opencl_device cpu, uint32_t units_each,
                     struct opencl_devices *parts)
{
    const intptr_t properties[] = {OPENCL_DEVICE_PARTITION_EQUALLY, (intptr_t)units_each, 0};
    uint32_t count = 0;
    int status = OPENCL_DEVICE_PARTITION_FAILED;

    if (opencl->calls.create_sub_devices != NULL)
        status = opencl->calls.create_sub_devices(cpu, properties, OPENCL_DEVICES_MAX, parts->items,
                                                  &count);
    while (status == OPENCL_SUCCESS && parts->count < count && parts->count < OPENCL_DEVICES_MAX &&
           parts->items[parts->count] != NULL)
        parts->count++;
    return status;
}

/* Gets the CPU's division into parts with this many units; NULL if it cannot be divided. The caller
 * holds the mutex. */
static int get_split(struct opencl *opencl, opencl_device cpu, uint32_t units_each,
                     struct opencl_split **ret_split, struct berth_error *error)
{
    struct opencl_split *found = opencl->splits;
    int status;

    while (found != NULL && (found->cpu != cpu || found->units_each != units_each))
        found = found->next;
    *ret_split = found;
    if (found != NULL)
        return 0;
    found = calloc(1, sizeof(*found));
    if (found == NULL)
        return error_set_memory(error);
    status = split_cpu(opencl, cpu, units_each, &found->parts);
    if (found->parts.count == 0) {
        free(found);
        return opencl_classify(status) != DRIVER_RETRY
                   ? 0
                   : context_driver_set_error(&opencl->driver, status, BERTH_ERROR_DRIVER, error,
                                              "OpenCL: cannot divide the CPU");
    }
    found->cpu = cpu;
    found->units_each = units_each;
    found->next = opencl->splits;
    opencl->splits = found;
    *ret_split = found;
    return 0;
}

int opencl_stand_in(struct driver *driver, size_t number, size_t count,
                    struct native_device *ret_device, struct berth_error *error)
{
    struct opencl *opencl = opencl_of(driver);
    struct opencl_split *whole = NULL;
    opencl_device device = NULL;
    uint32_t units;
    size_t parts;
    int code = find_cpu(opencl, &device, error);

    if (code < 0)
        return code;
    if (opencl_device_info(opencl, device, OPENCL_DEVICE_MAX_COMPUTE_UNITS, &units,
                           sizeof(units)) != OPENCL_SUCCESS)
        units = 1;
    parts = count < units ? count : units;
    pthread_mutex_lock(&opencl->mutex);
    if (parts > 1)
        code = get_split(opencl, device, units / (uint32_t)parts, &whole, error);
    pthread_mutex_unlock(&opencl->mutex);
    if (code < 0)
        return code;
    if (whole != NULL)
        device = whole->parts.items[number % parts % whole->parts.count];
    *ret_device = (struct native_device){.pointer = device, .number = -1};
    return 0;
}

void opencl_forget_splits(struct opencl *opencl)
{
    while (opencl->splits != NULL) {
        struct opencl_split *next = opencl->splits->next;

        free(opencl->splits);
        opencl->splits = next;
    }
}
