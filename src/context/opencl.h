/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of OpenCL that berth uses. They are declared here from its public documentation: the
 * library is loaded at run time, and the build needs no headers. A unit test compares them with
 * Khronos' headers.
 */
#ifndef CONTEXT_OPENCL_H
#define CONTEXT_OPENCL_H

#include <stddef.h>
#include <stdint.h>

/* X(word, number, verdict): the return codes, CL_word in OpenCL's headers, and their meaning (enum
 * driver_verdict). A mistake of the caller does not change the context: FINE. */
#define OPENCL_STATUSES(X)                                                \
    X(SUCCESS, 0, FINE)                                                   \
    X(DEVICE_NOT_FOUND, -1, FINE)      /* of the requested type */        \
    X(DEVICE_NOT_AVAILABLE, -2, RETRY) /* OpenCL says "currently" */      \
    X(COMPILER_NOT_AVAILABLE, -3, FINE)                                   \
    X(MEM_OBJECT_ALLOCATION_FAILURE, -4, RETRY)                           \
    /* A kernel is too large; with NVIDIA's driver also any               \
     * call after a fault. */                                             \
    X(OUT_OF_RESOURCES, -5, UNSURE)                                       \
    X(OUT_OF_HOST_MEMORY, -6, RETRY)                                      \
    X(PROFILING_INFO_NOT_AVAILABLE, -7, FINE)                             \
    X(MEM_COPY_OVERLAP, -8, FINE)                                         \
    X(IMAGE_FORMAT_MISMATCH, -9, FINE)                                    \
    X(IMAGE_FORMAT_NOT_SUPPORTED, -10, FINE)                              \
    X(BUILD_PROGRAM_FAILURE, -11, FINE)                                   \
    X(MAP_FAILURE, -12, RETRY) /* no address space to map it */           \
    X(MISALIGNED_SUB_BUFFER_OFFSET, -13, FINE)                            \
    /* An earlier command failed; its own status says how. */             \
    X(EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, -14, UNSURE)             \
    X(COMPILE_PROGRAM_FAILURE, -15, FINE)                                 \
    X(LINKER_NOT_AVAILABLE, -16, FINE)                                    \
    X(LINK_PROGRAM_FAILURE, -17, FINE)                                    \
    X(DEVICE_PARTITION_FAILED, -18, FINE)                                 \
    X(KERNEL_ARG_INFO_NOT_AVAILABLE, -19, FINE)                           \
    X(INVALID_VALUE, -30, FINE)                                           \
    X(INVALID_DEVICE_TYPE, -31, FINE)                                     \
    X(INVALID_PLATFORM, -32, FINE)                                        \
    X(INVALID_DEVICE, -33, UNSURE) /* a mistake, or the device is gone */ \
    X(INVALID_CONTEXT, -34, UNSURE)                                       \
    X(INVALID_QUEUE_PROPERTIES, -35, FINE)                                \
    /* A mistake; also returned for NVIDIA's queues after a fault. */     \
    X(INVALID_COMMAND_QUEUE, -36, UNSURE)                                 \
    X(INVALID_HOST_PTR, -37, FINE)                                        \
    X(INVALID_MEM_OBJECT, -38, FINE)                                      \
    X(INVALID_IMAGE_FORMAT_DESCRIPTOR, -39, FINE)                         \
    X(INVALID_IMAGE_SIZE, -40, FINE)                                      \
    X(INVALID_SAMPLER, -41, FINE)                                         \
    X(INVALID_BINARY, -42, FINE)                                          \
    X(INVALID_BUILD_OPTIONS, -43, FINE)                                   \
    X(INVALID_PROGRAM, -44, FINE)                                         \
    X(INVALID_PROGRAM_EXECUTABLE, -45, FINE)                              \
    X(INVALID_KERNEL_NAME, -46, FINE)                                     \
    X(INVALID_KERNEL_DEFINITION, -47, FINE)                               \
    X(INVALID_KERNEL, -48, FINE)                                          \
    X(INVALID_ARG_INDEX, -49, FINE)                                       \
    X(INVALID_ARG_VALUE, -50, FINE)                                       \
    X(INVALID_ARG_SIZE, -51, FINE)                                        \
    X(INVALID_KERNEL_ARGS, -52, FINE)                                     \
    X(INVALID_WORK_DIMENSION, -53, FINE)                                  \
    X(INVALID_WORK_GROUP_SIZE, -54, FINE)                                 \
    X(INVALID_WORK_ITEM_SIZE, -55, FINE)                                  \
    X(INVALID_GLOBAL_OFFSET, -56, FINE)                                   \
    X(INVALID_EVENT_WAIT_LIST, -57, FINE)                                 \
    X(INVALID_EVENT, -58, FINE)                                           \
    X(INVALID_OPERATION, -59, FINE)                                       \
    X(INVALID_GL_OBJECT, -60, FINE)                                       \
    X(INVALID_BUFFER_SIZE, -61, FINE)                                     \
    X(INVALID_MIP_LEVEL, -62, FINE)                                       \
    X(INVALID_GLOBAL_WORK_SIZE, -63, FINE)                                \
    X(INVALID_PROPERTY, -64, FINE)                                        \
    X(INVALID_IMAGE_DESCRIPTOR, -65, FINE)                                \
    X(INVALID_COMPILER_OPTIONS, -66, FINE)                                \
    X(INVALID_LINKER_OPTIONS, -67, FINE)                                  \
    X(INVALID_DEVICE_PARTITION_COUNT, -68, FINE)                          \
    X(INVALID_PIPE_SIZE, -69, FINE)                                       \
    X(INVALID_DEVICE_QUEUE, -70, FINE)                                    \
    X(INVALID_SPEC_ID, -71, FINE)                                         \
    X(MAX_SIZE_RESTRICTION_EXCEEDED, -72, FINE)                           \
    X(INVALID_GL_SHAREGROUP_REFERENCE_KHR, -1000, FINE)                   \
    X(PLATFORM_NOT_FOUND_KHR, -1001, FINE)                                \
    X(DEVICE_PARTITION_FAILED_EXT, -1057, FINE)                           \
    X(INVALID_PARTITION_COUNT_EXT, -1058, FINE)                           \
    X(INVALID_PARTITION_NAME_EXT, -1059, FINE)                            \
    X(EGL_RESOURCE_NOT_ACQUIRED_KHR, -1092, FINE)                         \
    X(INVALID_EGL_OBJECT_KHR, -1093, FINE)                                \
    X(INVALID_ACCELERATOR_INTEL, -1094, FINE)                             \
    X(INVALID_ACCELERATOR_TYPE_INTEL, -1095, FINE)                        \
    X(INVALID_ACCELERATOR_DESCRIPTOR_INTEL, -1096, FINE)                  \
    X(ACCELERATOR_TYPE_NOT_SUPPORTED_INTEL, -1097, FINE)                  \
    X(COMMAND_TERMINATED_ITSELF_WITH_FAILURE_ARM, -1108, FINE)            \
    X(CONTEXT_TERMINATED_KHR, -1121, REBUILD)                             \
    X(INVALID_COMMAND_BUFFER_KHR, -1138, FINE)                            \
    X(INVALID_SYNC_POINT_WAIT_LIST_KHR, -1139, FINE)                      \
    X(INCOMPATIBLE_COMMAND_QUEUE_KHR, -1140, FINE)                        \
    X(INVALID_MUTABLE_COMMAND_KHR, -1141, FINE)                           \
    X(INVALID_SEMAPHORE_KHR, -1142, FINE)

