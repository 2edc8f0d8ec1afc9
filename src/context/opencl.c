/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/library.h"
#include "context/opencl_internal.h"

static const struct library_symbol symbols[] = {
#define SYMBOL(type, member, symbol, is_required, parameters) \
    {symbol, offsetof(struct opencl_calls, member), is_required},
    OPENCL_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

/* ---- Queries ---- */

int opencl_device_info(struct opencl *opencl, opencl_device device, uint32_t name, void *value,
                       size_t size)
{
    size_t answer = 0;
    int status;

    memset(value, 0, size);
    status = opencl->calls.device_info(device, name, size, value, &answer);
    return status == OPENCL_SUCCESS && answer != size ? OPENCL_INVALID_VALUE : status;
}

void opencl_platform_text(struct opencl *opencl, opencl_platform platform, uint32_t name,
                          char *text, size_t size)
{
    char whole[512] = ""; /* longer than any real text */
    size_t answer = 0;
    int status = opencl->calls.platform_info(platform, name, sizeof(whole), whole, &answer);
    size_t length =
        status == OPENCL_SUCCESS && answer <= sizeof(whole) ? strnlen(whole, answer) : 0;

    if (length >= size)
        length = size - 1;
    memcpy(text, whole, length);
    text[length] = '\0';
}

int opencl_list_platforms(struct opencl *opencl, struct opencl_platforms *ret_platforms,
                          struct berth_error *error)
{
    uint32_t count = 0;
    int status;

    *ret_platforms = (struct opencl_platforms){0};
    status = opencl->calls.platforms(OPENCL_PLATFORMS_MAX, ret_platforms->items, &count);
    if (status == OPENCL_PLATFORM_NOT_FOUND_KHR || (status == OPENCL_SUCCESS && count == 0))
        return error_set(error, BERTH_ERROR_NO_DEVICE,
                         "OpenCL: no platform: no OpenCL driver is installed");
    if (status != OPENCL_SUCCESS)
        return context_driver_set_error(&opencl->driver, status, BERTH_ERROR_DRIVER, error,
                                        "OpenCL: cannot list the platforms");
    ret_platforms->count = count < OPENCL_PLATFORMS_MAX ? count : OPENCL_PLATFORMS_MAX;
    return 0;
}

/* Removes entries that are NULL or duplicates. */
static void remove_duplicates(struct opencl_devices *devices)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < devices->count; i++) {
        bool is_new = devices->items[i] != NULL;

        for (uint32_t k = 0; k < kept && is_new; k++)
            is_new = devices->items[k] != devices->items[i];
        if (is_new)
            devices->items[kept++] = devices->items[i];
    }
    devices->count = kept;
}

int opencl_list_devices(struct opencl *opencl, opencl_platform platform, uint64_t types,
                        struct opencl_devices *ret_devices)
{
    uint32_t count = 0;
    int status;

    *ret_devices = (struct opencl_devices){0};
    status = opencl->calls.devices(platform, types, OPENCL_DEVICES_MAX, ret_devices->items, &count);
    if (status != OPENCL_SUCCESS)
        return status == OPENCL_DEVICE_NOT_FOUND ? OPENCL_SUCCESS : status;
    ret_devices->count = count < OPENCL_DEVICES_MAX ? count : OPENCL_DEVICES_MAX;
    remove_duplicates(ret_devices);
    return OPENCL_SUCCESS;
}

/* ---- Contexts ---- */

void opencl_destroy(struct opencl *opencl)
{
    if (opencl == NULL)
        return;
    opencl_forget_splits(opencl);
    pthread_mutex_destroy(&opencl->mutex);
    free(opencl);
}

static int open_driver(const char *file, struct driver **ret_driver, struct berth_error *error)
{
    struct opencl *opencl = calloc(1, sizeof(*opencl));
    struct opencl_platforms platforms;
    int code;

    if (opencl == NULL)
        return error_set_memory(error);
    opencl->driver.ops = &opencl_driver;
    pthread_mutex_init(&opencl->mutex, NULL);
    code = library_open(file, symbols, COUNT(symbols), &opencl->calls, &opencl->library, error);
    /* From its first call on the library stays loaded, even if it is unusable. */
    if (code == 0)
        code = opencl_list_platforms(opencl, &platforms, error);
    if (code < 0)
        opencl_destroy(opencl);
    else
        *ret_driver = &opencl->driver;
    return code;
}

