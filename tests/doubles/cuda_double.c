/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of the CUDA double.
 */
#include <stdio.h>
#include <stdlib.h>

#include "doubles/cuda_calls.h"

/* All but 0x08: a primary context always maps host memory. */
#define FLAGS_ALL 0xf7u

EXPORTED int cuInit(unsigned flags)
{
    struct call call;
    int status = call_begin_early(&call, __func__);

    if (status == 0 && flags != 0)
        status = CUDA_ERROR_INVALID_VALUE;
    if (status != 0 || is_initialised)
        return call_end(&call, status);
    machine_read(&machine);
    if (machine.init != 0 || machine.shown == 0)
        return call_end(&call, machine.init != 0 ? machine.init : CUDA_ERROR_NO_DEVICE);
    is_initialised = true;
    return call_end(&call, 0);
}

EXPORTED int cuDriverGetVersion(int *version)
{
    struct call call;
    int status = call_begin_early(&call, __func__);

    if (status == 0 && version == NULL)
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == 0) {
        if (!is_initialised)
            machine_read(&machine);
        *version = machine.version;
    }
    return call_end(&call, status);
}

EXPORTED int cuGetErrorName(int error, const char **name)
{
    static const struct {
        int status;
        const char *name;
    } all[] = {
        {CUDA_SUCCESS, "CUDA_SUCCESS"},
        {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
        {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
        {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
        {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {719, "CUDA_ERROR_LAUNCH_FAILED"},
        {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
        {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"},
        {1234, "CUDA_ERROR_OF_TOMORROW"},
    };
    static char endless[4096];
    struct call call;
    int status = call_begin_early(&call, __func__);

    if (status != 0)
        return call_end(&call, status);
    memset(endless, '\n', sizeof(endless));
    *name = call.lies && call.number != 0 ? endless : NULL;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && !call.lies; i++) {
        if (all[i].status == error)
            *name = all[i].name;
    }
    return call_end(&call, *name == NULL && !call.lies ? CUDA_ERROR_INVALID_VALUE : 0);
}

EXPORTED int cuDeviceGetCount(int *count)
{
    struct call call;
    int status = call_begin(&call, __func__, CUDA_DOUBLE_ANY);

    if (status == 0 && count == NULL)
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == 0)
        *count = call.lies ? (int)call.number : (int)machine.shown;
    return call_end(&call, status);
}

/* Begins a call about a device. */
static int begin_device(struct call *call, const char *name, int device, struct machine_unit **unit,
                        struct primary **primary)
{
    int place = call_unit(device);
    int status = call_begin(call, name, place);

    if (status == 0 && place < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *unit = &machine.units[place < 0 ? 0 : place];
    *primary = &primaries[place < 0 ? 0 : place];
    return status;
}

EXPORTED int cuDeviceGet(int *device, int ordinal)
{
    struct call call;
    struct machine_unit *unit;
    struct primary *primary;
    int status = begin_device(&call, __func__, ordinal, &unit, &primary);

    if (status == 0)
        *device = call.lies ? (int)call.number : ordinal;
    return call_end(&call, status);
}

EXPORTED int cuDeviceGetName(char *text, int size, int device)
{
    struct call call;
    struct machine_unit *unit;
    struct primary *primary;
    int status = begin_device(&call, __func__, device, &unit, &primary);

    if (status == 0 && (text == NULL || size <= 0))
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == 0)
        snprintf(text, (size_t)size, "%s", unit->name);
    return call_end(&call, status);
}

EXPORTED int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    struct call call;
    struct machine_unit *unit;
    struct primary *primary;
    int status = begin_device(&call, __func__, device, &unit, &primary);

    if (status == 0 && bytes == NULL)
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == 0)
        *bytes = unit->total;
    return call_end(&call, status);
}

EXPORTED int cuDeviceGetPCIBusId(char *text, int size, int device)
{
    struct call call;
    struct machine_unit *unit;
    struct primary *primary;
    int status = begin_device(&call, __func__, device, &unit, &primary);

    if (status == 0 && (text == NULL || size < 13))
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == 0 && call.lies)
        memset(text, 'A', (size_t)size); /* without a terminator */
    else if (status == 0)
        snprintf(text, (size_t)size, "%04X:%02X:%02X.%X", unit->pci[0], unit->pci[1], unit->pci[2],
                 unit->pci[3]);
    return call_end(&call, status);
}

/* For an instance, the first version gives the UUID of its GPU, the second its own. */
static int give_uuid(const char *name, struct cuda_uuid *uuid, int device, bool is_second)
{
    struct call call;
    struct machine_unit *unit;
    struct primary *primary;
    int status = begin_device(&call, name, device, &unit, &primary);

    if (status == 0 && call.lies)
        *uuid = (struct cuda_uuid){0};
    else if (status == 0)
        machine_uuid(is_second ? unit : &machine.units[unit->gpu], uuid->bytes);
    return call_end(&call, status);
}

EXPORTED int cuDeviceGetUuid(struct cuda_uuid *uuid, int device)
{
    return give_uuid(__func__, uuid, device, false);
}

EXPORTED int cuDeviceGetUuid_v2(struct cuda_uuid *uuid, int device)
{
    return give_uuid(__func__, uuid, device, true);
}
/* ---- Primary contexts ---- */

static void end_life(struct primary *primary)
{
    primary->counts.is_active = false;
    primary->counts.flags = 0;
    primary->fault = 0;
    primary->is_running = false;
}

EXPORTED int cuDevicePrimaryCtxRetain(void **context, int device)
{
    struct call call;
    struct machine_unit *unit;
    struct primary *primary;
    int status = begin_device(&call, __func__, device, &unit, &primary);

    if (status == 0 && context == NULL)
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == 0)
        status = primary->ruin != 0 ? primary->ruin : primary->fault;
    if (status != 0)
        return call_end(&call, status);
    if (!primary->counts.is_active)
        primary->counts.lives++;
    primary->counts.is_active = true;
    primary->counts.retains++;
    primary->counts.references++;
    *context = call.lies ? NULL : primary;
    return call_end(&call, 0);
}

