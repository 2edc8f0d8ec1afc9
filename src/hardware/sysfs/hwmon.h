/* SPDX-License-Identifier: Apache-2.0
 *
 * Sensors of a device.
 */
#ifndef HARDWARE_SYSFS_HWMON_H
#define HARDWARE_SYSFS_HWMON_H

#include <stdbool.h>

#include "hardware/sysfs/sysroot.h"
#include "model/load.h"

/* Fills in temperature, power and frequency from the hwmon directory that belongs to the device in
 * directory `path`: the one whose `name` is one of `names` (ended by NULL; NULL: any), never by
 * number. A sensor is chosen by its label where there are several: `labels` in order of preference
 * (edge, junction), else the first; a frequency only by its label (sclk), as it may be anything's.
 * What is not there stays as it is. */
void hwmon_read(const struct sysroot *root, const char *path, const char *const *names,
                const char *const *labels, struct load *load);

/* The energy that was used since some moment in the past, in microjoules, of a sensor that is
 * chosen in the same way: all that some drivers show. Unknown when there is none. */
struct optional_number hwmon_energy(const struct sysroot *root, const char *path,
                                    const char *const *names, const char *const *labels);

/* Whether that hwmon directory has this file, which is not read. */
bool hwmon_has(const struct sysroot *root, const char *path, const char *const *names,
               const char *file);

#endif
