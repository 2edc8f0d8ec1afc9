/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of leases that were held for less than a second. The first short leases of a user within a
 * minute are recorded on their own. Later ones are summed by name, devices and share; beyond a
 * number of different ones, all others of that minute are one sum. So a user cannot fill the disk
 * with short leases. Zeroed memory is not valid: call short_leases_init().
 */
#ifndef RECORD_SHORT_LEASES_H
#define RECORD_SHORT_LEASES_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id_map.h"
#include "base/vector.h"
#include "model/pool_info.h"

/* How many short leases of a user within a minute are recorded on their own, and how many sums of
 * each user and minute there are. */
enum { SHORT_LEASES_ALONE = 60, SHORT_LEASES_SUMS = 60 };

/* The sum of some leases. */
struct short_lease_sum {
    struct ended_lease first; /* the first lease; its devices are those of all */
    int64_t minute;
    bool is_rest;     /* of leases with different names, devices and shares */
    bool has_changed; /* since short_leases_written() */
    uint64_t leases;
    uint64_t held_time; /* nanoseconds */
    uint64_t waited_time;
    uint64_t device_time; /* nanoseconds of whole devices */
    int64_t ended;        /* of the last lease */
    enum lease_end end;
};

struct short_leases_user;

struct short_leases {
    uint32_t alone_max; /* SHORT_LEASES_ALONE */
    size_t bytes;       /* approximate memory */
    size_t bytes_max;
    struct id_map by_uid;
    struct {
        VECTOR_OF(struct short_leases_user *);
    } users;
};

/* Fails with BERTH_ERROR_MEMORY. */
int short_leases_init(struct short_leases *all, uint32_t alone_max, size_t bytes_max,
                      struct berth_error *error);
void short_leases_finish(struct short_leases *all);

/* Adds an ended lease to a sum and returns true; the lease's contents are then freed. Returns false
 * if it must be recorded on its own, also without memory for another sum; *ended is unchanged. */
bool short_leases_add(struct short_leases *all, struct ended_lease *ended);

/* Receives a sum. A negative code ends the visit. */
typedef int short_leases_visitor(void *context, const struct short_lease_sum *sum,
                                 struct berth_error *error);

/* Visits all sums that have changed. */
int short_leases_each_changed(const struct short_leases *all, short_leases_visitor *visitor,
                              void *context, struct berth_error *error);

/* Returns the share of each device, in millionths, that gives the sum's device time. */
uint32_t short_leases_share(const struct short_lease_sum *sum);

/* All sums were written. Forgets those that are complete at this time. */
void short_leases_written(struct short_leases *all, int64_t now);

#endif
