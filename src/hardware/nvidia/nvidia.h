/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA's GPUs: what the parts of their vendor table share. Facts come from NVML (nvml.h), and of
 * a GPU that sleeps, which NVML would wake, from sysfs and the kernel driver's files in /proc.
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

/* A GPU that the kernel's nvidia driver has. */
struct nvidia_gpu {
    struct pci_address pci;
    char *path;     /* its directory in sysfs, resolved */
    bool asleep;    /* now */
    bool may_sleep; /* when nobody uses it */
};

struct nvidia_gpu_list {
    VECTOR_OF(struct nvidia_gpu);
};

/* All of them, by PCI address. Fails with BERTH_ERROR_MEMORY. */
int nvidia_gpu_list_read(const struct sysroot *root, struct nvidia_gpu_list *ret_list,
                         struct berth_error *error);
void nvidia_gpu_list_finish(struct nvidia_gpu_list *list);
size_t nvidia_gpu_list_asleep(const struct nvidia_gpu_list *list);

/* Fills in what can be said of a GPU without waking it: model, UUID and minor number from the
 * driver, its place and its device files. Fails with BERTH_ERROR_MEMORY. */
int nvidia_read_asleep(const struct sysroot *root, const char *path, struct device *device,
                       struct berth_error *error);

/* Adds the device files that are there of the GPU with this minor number. Fails with
 * BERTH_ERROR_MEMORY. */
int nvidia_nodes(const struct sysroot *root, struct optional_number minor,
                 struct string_list *nodes, struct berth_error *error);

/* Has NVML started, for one step: loads it when that was not done. `gpus` may be NULL, then they
 * are looked at here if need be. Fails with BERTH_ERROR_NOT_FOUND (there is no library), _NO_DEVICE
 * (the driver is not loaded), or another code and NVML's own words; nothing stays loaded then. */
int nvidia_begin(struct vendor_context *context, const struct nvidia_gpu_list *gpus,
                 const struct nvml **ret_nvml, struct berth_error *error);
/* Ends the step: stops NVML again where a GPU may sleep, since one that NVML has open does not. */
void nvidia_end(struct vendor_context *context);
/* Stops and unloads NVML; the table's `close`. */
void nvidia_close(struct vendor_context *context);

/* error_set for a code of NVML: "<formatted>: GPU is lost (NVML 15)". Returns the code. */
int nvidia_error(const struct nvml *nvml, int number, struct berth_error *error, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

/* A GPU, or a part of one, that is being asked. */
struct nvidia_query {
    const struct sysroot *root;
    const struct nvml *nvml;
    nvml_device handle;
    struct device *device; /* to be filled in */
    int lost; /* the code by which a call said that the GPU is lost or must be reset; 0: none */
};

/* Whether a call was answered; notes when the GPU is lost. */
bool nvidia_answered(struct nvidia_query *query, int code);

/* Calls a function of NVML with the handle and what follows. False: there is no answer, since NVML
 * lacks the function, or it does not work here. A GPU that is lost is not asked again. */
#define nvidia_call(query, function, ...)                     \
    ((query)->lost == 0 && (query)->nvml->function != NULL && \
     nvidia_answered((query), (query)->nvml->function((query)->handle, __VA_ARGS__)))

/* More memory than this is not believed; NVML_NOT_AVAILABLE is not either. */
#define NVIDIA_MEMORY_MAX (UINT64_C(1) << 50)

/* The PCI address of what NVML describes; unknown when it makes no sense. */
struct pci_address nvidia_pci(const struct nvml_pci_info *info);

/* Fills in all that a whole GPU and a part of one have alike: name, UUID, memory. Fails with
 * BERTH_ERROR_MEMORY. */
int nvidia_read_identity(struct nvidia_query *query, struct berth_error *error);

/* Fills in the whole GPU but for its processes: facts, load, health. `path` is its directory in
 * sysfs or NULL. Fails with BERTH_ERROR_MEMORY. */
int nvidia_read_gpu(struct nvidia_query *query, const char *path, struct berth_error *error);

/* Says that the device is sick, and why, if anything shows that; else that it is well. Fails with
 * BERTH_ERROR_MEMORY. */
int nvidia_read_health(struct nvidia_query *query, struct berth_error *error);

/* What uses a GPU. */
struct nvidia_use {
    uint32_t pid;
    uint32_t gpu_instance; /* NVML_NO_INSTANCE: not known, or none */
    uint32_t compute_instance;
    struct optional_number memory;
    bool draws; /* and does not compute */
};

struct nvidia_use_list {
    VECTOR_OF(struct nvidia_use);
};

/* Adds what uses the GPU, each process once for each instance that it is on. Fails with
 * BERTH_ERROR_MEMORY. */
int nvidia_uses_read(struct nvidia_query *query, struct nvidia_use_list *uses,
                     struct berth_error *error);

/* Adds the processes to the device: all, or with an instance its own only. Fails with
 * BERTH_ERROR_MEMORY. */
int nvidia_uses_add(const struct nvidia_use_list *uses, const struct nvidia_use *instance,
                    struct device *device, struct berth_error *error);

/* Adds the instances of a partitioned GPU to the sight. `uses` are those of the GPU. Fails with
 * BERTH_ERROR_MEMORY. */
int nvidia_read_instances(struct nvidia_query *parent, const char *path,
                          const struct nvidia_use_list *uses, struct findings *findings,
                          struct berth_error *error);

/* The handle of a device that was listed: by PCI address where that is its key, else by index. */
int nvidia_handle(const struct nvml *nvml, const struct device_finding *wanted,
                  nvml_device *ret_handle, struct berth_error *error);

/* The table's `links`. */
int nvidia_links(struct vendor_context *context, const struct finding_list *devices,
                 struct findings *findings, struct berth_error *error);

#endif
