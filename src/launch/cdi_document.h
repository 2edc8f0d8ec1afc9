/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes devices as a CDI document, which container runtimes read.
 */
#ifndef LAUNCH_CDI_DOCUMENT_H
#define LAUNCH_CDI_DOCUMENT_H

#include <berth/error.h>

#include "base/string_list.h"
#include "base/text/text.h"
#include "model/machine/device.h"

/* The newest version that podman 4.3 reads. It rejects files of later versions. */
#define CDI_VERSION "0.5.0"

/* Appends a document of kind CDI_KIND (JSON) with an entry for each device that can be leased,
 * named by its id, and CDI_ALL for all of them. An entry has the device's files, each with the
 * device numbers, owner and mode that lstat() finds below the directory `root` ("" for the machine
 * itself). Links are not followed, because their targets need not belong to the device.
 *
 * Appends a note for everything that is left out: missing files, files that are not character
 * devices, and devices without any file.
 *
 * Fails with BERTH_ERROR_NO_DEVICE if no device remains, or _MEMORY; `out` and `notes` may have
 * grown then. */
int cdi_document_write(const struct device_list *devices, const char *root, struct text *out,
                       struct string_list *notes, struct berth_error *error);

#endif
