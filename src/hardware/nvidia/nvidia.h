/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations shared by the files behind nvidia_table. Facts come from NVML (nvml.h). NVML would
 * wake a sleeping GPU, so the facts about that GPU come from sysfs and from the driver's files in
 * /proc.
 */
#ifndef HARDWARE_NVIDIA_NVIDIA_H
#define HARDWARE_NVIDIA_NVIDIA_H

#include <berth/error.h>
#include <stdbool.h>

#include "base/vector.h"
#include "hardware/findings.h"
#include "hardware/nvidia/nvml.h"
#include "hardware/vendors.h"

/* The largest minor number of a device file. */
#define NVIDIA_MINOR_MAX 0xfffff

/* A GPU of the kernel's nvidia driver. */
struct nvidia_gpu {
    struct pci_address pci;
    char *path;     /* its resolved directory in sysfs */
    bool asleep;    /* it sleeps now */
    bool may_sleep; /* it sleeps when it is not in use */
};

struct nvidia_gpu_list {
    VECTOR_OF(struct nvidia_gpu);
};

/* Lists all GPUs of the driver, ordered by PCI address. Fails with BERTH_ERROR_MEMORY. */
int nvidia_gpu_list_read(const struct sysroot *root, struct nvidia_gpu_list *ret_list,
                         struct berth_error *error);
void nvidia_gpu_list_finish(struct nvidia_gpu_list *list);
size_t nvidia_gpu_list_asleep(const struct nvidia_gpu_list *list);

/* Fills in the facts that do not wake the GPU: model, UUID and minor number from the driver, its
 * locality and its device files. Fails with BERTH_ERROR_MEMORY. */
int nvidia_read_asleep(const struct sysroot *root, const char *path, struct device *device,
                       struct berth_error *error);

/* Adds the existing device files of the GPU with this minor number. Fails with BERTH_ERROR_MEMORY.
 */
int nvidia_nodes(const struct sysroot *root, struct optional_number minor,
                 struct string_list *nodes, struct berth_error *error);

/* Starts NVML for one step, and loads it if needed. If `gpus` is NULL, lists the GPUs itself when
 * needed. Fails with BERTH_ERROR_NOT_FOUND (no library), _NO_DEVICE (the driver is not loaded), or
 * another code with NVML's own message. On failure NVML is unloaded. */
int nvidia_begin(struct vendor_context *context, const struct nvidia_gpu_list *gpus,
                 const struct nvml **ret_nvml, struct berth_error *error);
/* Ends the step. Stops NVML if a GPU may sleep, because a GPU that NVML has open cannot sleep. */
void nvidia_end(struct vendor_context *context);
/* Stops and unloads NVML. The table's `close`. */
void nvidia_close(struct vendor_context *context);

/* Like error_set(), for a return code of NVML: "<formatted>: GPU is lost (NVML 15)". Returns the
 * code. */
int nvidia_error(const struct nvml *nvml, int number, struct berth_error *error, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

/* A GPU or an instance that is being read. */
struct nvidia_query {
    const struct sysroot *root;
    const struct nvml *nvml;
    nvml_device handle;
    struct device *device; /* receives the facts */
    bool lists_processes;  /* a call that lists processes has worked */
    int lost; /* the return code that reported the GPU as lost or in need of a reset; 0: none */
};

/* Returns whether a call succeeded. Records if the GPU is lost. */
bool nvidia_answered(struct nvidia_query *query, int code);

/* Calls a function of NVML with the handle and the other arguments. Returns false if there is no
 * answer, because NVML lacks the function or it does not work here. A lost GPU is not called
 * again. */
#define nvidia_call(query, function, ...)                     \
    ((query)->lost == 0 && (query)->nvml->function != NULL && \
     nvidia_answered((query), (query)->nvml->function((query)->handle, __VA_ARGS__)))

/* A larger memory size is wrong; NVML_NOT_AVAILABLE is larger. */
#define NVIDIA_MEMORY_MAX (UINT64_C(1) << 50)

/* Returns the PCI address that NVML reports; unknown if it is invalid. */
struct pci_address nvidia_pci(const struct nvml_pci_info *info);

/* Fills in the facts that GPUs and instances have in common: name, UUID, memory. Fails with
 * BERTH_ERROR_MEMORY. */
int nvidia_read_identity(struct nvidia_query *query, struct berth_error *error);

/* Fills in the facts, load and health of a whole GPU, but not its processes. `path` is its
 * directory in sysfs or NULL. Fails with BERTH_ERROR_MEMORY. */
int nvidia_read_gpu(struct nvidia_query *query, const char *path, struct berth_error *error);

/* Sets the device's health: sick with the reason if a fact shows that, otherwise ok. Fails with
 * BERTH_ERROR_MEMORY. */
int nvidia_read_health(struct nvidia_query *query, struct berth_error *error);

/* A process that uses a GPU. */
struct nvidia_use {
    uint32_t pid;
    uint32_t gpu_instance; /* NVML_NO_INSTANCE: unknown or none */
    uint32_t compute_instance;
    struct optional_number memory;
    bool draws; /* it draws and does not compute */
};

struct nvidia_use_list {
    VECTOR_OF(struct nvidia_use);
};

/* Adds the processes on the GPU, each once for each instance that it uses. Fails with
 * BERTH_ERROR_MEMORY. */
int nvidia_uses_read(struct nvidia_query *query, struct nvidia_use_list *uses,
                     struct berth_error *error);

/* Adds the processes to the device: all of them, or only those on the given instance. Fails with
 * BERTH_ERROR_MEMORY. */
int nvidia_uses_add(const struct nvidia_use_list *uses, const struct nvidia_use *instance,
                    struct device *device, struct berth_error *error);

/* Adds the instances of a partitioned GPU to the findings. `uses` are the processes on the GPU.
 * Fails with BERTH_ERROR_MEMORY. */
int nvidia_read_instances(struct nvidia_query *parent, const char *path,
                          const struct nvidia_use_list *uses, struct findings *findings,
                          struct berth_error *error);

/* Gets the handle of a listed device: by PCI address if that is its key, otherwise by index. */
int nvidia_handle(const struct nvml *nvml, const struct device_finding *wanted,
                  nvml_device *ret_handle, struct berth_error *error);

/* The table's `links`. */
int nvidia_links(struct vendor_context *context, const struct finding_list *devices,
                 struct findings *findings, struct berth_error *error);

#endif
