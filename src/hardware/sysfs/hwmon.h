/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the sensors of a device.
 */
#ifndef HARDWARE_SYSFS_HWMON_H
#define HARDWARE_SYSFS_HWMON_H

#include <stdbool.h>

#include "hardware/sysfs/sysroot.h"
#include "model/machine/load.h"

/* Fills in temperature, power and frequency from the hwmon directory of the device in directory
 * `path`. The hwmon directory's `name` must be one of `names` (terminated by NULL; NULL: any); the
 * directory's number has no meaning. If there are several sensors, the label decides: `labels` in
 * order of preference (edge, junction), otherwise the first sensor. A frequency needs one of these
 * labels (sclk), because it may be of any clock. Missing values stay as they are. */
void hwmon_read(const struct sysroot *root, const char *path, const char *const *names,
                const char *const *labels, struct load *load);

/* Returns the energy used since an unknown time in the past, in microjoules, from a sensor that is
 * chosen in the same way. Some drivers report energy but no power. Unknown if there is no such
 * sensor. */
struct optional_number hwmon_energy(const struct sysroot *root, const char *path,
                                    const char *const *names, const char *const *labels);

/* Returns whether that hwmon directory has this file. Does not read the file. */
bool hwmon_has(const struct sysroot *root, const char *path, const char *const *names,
               const char *file);

#endif
