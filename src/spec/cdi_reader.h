/* SPDX-License-Identifier: Apache-2.0
 *
 * CDI files (the container device interface's specification), as far as they say which device files
 * their entries bring.
 */
#ifndef SPEC_CDI_READER_H
#define SPEC_CDI_READER_H

#include <berth/error.h>
#include <stddef.h>

#include "model/cdi.h"

/* The longest name and path in one. */
#define CDI_TEXT_MAX 4095
/* Bytes of device files' names in all entries of a file together. */
#define CDI_BYTES_MAX (16U << 20)

/* Reads the text of a CDI file, YAML or JSON, of any version; what does not concern us is read
 * over. Device files that belong to all entries of the file are among those of each. A file is
 * whole or nothing, as it is for container runtimes: a wrong entry spoils the others. `file` is the
 * name for messages. Fails with BERTH_ERROR_SYNTAX, _LIMIT or _MEMORY and a message "file:...".
 * The caller finishes the entries, which are untouched on failure. Pure. */
int cdi_reader_parse(const char *file, const char *text, size_t length,
                     struct cdi_registry *ret_entries, struct berth_error *error);

#endif
