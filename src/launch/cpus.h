/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPUs near devices.
 */
#ifndef LAUNCH_CPUS_H
#define LAUNCH_CPUS_H

#include <stddef.h>

#include "base/bitset.h"
#include "model/device.h"

/* No CPU has this number or a higher one. */
enum { CPUS_MAX = 65536 };

/* The union of what is known of these devices; what does not parse is not known. The caller
 * finishes the set. Fails with BERTH_ERROR_NOT_FOUND (nothing is known) or _MEMORY; *ret_cpus is
 * untouched then. */
int cpus_near(const struct device *devices, size_t count, struct bitset *ret_cpus);

#endif
