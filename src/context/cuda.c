/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's primary contexts. There is one for each device and process, which the program's other
 * libraries share. The driver counts references, so each retain here is released once. After a
 * fault, a context works again only after a reset, which affects all its users.
 */
#include "context/cuda.h"

#include <stdlib.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/library.h"
#include "base/text/quote.h"

static const struct library_symbol symbols[] = {
#define SYMBOL(member, symbol, is_required, parameters) \
    {symbol, offsetof(struct cuda_functions, member), is_required},
    CUDA_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

/* ---- Starting the driver ---- */

/* Uses the first version of a function if the driver lacks the second. */
static int choose_versions(const char *file, struct cuda_functions *functions,
                           struct berth_error *error)
{
#define CHOOSE(member, symbol)                                                                \
    if (functions->member == NULL)                                                            \
        functions->member = functions->member##_v1;                                           \
    if (functions->member == NULL)                                                            \
        return error_set(error, BERTH_ERROR_INVALID, "cannot load %s: it has no function %s", \
                         file, symbol);
    CUDA_VERSIONED(CHOOSE)
#undef CHOOSE
    return 0;
}

static int set_no_device_error(const char *file, struct berth_error *error)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    return error_set(error, BERTH_ERROR_NO_DEVICE, "%s: no device (CUDA %d)%s%s", file,
                     CUDA_ERROR_NO_DEVICE, visible == NULL ? "" : ": CUDA_VISIBLE_DEVICES=",
                     visible == NULL ? "" : quote(visible).text);
}

static int start_driver(struct cuda *cuda, const char *file, struct berth_error *error)
{
    int status = cuda->functions.init(0);

    switch (status) {
    case CUDA_SUCCESS:
        return 0;
    case CUDA_ERROR_NO_DEVICE:
        return set_no_device_error(file, error);
    case CUDA_ERROR_STUB_LIBRARY:
        return error_set(error, BERTH_ERROR_NOT_FOUND,
                         "%s: expected NVIDIA's driver, got a stub for linking (CUDA %d)", file,
                         status);
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return error_set(error, BERTH_ERROR_DRIVER,
                         "%s: does not match the running driver (CUDA %d): the "
                         "driver was updated, reboot to load the new one",
                         file, status);
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return error_set(error, BERTH_ERROR_DRIVER,
                         "%s: CUDA's forward compatibility does not support these GPUs "
                         "(CUDA %d)",
                         file, status);
    default:
        return context_driver_set_error(&cuda->driver, status, BERTH_ERROR_DRIVER, error,
                                        "%s: cannot start", file);
    }
}

static int open_driver(const char *file, struct driver **ret_driver, struct berth_error *error)
{
    struct cuda *cuda = calloc(1, sizeof(*cuda));
    void *library = NULL;
    int code;

    if (cuda == NULL)
        return error_set_memory(error);
    cuda->driver.ops = &cuda_driver;
    for (size_t i = 0; i < COUNT(cuda->primaries); i++)
        pthread_mutex_init(&cuda->primaries[i].mutex, NULL);
    code = library_open(file, symbols, COUNT(symbols), &cuda->functions, &library, error);
    if (code == 0) {
        code = choose_versions(file, &cuda->functions, error);
        if (code < 0)
            library_close(library);
    }
    /* From here on it stays loaded: it may have started threads even if it fails. */
    if (code == 0)
        code = start_driver(cuda, file, error);
    if (code < 0)
        free(cuda);
    else
        *ret_driver = &cuda->driver;
    return code;
}

/* ---- Using a context ---- */

/* Restores the thread's previous context. */
static void pop_context(const struct cuda_functions *functions,
                        const struct native_context *context, void *before)
{
    void *popped = NULL;

    if (functions->pop(&popped) != 0 || popped != context->pointer)
        functions->set_current(before);
}

