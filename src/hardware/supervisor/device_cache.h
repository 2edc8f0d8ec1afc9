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

/* A device that a vendor listed. */
struct known {
    struct task read;
    struct found listed;          /* as its vendor's list has it */
    struct found_list last;       /* what was read last: itself and its partitions; empty: never */
    struct problem_list problems; /* of that */
    char *failure;                /* why it could not be read since; NULL: it could */
    int64_t retry_at;             /* a hang or a crash is not tried again before */
    uint64_t asked;               /* the request that it was last read for */
    bool marked;                  /* while a list is compared */
};

/* A link by the ids of its devices: their places change. */
struct known_link {
    struct device_id between[2];
    enum link_kind kind;
    uint32_t lanes;
};

/* A vendor. */
struct known_vendor {
    const struct vendor_table *table;
    struct task list;
    struct task links;
    struct {
        VECTOR_OF(struct known *);
    } devices;
    bool listed;        /* the devices are all that there are */
    char *list_failure; /* why they may not be; NULL: unknown */
    int64_t list_retry_at;
    struct problem_list problems; /* of the last list */
    struct device_id_list linked; /* the devices that the links are of, in the order asked */
    struct {
        VECTOR_OF(struct known_link);
    } known_links;
    char *links_failure;
};

/* A process that uses a device. */
struct known_process {
    struct task describe;
    struct device_process_list one; /* just it */
    uint64_t asked;                 /* the request that it was last described for */
};

/* All of it. Zeroed memory is nothing yet. */
struct knowledge {
    struct known_vendor vendors[VENDOR_DRI + 1];
    size_t vendor_count;
    struct task scan;
    struct sight scanned; /* who uses which device, as the last scan said */
    char *scan_failure;
    struct {
        VECTOR_OF(struct known_process *);
    } processes;
};

void knowledge_init(struct knowledge *knowledge, const struct vendor_table *const *tables);
void knowledge_finish(struct knowledge *knowledge);

/* Calls `visit` for every task that there is. */
void knowledge_each_task(struct knowledge *knowledge, void (*visit)(void *context, struct task *),
                         void *context);

/* Frees it; its task must not be the crew's any more. NULL is fine. */
void known_free(struct known *known);
void known_process_free(struct known_process *process);

/* Compares the devices to a list of now: new ones are added with a task of their own, what is said
 * of the others is taken over, and those that are not in it are handed to `gone`. The list is
 * emptied. Returns 0 or BERTH_ERROR_MEMORY. */
int known_vendor_compare(struct known_vendor *vendor, struct found_list *list,
                         void (*gone)(void *context, struct known *known), void *context);

/* What is known of the device and its partitions: what was read last, or what was listed. */
size_t known_count(const struct known *known);
const struct found *known_at(const struct known *known, size_t place);

/* The process with this pid, added when it is not there. NULL: no memory. */
struct known_process *known_process_need(struct knowledge *knowledge, uint64_t pid);

/* Sets one of the failures: a copy of the words, NULL: none. */
int known_set_failure(char **failure, const char *words);

#endif
