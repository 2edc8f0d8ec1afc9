/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether an unknown process uses a device: much of its memory is in use, but the driver lists no
 * process that has it. Drivers list none of the other machine's in a virtual machine with a vGPU,
 * none in WSL, and none of the host's in an LXC container. Pure functions over plain values.
 */
#ifndef MODEL_MACHINE_OCCUPANCY_H
#define MODEL_MACHINE_OCCUPANCY_H

#include "model/machine/device.h"

/* A driver keeps at most this much of an idle device's memory, or 1/64 of a larger memory. A device
 * that is in use when berth first sees it is not taken for an idle one. */
#define OCCUPANCY_IDLE_MAX (UINT64_C(1) << 30)

/* Returns how many bytes of the device's memory are in use; unknown if the driver does not say it,
 * and for a device without memory of its own, whose memory is the machine's. */
struct optional_number occupancy_memory_used(const struct device *device);

/* Sets device->memory_idle to the least of `before` and the memory that is in use now. `before` is
 * the least that was ever seen in use; it may be unknown. */
void occupancy_note_idle(struct device *device, struct optional_number before);

/* Returns whether an unknown process uses the device: more than `margin` bytes are in use above its
 * idle memory and the memory of the listed processes. The caller judges these as themselves. Always
 * false if the memory of a listed process is unknown, as it always is but on NVIDIA's devices, if
 * `margin` is 0, and while the device sleeps, does not answer, or its figures are unknown or
 * declared. Call it for a device without a lease. */
bool occupancy_is_hidden(const struct device *device, uint64_t margin);

#endif
