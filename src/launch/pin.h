/* SPDX-License-Identifier: Apache-2.0
 *
 * Pins a command to the CPUs near its devices.
 */
#ifndef LAUNCH_PIN_H
#define LAUNCH_PIN_H

#include <berth/error.h>

#include "base/bitset.h"
#include "model/machine/device.h"

/* Finds the CPUs near the devices that this process may use. The caller finishes the set, which is
 * untouched on failure. Fails with BERTH_ERROR_NOT_FOUND (the CPUs are unknown, or none is
 * allowed), _IO or _MEMORY. */
int pin_choose(const struct device *devices, size_t count, struct bitset *ret_cpus,
               struct berth_error *error);

/* Pins this process, and the program it becomes, to these CPUs. Ignores failure. */
void pin_apply(const struct bitset *cpus);

#endif