/* Codes whose headers need other systems or libraries, and one that no header has. */
#define OPENCL_OTHER_STATUSES(X)                                    \
    X(INVALID_D3D10_DEVICE_KHR, -1002, FINE)                        \
    X(INVALID_D3D10_RESOURCE_KHR, -1003, FINE)                      \
    X(D3D10_RESOURCE_ALREADY_ACQUIRED_KHR, -1004, FINE)             \
    X(D3D10_RESOURCE_NOT_ACQUIRED_KHR, -1005, FINE)                 \
    X(INVALID_D3D11_DEVICE_KHR, -1006, FINE)                        \
    X(INVALID_D3D11_RESOURCE_KHR, -1007, FINE)                      \
    X(D3D11_RESOURCE_ALREADY_ACQUIRED_KHR, -1008, FINE)             \
    X(D3D11_RESOURCE_NOT_ACQUIRED_KHR, -1009, FINE)                 \
    X(INVALID_DX9_MEDIA_ADAPTER_KHR, -1010, FINE)                   \
    X(INVALID_DX9_MEDIA_SURFACE_KHR, -1011, FINE)                   \
    X(DX9_MEDIA_SURFACE_ALREADY_ACQUIRED_KHR, -1012, FINE)          \
    X(DX9_MEDIA_SURFACE_NOT_ACQUIRED_KHR, -1013, FINE)              \
    X(INVALID_VA_API_MEDIA_ADAPTER_INTEL, -1098, FINE)              \
    X(INVALID_VA_API_MEDIA_SURFACE_INTEL, -1099, FINE)              \
    X(VA_API_MEDIA_SURFACE_ALREADY_ACQUIRED_INTEL, -1100, FINE)     \
    X(VA_API_MEDIA_SURFACE_NOT_ACQUIRED_INTEL, -1101, FINE)         \
    /* NVIDIA's code for a kernel with an illegal memory access. */ \
    X(ILLEGAL_ACCESS_NV, -9999, REBUILD)

