/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/pool_clock.h"

#include <time.h>

#include "base/system/clock.h"
#include "engine/engine.h"

void pool_clock_init(struct pool_clock *clock, const struct loop *loop)
{
    *clock = (struct pool_clock){
        .loop = loop,
        .offset = clock_read(CLOCK_REALTIME) - loop_now(loop),
    };
}

int64_t pool_clock_now(const struct pool_clock *clock)
{
    return loop_now(clock->loop) + clock->offset;
}

int64_t pool_clock_loop_time(const struct pool_clock *clock, int64_t time)
{
    return time == TIME_NEVER ? LOOP_NEVER : time - clock->offset;
}
