/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeping a command on the CPUs near its devices.
 */
#ifndef LAUNCH_PIN_H
#define LAUNCH_PIN_H

#include <berth/error.h>

#include "base/bitset.h"
#include "model/device.h"

/* The CPUs near the devices that this process may use. The caller finishes the set, which is
 * untouched on failure. Fails with BERTH_ERROR_NOT_FOUND (they are unknown, or none of them may be
 * used), _IO or _MEMORY, always with a sentence. */
int pin_choose(const struct device *devices, size_t count, struct bitset *ret_cpus,
               struct berth_error *error);

/* Keeps this process and what it becomes on these CPUs. Where the system does not let it any more,
 * it stays where it is. */
void pin_apply(const struct bitset *cpus);

#endif
