/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU masks that a shell, Slurm or Kubernetes set: what the client may see at all. The client
 * collects them, the daemon, which knows the devices, makes ids of them.
 */
#ifndef LAUNCH_INHERITED_MASKS_H
#define LAUNCH_INHERITED_MASKS_H

#include <berth/error.h>
#include <stdbool.h>

#include "base/bitset.h"
#include "base/string_list.h"
#include "model/machine.h"

/* The masks of the environment (ended by NULL) and what says how they count, as NAME=VALUE, each
 * name once. The caller finishes the list. Fails with BERTH_ERROR_MEMORY; the list is untouched
 * then. */
int inherited_masks_collect(char *const *environment, struct string_list *ret_masks,
                            struct berth_error *error);

/* Whether this is one that says how others count, and is no mask itself. */
bool inherited_masks_is_setting(const char *assignment);

/* The devices that the masks leave, in the machine's order, as the vendors read them:
 *
 * - nvidia: CUDA_VISIBLE_DEVICES and NVIDIA_VISIBLE_DEVICES; a device must pass both. Indices or
 * the beginnings of UUIDs; a GPU's name stands for all its MIG instances. What tells only that a
 *   container runtime has chosen already (all, a directory, a CDI name, as many indices as there
 * are GPUs, but others) is no limit.
 * - amd: ROCR_VISIBLE_DEVICES, indices or UUIDs; HIP_VISIBLE_DEVICES and GPU_DEVICE_ORDINAL count
 *   what that leaves, in its order; so does CUDA_VISIBLE_DEVICES where HIP has no mask of its own
 *   and the machine no nvidia device. But Slurm sets ROCR_VISIBLE_DEVICES, GPU_DEVICE_ORDINAL and,
 *   unless it is told the vendor, CUDA_VISIBLE_DEVICES to one and the same list, by which it means
 *   the devices once: one of the latter two that is the same text as the first says nothing more.
 * - intel: ZE_AFFINITY_MASK (tile_mask.h); a card is left if one of its tiles is. It counts as
 *   ZE_FLAT_DEVICE_HIERARCHY says, and integrated GPUs after all others, unless
 *   ZE_ENABLE_PCI_ID_DEVICE_ORDER is set.
 *
 * A vendor without a mask is not limited. *ret_has_mask is false, and the list empty, when none is;
 * true with an empty list: nothing may be used. What the vendor would not understand, what is not
 * here and what is named twice ends a list (intel's goes on after the latter two). Of several
 * values of one variable the first counts. The masks may be anybody's text. The caller finishes the
 * list. Fails with BERTH_ERROR_MEMORY; the results are untouched then. */
int inherited_masks_resolve(const struct string_list *masks, const struct machine *machine,
                            struct device_id_list *ret_ids, bool *ret_has_mask,
                            struct berth_error *error);

/* The same as a set of slots, of all devices where no vendor has a mask. The caller finishes it;
 * on failure, with BERTH_ERROR_MEMORY, it is untouched. */
int inherited_masks_find_visible(const struct string_list *masks, const struct machine *machine,
                                 struct bitset *ret_visible, struct berth_error *error);

/* Takes out of the machine what the masks of the environment (ended by NULL) hide. Fails with
 * BERTH_ERROR_MEMORY; nothing is changed then. */
int inherited_masks_narrow(char *const *environment, struct machine *machine,
                           struct berth_error *error);

#endif
