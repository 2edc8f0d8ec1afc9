/* SPDX-License-Identifier: Apache-2.0
 *
 * Files for dcgm-exporter (DCGM_HPC_JOB_MAPPING_DIR) that map NVIDIA GPUs to leases. There is one
 * file for each GPU with a lease. Its name is the NVML index, and each line is the id of a lease.
 * Leases of a MIG instance are in the file of its GPU. Files are replaced atomically.
 */
#ifndef WEB_JOB_MAPPING_H
#define WEB_JOB_MAPPING_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text/text.h"
#include "base/vector.h"
#include "view/pool_view.h"

/* The file of one GPU. */
struct job_file {
    uint32_t index;
    bool is_known;       /* `written` is the file's content on disk */
    struct text written; /* its content; empty: there is no file */
    struct text wanted;
};

/* Zeroed memory writes no files. */
struct job_mapping {
    int directory; /* open */
    bool is_open;
    struct {
        VECTOR_OF(struct job_file);
    } files;
};

/* Opens the directory. Fails with BERTH_ERROR_INVALID if it is no directory or not writable. */
int job_mapping_open(struct job_mapping *mapping, const char *path, struct berth_error *error);

/* Updates the files from the view. After a failure it continues with the other files and returns
 * the last error; the next call tries again. */
int job_mapping_update(struct job_mapping *mapping, const struct pool_view *view,
                       struct berth_error *error);

/* Removes the files. */
void job_mapping_close(struct job_mapping *mapping);

#endif
