/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts that the supervisor keeps from one request to the next.
 */
#ifndef HARDWARE_SUPERVISOR_DEVICE_CACHE_H
#define HARDWARE_SUPERVISOR_DEVICE_CACHE_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"
#include "hardware/findings.h"
#include "hardware/supervisor/workers.h"
#include "model/machine/machine_report.h"

/* A device that a vendor listed, or a candidate. */
struct cached_device {
    struct task read;             /* STEP_READ or STEP_READ_CANDIDATE */
    struct device_finding listed; /* as its vendor listed it */
    struct finding_list last;     /* the last result: the device and its partitions; empty: never
                                   * read */
    struct problem_list problems; /* of the last result */
    char *failure;                /* why the last read failed; NULL: it did not fail */
    int64_t retry_at;   /* after a hang or a crash it is not read again before this time */
    uint64_t requested; /* serial of the last request that it was read for */
    bool marked;        /* used while a list is compared */
};

struct cached_device_list {
    VECTOR_OF(struct cached_device *);
};

/* A link by the ids of its devices, because their positions change. */
struct cached_link {
    struct device_id between[2];
    enum link_kind kind;
    uint32_t lanes;
};

/* A vendor's tasks, candidates, devices and links. */
struct cached_vendor {
    const struct vendor_table *table;
    struct task list_candidates;
    struct task list;
    struct task links;
    struct cached_device_list candidates;
    struct cached_device_list devices;
    bool list_is_due;   /* candidates have answered since the list was made */
    bool listed;        /* `devices` is complete */
    char *list_failure; /* why `devices` may be incomplete; NULL: no failure */
    int64_t list_retry_at;
    struct problem_list problems; /* of the last list */
    struct device_id_list linked; /* the devices that the links were requested for, in that order */
    struct {
        VECTOR_OF(struct cached_link);
    } cached_links;
    char *links_failure;
};

/* A process that uses a device. */
struct cached_process {
    struct task describe;
    struct device_process_list one; /* has one item */
    uint64_t requested;             /* serial of the last request that it was described for */
    unsigned attempts;              /* to describe it for that request */
};

/* The whole cache. Zeroed memory is an empty cache without vendors. */
struct device_cache {
    struct cached_vendor vendors[VENDOR_DRI + 1];
    size_t vendor_count;
    struct task scan;
    struct findings scanned; /* the processes that use each device, by the last scan */
    char *scan_failure;
    struct {
        VECTOR_OF(struct cached_process *);
    } processes;
};

void device_cache_init(struct device_cache *cache, const struct vendor_table *const *tables);
void device_cache_finish(struct device_cache *cache);

/* Calls `visit` for every task in the cache. */
void device_cache_each_task(struct device_cache *cache, void (*visit)(void *context, struct task *),
                            void *context);

/* Frees a cached device or process. Its task must neither wait nor run. NULL is allowed. */
void device_cache_free_device(struct cached_device *cached);
void device_cache_free_process(struct cached_process *process);

/* Updates the devices (STEP_READ) or the candidates (STEP_READ_CANDIDATE) from a new list. Adds new
 * ones with a task of their own, replaces the listed facts of cached ones, and removes those that
 * are not in the list, which it passes to `gone`. Empties the list. Returns 0 or
 * BERTH_ERROR_MEMORY. */
int device_cache_update(struct cached_vendor *vendor, enum step_kind kind,
                        struct finding_list *list,
                        void (*gone)(void *context, struct cached_device *cached), void *context);

/* Returns whether the vendor's devices are being listed: a task for that waits or runs, and is not
 * stuck. */
bool device_cache_is_listing(const struct cached_vendor *vendor);

/* Return the cached facts about the device and its partitions: the last result, or the listed facts
 * if it was never read. */
size_t device_cache_count_findings(const struct cached_device *cached);
const struct device_finding *device_cache_finding_at(const struct cached_device *cached,
                                                     size_t place);

/* Returns the process with this pid, which is added if it is missing. Returns NULL if memory ran
 * out. */
struct cached_process *device_cache_get_process(struct device_cache *cache, uint64_t pid);

/* Sets one of the failures to a copy of the message; NULL: no failure. */
int device_cache_set_failure(char **failure, const char *message);

#endif
