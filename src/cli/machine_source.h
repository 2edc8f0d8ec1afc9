/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices that a command works with: from an inventory file, or from the hardware.
 */
#ifndef CLI_MACHINE_SOURCE_H
#define CLI_MACHINE_SOURCE_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text/text.h"
#include "model/machine/machine_report.h"
#include "probe/probe.h"

/* Zeroed memory is a source that is not open. */
struct machine_source {
    bool is_virtual;               /* the devices come from an inventory file */
    struct machine_report virtual; /* the file's devices, until machine_source_scan() */
    struct probe probe;            /* reads the hardware; started by the first scan */
    int64_t deadline;              /* how long a scan of the hardware may take, nanoseconds */
    bool without_processes;        /* set by the caller: do not look for processes on devices */
};

/* Opens the inventory file `inventory`, or the file that BERTH_INVENTORY names if `inventory` is
 * NULL, and reads it. Without either, opens the hardware. `deadline` is how long a scan of the
 * hardware may take, as the user wrote it (NULL: probe_deadline). Fails if the file or the
 * deadline is wrong (BERTH_ERROR_INVALID, _SYNTAX, _RANGE, ...), or with BERTH_ERROR_MEMORY; the
 * source is unchanged then. */
int machine_source_open(struct machine_source *source, const char *inventory, const char *deadline,
                        struct berth_error *error);
void machine_source_close(struct machine_source *source);

/* Reads the devices; blocks for the deadline at most. The devices of a file can be read once: later
 * scans find none. The caller finishes *ret_report, which is untouched on failure. Fails with
 * BERTH_ERROR_IO or _MEMORY; the next call tries again. */
int machine_source_scan(struct machine_source *source, struct machine_report *ret_report,
                        struct berth_error *error);

/* Appends one line for each problem: "nvidia: ...", with `prefix` before it. A failed allocation is
 * recorded in `out`. */
void machine_source_write_problems(const struct problem_list *problems, const char *prefix,
                                   struct text *out);

/* Finds the directory to put before each path of the machine: BERTH_SYSROOT as an absolute path
 * without a slash at its end, or "" for this machine. The caller frees it. Fails with
 * BERTH_ERROR_MEMORY; *ret_prefix is untouched then. */
int machine_source_sysroot(char **ret_prefix, struct berth_error *error);

#endif
