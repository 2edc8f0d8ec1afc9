/* SPDX-License-Identifier: Apache-2.0
 *
 * One GPU, or one hardware partition of a GPU. Zeroed memory is a device with nothing known about
 * it; only the id must always be set. A device owns its strings. Pure functions over plain values.
 */
#ifndef MODEL_MACHINE_DEVICE_H
#define MODEL_MACHINE_DEVICE_H

#include "base/optional.h"
#include "base/string_list.h"
#include "base/text/choice.h"
#include "base/text/text.h"
#include "base/vector.h"
#include "model/machine/capability.h"
#include "model/machine/device_id.h"
#include "model/machine/load.h"
#include "model/machine/pci.h"

enum health {
    HEALTH_UNKNOWN,
    HEALTH_OK,
    HEALTH_SICK,
};

/* ok, sick. HEALTH_UNKNOWN has no name. */
extern const struct choice health_names[];

/* The kinds of devices: without or with memory of their own. */
enum device_kind {
    DEVICE_KIND_UNKNOWN,
    DEVICE_KIND_INTEGRATED,
    DEVICE_KIND_DISCRETE,
};

/* integrated, discrete. DEVICE_KIND_UNKNOWN has no name. */
extern const struct choice device_kind_names[];

/* The maximum number of processes of one device; further processes are ignored. */
#define DEVICE_PROCESSES_MAX 4096

/* The maximum number of ancestors of a process. */
#define DEVICE_ANCESTORS_MAX 64

/* A process that uses a device. */
struct device_process {
    uint64_t pid;
    struct optional_number uid;
    struct optional_number memory; /* bytes of the device's own memory */
    char *command;                 /* NULL: unknown */
    char *container;               /* the id of its container, if that is not the reader's own;
                                    * NULL: none known */
    uint64_t lease;                /* the id of its lease; 0: none known */
    int64_t started;               /* nanoseconds since 1970 UTC; 0: unknown */
    bool draws;                    /* it is only known to draw, not to compute */
    bool squats;                   /* it has no lease and keeps the device from being granted */

    /* The kernel could not show it in time, so its environment, start and owner are unknown: it is
     * inside execve(), for example. Its uid is known unless it has ended. */
    bool undecided;

    /* The probe sets these for the daemon, which assigns processes to leases. */
    uint64_t said_lease;          /* the lease in its environment (model/lease_mark.h) */
    char *said_socket;            /* the socket in its environment */
    struct optional_number owner; /* of its container (base/system/process_container.h) */
    const uint32_t *ancestors;    /* pids: its parent first, at most DEVICE_ANCESTORS_MAX */
    uint32_t ancestor_count;
};

struct device_process_list {
    VECTOR_OF(struct device_process);
};

/* No GPU has more tiles. */
#define DEVICE_TILES_MAX 16

struct device {
    struct device_id id;
    char *name;   /* the model, NULL: unknown */
    char *uuid;   /* NULL: unknown */
    char *parent; /* the same for all partitions of one GPU; NULL for a whole GPU */
    char *cpus;   /* nearby CPUs in the kernel's format, 0-15,32-47; NULL: unknown */
    struct pci_address pci;
    struct optional_number memory_total; /* bytes */
    struct optional_number numa;
    struct optional_number minor; /* of /dev/nvidia<minor> */
    struct optional_number tiles; /* of an Intel GPU; Level Zero may show each as a device */
    /* Level Zero's numbers of the device and of its first tile on the host (model/machine/tiles.h).
     * Known only for leased devices. */
    struct optional_number ordinal;
    struct optional_number first_tile;
    struct capability cap;
    enum device_kind kind;
    enum health health;
    char *health_reason;      /* why it is sick, as a text; NULL: unknown */
    uint32_t host;            /* index into the machine's hosts */
    bool partitioned;         /* its partitions can be leased, but not the device itself */
    bool asleep;              /* powered down; its load is not read, which would wake it */
    bool old;                 /* it does not answer now; these values are from an earlier probe */
    struct string_list nodes; /* device files */
    struct load load;
    struct optional_number memory_idle; /* bytes: the least that was seen in use while the probe ran
                                         * (model/machine/occupancy.h) */
    bool hides_processes;               /* the driver cannot list the processes */
    struct device_process_list processes; /* the visible processes that use the device */
};

struct device_list {
    VECTOR_OF(struct device); /* by slot */
};

/* Frees what the device owns and zeroes it. */
void device_finish(struct device *device);

/* Returns whether the constant facts of both are equal: everything except health, sleep, load,
 * processes, and values that only leased devices have. */
bool device_facts_equal(const struct device *one, const struct device *other);

void device_list_finish(struct device_list *list);

/* Returns the slot of the device with this id, or the list's count when there is none. */
size_t device_list_find(const struct device_list *list, struct device_id id);

/* Appends the ids of all devices. Returns 0 or BERTH_ERROR_MEMORY. */
int device_list_ids(const struct device_list *list, struct device_id_list *ids);

/* Returns the process with this pid, or NULL when there is none. */
struct device_process *device_process_find(const struct device_process_list *list, uint64_t pid);

/* Returns the process with this pid, and adds it when there is none. Returns NULL when there is no
 * memory, or the list is full. */
struct device_process *device_process_find_or_add(struct device_process_list *list, uint64_t pid);

/* Appends advice for a process in a container that has no lease. Appends nothing when the process
 * is in no container. */
void device_process_advise(const struct device_process *process, struct text *out);

/* Frees what the process owns and zeroes it. */
void device_process_finish(struct device_process *process);
void device_process_list_finish(struct device_process_list *list);

#endif