enum opencl_status {
#define OPENCL_STATUS(word, number, verdict) OPENCL_##word = (number),
    OPENCL_STATUSES(OPENCL_STATUS) OPENCL_OTHER_STATUSES(OPENCL_STATUS)
#undef OPENCL_STATUS
};

/* X(word, number): arguments of the calls, CL_word in OpenCL's headers. */
#define OPENCL_WORDS(X)                      \
    X(PLATFORM_NAME, 0x0902)                 \
    X(PLATFORM_VENDOR, 0x0903)               \
    X(DEVICE_TYPE_CPU, 1 << 1)               \
    X(DEVICE_TYPE_GPU, 1 << 2)               \
    X(DEVICE_TYPE_ACCELERATOR, 1 << 3)       \
    X(DEVICE_TYPE, 0x1000)                   \
    X(DEVICE_MAX_COMPUTE_UNITS, 0x1002)      \
    X(DEVICE_GLOBAL_MEM_SIZE, 0x101F)        \
    X(DEVICE_AVAILABLE, 0x1027)              \
    X(DEVICE_PLATFORM, 0x1031)               \
    X(DEVICE_UUID_KHR, 0x106A)               \
    X(DEVICE_TOPOLOGY_AMD, 0x4037)           \
    X(DEVICE_TOPOLOGY_TYPE_PCIE_AMD, 1)      \
    X(DEVICE_GLOBAL_FREE_MEMORY_AMD, 0x4039) \
    X(DEVICE_PCI_BUS_INFO_KHR, 0x410F)       \
    X(DEVICE_PARTITION_EQUALLY, 0x1086)      \
    X(CONTEXT_PLATFORM, 0x1084)

enum opencl_word {
#define OPENCL_WORD(word, number) OPENCL_##word = (number),
    OPENCL_WORDS(OPENCL_WORD)
#undef OPENCL_WORD
    /* Parts of cl_nv_device_attribute_query that its headers leave out. */
    OPENCL_DEVICE_PCI_BUS_ID_NV = 0x4008,
    OPENCL_DEVICE_PCI_SLOT_ID_NV = 0x4009, /* device << 3 | function */
    OPENCL_DEVICE_PCI_DOMAIN_ID_NV = 0x400A,
};

#define OPENCL_UUID_SIZE 16

struct opencl_pci_bus_info {
    uint32_t domain;
    uint32_t bus;
    uint32_t device;
    uint32_t function;
};

/* cl_device_topology_amd for PCIe; it has no domain. */
struct opencl_topology_amd {
    uint32_t type;
    uint8_t unused[17];
    uint8_t bus;
    uint8_t device;
    uint8_t function;
};

typedef struct opencl_platform_handle *opencl_platform;
typedef struct opencl_device_handle *opencl_device;
typedef struct opencl_context_handle *opencl_context;
typedef struct opencl_queue_handle *opencl_queue;

/* X(type, member, symbol, is_required, parameters): all functions that berth uses. */
#define OPENCL_FUNCTIONS(X)                                                                      \
    X(int32_t, platforms, "clGetPlatformIDs", true,                                              \
      (uint32_t room, opencl_platform * platforms, uint32_t * ret_count))                        \
    X(int32_t, platform_info, "clGetPlatformInfo", true,                                         \
      (opencl_platform platform, uint32_t name, size_t size, void *value, size_t *ret_size))     \
    X(int32_t, devices, "clGetDeviceIDs", true,                                                  \
      (opencl_platform platform, uint64_t type, uint32_t room, opencl_device * devices,          \
       uint32_t * ret_count))                                                                    \
    X(int32_t, device_info, "clGetDeviceInfo", true,                                             \
      (opencl_device device, uint32_t name, size_t size, void *value, size_t *ret_size))         \
    X(int32_t, create_sub_devices, "clCreateSubDevices", false,                                  \
      (opencl_device device, const intptr_t *properties, uint32_t room, opencl_device *devices,  \
       uint32_t *ret_count))                                                                     \
    X(opencl_context, create_context, "clCreateContext", true,                                   \
      (const intptr_t *properties, uint32_t count, const opencl_device *devices,                 \
       void (*notify)(const char *, const void *, size_t, void *), void *data,                   \
       int32_t *ret_status))                                                                     \
    X(int32_t, release_context, "clReleaseContext", true, (opencl_context context))              \
    X(opencl_queue, create_queue, "clCreateCommandQueue", true,                                  \
      (opencl_context context, opencl_device device, uint64_t properties, int32_t * ret_status)) \
    X(int32_t, release_queue, "clReleaseCommandQueue", true, (opencl_queue queue))

/* The library's functions; NULL: the library lacks the function. */
struct opencl_calls {
#define OPENCL_MEMBER(type, member, symbol, required, parameters) type(*member) parameters;
    OPENCL_FUNCTIONS(OPENCL_MEMBER)
#undef OPENCL_MEMBER
};

#endif
