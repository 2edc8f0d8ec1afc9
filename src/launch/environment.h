/* SPDX-License-Identifier: Apache-2.0
 *
 * What a lease puts into the environment of a command (contract: docs/ENVIRONMENT in berth-run(1)).
 */
#ifndef LAUNCH_ENVIRONMENT_H
#define LAUNCH_ENVIRONMENT_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/string_list.h"
#include "model/cdi.h"
#include "model/device.h"

/* One rank of a distributed job, as torch programs are told. */
struct rank_facts {
    uint32_t rank;       /* over all replicas */
    uint32_t world_size; /* ranks in all */
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

/* What a command is started with. Points to the caller's. */
struct launch_facts {
    uint64_t lease;               /* 0: none, every GPU is hidden (--or-cpu) */
    const struct device *devices; /* that the command may use */
    size_t device_count;
    uint32_t vendors;      /* bits of enum vendor: what the host has */
    const char *socket;    /* of the pool, for berth within the command; NULL: as inherited */
    const char *inventory; /* of the pool, likewise */
    bool uuid;             /* UUIDs instead of indices in the masks */
    bool has_replica;      /* sets BERTH_REPLICA */
    uint32_t replica;
    const struct rank_facts *rank; /* NULL: it is none, and variables of ranks are as inherited */
    const struct mps_facts *mps;   /* NULL: not shared by MPS, and its variables are as inherited */
    const struct cdi_registry *cdi; /* what vendors offer to containers; NULL: nothing */
};

/* The environment `inherited` (ended by NULL) as the command is to see it: an own list, ended by a
 * NULL entry that counts as the last item, so that ret_environment->items is an envp.
 *
 * Without a lease the command stays within the one that it was started in, if any: BERTH_LEASE is
 * as inherited, but BERTH_DEVICES and its kin are empty. BERTH_REPLICA is never inherited: it
 * speaks of another lease.
 *
 * Fails with BERTH_ERROR_INVALID (--uuid, or a MIG instance, where the UUID is unknown) or _MEMORY.
 * The caller finishes the list, which is untouched on failure. */
int launch_environment(const struct launch_facts *facts, char *const *inherited,
                       struct string_list *ret_environment, struct berth_error *error);

#endif