/* Releases a primary context. This works as long as it is retained, even after a reset. */
static int release(const char *name, int device)
{
    struct call call;
    struct machine_unit *unit;
    struct primary *primary;
    int status = begin_device(&call, name, device, &unit, &primary);

    if (status == 0 && primary->counts.references == 0)
        status = CUDA_ERROR_INVALID_CONTEXT;
    if (status != 0)
        return call_end(&call, status);
    primary->counts.releases++;
    if (--primary->counts.references == 0)
        end_life(primary);
    return call_end(&call, 0);
}

static int reset(const char *name, int device)
{
    struct call call;
    struct machine_unit *unit;
    struct primary *primary;
    int status = begin_device(&call, name, device, &unit, &primary);

    if (status != 0)
        return call_end(&call, status);
    primary->counts.resets++;
    end_life(primary);
    return call_end(&call, 0);
}

static int set_flags(const char *name, int device, unsigned flags, bool is_first)
{
    struct call call;
    struct machine_unit *unit;
    struct primary *primary;
    int status = begin_device(&call, name, device, &unit, &primary);
    unsigned scheduling = flags & CUDA_SCHED_MASK;

    if (status == 0 && ((flags & ~FLAGS_ALL) != 0 || (scheduling & (scheduling - 1)) != 0))
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == 0 && is_first && primary->counts.is_active)
        status = CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
    if (status == 0)
        primary->counts.flags = flags;
    return call_end(&call, status);
}

EXPORTED int cuDevicePrimaryCtxSetFlags(int device, unsigned flags)
{
    return set_flags(__func__, device, flags, true);
}

EXPORTED int cuDevicePrimaryCtxReset(int device)
{
    return reset(__func__, device);
}

