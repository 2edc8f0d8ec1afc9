/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose devices a command is about: those of an inventory file, or the hardware's.
 */
#ifndef CLI_MACHINE_SOURCE_H
#define CLI_MACHINE_SOURCE_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text/text.h"
#include "model/machine_report.h"
#include "probe/probe.h"

/* Zeroed memory is one that is not open. */
struct machine_source {
    bool is_virtual;               /* a file's */
    struct machine_report virtual; /* what is in it, until somebody takes it */
    struct probe probe;            /* of the hardware, started when it is needed */
    int64_t deadline;              /* of a look at the hardware */
    bool without_processes; /* the caller's to set: nobody wants to know who uses the devices */
};

/* The devices of the inventory file `inventory`, or when it is NULL of the file that
 * BERTH_INVENTORY names, which is read here; without either, the hardware's, of which a look takes
 * as long as `deadline` says, as people write durations (NULL: probe_deadline). Fails for what the
 * user said: the file, or the deadline (BERTH_ERROR_INVALID, _SYNTAX, _RANGE, ...); or for want of
 * memory. The source is as it was then. */
int machine_source_open(struct machine_source *source, const char *inventory, const char *deadline,
                        struct berth_error *error);
void machine_source_close(struct machine_source *source);

/* Looks, at the hardware anew each time. A file is looked at once: later it has no devices. The
 * caller finishes *ret_report, which is untouched on failure. Fails with BERTH_ERROR_IO when there
 * is no looking, whose fault it may be, or _MEMORY; the next call tries anew. */
int machine_source_scan(struct machine_source *source, struct machine_report *ret_report,
                        struct berth_error *error);

/* Appends one line for each problem: "nvidia: ...", begun by `prefix`. A failed allocation is
 * remembered by `out`. */
void machine_source_write_problems(const struct problem_list *problems, const char *prefix,
                                   struct text *out);

#endif
