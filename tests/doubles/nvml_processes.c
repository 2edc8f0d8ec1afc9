/* SPDX-License-Identifier: Apache-2.0
 *
 * The NVML double's lists of processes.
 */
#include <string.h>

#include "doubles/nvml_calls.h"

/* The first pid of processes that have only a count. */
#define MADE_UP_PID 1000

/* Returns whether the process is listed: a GPU lists all, an instance its own. */
static bool is_listed(const struct call *call, const struct process *process,
                      enum process_kind kind)
{
    const struct fact *facts = call->unit->facts;

    return process->kind == kind &&
           (!call->is_instance ||
            (process->info.gpu_instance == facts[FACT_GPU_INSTANCE].values[0] &&
             process->info.compute_instance == facts[FACT_COMPUTE_INSTANCE].values[0]));
}

/* Writes entry number `place`, in the version's size, if it fits. */
static void put(void *entries, unsigned place, unsigned room, size_t size,
                const struct nvml_process_wide *info)
{
    if (place < room)
        memcpy((char *)entries + place * size, info, size);
}

static int list(const char *function, nvml_device device, enum process_kind kind, unsigned *count,
                void *entries, size_t size)
{
    struct call call;
    int code = call_begin_device(function, device, &call);
    const struct unit *gpu;
    unsigned room;
    unsigned place = 0;

    if (code != NVML_SUCCESS)
        return code;
    if (count == NULL || (entries == NULL && *count > 0))
        return NVML_ERROR_INVALID_ARGUMENT;
    room = *count;
    gpu = &call.machine->gpus[call.gpu];
    for (unsigned i = 0; i < gpu->processes_count; i++) {
        if (is_listed(&call, &gpu->processes[i], kind))
            put(entries, place++, room, size, &gpu->processes[i].info);
    }
    for (unsigned i = 0; i < call.unit->made_up[kind]; i++)
        put(entries, place++, room, size,
            &(struct nvml_process_wide){MADE_UP_PID + i, 1024, NVML_NO_INSTANCE, NVML_NO_INSTANCE,
                                        0});
    *count = call.lies ? UINT32_MAX : place;
    return place > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

#define LIST(function, kind, type)                                                \
    EXPORTED int function(nvml_device device, unsigned *count, void *entries)     \
    {                                                                             \
        return list(__func__, device, kind, count, entries, sizeof(struct type)); \
    }

LIST(nvmlDeviceGetComputeRunningProcesses, PROCESS_COMPUTE, nvml_process_v1)
LIST(nvmlDeviceGetGraphicsRunningProcesses, PROCESS_GRAPHICS, nvml_process_v1)

#ifndef NVML_DOUBLE_OLD

#ifdef NVML_DOUBLE_WIDE
#define NEWEST nvml_process_wide
#else
#define NEWEST nvml_process_v2
#endif

LIST(nvmlDeviceGetMPSComputeRunningProcesses, PROCESS_MPS, nvml_process_v1)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, PROCESS_COMPUTE, nvml_process_v2)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, PROCESS_GRAPHICS, nvml_process_v2)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, PROCESS_MPS, nvml_process_v2)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, PROCESS_COMPUTE, NEWEST)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, PROCESS_GRAPHICS, NEWEST)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, PROCESS_MPS, NEWEST)
#endif
