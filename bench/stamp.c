/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the time of its start, as now() returns it, and waits until it is killed.
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
