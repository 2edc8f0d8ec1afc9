/* SPDX-License-Identifier: Apache-2.0
 *
 * Power from counters of energy: the mean between two looks at one.
 */
#ifndef HARDWARE_SYSFS_ENERGY_H
#define HARDWARE_SYSFS_ENERGY_H

#include <stdint.h>

#include "model/load.h"

/* What is kept from look to look, of many devices. */
struct energy;

/* Notes down the counter of the device that `key` names, in microjoules, at this time (nanoseconds
 * of a clock that never jumps). Returns the mean power in milliwatts since it was noted before:
 * unknown at the first time, when the counter went back, and when the looks were too close to each
 * other or too far apart to mean anything. *energy is made when it is NULL; out of memory, nothing
 * is noted. */
struct figure energy_power(struct energy **energy, const char *key, uint64_t microjoules,
                           int64_t now);

void energy_destroy(struct energy *energy);

#endif
