/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that other clients of NVML (hwloc, nvtop, pynvml) need to accept the double.
 */
#include <stdio.h>
#include <string.h>

#include "doubles/nvml_calls.h"

/* A function that exists but is not supported. */
#define UNSUPPORTED(function)                                          \
    EXPORTED int function(void)                                        \
    {                                                                  \
        struct call call;                                              \
        int code = call_begin(__func__, &call);                        \
                                                                       \
        return code == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : code; \
    }

/* Returns one of the four numbers of the PCIe link. */
static int give_pcie(const char *function, nvml_device device, unsigned place, unsigned *number)
{
    unsigned all[4] = {0};
    int code = call_fact(function, device, FACT_PCIE,
                         (unsigned *[]){&all[0], &all[1], &all[2], &all[3]}, 4);

    if (code == NVML_SUCCESS && number == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        *number = all[place];
    return code;
}

#define PCIE(function, place)                                   \
    EXPORTED int function(nvml_device device, unsigned *number) \
    {                                                           \
        return give_pcie(__func__, device, place, number);      \
    }

PCIE(nvmlDeviceGetMaxPcieLinkGeneration, 0)
PCIE(nvmlDeviceGetMaxPcieLinkWidth, 1)
PCIE(nvmlDeviceGetCurrPcieLinkGeneration, 2)
PCIE(nvmlDeviceGetCurrPcieLinkWidth, 3)

EXPORTED int nvmlSystemGetDriverVersion(char *version, unsigned size)
{
    struct call call;
    int code = call_begin(__func__, &call);

    if (code != NVML_SUCCESS)
        return code;
    if (version == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(call.machine->driver) >= size)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(version, call.machine->driver, strlen(call.machine->driver) + 1);
    return NVML_SUCCESS;
}

EXPORTED int nvmlSystemGetNVMLVersion(char *version, unsigned size)
{
    char text[96];
    struct call call;
    int code = call_begin(__func__, &call);

    if (code != NVML_SUCCESS)
        return code;
    snprintf(text, sizeof(text), "12.%s", call.machine->driver);
    if (version == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= size)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(version, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

EXPORTED int nvmlSystemGetCudaDriverVersion(int *version)
{
    struct call call;
    int code = call_begin(__func__, &call);

    if (code == NVML_SUCCESS && version == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        *version = 12040;
    return code;
}

EXPORTED int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}

UNSUPPORTED(nvmlDeviceGetAPIRestriction)
UNSUPPORTED(nvmlDeviceGetApplicationsClock)
UNSUPPORTED(nvmlDeviceGetAttributes_v2)
UNSUPPORTED(nvmlDeviceGetBoardId)
UNSUPPORTED(nvmlDeviceGetBrand)
UNSUPPORTED(nvmlDeviceGetBusType)
UNSUPPORTED(nvmlDeviceGetComputeMode)
UNSUPPORTED(nvmlDeviceGetCpuAffinity)
UNSUPPORTED(nvmlDeviceGetCurrentClocksThrottleReasons)
UNSUPPORTED(nvmlDeviceGetDecoderUtilization)
UNSUPPORTED(nvmlDeviceGetDetailedEccErrors)
UNSUPPORTED(nvmlDeviceGetDisplayActive)
UNSUPPORTED(nvmlDeviceGetDisplayMode)
UNSUPPORTED(nvmlDeviceGetEccMode)
UNSUPPORTED(nvmlDeviceGetEncoderUtilization)
UNSUPPORTED(nvmlDeviceGetFieldValues)
UNSUPPORTED(nvmlDeviceGetMemoryErrorCounter)
UNSUPPORTED(nvmlDeviceGetMultiGpuBoard)
UNSUPPORTED(nvmlDeviceGetP2PStatus)
UNSUPPORTED(nvmlDeviceGetPcieReplayCounter)
UNSUPPORTED(nvmlDeviceGetPcieThroughput)
UNSUPPORTED(nvmlDeviceGetPerformanceState)
UNSUPPORTED(nvmlDeviceGetPersistenceMode)
UNSUPPORTED(nvmlDeviceGetPowerManagementLimit)
UNSUPPORTED(nvmlDeviceGetPowerManagementLimitConstraints)
UNSUPPORTED(nvmlDeviceGetPowerManagementMode)
UNSUPPORTED(nvmlDeviceGetPowerState)
UNSUPPORTED(nvmlDeviceGetProcessUtilization)
UNSUPPORTED(nvmlDeviceGetRetiredPages)
UNSUPPORTED(nvmlDeviceGetTemperatureThreshold)
UNSUPPORTED(nvmlDeviceGetTopologyNearestGpus)
UNSUPPORTED(nvmlDeviceGetTotalEnergyConsumption)
UNSUPPORTED(nvmlDeviceGetVbiosVersion)
UNSUPPORTED(nvmlDeviceOnSameBoard)
UNSUPPORTED(nvmlSystemGetProcessName)
UNSUPPORTED(nvmlUnitGetCount)

#ifndef NVML_DOUBLE_OLD
UNSUPPORTED(nvmlDeviceGetConfComputeMemSizeInfo)
#ifndef NVML_DOUBLE_WIDE
UNSUPPORTED(nvmlDeviceGetRunningProcessDetailList)
#endif
#endif
