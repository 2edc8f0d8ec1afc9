/* SPDX-License-Identifier: Apache-2.0
 *
 * The meaning of each CUDA status for the context of the call.
 */
#include <string.h>

#include "base/count.h"
#include "base/text/utf8.h"
#include "context/cuda.h"

/* All status codes of CUDA 13.3. After a fault of a kernel, the documentation says that the context
 * is lost, and mostly that the process must be restarted. Often a reset of the primary context is
 * enough. So the process goes on, and a try shows whether the new context works. */
static const struct {
    int status;
    const char *name;
    enum driver_verdict verdict;
} all[] = {
    {0, "CUDA_SUCCESS", DRIVER_FINE},
    {1, "CUDA_ERROR_INVALID_VALUE", DRIVER_FINE},  /* a wrong argument */
    {2, "CUDA_ERROR_OUT_OF_MEMORY", DRIVER_RETRY}, /* may work with less */
    /* This process has called cuInit() to get a context, so it is a child after fork(). */
    {3, "CUDA_ERROR_NOT_INITIALIZED", DRIVER_GIVE_UP},
    {4, "CUDA_ERROR_DEINITIALIZED", DRIVER_GIVE_UP}, /* the process is exiting */
    /* 5 to 8: about the profiler, not about the context. */
    {5, "CUDA_ERROR_PROFILER_DISABLED", DRIVER_FINE},
    {6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED", DRIVER_FINE},
    {7, "CUDA_ERROR_PROFILER_ALREADY_STARTED", DRIVER_FINE},
    {8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED", DRIVER_FINE},
    {34, "CUDA_ERROR_STUB_LIBRARY", DRIVER_GIVE_UP}, /* for linking only; there is no driver */
    {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", DRIVER_FINE}, /* this call only */
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", DRIVER_RETRY}, /* another process uses it exclusively */
    {100, "CUDA_ERROR_NO_DEVICE", DRIVER_GIVE_UP},       /* none that CUDA can use */
    {101, "CUDA_ERROR_INVALID_DEVICE", DRIVER_FINE},     /* a wrong number */
    /* A virtual GPU that may get its licence later. */
    {102, "CUDA_ERROR_DEVICE_NOT_LICENSED", DRIVER_RETRY},
    {200, "CUDA_ERROR_INVALID_IMAGE", DRIVER_FINE}, /* a wrong module */
    /* The thread has no current context, which is a wrong call, or the context is destroyed. */
    {201, "CUDA_ERROR_INVALID_CONTEXT", DRIVER_UNSURE},
    {202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT", DRIVER_FINE}, /* nothing to do */
    {205, "CUDA_ERROR_MAP_FAILED", DRIVER_FINE},              /* 205 to 213: about a resource */
    {206, "CUDA_ERROR_UNMAP_FAILED", DRIVER_FINE},
    {207, "CUDA_ERROR_ARRAY_IS_MAPPED", DRIVER_FINE},
    {208, "CUDA_ERROR_ALREADY_MAPPED", DRIVER_FINE},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", DRIVER_FINE}, /* a module for other GPUs */
    {210, "CUDA_ERROR_ALREADY_ACQUIRED", DRIVER_FINE},
    {211, "CUDA_ERROR_NOT_MAPPED", DRIVER_FINE},
    {212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY", DRIVER_FINE},
    {213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER", DRIVER_FINE},
    /* The driver does not use the bad page for new contexts. */
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", DRIVER_REBUILD},
    {215, "CUDA_ERROR_UNSUPPORTED_LIMIT", DRIVER_FINE},        /* on this GPU */
    {216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", DRIVER_RETRY},  /* another thread has it */
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", DRIVER_FINE},  /* between these GPUs */
    {218, "CUDA_ERROR_INVALID_PTX", DRIVER_FINE},              /* a wrong module; also 221 to 225 */
    {219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", DRIVER_FINE}, /* about OpenGL or Direct3D */
    /* The link between GPUs stays broken until they are reset. */
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", DRIVER_GIVE_UP},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", DRIVER_FINE},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", DRIVER_FINE},
    {223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", DRIVER_FINE},
    {224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", DRIVER_FINE},
    {225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", DRIVER_FINE},
    /* The hardware limited the fault to this context. */
    {226, "CUDA_ERROR_CONTAINED", DRIVER_REBUILD},
    {300, "CUDA_ERROR_INVALID_SOURCE", DRIVER_FINE}, /* 300 to 303: about files */
    {301, "CUDA_ERROR_FILE_NOT_FOUND", DRIVER_FINE},
    {302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", DRIVER_FINE},
    {303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", DRIVER_FINE},
    /* The kernel refused a resource: files, locked memory. */
    {304, "CUDA_ERROR_OPERATING_SYSTEM", DRIVER_RETRY},
    {400, "CUDA_ERROR_INVALID_HANDLE", DRIVER_FINE}, /* a wrong argument; also 401, 402, 500 */
    {401, "CUDA_ERROR_ILLEGAL_STATE", DRIVER_FINE},
    {402, "CUDA_ERROR_LOSSY_QUERY", DRIVER_FINE},
    {500, "CUDA_ERROR_NOT_FOUND", DRIVER_FINE},
    {600, "CUDA_ERROR_NOT_READY", DRIVER_FINE},          /* still running, which is not a failure */
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", DRIVER_REBUILD}, /* a fault of a kernel */
    /* The launch is impossible; no kernel ran. */
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", DRIVER_FINE},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", DRIVER_REBUILD},             /* the kernel was stopped */
    {703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", DRIVER_FINE}, /* 703 to 705: a wrong call */
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", DRIVER_FINE},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", DRIVER_FINE},
    {708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", DRIVER_FINE},         /* too late to set flags */
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", DRIVER_REBUILD},        /* another user has reset it */
    {710, "CUDA_ERROR_ASSERT", DRIVER_REBUILD},                      /* a fault of a kernel */
    {711, "CUDA_ERROR_TOO_MANY_PEERS", DRIVER_RETRY},                /* may work with fewer */
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", DRIVER_FINE}, /* 712 and 713: a wrong call */
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", DRIVER_FINE},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", DRIVER_REBUILD}, /* 714 to 719: a fault of a kernel */
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", DRIVER_REBUILD},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", DRIVER_REBUILD},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", DRIVER_REBUILD},
    {718, "CUDA_ERROR_INVALID_PC", DRIVER_REBUILD},
    {719, "CUDA_ERROR_LAUNCH_FAILED", DRIVER_REBUILD},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", DRIVER_FINE}, /* no kernel ran */
    {721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", DRIVER_REBUILD},        /* a fault of a kernel */
    /* 800 and 801: not for this caller or not on this GPU. */
    {800, "CUDA_ERROR_NOT_PERMITTED", DRIVER_FINE},
    {801, "CUDA_ERROR_NOT_SUPPORTED", DRIVER_FINE},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", DRIVER_RETRY}, /* the fabric manager is still starting */
    /* 803 and 804: the driver was updated but the old one still runs, or the library does not
     * support these GPUs. */
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", DRIVER_GIVE_UP},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", DRIVER_GIVE_UP},
    {805, "CUDA_ERROR_MPS_CONNECTION_FAILED", DRIVER_RETRY}, /* the server may be starting */
    /* Lost with the server; a new context connects to a new server. */
    {806, "CUDA_ERROR_MPS_RPC_FAILURE", DRIVER_REBUILD},
    {807, "CUDA_ERROR_MPS_SERVER_NOT_READY", DRIVER_RETRY}, /* it recovers from a fault */
    /* 808 and 809: until another process ends. */
    {808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", DRIVER_RETRY},
    {809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", DRIVER_RETRY},
    /* The server terminated this client. */
    {810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", DRIVER_GIVE_UP},
    {811, "CUDA_ERROR_CDP_NOT_SUPPORTED", DRIVER_FINE}, /* 811 and 812: a wrong module */
    {812, "CUDA_ERROR_CDP_VERSION_MISMATCH", DRIVER_FINE},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", DRIVER_FINE}, /* 900 to 908: about a capture */
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", DRIVER_FINE},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", DRIVER_FINE},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", DRIVER_FINE},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", DRIVER_FINE},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", DRIVER_FINE},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", DRIVER_FINE},
    {907, "CUDA_ERROR_CAPTURED_EVENT", DRIVER_FINE},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", DRIVER_FINE},
    {909, "CUDA_ERROR_TIMEOUT", DRIVER_RETRY}, /* the event may still happen */
    /* A wrong call; also 912 to 918 except 916. */
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", DRIVER_FINE},
    {911, "CUDA_ERROR_EXTERNAL_DEVICE", DRIVER_REBUILD}, /* permanent, like a fault of a kernel */
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", DRIVER_FINE},
    {913, "CUDA_ERROR_FUNCTION_NOT_LOADED", DRIVER_FINE},
    {914, "CUDA_ERROR_INVALID_RESOURCE_TYPE", DRIVER_FINE},
    {915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", DRIVER_FINE},
    /* About encryption; the documentation says no more. */
    {916, "CUDA_ERROR_KEY_ROTATION", DRIVER_UNSURE},
    {917, "CUDA_ERROR_STREAM_DETACHED", DRIVER_FINE},
    {918, "CUDA_ERROR_GRAPH_RECAPTURE_FAILURE", DRIVER_FINE},
    {999, "CUDA_ERROR_UNKNOWN", DRIVER_UNSURE},
};

enum driver_verdict cuda_classify(int status)
{
    for (size_t i = 0; i < COUNT(all); i++) {
        if (all[i].status == status)
            return all[i].verdict;
    }
    return DRIVER_UNSURE;
}

static const char *builtin_name(int status)
{
    for (size_t i = 0; i < COUNT(all); i++) {
        if (all[i].status == status)
            return all[i].name;
    }
    return NULL;
}

const char *cuda_name_status(struct driver *driver, int status)
{
    static _Thread_local char name[64];
    const struct cuda *cuda = (const struct cuda *)driver;
    const char *given = NULL;
    size_t length;

    if (cuda->functions.error_name == NULL || cuda->functions.error_name(status, &given) != 0 ||
        given == NULL)
        return builtin_name(status);
    length = strnlen(given, sizeof(name) - 1);
    memcpy(name, given, length);
    name[utf8_boundary(name, length)] = '\0';
    utf8_make_plain(name);
    return name;
}
