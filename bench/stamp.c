/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes down when it started, as now() says it, and waits to be ended. */
#include <inttypes.h>
#include <unistd.h>

#include "measure.h"

int main(void)
{
    printf("%" PRId64 "\n", now());
    fflush(stdout);
    for (;;)
        pause();
}
