/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/priority.h"

#include <errno.h>
#include <sys/resource.h>

static int read_priority(void)
{
    int nice;

    errno = 0;
    nice = getpriority(PRIO_PROCESS, 0);
    return errno == 0 ? nice : 0;
}

void priority_raise(void)
{
    if (read_priority() > PRIORITY_NICE)
        setpriority(PRIO_PROCESS, 0, PRIORITY_NICE);
}

void priority_reset(void)
{
    if (read_priority() < 0)
        setpriority(PRIO_PROCESS, 0, 0);
}