static int create_native(struct driver *driver, struct native_device device, unsigned flags,
                         struct native_context *ret_context)
{
    struct opencl *opencl = opencl_of(driver);
    opencl_device handle = device.pointer;
    opencl_platform platform;
    opencl_context context;
    int32_t created = OPENCL_SUCCESS;
    int status =
        opencl_device_info(opencl, handle, OPENCL_DEVICE_PLATFORM, &platform, sizeof(platform));

    (void)flags; /* CUDA only */
    if (status != OPENCL_SUCCESS)
        return status;
    context = opencl->calls.create_context(
        (const intptr_t[]){OPENCL_CONTEXT_PLATFORM, (intptr_t)platform, 0}, 1, &handle, NULL, NULL,
        &created);
    if (created != OPENCL_SUCCESS)
        return created;
    if (context == NULL)
        return OPENCL_INVALID_CONTEXT;
    *ret_context = (struct native_context){.pointer = context, .device = device};
    return OPENCL_SUCCESS;
}

static int destroy_native(struct driver *driver, struct native_context context)
{
    return context.pointer == NULL ? OPENCL_SUCCESS
                                   : opencl_of(driver)->calls.release_context(context.pointer);
}

/* Only this process uses an OpenCL context, so a lost one is released and replaced. Objects of the
 * program keep the old context alive until the program releases them. */
static int rebuild_native(struct driver *driver, struct native_context *context, unsigned flags)
{
    struct native_device device = context->device;

    destroy_native(driver, *context);
    *context = (struct native_context){.device = device};
    return create_native(driver, device, flags, context);
}

/* AMD's driver reports the free memory in KiB, followed by the largest free block. */
static struct optional_number query_free_memory(struct opencl *opencl, opencl_device device,
                                                uint64_t total)
{
    size_t answer[2] = {0};
    size_t size = 0;
    uint64_t bytes;

    if (opencl->calls.device_info(device, OPENCL_DEVICE_GLOBAL_FREE_MEMORY_AMD, sizeof(answer),
                                  answer, &size) != OPENCL_SUCCESS ||
        (size != sizeof(answer) && size != sizeof(answer[0])) ||
        __builtin_mul_overflow(answer[0], UINT64_C(1024), &bytes) || bytes > total)
        return (struct optional_number){0};
    return optional_number_of(bytes);
}

static int query_memory(struct driver *driver, const struct native_context *context,
                        struct driver_memory *ret_memory)
{
    struct opencl *opencl = opencl_of(driver);
    opencl_device device = context->device.pointer;
    struct driver_memory memory = {0};
    uint64_t total;
    int status =
        opencl_device_info(opencl, device, OPENCL_DEVICE_GLOBAL_MEM_SIZE, &total, sizeof(total));

    if (status != OPENCL_SUCCESS && status != OPENCL_INVALID_VALUE)
        return status;
    if (status == OPENCL_SUCCESS && total > 0) {
        memory.total = optional_number_of(total);
        memory.free = query_free_memory(opencl, device, total);
    }
    *ret_memory = memory;
    return OPENCL_SUCCESS;
}

/* Creating a queue reaches the device's driver in the context, and does not wait for work in it. */
static int try_context(struct driver *driver, const struct native_context *context)
{
    struct opencl *opencl = opencl_of(driver);
    opencl_device device = context->device.pointer;
    uint32_t is_available;
    int32_t created = OPENCL_SUCCESS;
    opencl_queue queue;
    int status;

    if (context->pointer == NULL)
        return OPENCL_INVALID_CONTEXT;
    status = opencl_device_info(opencl, device, OPENCL_DEVICE_AVAILABLE, &is_available,
                                sizeof(is_available));
    if (status != OPENCL_SUCCESS)
        return status;
    if (!is_available)
        return OPENCL_DEVICE_NOT_AVAILABLE;
    queue = opencl->calls.create_queue(context->pointer, device, 0, &created);
    if (created != OPENCL_SUCCESS)
        return created;
    return queue == NULL ? OPENCL_INVALID_COMMAND_QUEUE : opencl->calls.release_queue(queue);
}

const struct driver_ops opencl_driver = {
    .api = BERTH_API_OPENCL,
    .name = "OpenCL",
    .variable = "BERTH_OPENCL",
    .library = "libOpenCL.so.1",
    .open = open_driver,
    .find = opencl_find,
    .stand_in = opencl_stand_in,
    .create = create_native,
    .destroy = destroy_native,
    .rebuild = rebuild_native,
    .memory = query_memory,
    .try = try_context,
    .classify = opencl_classify,
    .name_status = opencl_name_status,
};
