/* SPDX-License-Identifier: Apache-2.0
 *
 * CDI files in their directories: reading vendors' and writing our own.
 */
#ifndef CLI_CDI_FILES_H
#define CLI_CDI_FILES_H

#include <berth/error.h>
#include <stdbool.h>

#include "base/text/text.h"
#include "model/cdi.h"

/* The name of our own. */
#define CDI_FILE_NAME "berth-gpu.json"
/* The largest file that is read, and the most in a directory. */
#define CDI_FILE_SIZE_MAX (4U << 20)
#define CDI_FILES_MAX     1024

/* Reads what others have put into the directories that BERTH_CDI_DIRECTORIES names, separated by
 * colons, or by default into /etc/cdi and /var/run/cdi (of a recorded machine below BERTH_SYSROOT):
 * the files *.json and *.yaml, as container runtimes do. What cannot be read or is no CDI file is
 * skipped, and so are directories that are not there; `verbose` says why on standard error. Nothing
 * in them can block or fail but for want of memory (BERTH_ERROR_MEMORY). The caller finishes the
 * registry, which is untouched on failure. */
int cdi_files_read(bool verbose, struct cdi_registry *ret_registry, struct berth_error *error);

/* Writes our own file into a directory, which is made when only it is missing, in one step for
 * those who look, readable by everybody. Nothing is left behind on failure. Fails with
 * BERTH_ERROR_NOT_FOUND (also when it is no directory), _PERMISSION, _IO or _MEMORY; the message
 * begins with the path. */
int cdi_files_write(const char *directory, const struct text *document, struct berth_error *error);

#endif
