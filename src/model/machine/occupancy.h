/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides whether an unknown process uses a device: much of its memory is in use, but the driver
 * lists no process that has it. Drivers do not list processes of other virtual machines with a
 * vGPU, of Windows in WSL, and of the host in an LXC container. Pure functions over plain values.
 */
#ifndef MODEL_MACHINE_OCCUPANCY_H
#define MODEL_MACHINE_OCCUPANCY_H

#include "model/machine/device.h"

/* A driver keeps at most this much of an idle device's memory, or 1/64 of a larger memory. A device
 * that is in use when berth first sees it is not taken for an idle one. */
#define OCCUPANCY_IDLE_MAX (UINT64_C(1) << 30)

/* Returns how many bytes of the device's memory are in use; unknown if the driver does not report
 * it, or if the device shares the machine's memory. */
struct optional_number occupancy_memory_used(const struct device *device);

/* Sets device->memory_idle to the least of `before` and the memory that is in use now. `before` is
 * the least that was ever seen in use; it may be unknown. */
void occupancy_note_idle(struct device *device, struct optional_number before);

/* Returns whether an unknown process uses the device: more than `margin` bytes are in use above its
 * idle memory and the memory of the listed processes, which the caller judges by themselves. Always
 * false if the memory of a listed process is unknown, which it always is except on NVIDIA's
 * devices; if `margin` is 0; and while the device sleeps, does not answer, or its figures are
 * unknown or declared. Call it for a device without a lease. */
bool occupancy_is_hidden(const struct device *device, uint64_t margin);

#endif
