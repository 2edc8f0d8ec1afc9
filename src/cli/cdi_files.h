/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the vendors' CDI files and writes berth's own.
 */
#ifndef CLI_CDI_FILES_H
#define CLI_CDI_FILES_H

#include <berth/error.h>
#include <stdbool.h>

#include "base/text/text.h"
#include "model/cdi.h"

/* The name of berth's own file. */
#define CDI_FILE_NAME "berth-gpu.json"
/* The maximum size of a file that is read, in bytes, and the maximum number of files in a
 * directory. */
#define CDI_FILE_SIZE_MAX (4U << 20)
#define CDI_FILES_MAX     1024

/* Reads the vendors' CDI files: *.json and *.yaml, as container runtimes do. The directories are
 * those of BERTH_CDI_DIRECTORIES, separated by colons, or else /etc/cdi and /var/run/cdi (below
 * BERTH_SYSROOT). Skips berth's own file, unreadable files, files that are not CDI files, and
 * missing directories; with `verbose` it prints why to standard error. No file can make it block or
 * fail; the only error is BERTH_ERROR_MEMORY. The caller finishes the registry, which is untouched
 * on failure. */
int cdi_files_read(bool verbose, struct cdi_registry *ret_registry, struct berth_error *error);

/* Writes berth's own file into a directory, atomically and readable by all users. Creates the
 * directory if its parent exists. Leaves nothing behind on failure. Fails with
 * BERTH_ERROR_NOT_FOUND (also if the path is not a directory), _PERMISSION, _IO or _MEMORY; the
 * message names the path. */
int cdi_files_write(const char *directory, const struct text *document, struct berth_error *error);

#endif
