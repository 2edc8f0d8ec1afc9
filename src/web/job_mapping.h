/* SPDX-License-Identifier: Apache-2.0
 *
 * Which leases are on which NVIDIA GPU, in files for dcgm-exporter (DCGM_HPC_JOB_MAPPING_DIR): one
 * for each GPU that has a lease, called as its NVML index, with the id of a lease in each line. A
 * MIG instance's leases stand in its GPU's file. A file appears whole or not at all.
 */
#ifndef WEB_JOB_MAPPING_H
#define WEB_JOB_MAPPING_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text/text.h"
#include "base/vector.h"
#include "view/pool_view.h"

/* A GPU's file. */
struct job_file {
    uint32_t index;
    bool is_known;       /* whether what is on disk is what is said here */
    struct text written; /* its content; empty: there is none */
    struct text wanted;
};

/* Zeroed memory writes nowhere. */
struct job_mapping {
    int directory; /* open */
    bool is_open;
    struct {
        VECTOR_OF(struct job_file);
    } files;
};

/* Fails with BERTH_ERROR_INVALID when it is no directory that can be written to. */
int job_mapping_open(struct job_mapping *mapping, const char *path, struct berth_error *error);

/* Makes the files say what the view does. Does what it can when something fails, and says what
 * that was; the next call tries again. */
int job_mapping_update(struct job_mapping *mapping, const struct pool_view *view,
                       struct berth_error *error);

/* Removes the files. */
void job_mapping_close(struct job_mapping *mapping);

#endif
