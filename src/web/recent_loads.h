/* SPDX-License-Identifier: Apache-2.0
 *
 * The utilization of each device in the last minutes, for a page that is opened now. Pure. Zeroed
 * memory is empty.
 */
#ifndef WEB_RECENT_LOADS_H
#define WEB_RECENT_LOADS_H

#include "base/text/json.h"
#include "base/text/quantity.h"
#include "base/vector.h"
#include "view/pool_view.h"

/* The length of a step, and how many steps are kept. */
#define RECENT_INTERVAL (5 * DURATION_SECOND)
enum { RECENT_STEPS = 72 };

struct recent_device {
    struct device_id id;
    uint64_t last; /* the number of the newest step */
    int32_t
        utilization[RECENT_STEPS]; /* by step modulo RECENT_STEPS, thousandths or RECENT_UNKNOWN */
};
#define RECENT_UNKNOWN (-1)

struct recent_loads {
    VECTOR_OF(struct recent_device);
};

/* Adds the samples of a view. Drops devices that are gone. If memory runs out, a new device is not
 * kept. */
void recent_loads_add(struct recent_loads *recent, const struct pool_view *view);

/* Writes one value: {every_s, until, devices: [{id, utilization: [...]}]}, the oldest step first,
 * null where there is no sample. `until` is the time of the last step. Devices without samples are
 * left out. */
void recent_loads_write(const struct recent_loads *recent, int64_t now, struct json *json);

void recent_loads_finish(struct recent_loads *recent);

#endif
