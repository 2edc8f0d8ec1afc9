/* SPDX-License-Identifier: Apache-2.0 */
#include "model/lease.h"

#include <inttypes.h>

#include "base/error.h"

void lease_finish(struct lease *lease)
{
    free(lease->name);
    vector_finish(&lease->devices);
    *lease = (struct lease){0};
}

static int validate_device(const struct lease *lease, const struct lease_device *device,
                           struct berth_error *error)
{
    const struct lease_device *other;

    if (lease->sharing == SHARING_EXCLUSIVE && device->share != SHARE_WHOLE)
        return error_set(error, BERTH_ERROR_INVALID,
                         "lease %" PRIu64
                         ": wanted the whole of slot %zu, found %u of %d millionths",
                         lease->id, device->slot, device->share, SHARE_WHOLE);
    if (device->share < 1 || device->share > SHARE_WHOLE)
        return error_set(error, BERTH_ERROR_INVALID,
                         "lease %" PRIu64 ": wanted a share of slot %zu from 1 to %d millionths, "
                         "found %u",
                         lease->id, device->slot, SHARE_WHOLE, device->share);
    for (other = lease->devices.items; other != device; other++) {
        if (other->slot == device->slot)
            return error_set(error, BERTH_ERROR_INVALID,
                             "lease %" PRIu64 ": wanted each device once, found slot %zu twice",
                             lease->id, device->slot);
    }
    return 0;
}

int lease_validate(const struct lease *lease, struct berth_error *error)
{
    const struct lease_device *device;
    int code;

    if (lease->id == 0)
        return error_set(error, BERTH_ERROR_INVALID, "lease: wanted an id, found 0");
    if (lease->priority == PRIORITY_UNSAID)
        return error_set(error, BERTH_ERROR_INVALID,
                         "lease %" PRIu64 ": wanted a priority, found none", lease->id);
    if (lease->devices.count == 0)
        return error_set(error, BERTH_ERROR_INVALID,
                         "lease %" PRIu64 ": wanted at least 1 device, found 0", lease->id);
    if (lease->expires_at.known && (int64_t)lease->expires_at.value <= lease->granted_at)
        return error_set(error, BERTH_ERROR_INVALID,
                         "lease %" PRIu64 ": wanted an end after its start, found one before",
                         lease->id);
    vector_for_each (device, &lease->devices) {
        code = validate_device(lease, device, error);
        if (code < 0)
            return code;
    }
    return 0;
}
