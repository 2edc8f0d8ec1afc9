/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU masks that a shell, Slurm or Kubernetes has set, which limit the devices that the client
 * may use. The client collects them. The daemon, which knows the devices, resolves them to ids.
 */
#ifndef LAUNCH_MASKS_INHERITED_MASKS_H
#define LAUNCH_MASKS_INHERITED_MASKS_H

#include <berth/error.h>
#include <stdbool.h>

#include "base/bitset.h"
#include "base/string_list.h"
#include "model/machine/machine.h"

/* Collects the masks of the environment (ended by NULL) and the settings for their numbering, as
 * NAME=VALUE, each name once. The caller finishes the list. Fails with BERTH_ERROR_MEMORY; the list
 * is untouched then. */
int inherited_masks_collect(char *const *environment, struct string_list *ret_masks,
                            struct berth_error *error);

/* Returns true if this is a setting for the numbering of masks, and not a mask. */
bool inherited_masks_is_setting(const char *assignment);

/* Finds the devices that the masks leave, in the machine's order. Reads the masks as the vendors
 * do:
 *
 * - nvidia: CUDA_VISIBLE_DEVICES and NVIDIA_VISIBLE_DEVICES, with indices or prefixes of UUIDs.
 *   A device must pass both. A GPU's index or UUID stands for all its MIG instances. A value that
 *   only shows the choice of a container runtime is no limit: "all", a directory, a CDI name, or
 *   as many indices as there are GPUs, if some of these indices do not exist here.
 * - amd: ROCR_VISIBLE_DEVICES, with indices or UUIDs. HIP_VISIBLE_DEVICES and GPU_DEVICE_ORDINAL
 *   number the devices that it leaves, in its order. So does CUDA_VISIBLE_DEVICES if HIP has no
 *   mask of its own and the machine has no nvidia device. Slurm sets ROCR_VISIBLE_DEVICES,
 *   GPU_DEVICE_ORDINAL and, unless it knows the vendor, CUDA_VISIBLE_DEVICES to the same list and
 *   means one selection. So each of the last two is ignored if it has the text of the first.
 * - intel: ZE_AFFINITY_MASK (tile_mask.h). A card is left if one of its tiles is. The numbering
 *   follows ZE_FLAT_DEVICE_HIERARCHY. Integrated GPUs come last, unless
 *   ZE_ENABLE_PCI_ID_DEVICE_ORDER is set.
 *
 * A vendor without a mask is not limited. *ret_has_mask is false, with an empty list, if no vendor
 * has a mask. If it is true with an empty list, no device may be used. A list ends at an entry that
 * is malformed, names no device here or names a device again; intel's list ends only at a malformed
 * entry. If a variable has several values, the first counts. The masks are untrusted. The caller
 * finishes the list. Fails with BERTH_ERROR_MEMORY; the results are untouched then. */
int inherited_masks_resolve(const struct string_list *masks, const struct machine *machine,
                            struct device_id_list *ret_ids, bool *ret_has_mask,
                            struct berth_error *error);

/* Finds the same devices as a set of slots: all slots if no vendor has a mask. The caller finishes
 * the set. Fails with BERTH_ERROR_MEMORY; the set is untouched then. */
int inherited_masks_find_visible(const struct string_list *masks, const struct machine *machine,
                                 struct bitset *ret_visible, struct berth_error *error);

/* Removes from the machine the devices that the masks of the environment (ended by NULL) hide.
 * Fails with BERTH_ERROR_MEMORY; the machine is unchanged then. */
int inherited_masks_narrow(char *const *environment, struct machine *machine,
                           struct berth_error *error);

#endif
