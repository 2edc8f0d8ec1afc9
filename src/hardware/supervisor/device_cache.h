/* SPDX-License-Identifier: Apache-2.0
 *
 * What the supervisor knows from one request to the next.
 */
#ifndef HARDWARE_SUPERVISOR_DEVICE_CACHE_H
#define HARDWARE_SUPERVISOR_DEVICE_CACHE_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"
#include "hardware/findings.h"
#include "hardware/supervisor/workers.h"
#include "model/machine_report.h"

/* A device that a vendor listed, or a candidate. */
struct cached_device {
    struct task read;             /* STEP_READ or STEP_READ_CANDIDATE */
    struct device_finding listed; /* as its vendor's list has it */
    struct finding_list last;     /* what was read last: itself and its partitions; empty: never */
    struct problem_list problems; /* of that */
    char *failure;                /* why it could not be read since; NULL: it could */
    int64_t retry_at;             /* a hang or a crash is not tried again before */
    uint64_t requested;           /* the request that it was last read for */
    bool marked;                  /* while a list is compared */
};

struct cached_device_list {
    VECTOR_OF(struct cached_device *);
};

/* A link by the ids of its devices: their places change. */
struct cached_link {
    struct device_id between[2];
    enum link_kind kind;
    uint32_t lanes;
};

/* A vendor. */
struct cached_vendor {
    const struct vendor_table *table;
    struct task list_candidates;
    struct task list;
    struct task links;
    struct cached_device_list candidates;
    struct cached_device_list devices;
    bool list_is_due;   /* candidates have answered since the list was made */
    bool listed;        /* the devices are all that there are */
    char *list_failure; /* why they may not be; NULL: unknown */
    int64_t list_retry_at;
    struct problem_list problems; /* of the last list */
    struct device_id_list linked; /* the devices that the links are of, in the order asked */
    struct {
        VECTOR_OF(struct cached_link);
    } cached_links;
    char *links_failure;
};

/* A process that uses a device. */
struct cached_process {
    struct task describe;
    struct device_process_list one; /* just it */
    uint64_t requested;             /* the request that it was last described for */
};

/* All of it. Zeroed memory is nothing yet. */
struct device_cache {
    struct cached_vendor vendors[VENDOR_DRI + 1];
    size_t vendor_count;
    struct task scan;
    struct findings scanned; /* who uses which device, as the last scan said */
    char *scan_failure;
    struct {
        VECTOR_OF(struct cached_process *);
    } processes;
};

void device_cache_init(struct device_cache *cache, const struct vendor_table *const *tables);
void device_cache_finish(struct device_cache *cache);

/* Calls `visit` for every task that there is. */
void device_cache_each_task(struct device_cache *cache, void (*visit)(void *context, struct task *),
                            void *context);

/* Frees it; its task must not be the crew's any more. NULL is fine. */
void device_cache_free_device(struct cached_device *cached);
void device_cache_free_process(struct cached_process *process);

/* Compares the devices to a list of now: new ones are added with a task of their own, what is said
 * of the others is taken over, and those that are not in it are handed to `gone`. The list is
 * emptied. Returns 0 or BERTH_ERROR_MEMORY. */
int device_cache_update(struct cached_vendor *vendor, enum step_kind kind,
                        struct finding_list *list,
                        void (*gone)(void *context, struct cached_device *cached), void *context);

/* Returns whether the vendor's devices are being listed: a task for that waits or runs, and is not
 * stuck. */
bool device_cache_is_listing(const struct cached_vendor *vendor);

/* What is known of the device and its partitions: what was read last, or what was listed. */
size_t device_cache_count_findings(const struct cached_device *cached);
const struct device_finding *device_cache_finding_at(const struct cached_device *cached,
                                                     size_t place);

/* The process with this pid, added when it is not there. NULL: no memory. */
struct cached_process *device_cache_get_process(struct device_cache *cache, uint64_t pid);

/* Sets one of the failures: a copy of the words, NULL: none. */
int device_cache_set_failure(char **failure, const char *message);

#endif