EXPORTED int cuDevicePrimaryCtxRelease(int device)
{
    return release(__func__, device);
}
EXPORTED int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
    return set_flags(__func__, device, flags, false);
}

EXPORTED int cuDevicePrimaryCtxReset_v2(int device)
{
    return reset(__func__, device);
}

EXPORTED int cuDevicePrimaryCtxRelease_v2(int device)
{
    return release(__func__, device);
}
EXPORTED int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    struct call call;
    struct machine_unit *unit;
    struct primary *primary;
    int status = begin_device(&call, __func__, device, &unit, &primary);

    if (status == 0 && (flags == NULL || active == NULL))
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == 0) {
        *flags = primary->counts.flags;
        *active = primary->counts.is_active;
    }
    return call_end(&call, status);
}

/* ---- Current contexts ---- */

EXPORTED int cuCtxGetCurrent(void **context)
{
    struct call call;
    int status = call_begin(&call, __func__, CUDA_DOUBLE_ANY);
    int unit = call_unit_now();

    if (status == 0 && context == NULL)
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == 0)
        *context = unit < 0 ? NULL : &primaries[unit];
    return call_end(&call, status);
}

EXPORTED int cuCtxPushCurrent_v2(void *context)
{
    struct call call;
    int unit = call_unit_of_context(context);
    int status = call_begin(&call, __func__, unit);
    struct stack *stack = call_stack();

    if (status == 0 && unit < 0)
        status = context == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    if (status == 0 && stack->depth == STACK_MAX)
        abort();
    if (status == 0)
        stack->items[stack->depth++] = &primaries[unit];
    return call_end(&call, status);
}

EXPORTED int cuCtxPopCurrent_v2(void **context)
{
    struct call call;
    int status = call_begin(&call, __func__, CUDA_DOUBLE_ANY);
    struct stack *stack = call_stack();

    if (status == 0 && stack->depth == 0)
        status = CUDA_ERROR_INVALID_CONTEXT;
    if (status != 0)
        return call_end(&call, status);
    stack->depth--;
    if (context != NULL)
        *context = call.lies ? NULL : stack->items[stack->depth];
    return call_end(&call, 0);
}

/* Replaces the current context; NULL only removes it. */
EXPORTED int cuCtxSetCurrent(void *context)
{
    struct call call;
    int unit = call_unit_of_context(context);
    int status = call_begin(&call, __func__, unit);
    struct stack *stack = call_stack();

    if (status == 0 && context != NULL && unit < 0)
        status = CUDA_ERROR_INVALID_CONTEXT;
    if (status != 0)
        return call_end(&call, status);
    if (stack->depth > 0)
        stack->depth--;
    if (context != NULL)
        stack->items[stack->depth++] = &primaries[unit];
    return call_end(&call, 0);
}

EXPORTED int cuCtxGetDevice(int *device)
{
    struct call call;
    struct primary *primary;
    int status = call_begin_current(&call, __func__, &primary);

    for (unsigned i = 0; status == 0 && i < machine.shown; i++) {
        if (&primaries[machine.order[i]] == primary)
            *device = (int)i;
    }
    return call_end(&call, status);
}

EXPORTED int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    struct call call;
    struct primary *primary;
    int status = call_begin_current(&call, __func__, &primary);

    if (status == 0) {
        const struct machine_unit *unit = &machine.units[primary - primaries];

        *free_bytes = call.lies ? (size_t)call.number : unit->free;
        *total = unit->total;
    }
    return call_end(&call, status);
}

EXPORTED int cuStreamQuery(void *stream)
{
    struct call call;
    struct primary *primary;
    int status = call_begin_current(&call, __func__, &primary);

    (void)stream;
    if (status == 0 && primary->is_running)
        status = CUDA_ERROR_NOT_READY;
    return call_end(&call, status);
}

EXPORTED int cuCtxSynchronize(void)
{
    struct call call;
    struct primary *primary;
    int status = call_begin_current(&call, __func__, &primary);

    if (status == 0)
        primary->is_running = false;
    return call_end(&call, status);
}
