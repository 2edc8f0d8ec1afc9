/* SPDX-License-Identifier: Apache-2.0
 *
 * Records when it started, as now() tells it, and waits until it is ended.
 */
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
