/* SPDX-License-Identifier: Apache-2.0
 *
 * One GPU, or one hardware partition of a GPU: what is known about it. Zeroed memory is a device
 * of which nothing is known (but for its id, which is always to be set). A device owns its
 * strings. Plain values: no I/O, no threads, no time.
 */
#ifndef MODEL_DEVICE_H
#define MODEL_DEVICE_H

#include "base/string_list.h"
#include "base/text/choice.h"
#include "base/vector.h"
#include "model/capability.h"
#include "model/device_id.h"
#include "model/device_process.h"
#include "model/load.h"
#include "model/optional.h"
#include "model/pci.h"

enum health {
    HEALTH_UNKNOWN,
    HEALTH_OK,
    HEALTH_SICK,
};

/* ok and sick; unknown has no name. */
extern const struct choice health_names[];

/* Whether it has memory of its own. */
enum device_kind {
    DEVICE_KIND_UNKNOWN,
    DEVICE_KIND_INTEGRATED,
    DEVICE_KIND_DISCRETE,
};

/* integrated and discrete; unknown has no name. */
extern const struct choice device_kind_names[];

/* More tiles than any GPU has. */
#define DEVICE_TILES_MAX 16

struct device {
    struct device_id id;
    char *name;   /* the model, NULL: unknown */
    char *uuid;   /* NULL: unknown */
    char *parent; /* what all partitions of one GPU share; NULL for a whole GPU */
    char *cpus;   /* nearby CPUs as the kernel lists them, 0-15,32-47; NULL: unknown */
    struct pci_address pci;
    struct optional_number memory_total; /* bytes */
    struct optional_number numa;
    struct optional_number minor; /* of /dev/nvidia<minor> */
    struct optional_number tiles; /* of Intel's, which Level Zero may show one by one */
    /* The numbers by which Level Zero calls it and its first tile among the host's; only what is
     * leased says so. */
    struct optional_number ordinal;
    struct optional_number first_tile;
    struct capability cap;
    enum device_kind kind;
    enum health health;
    char *health_reason;      /* why it is sick, for people; NULL: not known */
    uint32_t host;            /* of the machine's hosts: the one that it is in */
    bool partitioned;         /* its partitions are leased, never itself */
    bool asleep;              /* powered down; its load is not looked at, so that it stays so */
    bool old;                 /* it does not answer now: what is said of it was so before */
    struct string_list nodes; /* device files */
    struct load load;
    struct device_process_list processes; /* that use it, as far as we may know */
};

struct device_list {
    VECTOR_OF(struct device); /* by slot */
};

/* Frees what the device owns and zeroes it. */
void device_finish(struct device *device);

/* Whether all is the same of both that stays while nobody changes the hardware: everything but
 * health, sleep, load, processes and what only a lease says. */
bool device_facts_equal(const struct device *one, const struct device *other);

void device_list_finish(struct device_list *list);

/* The slot of the device with this id; the list's count when there is none. */
size_t device_list_find(const struct device_list *list, struct device_id id);

/* Appends the ids of all devices. Returns 0 or BERTH_ERROR_MEMORY. */
int device_list_ids(const struct device_list *list, struct device_id_list *ids);

#endif
