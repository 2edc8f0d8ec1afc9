/* SPDX-License-Identifier: Apache-2.0 */
#include <berth/berth.h>

const char *berth_version(void)
{
    return BERTH_VERSION;
}
