/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes power from energy counters: the mean between two samples.
 */
#ifndef HARDWARE_INTEL_ENERGY_H
#define HARDWARE_INTEL_ENERGY_H

#include <stdint.h>

#include "model/machine/load.h"

/* The last sample of each device. */
struct energy;

/* Records the energy counter of the device with this key, in microjoules, at this time (nanoseconds
 * of a clock that never jumps). Returns the mean power in milliwatts since the previous sample. It
 * is unknown for the first sample, if the counter went backwards, and if the samples are too close
 * together or too far apart. Creates *energy if it is NULL. If memory runs out, the sample is not
 * recorded. */
struct figure energy_power(struct energy **energy, const char *key, uint64_t microjoules,
                           int64_t now);

void energy_destroy(struct energy *energy);

#endif
