/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads CDI files (Container Device Interface): the names of their entries and the device files of
 * each entry.
 */
#ifndef SPEC_CDI_READER_H
#define SPEC_CDI_READER_H

#include <berth/error.h>
#include <stddef.h>

#include "model/cdi.h"

/* The maximum length of a name or a path, in bytes. */
#define CDI_TEXT_MAX 4095
/* The maximum total size of the paths of all entries in a file, in bytes. */
#define CDI_BYTES_MAX (16U << 20)

/* Reads the text of a CDI file, YAML or JSON, of any version; fields that berth does not need are
 * ignored. The device files that belong to the whole file are added to each entry. One invalid
 * entry makes the whole file fail, as in container runtimes. `file` is the name for messages. Fails
 * with BERTH_ERROR_SYNTAX, _LIMIT or _MEMORY and a message "file:...". The caller finishes the
 * entries, which are untouched on failure. Pure. */
int cdi_reader_parse(const char *file, const char *text, size_t length,
                     struct cdi_registry *ret_entries, struct berth_error *error);

#endif