/* Makes the context current until pop_context(). On failure the previous context stays current. */
static int push_context(const struct cuda_functions *functions,
                        const struct native_context *context, void **ret_before)
{
    void *before = NULL;
    void *now = NULL;
    int status;

    if (context->pointer == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    status = functions->get_current(&before);
    if (status != 0)
        return status;
    status = functions->push(context->pointer);
    if (status == 0)
        *ret_before = before;
    /* The status may belong to an earlier asynchronous call, and the push may have succeeded. */
    else if (functions->get_current(&now) == 0 && now != before)
        pop_context(functions, context, before);
    return status;
}

static int try_context(struct driver *driver, const struct native_context *context)
{
    const struct cuda_functions *functions = &((struct cuda *)driver)->functions;
    void *before;
    int status = push_context(functions, context, &before);

    if (status == 0) {
        status = functions->stream_query(NULL);
        pop_context(functions, context, before);
    }
    if (status == CUDA_ERROR_NOT_READY || (status >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
                                           status <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD))
        return CUDA_SUCCESS; /* it works and is busy */
    /* The context was passed explicitly, so the status can only be about it. */
    return status == CUDA_ERROR_INVALID_CONTEXT ? CUDA_ERROR_CONTEXT_IS_DESTROYED : status;
}

static int get_memory(struct driver *driver, const struct native_context *context,
                      struct driver_memory *ret_memory)
{
    const struct cuda_functions *functions = &((struct cuda *)driver)->functions;
    size_t free_bytes = SIZE_MAX;
    size_t total = 0;
    void *before;
    int status = push_context(functions, context, &before);

    if (status != 0)
        return status;
    status = functions->memory(&free_bytes, &total);
    pop_context(functions, context, before);
    if (status != 0)
        return status;
    *ret_memory = (struct driver_memory){0};
    if (total > 0 && total <= INT64_MAX) {
        ret_memory->total = optional_number_of(total);
        if (free_bytes <= total)
            ret_memory->free = optional_number_of(free_bytes);
    }
    return CUDA_SUCCESS;
}

static int make_current(struct driver *driver, const struct native_context *context)
{
    return ((struct cuda *)driver)->functions.set_current(context->pointer);
}

/* ---- Creating and releasing ---- */

/* Sets flags, unless they are 0. Every primary context maps host memory, so the driver does not
 * accept that flag. */
static int set_flags(struct cuda *cuda, int device, unsigned wanted)
{
    unsigned flags = 0;
    int is_active = 0;
    int status;

    wanted &= ~(unsigned)BERTH_CUDA_MAP_HOST;
    if (wanted == 0)
        return CUDA_SUCCESS;
    status = cuda->functions.set_flags(device, wanted);
    /* Older drivers refuse to set flags of an active context, even to the same value. */
    if (status == CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE &&
        cuda->functions.state(device, &flags, &is_active) == 0 &&
        (flags & CUDA_SCHED_MASK) == (wanted & CUDA_SCHED_MASK) && (flags & wanted) == wanted)
        return CUDA_SUCCESS;
    return status;
}

/* The caller holds the mutex. */
static int retain_primary(struct cuda *cuda, struct native_device device, unsigned flags,
                          struct native_context *ret_context)
{
    void *pointer = NULL;
    int status = set_flags(cuda, device.number, flags);

    if (status != 0)
        return status;
    status = cuda->functions.retain(&pointer, device.number);
    if (status != 0)
        return status;
    if (pointer == NULL) {
        cuda->functions.release(device.number);
        return CUDA_ERROR_UNKNOWN;
    }
    *ret_context = (struct native_context){
        .pointer = pointer,
        .device = device,
        .epoch = cuda->primaries[device.number].resets,
    };
    return CUDA_SUCCESS;
}

static int create_native(struct driver *driver, struct native_device device, unsigned flags,
                         struct native_context *ret_context)
{
    struct cuda *cuda = (struct cuda *)driver;
    struct cuda_primary *primary = &cuda->primaries[device.number];
    int status;

    pthread_mutex_lock(&primary->mutex);
    status = retain_primary(cuda, device, flags, ret_context);
    pthread_mutex_unlock(&primary->mutex);
    return status;
}

static int destroy_native(struct driver *driver, struct native_context context)
{
    struct cuda *cuda = (struct cuda *)driver;

    return context.pointer == NULL ? CUDA_SUCCESS : cuda->functions.release(context.device.number);
}

/* The caller holds the mutex. */
static int reset_primary(struct cuda *cuda, int device)
{
    int status = cuda->functions.reset(device);

    /* The status may be the fault that this call clears. */
    if (status != 0 && cuda_classify(status) != DRIVER_REBUILD)
        return status;
    cuda->primaries[device].resets++;
    return CUDA_SUCCESS;
}

/* Retains a context that works. The caller holds the mutex. */
static int retain_good(struct cuda *cuda, unsigned flags, struct native_context *context)
{
    struct native_context made;
    int status = retain_primary(cuda, context->device, flags, &made);

    if (status != 0)
        return status;
    status = try_context(&cuda->driver, &made);
    if (status != 0)
        cuda->functions.release(context->device.number);
    else
        *context = made;
    return status;
}

/* Resets the context and retains a new one. The caller holds the mutex and has retained nothing. A
 * reset clears the flags, so without `flags` the new context gets the `old` ones if the driver
 * accepts them. */
static int reset_and_retain(struct cuda *cuda, unsigned flags, unsigned old,
                            struct native_context *context)
{
    int status = reset_primary(cuda, context->device.number);

    if (status != 0)
        return status;
    if (flags == 0)
        set_flags(cuda, context->device.number, old);
    return retain_good(cuda, flags, context);
}

/* A reset destroys the context for all its users. The second user with the same fault takes the new
 * context, unless that is broken as well. */
static int rebuild_native(struct driver *driver, struct native_context *context, unsigned flags)
{
    struct cuda *cuda = (struct cuda *)driver;
    int device = context->device.number;
    struct cuda_primary *primary = &cuda->primaries[device];
    enum driver_verdict verdict;
    unsigned old = 0;
    int is_active = 0;
    int status;

    pthread_mutex_lock(&primary->mutex);
    if (cuda->functions.state(device, &old, &is_active) != 0)
        old = 0;
    /* Ignore the status: each retain is released exactly once. */
    if (context->pointer != NULL)
        cuda->functions.release(device);
    context->pointer = NULL;
    if (context->epoch == primary->resets)
        status = reset_and_retain(cuda, flags, old, context);
    else {
        status = retain_good(cuda, flags, context);
        verdict = cuda_classify(status);
        if (verdict == DRIVER_REBUILD || verdict == DRIVER_UNSURE)
            status = reset_and_retain(cuda, flags, old, context);
    }
    pthread_mutex_unlock(&primary->mutex);
    return status;
}

const struct driver_ops cuda_driver = {
    .api = BERTH_API_CUDA,
    .name = "CUDA",
    .variable = "BERTH_CUDA",
    .library = "libcuda.so.1",
    .open = open_driver,
    .find = cuda_find,
    .create = create_native,
    .destroy = destroy_native,
    .rebuild = rebuild_native,
    .make_current = make_current,
    .memory = get_memory,
    .try = try_context,
    .classify = cuda_classify,
    .name_status = cuda_name_status,
};
