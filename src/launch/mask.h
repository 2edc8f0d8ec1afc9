/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU masks that a shell, Slurm or Kubernetes set: what the client may see at all. The client
 * collects them, the daemon, which knows the devices, makes ids of them.
 */
#ifndef LAUNCH_MASK_H
#define LAUNCH_MASK_H

#include <berth/error.h>
#include <stdbool.h>

#include "base/string_list.h"
#include "model/machine.h"

/* Adds the masks of the environment as NAME=VALUE. Fails with BERTH_ERROR_MEMORY. */
int mask_collect(char *const *environment, struct string_list *ret_masks,
                 struct berth_error *error);

/* The devices that the masks leave, as the vendors read them: CUDA_VISIBLE_DEVICES and
 * NVIDIA_VISIBLE_DEVICES name nvidia's, ROCR_VISIBLE_DEVICES (then HIP_VISIBLE_DEVICES,
 * GPU_DEVICE_ORDINAL within it) amd's, ZE_AFFINITY_MASK intel's; a vendor without a mask is not
 * limited. *ret_has_mask is false, and the list empty, when nothing is. What no vendor would
 * understand hides what follows it, as theirs do. The caller finishes the list. Fails with
 * BERTH_ERROR_MEMORY. */
int mask_resolve(const struct string_list *masks, const struct machine *machine,
                 struct device_id_list *ret_ids, bool *ret_has_mask, struct berth_error *error);

#endif
