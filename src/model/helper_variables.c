/* SPDX-License-Identifier: Apache-2.0 */
#include "model/helper_variables.h"

#include <stddef.h>

const char *const helper_variables_dropped[] = {
    "BERTH_BACKEND",
    "BERTH_CDI_DEVICES",
    "BERTH_CPUS",
    "BERTH_DEVICES",
    "BERTH_DEVICE_NODES",
    "BERTH_INVENTORY",
    "BERTH_LEASE",
    "BERTH_REPLICA",
    "BERTH_SOCKET",
    "CUDA_DEVICE_ORDER",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_MPS_LOG_DIRECTORY",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "HIP_VISIBLE_DEVICES",
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "NOTIFY_SOCKET",
    "NVIDIA_VISIBLE_DEVICES",
    "ONEAPI_DEVICE_SELECTOR",
    "ROCR_VISIBLE_DEVICES",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "ZE_AFFINITY_MASK",
    "ZE_ENABLE_PCI_ID_DEVICE_ORDER",
    "ZE_FLAT_DEVICE_HIERARCHY",
    NULL,
};

const char *const helper_variables_paths[] = {
    "BERTH_NVML", "BERTH_PROBE", "BERTH_READER", "BERTH_SYSROOT", NULL,
};
