/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of a machine's units CUDA shows, and in which order:
 *
 * CUDA_DEVICE_ORDER is PCI_BUS_ID, or FASTEST_FIRST: then the fastest comes first, the others stay.
 * CUDA_VISIBLE_DEVICES is a list of numbers in that order, or of UUIDs (the first entry says which)
 * that may be cut short. It ends before the first entry that names nothing; an entry that is there
 * twice, or names several, leaves nothing. A GPU that has instances is shown as the first of them;
 * where an instance is shown, nothing else is, unless the machine says many-instances.
 */
#ifndef TESTS_CUDA_VISIBLE_H
#define TESTS_CUDA_VISIBLE_H

#include "doubles/cuda_machine.h"

/* Fills in `shown` and `order`. */
void visible_choose(struct machine *machine);

#endif
