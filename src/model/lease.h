/* SPDX-License-Identifier: Apache-2.0
 *
 * The granted right to use a set of devices. A lease owns its strings and its list.
 */
#ifndef MODEL_LEASE_H
#define MODEL_LEASE_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "model/optional.h"
#include "model/request.h"

struct lease_device {
    size_t slot;
    uint32_t share;                /* millionths of the device; SHARE_WHOLE when exclusive */
    struct optional_number memory; /* bytes reserved */
};

struct lease_device_list {
    VECTOR_OF(struct lease_device);
};

struct lease {
    uint64_t id; /* grows for ever and is never 0, so a later lease can be told from an earlier */
    char *name;  /* NULL: none */
    uint32_t uid;
    int32_t pid; /* of the holder; 0: unknown */
    enum sharing sharing;
    enum priority priority; /* never unsaid */
    bool opportunistic;
    int64_t granted_at;                /* nanoseconds since 1970 UTC */
    struct optional_number expires_at; /* the same; unknown: never */
    struct lease_device_list devices;
};

/* Frees what the lease owns and zeroes it. */
void lease_finish(struct lease *lease);

/* Whether the lease is well-formed: an id, a priority, at least one device and none twice, whole
 * devices when exclusive and shares within the device otherwise, an end after its start. Fails
 * with BERTH_ERROR_INVALID. Takes O(devices squared). Pure. */
int lease_validate(const struct lease *lease, struct berth_error *error);

#endif
