/* SPDX-License-Identifier: Apache-2.0
 *
 * Scans the devices for `berth devices`: of the hardware or of an inventory. Removes the devices
 * that masks in the environment hide, and adds the pool's facts.
 */
#ifndef CLI_DEVICES_DEVICES_SCAN_H
#define CLI_DEVICES_DEVICES_SCAN_H

#include "base/optional.h"
#include "base/string_list.h"
#include "cli/devices/devices_pool.h"
#include "cli/machine_source.h"

/* Zeroed memory has no report yet. */
struct devices_scan {
    struct machine_source source;
    struct devices_pool pool;
    struct string_list masks; /* of the environment */
    bool has_report;
    struct machine_report report;  /* the newest, without hidden devices */
    struct optional_number *slots; /* of the report's devices */
    size_t hidden;                 /* how many devices the masks hide */
    struct text hidden_by;         /* the names of those masks */
};

/* Opens the devices as machine_source_open() does, with the same errors. The caller closes the scan
 * only on success. */
int devices_scan_open(struct devices_scan *scan, const char *inventory, const char *deadline,
                      struct berth_error *error);
void devices_scan_close(struct devices_scan *scan);

/* Scans the devices; blocks as machine_source_scan() does. An inventory is read once, and masks do
 * not hide its devices. Fails as machine_source_scan(); on BERTH_ERROR_IO the last report stays. */
int devices_scan_update(struct devices_scan *scan, struct berth_error *error);

/* Marks the devices of the last report as old, and adds the reason to its problems. */
void devices_scan_mark_stale(struct devices_scan *scan, const struct berth_error *reason);

/* Appends "6 devices are hidden by CUDA_VISIBLE_DEVICES", or nothing. */
void devices_scan_write_hidden(const struct devices_scan *scan, struct text *out);

#endif
