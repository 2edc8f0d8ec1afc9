/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices as the container device interface (CDI) names them: what the CDI files of a machine offer
 * to containers, and which of it is a device of ours. Plain values: no I/O, no threads, no time.
 */
#ifndef MODEL_CDI_H
#define MODEL_CDI_H

#include <stdbool.h>

#include "base/string_list.h"
#include "base/vector.h"
#include "model/device.h"

/* The kind of our own entries: berth/gpu=nvidia0. */
#define CDI_KIND "berth/gpu"
/* The entry that is all devices at once, in our file and in vendors'. */
#define CDI_ALL "all"
/* The most entries of a file, and of all files: they are searched one by one. */
#define CDI_ENTRIES_MAX 4096

/* What a container can ask for. Owns its strings. */
struct cdi_entry {
    char *name;               /* qualified: nvidia.com/gpu=0 */
    struct string_list nodes; /* the host's device files that it brings, as below /dev */
    unsigned level;           /* of the directory that it is from: a higher one wins */
    bool ambiguous;           /* a directory has it twice: no runtime knows which is meant */
};

/* Entries in the order of directories, files and their lines. */
struct cdi_registry {
    VECTOR_OF(struct cdi_entry);
};

void cdi_entry_finish(struct cdi_entry *entry);
void cdi_registry_finish(struct cdi_registry *registry);

/* The part of a qualified name behind its kind: 0. */
const char *cdi_entry_device(const struct cdi_entry *entry);

/* Moves the entries of a file, which is in a directory of this level, to the registry, as container
 * runtimes do: one of a higher level takes the place of another of the same name; two of one level
 * are both void, whatever other levels have. `file` is empty afterwards. Files are to come in order
 * of levels. Fails with BERTH_ERROR_LIMIT (CDI_ENTRIES_MAX) or _MEMORY; both are to be finished
 * then. */
int cdi_registry_merge(struct cdi_registry *registry, struct cdi_registry *file, unsigned level);

/* The name of the vendor's entry that is this device and nothing else; NULL: there is none. An
 * entry is the device if what it brings of device files that belong to one GPU (others, such as
 * /dev/nvidiactl, are for all) is the device's, and there is such a file; or if it has none and is
 * called by the device's UUID. Of several it is the one that is called by the UUID, else the first.
 */
const char *cdi_registry_find(const struct cdi_registry *registry, const struct device *device);

#endif
