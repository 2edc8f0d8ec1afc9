/* SPDX-License-Identifier: Apache-2.0
 *
 * A double of NVML, libnvidia-ml.so.1, for machines without a GPU. It reports the machine of
 * nvml_machine.h through the functions that berth and other clients call. NVML_DOUBLE_OLD makes it
 * a library of 2019; NVML_DOUBLE_WIDE gives its lists of processes larger entries.
 */
#include <string.h>

#include "doubles/nvml_calls.h"

/* A function that returns one number. */
#define NUMBER(function, fact)                                               \
    EXPORTED int function(nvml_device device, unsigned *number)              \
    {                                                                        \
        return call_fact(__func__, device, fact, (unsigned *[]){number}, 1); \
    }

/* A function that returns text. */
#define STRING(function, member)                                                              \
    EXPORTED int function(nvml_device device, char *text, unsigned size)                      \
    {                                                                                         \
        struct call call;                                                                     \
        int code = call_begin_device(__func__, device, &call);                                \
                                                                                              \
        return code == NVML_SUCCESS ? give_text(&call, call.unit->member, text, size) : code; \
    }

static int give_text(const struct call *call, const char *from, char *text, unsigned size)
{
    if (text == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (call->lies) {
        memset(text, 'A', size); /* without a terminator */
        return NVML_SUCCESS;
    }
    if (*from == '\0')
        return NVML_ERROR_NOT_SUPPORTED;
    if (strlen(from) >= size)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(text, from, strlen(from) + 1);
    return NVML_SUCCESS;
}

STRING(nvmlDeviceGetName, name)
STRING(nvmlDeviceGetUUID, uuid)
STRING(nvmlDeviceGetSerial, serial)

NUMBER(nvmlDeviceGetMinorNumber, FACT_MINOR)
NUMBER(nvmlDeviceGetPowerUsage, FACT_POWER)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, FACT_POWER_LIMIT)
NUMBER(nvmlDeviceGetFanSpeed, FACT_FAN)
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, FACT_RETIRED_PENDING)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, FACT_MIG_MAX)
NUMBER(nvmlDeviceGetGpuInstanceId, FACT_GPU_INSTANCE)
NUMBER(nvmlDeviceGetComputeInstanceId, FACT_COMPUTE_INSTANCE)
NUMBER(nvmlDeviceGetArchitecture, FACT_ARCHITECTURE)

EXPORTED int nvmlDeviceGetCount_v2(unsigned *count)
{
    struct call call;
    int code = call_begin(__func__, &call);

    if (code != NVML_SUCCESS)
        return code;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = call.lies                  ? 4000000000u
             : call.machine->count_said ? call.machine->count_lie
                                        : call.machine->gpus_count;
    return NVML_SUCCESS;
}

/* Gets the handle of the GPU at this position. Returns `absent` if there is none. */
static int give_handle(const char *function, unsigned place, int absent, nvml_device *handle)
{
    struct call call;
    int code = place < machine_now()->gpus_count
                   ? call_begin_device(function, call_handle(place, -1), &call)
                   : call_begin(function, &call);

    if (code != NVML_SUCCESS)
        return code;
    if (handle == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (call.unit == NULL)
        return absent;
    *handle = call_handle(place, -1);
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device)
{
    return give_handle(__func__, index, NVML_ERROR_INVALID_ARGUMENT, device);
}

EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvml_device *device)
{
    const struct machine *machine = machine_now();
    struct nvml_pci_info wanted = {0};
    unsigned i = 0;

    if (address == NULL || !machine_parse_pci(address, &wanted))
        return NVML_ERROR_INVALID_ARGUMENT;
    while (i < machine->gpus_count && !(machine->gpus[i].pci.domain == wanted.domain &&
                                        machine->gpus[i].pci.bus == wanted.bus &&
                                        machine->gpus[i].pci.device == wanted.device))
        i++;
    return give_handle(__func__, i, NVML_ERROR_NOT_FOUND, device);
}

