/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of a machine's units CUDA shows, and in which order.
 *
 * CUDA_DEVICE_ORDER is PCI_BUS_ID or FASTEST_FIRST, which only moves the fastest to the front.
 * CUDA_VISIBLE_DEVICES is a list of numbers in that order, or of UUIDs, which may be abbreviated;
 * the first entry decides which. The list ends before the first entry that names nothing. If an
 * entry occurs twice or names several units, nothing is shown. A GPU with instances is shown as the
 * first of them. If an instance is shown, nothing else is, unless the machine has many-instances.
 */
#ifndef TESTS_CUDA_VISIBLE_H
#define TESTS_CUDA_VISIBLE_H

#include "doubles/cuda_machine.h"

/* Fills in `shown` and `order`. */
void visible_choose(struct machine *machine);

#endif
