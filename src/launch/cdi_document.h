/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices as a CDI document, by which container runtimes give them to containers.
 */
#ifndef LAUNCH_CDI_DOCUMENT_H
#define LAUNCH_CDI_DOCUMENT_H

#include <berth/error.h>

#include "base/string_list.h"
#include "base/text/text.h"
#include "model/device.h"

/* The newest version that podman 4.3 reads; of later ones it takes no file. */
#define CDI_VERSION "0.5.0"

/* Appends a document of kind CDI_KIND (JSON) with an entry for each device that can be leased,
 * called by its id, and CDI_ALL for all of them. An entry brings the device's files, each with the
 * numbers, owner and mode that `stat` finds below the directory `root` ("" for the machine itself).
 * Links are not followed: what a device's file leads to is not the device's to give away.
 *
 * What is left out is told in `notes`, a sentence each: files that are missing or no character
 * devices, and devices without any file.
 *
 * Fails with BERTH_ERROR_NO_DEVICE when no device is left, or _MEMORY; `out` and `notes` may have
 * grown then. */
int cdi_document_write(const struct device_list *devices, const char *root, struct text *out,
                       struct string_list *notes, struct berth_error *error);

#endif
