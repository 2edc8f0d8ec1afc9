/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of NVML, NVIDIA's management library, that berth uses. They are declared here from its
 * public documentation: the library is loaded at run time, and the build needs nothing from NVIDIA.
 * The layouts are the library's and are asserted below.
 */
#ifndef HARDWARE_NVIDIA_NVML_H
#define HARDWARE_NVIDIA_NVML_H

#include <stddef.h>
#include <stdint.h>

/* Return codes of the calls. */
enum nvml_return {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_GPU_NOT_FOUND = 28,
    NVML_ERROR_UNKNOWN = 999,
};

/* Arguments and results of single calls. */
enum {
    NVML_INIT_FLAG_NO_ATTACH = 2,
    NVML_TEMPERATURE_GPU = 0,
    NVML_CLOCK_GRAPHICS = 0,
    NVML_CLOCK_SM = 1,
    NVML_MEMORY_ERROR_UNCORRECTED = 1,
    NVML_VOLATILE_ECC = 0,
    NVML_FEATURE_ENABLED = 1,
    NVML_NVLINK_DEVICE_GPU = 0,
    NVML_NVLINK_DEVICE_IBM_NPU = 1,
    NVML_NVLINK_DEVICE_SWITCH = 2,
    NVML_NVLINK_DEVICE_UNKNOWN = 255,
    NVML_TOPOLOGY_INTERNAL = 0,
    NVML_TOPOLOGY_SINGLE = 10,
    NVML_TOPOLOGY_MULTIPLE = 20,
    NVML_TOPOLOGY_HOSTBRIDGE = 30,
    NVML_TOPOLOGY_NODE = 40,
    NVML_TOPOLOGY_SYSTEM = 50,
};

/* More than any GPU has; Blackwell has 18. */
#define NVML_LINKS_MAX 64

/* Sizes that are enough according to the library's documentation. */
#define NVML_NAME_SIZE 96
#define NVML_UUID_SIZE 96

/* An unknown 64-bit value. */
#define NVML_NOT_AVAILABLE UINT64_MAX
/* The instance of a process on a GPU that is not partitioned. */
#define NVML_NO_INSTANCE UINT32_MAX

/* The version tag of a struct that grew over time. */
#define NVML_VERSION_TAG(type, version) ((uint32_t)sizeof(type) | (uint32_t)(version) << 24)

typedef struct nvml_device_handle *nvml_device;

struct nvml_pci_info {
    char bus_id_legacy[16]; /* 16-bit domain */
    uint32_t domain;
    uint32_t bus;
    uint32_t device;
    uint32_t device_id; /* the device's id in the upper half, the vendor's in the lower */
    uint32_t subsystem_id;
    char bus_id[32]; /* 32-bit domain */
};

struct nvml_memory {
    uint64_t total;
    uint64_t free;
    uint64_t used;
};

struct nvml_memory_v2 {
    uint32_t version;
    uint64_t total;
    uint64_t reserved;
    uint64_t free;
    uint64_t used;
};
#define NVML_MEMORY_V2 NVML_VERSION_TAG(struct nvml_memory_v2, 2)

struct nvml_bar1_memory {
    uint64_t total;
    uint64_t free;
    uint64_t used;
};

struct nvml_utilization {
    uint32_t gpu;
    uint32_t memory;
};

struct nvml_temperature {
    uint32_t version;
    uint32_t sensor;
    int32_t degrees;
};
#define NVML_TEMPERATURE_V1 NVML_VERSION_TAG(struct nvml_temperature, 1)

struct nvml_process_v1 {
    uint32_t pid;
    uint64_t memory;
};

struct nvml_process_v2 {
    uint32_t pid;
    uint64_t memory;
    uint32_t gpu_instance;
    uint32_t compute_instance;
};

/* Version 3 of the calls fills in this struct in a few releases (R535 before 535.98); in older and
 * newer ones it is nvml_process_v2. */
struct nvml_process_wide {
    uint32_t pid;
    uint64_t memory;
    uint32_t gpu_instance;
    uint32_t compute_instance;
    uint64_t protected_memory;
};