EXPORTED int nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *device)
{
    const struct machine *machine = machine_now();
    unsigned i = 0;

    if (uuid == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    while (i < machine->gpus_count && strcmp(machine->gpus[i].uuid, uuid) != 0)
        i++;
    return give_handle(__func__, i, NVML_ERROR_NOT_FOUND, device);
}

EXPORTED int nvmlDeviceGetIndex(nvml_device device, unsigned *index)
{
    struct call call;
    int code = call_begin_device(__func__, device, &call);

    if (code != NVML_SUCCESS)
        return code;
    if (index == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *index = call.lies ? UINT32_MAX : call.gpu;
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci_info *info)
{
    struct call call;
    int code = call_begin_device(__func__, device, &call);

    if (code != NVML_SUCCESS)
        return code;
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *info = call.machine->gpus[call.gpu].pci;
    if (call.lies)
        memset(info, 'A', sizeof(*info));
    return info->bus_id[0] == '\0' ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory)
{
    struct call call;
    int code = call_begin_device(__func__, device, &call);
    const int64_t *values;

    if (code != NVML_SUCCESS)
        return code;
    if (memory == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!call.unit->facts[FACT_MEMORY].known)
        return NVML_ERROR_NOT_SUPPORTED;
    values = call.unit->facts[FACT_MEMORY].values;
    *memory = (struct nvml_memory){(uint64_t)values[0], (uint64_t)values[1],
                                   (uint64_t)(values[0] - values[1])};
    if (call.lies)
        memset(memory, 0xff, sizeof(*memory));
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetBAR1MemoryInfo(nvml_device device, struct nvml_bar1_memory *memory)
{
    struct call call;
    int code = call_begin_device(__func__, device, &call);
    const int64_t *values;

    if (code != NVML_SUCCESS)
        return code;
    if (memory == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!call.unit->facts[FACT_BAR1].known)
        return NVML_ERROR_NOT_SUPPORTED;
    values = call.unit->facts[FACT_BAR1].values;
    *memory = (struct nvml_bar1_memory){(uint64_t)values[0], (uint64_t)values[1],
                                        (uint64_t)(values[0] - values[1])};
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetUtilizationRates(nvml_device device, struct nvml_utilization *busy)
{
    return busy == NULL ? NVML_ERROR_INVALID_ARGUMENT
                        : call_fact(__func__, device, FACT_UTILIZATION,
                                    (unsigned *[]){&busy->gpu, &busy->memory}, 2);
}

EXPORTED int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned *degrees)
{
    return sensor != NVML_TEMPERATURE_GPU
               ? NVML_ERROR_INVALID_ARGUMENT
               : call_fact(__func__, device, FACT_TEMPERATURE, (unsigned *[]){degrees}, 1);
}

/* Returns one of the four clocks. */
static int give_clock(const char *function, nvml_device device, enum fact_name name, int clock,
                      unsigned *megahertz)
{
    unsigned all[MACHINE_VALUES] = {0};
    int code =
        call_fact(function, device, name, (unsigned *[]){&all[0], &all[1], &all[2], &all[3]}, 4);

    if (code != NVML_SUCCESS)
        return code;
    if (megahertz == NULL || clock < 0 || clock >= MACHINE_VALUES)
        return NVML_ERROR_INVALID_ARGUMENT;
    *megahertz = all[clock];
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetClockInfo(nvml_device device, int clock, unsigned *megahertz)
{
    return give_clock(__func__, device, FACT_CLOCKS, clock, megahertz);
}

EXPORTED int nvmlDeviceGetMaxClockInfo(nvml_device device, int clock, unsigned *megahertz)
{
    return give_clock(__func__, device, FACT_MAX_CLOCKS, clock, megahertz);
}

EXPORTED int nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor)
{
    return call_fact(__func__, device, FACT_CAPABILITY,
                     (unsigned *[]){(unsigned *)major, (unsigned *)minor}, 2);
}

EXPORTED int nvmlDeviceGetTotalEccErrors(nvml_device device, int kind, int counter,
                                         unsigned long long *count)
{
    struct call call;
    int code = call_begin_device(__func__, device, &call);

    if (code != NVML_SUCCESS)
        return code;
    if (count == NULL || kind < 0 || kind > 1 || counter < 0 || counter > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!call.unit->facts[FACT_ECC].known)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = call.lies ? UINT64_MAX : (unsigned long long)call.unit->facts[FACT_ECC].values[kind];
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetRemappedRows(nvml_device device, unsigned *corrected,
                                       unsigned *uncorrected, unsigned *pending, unsigned *failed)
{
    return call_fact(__func__, device, FACT_REMAPPED,
                     (unsigned *[]){corrected, uncorrected, pending, failed}, 4);
}

EXPORTED int nvmlDeviceGetMigMode(nvml_device device, unsigned *current, unsigned *pending)
{
    return call_fact(__func__, device, FACT_MIG, (unsigned *[]){current, pending}, 2);
}

EXPORTED int nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned index,
                                                 nvml_device *instance)
{
    struct call call;
    int code = call_begin_device(__func__, device, &call);

    if (code != NVML_SUCCESS)
        return code;
    if (instance == NULL || call.is_instance)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!call.unit->facts[FACT_MIG].known)
        return NVML_ERROR_NOT_SUPPORTED;
    if (index >= MACHINE_INSTANCES || !call.machine->instances[call.gpu][index].known)
        return NVML_ERROR_NOT_FOUND;
    *instance = call_handle(call.gpu, (int)index);
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceIsMigDeviceHandle(nvml_device device, unsigned *is_instance)
{
    struct call call;
    int code = call_begin_device(__func__, device, &call);

    if (code == NVML_SUCCESS && is_instance == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        *is_instance = call.is_instance;
    return code;
}

EXPORTED int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvml_device device, nvml_device *gpu)
{
    struct call call;
    int code = call_begin_device(__func__, device, &call);

    if (code == NVML_SUCCESS && (gpu == NULL || !call.is_instance))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        *gpu = call_handle(call.gpu, -1);
    return code;
}

EXPORTED int nvmlDeviceGetTopologyCommonAncestor(nvml_device device, nvml_device other, int *level)
{
    struct call there = {0};
    struct call call;
    int code = call_begin_device(__func__, device, &call);

    if (code != NVML_SUCCESS)
        return code;
    there.machine = call.machine;
    if (level == NULL || !call_find_unit(other, &there))
        return NVML_ERROR_INVALID_ARGUMENT;
    *level = call.lies ? 4711 : call.machine->levels[call.gpu][there.gpu];
    if (*level < 0)
        *level = call.machine->level;
    return *level < 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

/* Begins a call about one lane of a GPU. */
static int begin_lane(const char *function, nvml_device device, unsigned number, const void *result,
                      struct call *call, struct lane **ret_lane)
{
    int code = call_begin_device(function, device, call);

    if (code != NVML_SUCCESS)
        return code;
    if (number >= MACHINE_LANES || result == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *ret_lane = &call->unit->lanes[number];
    return (*ret_lane)->known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

EXPORTED int nvmlDeviceGetNvLinkState(nvml_device device, unsigned number, int *active)
{
    struct call call;
    struct lane *lane;
    int code = begin_lane(__func__, device, number, active, &call, &lane);

    if (code == NVML_SUCCESS)
        *active = lane->active;
    return code;
}

EXPORTED int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device device, unsigned number,
                                                 struct nvml_pci_info *info)
{
    struct call call;
    struct lane *lane;
    int code = begin_lane(__func__, device, number, info, &call, &lane);

    if (code != NVML_SUCCESS)
        return code;
    if (lane->remote.bus_id[0] == '\0')
        return NVML_ERROR_NOT_SUPPORTED;
    *info = lane->remote;
    if (call.lies)
        memset(info, 'A', sizeof(*info));
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetNvLinkVersion(nvml_device device, unsigned number, unsigned *version)
{
    struct call call;
    struct lane *lane;
    int code = begin_lane(__func__, device, number, version, &call, &lane);

    if (code != NVML_SUCCESS)
        return code;
    *version = (unsigned)call.unit->facts[FACT_NVLINK_VERSION].values[0];
    return call.unit->facts[FACT_NVLINK_VERSION].known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

#ifndef NVML_DOUBLE_OLD
EXPORTED int nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device device, unsigned number, int *type)
{
    struct call call;
    struct lane *lane;
    int code = begin_lane(__func__, device, number, type, &call, &lane);

    if (code == NVML_SUCCESS)
        *type = call.lies ? 4711 : lane->type;
    return code;
}

EXPORTED int nvmlDeviceGetMemoryInfo_v2(nvml_device device, struct nvml_memory_v2 *memory)
{
    struct call call;
    int code = call_begin_device(__func__, device, &call);
    const int64_t *values;

    if (code != NVML_SUCCESS)
        return code;
    if (memory == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (memory->version != NVML_MEMORY_V2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (!call.unit->facts[FACT_MEMORY].known)
        return NVML_ERROR_NOT_SUPPORTED;
    values = call.unit->facts[FACT_MEMORY].values;
    *memory = (struct nvml_memory_v2){NVML_MEMORY_V2, (uint64_t)values[0], (uint64_t)values[2],
                                      (uint64_t)values[1], (uint64_t)(values[0] - values[1])};
    if (call.lies)
        memset(memory, 0xff, sizeof(*memory));
    return NVML_SUCCESS;
}

#ifndef NVML_DOUBLE_WIDE
EXPORTED int nvmlDeviceGetTemperatureV(nvml_device device, struct nvml_temperature *temperature)
{
    struct call call;
    int code = call_begin_device(__func__, device, &call);

    if (code != NVML_SUCCESS)
        return code;
    if (temperature == NULL || temperature->sensor != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (temperature->version != NVML_TEMPERATURE_V1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (!call.unit->facts[FACT_TEMPERATURE].known)
        return NVML_ERROR_NOT_SUPPORTED;
    temperature->degrees =
        call.lies ? INT32_MAX : (int32_t)call.unit->facts[FACT_TEMPERATURE].values[0];
    return NVML_SUCCESS;
}
#endif
#endif
