/* SPDX-License-Identifier: Apache-2.0
 *
 * One look at the devices after the other: what is here, how much of it the masks of the
 * environment leave, and what the pool says about it.
 */
#ifndef CLI_DEVICES_DEVICES_SCAN_H
#define CLI_DEVICES_DEVICES_SCAN_H

#include "base/string_list.h"
#include "cli/devices/devices_pool.h"
#include "cli/machine_source.h"
#include "model/optional.h"

/* Zeroed memory has not looked. */
struct devices_scan {
    struct machine_source source;
    struct devices_pool pool;
    struct string_list masks; /* of the environment */
    bool has_report;
    struct machine_report report;  /* the newest; what the masks hide is not in it */
    struct optional_number *slots; /* of the report's devices */
    size_t hidden;                 /* devices that the masks hide */
    struct text hidden_by;         /* the names of those masks */
};

/* As machine_source_open; the caller closes it only if this works. */
int devices_scan_open(struct devices_scan *scan, const char *inventory, const char *deadline,
                      struct berth_error *error);
void devices_scan_close(struct devices_scan *scan);

/* Looks. An inventory is neither hidden by masks nor looked at twice. Fails as
 * machine_source_scan; with BERTH_ERROR_IO the report that was there stays. */
int devices_scan_update(struct devices_scan *scan, struct berth_error *error);

/* The last report is not true any more, for this reason: its devices are old, and the reason is one
 * of its problems. */
void devices_scan_mark_stale(struct devices_scan *scan, const struct berth_error *reason);

/* "6 devices are hidden by CUDA_VISIBLE_DEVICES"; nothing when none is. */
void devices_scan_write_hidden(const struct devices_scan *scan, struct text *out);

#endif