#define NVML_ASSERT_SIZE(type, size) \
    _Static_assert(sizeof(struct type) == (size), #type " must have the same size as in NVML")
#define NVML_ASSERT_PLACE(type, member, place)               \
    _Static_assert(offsetof(struct type, member) == (place), \
                   #type "." #member " must have the same offset as in NVML")

NVML_ASSERT_SIZE(nvml_pci_info, 68);
NVML_ASSERT_PLACE(nvml_pci_info, bus_id_legacy, 0);
NVML_ASSERT_PLACE(nvml_pci_info, domain, 16);
NVML_ASSERT_PLACE(nvml_pci_info, bus, 20);
NVML_ASSERT_PLACE(nvml_pci_info, device, 24);
NVML_ASSERT_PLACE(nvml_pci_info, device_id, 28);
NVML_ASSERT_PLACE(nvml_pci_info, subsystem_id, 32);
NVML_ASSERT_PLACE(nvml_pci_info, bus_id, 36);

NVML_ASSERT_SIZE(nvml_memory, 24);
NVML_ASSERT_PLACE(nvml_memory, total, 0);
NVML_ASSERT_PLACE(nvml_memory, free, 8);
NVML_ASSERT_PLACE(nvml_memory, used, 16);

NVML_ASSERT_SIZE(nvml_memory_v2, 40);
NVML_ASSERT_PLACE(nvml_memory_v2, version, 0);
NVML_ASSERT_PLACE(nvml_memory_v2, total, 8);
NVML_ASSERT_PLACE(nvml_memory_v2, reserved, 16);
NVML_ASSERT_PLACE(nvml_memory_v2, free, 24);
NVML_ASSERT_PLACE(nvml_memory_v2, used, 32);
_Static_assert(NVML_MEMORY_V2 == 0x02000028, "the tag of nvml_memory_v2 is not NVML's");

NVML_ASSERT_SIZE(nvml_bar1_memory, 24);
NVML_ASSERT_PLACE(nvml_bar1_memory, total, 0);
NVML_ASSERT_PLACE(nvml_bar1_memory, free, 8);
NVML_ASSERT_PLACE(nvml_bar1_memory, used, 16);

NVML_ASSERT_SIZE(nvml_utilization, 8);
NVML_ASSERT_PLACE(nvml_utilization, gpu, 0);
NVML_ASSERT_PLACE(nvml_utilization, memory, 4);

NVML_ASSERT_SIZE(nvml_temperature, 12);
NVML_ASSERT_PLACE(nvml_temperature, version, 0);
NVML_ASSERT_PLACE(nvml_temperature, sensor, 4);
NVML_ASSERT_PLACE(nvml_temperature, degrees, 8);
_Static_assert(NVML_TEMPERATURE_V1 == 0x0100000c, "the tag of nvml_temperature is not NVML's");

NVML_ASSERT_SIZE(nvml_process_v1, 16);
NVML_ASSERT_PLACE(nvml_process_v1, pid, 0);
NVML_ASSERT_PLACE(nvml_process_v1, memory, 8);

NVML_ASSERT_SIZE(nvml_process_v2, 24);
NVML_ASSERT_PLACE(nvml_process_v2, pid, 0);
NVML_ASSERT_PLACE(nvml_process_v2, memory, 8);
NVML_ASSERT_PLACE(nvml_process_v2, gpu_instance, 16);
NVML_ASSERT_PLACE(nvml_process_v2, compute_instance, 20);

NVML_ASSERT_SIZE(nvml_process_wide, 32);
NVML_ASSERT_PLACE(nvml_process_wide, pid, 0);
NVML_ASSERT_PLACE(nvml_process_wide, memory, 8);
NVML_ASSERT_PLACE(nvml_process_wide, gpu_instance, 16);
NVML_ASSERT_PLACE(nvml_process_wide, compute_instance, 20);
NVML_ASSERT_PLACE(nvml_process_wide, protected_memory, 24);

/* X(member, symbol, is_required, parameters): all functions that berth uses. They return an
 * nvml_return as an int, because newer libraries have more return codes. */
#define NVML_FUNCTIONS(X)                                                                          \
    X(init, "nvmlInit_v2", true, (void))                                                           \
    X(init_with_flags, "nvmlInitWithFlags", false, (unsigned flags))                               \
    X(shutdown, "nvmlShutdown", true, (void))                                                      \
    X(count, "nvmlDeviceGetCount_v2", true, (unsigned *ret_count))                                 \
    X(by_index, "nvmlDeviceGetHandleByIndex_v2", true, (unsigned index, nvml_device *ret_device))  \
    X(by_pci, "nvmlDeviceGetHandleByPciBusId_v2", false,                                           \
      (const char *address, nvml_device *ret_device))                                              \
    X(index, "nvmlDeviceGetIndex", false, (nvml_device device, unsigned *ret_index))               \
    X(name, "nvmlDeviceGetName", false, (nvml_device device, char *name, unsigned size))           \
    X(uuid, "nvmlDeviceGetUUID", false, (nvml_device device, char *uuid, unsigned size))           \
    X(minor, "nvmlDeviceGetMinorNumber", false, (nvml_device device, unsigned *ret_minor))         \
    X(pci, "nvmlDeviceGetPciInfo_v3", false,                                                       \
      (nvml_device device, struct nvml_pci_info * ret_info))                                       \
    X(memory, "nvmlDeviceGetMemoryInfo", false,                                                    \
      (nvml_device device, struct nvml_memory * ret_memory))                                       \
    X(memory_v2, "nvmlDeviceGetMemoryInfo_v2", false,                                              \
      (nvml_device device, struct nvml_memory_v2 * memory))                                        \
    X(bar1_memory, "nvmlDeviceGetBAR1MemoryInfo", false,                                           \
      (nvml_device device, struct nvml_bar1_memory * ret_memory))                                  \
    X(utilization, "nvmlDeviceGetUtilizationRates", false,                                         \
      (nvml_device device, struct nvml_utilization * ret_utilization))                             \
    X(temperature, "nvmlDeviceGetTemperature", false,                                              \
      (nvml_device device, int sensor, unsigned *ret_degrees))                                     \
    X(temperature_v, "nvmlDeviceGetTemperatureV", false,                                           \
      (nvml_device device, struct nvml_temperature * temperature))                                 \
    X(power, "nvmlDeviceGetPowerUsage", false, (nvml_device device, unsigned *ret_milliwatts))     \
    X(clock, "nvmlDeviceGetClockInfo", false,                                                      \
      (nvml_device device, int clock, unsigned *ret_megahertz))                                    \
    X(capability, "nvmlDeviceGetCudaComputeCapability", false,                                     \
      (nvml_device device, int *ret_major, int *ret_minor))                                        \
    X(ecc_errors, "nvmlDeviceGetTotalEccErrors", false,                                            \
      (nvml_device device, int kind, int counter, unsigned long long *ret_count))                  \
    X(remapped_rows, "nvmlDeviceGetRemappedRows", false,                                           \
      (nvml_device device, unsigned *ret_corrected, unsigned *ret_uncorrected,                     \
       unsigned *ret_pending, unsigned *ret_failed))                                               \
    X(retired_pending, "nvmlDeviceGetRetiredPagesPendingStatus", false,                            \
      (nvml_device device, int *ret_pending))                                                      \
    X(mig_mode, "nvmlDeviceGetMigMode", false,                                                     \
      (nvml_device device, unsigned *ret_current, unsigned *ret_pending))                          \
    X(mig_max, "nvmlDeviceGetMaxMigDeviceCount", false, (nvml_device device, unsigned *ret_count)) \
    X(mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex", false,                                  \
      (nvml_device device, unsigned index, nvml_device *ret_instance))                             \
    X(gpu_instance, "nvmlDeviceGetGpuInstanceId", false, (nvml_device device, unsigned *ret_id))   \
    X(compute_instance, "nvmlDeviceGetComputeInstanceId", false,                                   \
      (nvml_device device, unsigned *ret_id))                                                      \
    X(compute_v1, "nvmlDeviceGetComputeRunningProcesses", false, NVML_PROCESSES)                   \
    X(compute_v2, "nvmlDeviceGetComputeRunningProcesses_v2", false, NVML_PROCESSES)                \
    X(compute_v3, "nvmlDeviceGetComputeRunningProcesses_v3", false, NVML_PROCESSES)                \
    X(graphics_v1, "nvmlDeviceGetGraphicsRunningProcesses", false, NVML_PROCESSES)                 \
    X(graphics_v2, "nvmlDeviceGetGraphicsRunningProcesses_v2", false, NVML_PROCESSES)              \
    X(graphics_v3, "nvmlDeviceGetGraphicsRunningProcesses_v3", false, NVML_PROCESSES)              \
    X(mps_v1, "nvmlDeviceGetMPSComputeRunningProcesses", false, NVML_PROCESSES)                    \
    X(mps_v2, "nvmlDeviceGetMPSComputeRunningProcesses_v2", false, NVML_PROCESSES)                 \
    X(mps_v3, "nvmlDeviceGetMPSComputeRunningProcesses_v3", false, NVML_PROCESSES)                 \
    X(link_state, "nvmlDeviceGetNvLinkState", false,                                               \
      (nvml_device device, unsigned link, int *ret_active))                                        \
    X(link_remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2", false,                               \
      (nvml_device device, unsigned link, struct nvml_pci_info *ret_info))                         \
    X(link_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType", false,                              \
      (nvml_device device, unsigned link, int *ret_type))                                          \
    X(common_ancestor, "nvmlDeviceGetTopologyCommonAncestor", false,                               \
      (nvml_device device, nvml_device other, int *ret_level))                                     \
    /* Never called. Their existence shows which struct compute_v3 fills in. */                    \
    X(protected_memory_sizes, "nvmlDeviceGetConfComputeMemSizeInfo", false, (void))                \
    X(process_details, "nvmlDeviceGetRunningProcessDetailList", false, (void))

/* The parameters of functions that list processes. `processes` is an array of the version's struct.
 * *count is its room; it becomes the number of processes. */
#define NVML_PROCESSES (nvml_device device, unsigned *count, void *processes)

/* The library's functions; NULL: the library lacks the function. */
struct nvml {
    /* Returns a description of a return code. */
    const char *(*error_string)(int code);
#define NVML_MEMBER(member, symbol, required, parameters) int(*member) parameters;
    NVML_FUNCTIONS(NVML_MEMBER)
#undef NVML_MEMBER
};

#endif
