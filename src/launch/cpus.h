/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the CPUs near devices.
 */
#ifndef LAUNCH_CPUS_H
#define LAUNCH_CPUS_H

#include <stddef.h>

#include "base/bitset.h"
#include "model/machine/device.h"

/* CPU numbers are lower than this. */
enum { CPUS_MAX = 65536 };

/* Unites the CPUs near all devices. Skips devices whose list of CPUs is unknown or malformed. The
 * caller finishes the set, which is untouched on failure. Fails with BERTH_ERROR_NOT_FOUND (no CPU
 * is known) or _MEMORY. */
int cpus_near(const struct device *devices, size_t count, struct bitset *ret_cpus);

#endif
