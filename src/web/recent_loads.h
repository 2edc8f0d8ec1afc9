/* SPDX-License-Identifier: Apache-2.0
 *
 * How busy each device was in the last minutes, so that a page that is opened now has something to
 * draw. Pure; zeroed memory knows nothing yet.
 */
#ifndef WEB_RECENT_LOADS_H
#define WEB_RECENT_LOADS_H

#include "base/text/json.h"
#include "base/text/quantity.h"
#include "base/vector.h"
#include "view/pool_view.h"

/* One figure for each so long, and how many are kept. */
#define RECENT_INTERVAL (5 * DURATION_SECOND)
enum { RECENT_STEPS = 72 };

struct recent_device {
    struct device_id id;
    uint64_t last;                     /* the number of the newest step */
    int32_t utilization[RECENT_STEPS]; /* by step, thousandths; RECENT_UNKNOWN */
};
#define RECENT_UNKNOWN (-1)

struct recent_loads {
    VECTOR_OF(struct recent_device);
};

/* Takes in what a look at the pool says. Devices that are not there any more are forgotten. Without
 * memory some are. */
void recent_loads_add(struct recent_loads *recent, const struct pool_view *view);

/* One value: {every_s, until, devices: [{id, utilization: [...]}]}, oldest figure first, null for
 * what nobody sampled; `until` is the time of the last. Devices of which nothing is known are left
 * out. */
void recent_loads_write(const struct recent_loads *recent, int64_t now, struct json *json);

void recent_loads_finish(struct recent_loads *recent);

#endif
