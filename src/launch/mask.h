/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU masks that a shell, Slurm or Kubernetes set: what the client may see at all. The client
 * collects them, the daemon, which knows the devices, makes ids of them.
 */
#ifndef LAUNCH_MASK_H
#define LAUNCH_MASK_H

#include <berth/error.h>
#include <stdbool.h>

#include "base/bitset.h"
#include "base/string_list.h"
#include "model/machine.h"

/* The masks of the environment (ended by NULL), as NAME=VALUE, each name once. The caller finishes
 * the list. Fails with BERTH_ERROR_MEMORY; the list is untouched then. */
int mask_collect(char *const *environment, struct string_list *ret_masks,
                 struct berth_error *error);

/* The devices that the masks leave, in the machine's order, as the vendors read them:
 *
 * - nvidia: CUDA_VISIBLE_DEVICES and NVIDIA_VISIBLE_DEVICES; a device must pass both. Indices or
 * the beginnings of UUIDs; a GPU's name stands for all its MIG instances. What tells only that a
 *   container runtime has chosen already (all, a directory, a CDI name, as many indices as there
 * are GPUs, but others) is no limit.
 * - amd: ROCR_VISIBLE_DEVICES, indices or UUIDs; HIP_VISIBLE_DEVICES and GPU_DEVICE_ORDINAL count
 *   what that leaves, in its order; so does CUDA_VISIBLE_DEVICES where HIP has no mask of its own
 *   and the machine no nvidia device.
 * - intel: ZE_AFFINITY_MASK, device or device.tile.
 *
 * A vendor without a mask is not limited. *ret_has_mask is false, and the list empty, when none is;
 * true with an empty list: nothing may be used. What the vendor would not understand, what is not
 * here and what is named twice ends a list (intel's goes on after the latter two). Of several
 * values of one variable the first counts. The masks may be anybody's text. The caller finishes the
 * list. Fails with BERTH_ERROR_MEMORY; the results are untouched then. */
int mask_resolve(const struct string_list *masks, const struct machine *machine,
                 struct device_id_list *ret_ids, bool *ret_has_mask, struct berth_error *error);

/* The same as a set of slots, of all devices where no vendor has a mask. The caller finishes it;
 * on failure, with BERTH_ERROR_MEMORY, it is untouched. */
int mask_find_visible(const struct string_list *masks, const struct machine *machine,
                      struct bitset *ret_visible, struct berth_error *error);

/* Takes out of the machine what the masks of the environment (ended by NULL) hide. Fails with
 * BERTH_ERROR_MEMORY; nothing is changed then. */
int mask_narrow(char *const *environment, struct machine *machine, struct berth_error *error);

#endif
