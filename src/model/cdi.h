/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices in the container device interface (CDI): the entries of a machine's CDI files, and which
 * entry describes which device. Pure functions over plain values.
 */
#ifndef MODEL_CDI_H
#define MODEL_CDI_H

#include <stdbool.h>

#include "base/string_list.h"
#include "base/vector.h"
#include "model/machine/device.h"

/* The kind of berth's own entries: berth/gpu=nvidia0. */
#define CDI_KIND "berth/gpu"
/* The entry for all devices, in berth's file and in those of vendors. */
#define CDI_ALL "all"
/* The maximum number of entries of a file, and of all files, because they are searched linearly. */
#define CDI_ENTRIES_MAX 4096

/* A device that a container can request. Owns its strings. */
struct cdi_entry {
    char *name;               /* qualified: nvidia.com/gpu=0 */
    struct string_list nodes; /* the host's device files that the container gets */
    unsigned level;           /* of the entry's directory: a higher level wins */
    bool ambiguous;           /* its directory has the name twice, so runtimes refuse it */
};

/* Entries in the order of directories, files and their lines. */
struct cdi_registry {
    VECTOR_OF(struct cdi_entry);
};

void cdi_entry_finish(struct cdi_entry *entry);
void cdi_registry_finish(struct cdi_registry *registry);

/* Returns the part of a qualified name after its kind: 0. */
const char *cdi_entry_device(const struct cdi_entry *entry);

/* Moves the entries of a file, from a directory of this level, to the registry. As in container
 * runtimes, an entry replaces one of the same name from a lower level, and two entries of the same
 * name and level are both invalid, whatever other levels have. Files must be added in order of
 * their levels. `file` is empty afterwards. Fails with BERTH_ERROR_LIMIT (CDI_ENTRIES_MAX) or
 * _MEMORY; the caller must finish both then. */
int cdi_registry_merge(struct cdi_registry *registry, struct cdi_registry *file, unsigned level);

/* Returns the name of the vendor's entry for exactly this device, or NULL when there is none. An
 * entry matches in two cases. Either it has device files that belong to one GPU (/dev/nvidiactl and
 * others belong to none), and all of them are the device's. Or it has none, and its name is the
 * device's UUID. When several entries match, an entry named by the UUID wins, else the first. */
const char *cdi_registry_find(const struct cdi_registry *registry, const struct device *device);

#endif
