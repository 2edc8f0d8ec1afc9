/* SPDX-License-Identifier: Apache-2.0
 *
 * Scans the devices for `berth devices`: of the hardware or of an inventory. Removes the devices
 * that masks in the environment hide, and adds the pool's facts. No daemon is started. A pool that
 * is missing or does not answer in time adds nothing.
 */
#ifndef CLI_DEVICES_DEVICES_SCAN_H
#define CLI_DEVICES_DEVICES_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/optional.h"
#include "base/string_list.h"
#include "cli/machine_source.h"
#include "client/pool_address.h"
#include "client/session.h"
#include "view/pool_view.h"

struct devices_pool_holder {
    pid_t pid;
    uint64_t lease;
};

/* The facts that the pool adds to a scan of the hardware: slots, start times of processes, and
 * their leases. Zeroed memory is valid: the pool was not queried yet. */
struct devices_pool {
    struct pool_address address;
    struct session session;
    bool is_connected;
    int64_t silent_until; /* after a timeout: no query before this time (CLOCK_MONOTONIC) */
    struct pool_view view;
    bool is_known; /* the view is from the last query */
    struct {
        VECTOR_OF(struct devices_pool_holder); /* by pid, then by lease */
    } holders;
};

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

/* Scans the devices; blocks as machine_source_scan() does, and for the pool about 2 s at most. An
 * inventory is read once, and masks do not hide its devices. Fails as machine_source_scan(); on
 * BERTH_ERROR_IO the last report stays. */
int devices_scan_update(struct devices_scan *scan, struct berth_error *error);

/* Marks the devices of the last report as old, and adds the reason to its problems. */
void devices_scan_mark_stale(struct devices_scan *scan, const struct berth_error *reason);

/* Appends "6 devices are hidden by CUDA_VISIBLE_DEVICES", or nothing. */
void devices_scan_write_hidden(const struct devices_scan *scan, struct text *out);

#endif
