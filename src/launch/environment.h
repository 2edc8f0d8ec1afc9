/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the environment of a command under a lease, as ENVIRONMENT in berth-run(1) documents it.
 */
#ifndef LAUNCH_ENVIRONMENT_H
#define LAUNCH_ENVIRONMENT_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/string_list.h"
#include "model/cdi.h"
#include "model/machine/device.h"

/* One rank of a distributed job, in the terms of torch. */
struct rank_facts {
    uint32_t rank;       /* among all replicas */
    uint32_t world_size; /* number of all ranks */
    uint32_t local_rank; /* within the replica */
    uint32_t local_world_size;
    uint32_t group_rank;   /* the replica */
    const char *address;   /* MASTER_ADDR */
    uint16_t port;         /* MASTER_PORT */
    const char *backend;   /* BERTH_BACKEND */
    const char *interface; /* NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME; NULL: as inherited */
};

/* How a command shares its device by MPS. */
struct mps_facts {
    const char *pipe_dir;
    const char *log_dir;
    struct optional_number share;  /* millionths; unknown: no limit */
    struct optional_number memory; /* bytes; unknown: no limit */
};

/* The input for the environment of a command. All pointers are borrowed. */
struct launch_facts {
    uint64_t lease;               /* 0: no lease, all GPUs are hidden (--or-cpu) */
    const struct device *devices; /* the devices that the command may use */
    size_t device_count;
    uint32_t vendors;      /* bits of enum vendor: the vendors of this host */
    const char *socket;    /* the pool's, for berth inside the command; NULL: as inherited */
    const char *inventory; /* the pool's; NULL: as inherited */
    bool uuid;             /* use UUIDs instead of indices in the masks */
    bool has_replica;      /* set BERTH_REPLICA */
    uint32_t replica;
    const struct rank_facts *rank;  /* NULL: no rank, its variables are as inherited */
    const struct mps_facts *mps;    /* NULL: no MPS, its variables are as inherited */
    const struct cdi_registry *cdi; /* the vendors' CDI devices; NULL: none */
};

/* Makes the command's environment from `inherited` (ended by NULL). The last item of the new list
 * is NULL, so that ret_environment->items is an envp.
 *
 * Without a lease the command stays inside the lease that this process runs in, if any: BERTH_LEASE
 * is as inherited, but BERTH_DEVICES and similar variables are empty. BERTH_REPLICA is never
 * inherited, because it belongs to another lease.
 *
 * Fails with BERTH_ERROR_INVALID (a UUID is unknown, but --uuid, MPS or a MIG instance needs it) or
 * _MEMORY. The caller finishes the list, which is untouched on failure. */
int launch_environment(const struct launch_facts *facts, char *const *inherited,
                       struct string_list *ret_environment, struct berth_error *error);

#endif
