/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that are derived from a pool view, for all programs that show one. Pure functions; any
 * thread may call them.
 */
#ifndef VIEW_VIEW_FACTS_H
#define VIEW_VIEW_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/quantity.h"
#include "base/text/table.h"
#include "base/text/terminal.h"
#include "base/text/text.h"
#include "client/pool_address.h"
#include "view/pool_view.h"

/* Numbers of devices that can be leased, by state. */
struct view_census {
    size_t devices;
    size_t free;
    size_t leased; /* by one lease alone */
    size_t shared;
    size_t share_left; /* shared devices with room for more leases */
    size_t others;     /* in another state */
};
struct view_census view_count_devices(const struct pool_view *view);

/* Appends the name of the pool: "your own pool", "pool at SOCKET", ... `address` is where the view
 * came from. */
void view_append_pool_name(const struct pool_view *view, const struct pool_address *address,
                           struct text *out);

/* Returns an explanation of a device's state, or NULL when the state needs none. Known squatters
 * and the reason of a drain are shown elsewhere. */
const char *view_device_note(const struct slot_info *slot);

/* Returns the style for a state. */
enum style view_state_style(enum slot_state state);

/* Returns whether a lease has been idle for long enough to show it. */
bool view_is_idle(const struct lease_info *lease);

/* Returns why a claim waits, or NULL when the reason is unknown. */
const char *view_claim_reason(const struct claim_info *claim);

/* Returns the lease with this id, or NULL when there is none. */
const struct lease_info *view_find_lease(const struct pool_view *view, uint64_t id);

/* Formats when a claim is expected to start: "now", "in 5m". `past` is the age of the estimate in
 * nanoseconds. */
struct quantity_text view_format_start(uint64_t estimate, int64_t past);

/* Returns whether a process belongs to a lease that has ended. */
bool view_is_leftover(const struct pool_view *view, const struct slot_info *slot,
                      const struct device_process *process);

/* Returns whether a squatter of the device is known. */
bool view_is_squatted(const struct slot_info *slot);

/* Appends "40 GiB of nvidia0's memory are in use, but its driver lists no process" if the device is
 * squatted by an unknown process. Returns whether it is. */
bool view_append_hidden_use(struct text *out, const struct slot_info *slot);

/* Returns whether the device is drained, or will be once its leases have ended. */
bool view_is_drained(const struct slot_info *slot);

/* Returns the model without its vendor, which the id shows already, or NULL when it is unknown. */
const char *view_device_model(const struct device *device);

/* Returns the device's used memory in bytes. It is unknown when its total or free memory is. */
struct optional_number view_memory_used(const struct device *device);

/* Appends the used and the total memory: "60/80 GiB". When the used memory is unknown, appends
 * "80 GiB", or "-/80 GiB" if other rows of the column show used memory (`beside`). Appends nothing
 * when the total is unknown. */
void view_append_memory(struct text *out, const struct device *device, bool beside);
/* Adds a table cell with the same text. */
void view_add_memory_cell(struct table *table, const struct device *device, bool beside);

/* Returns the nanoseconds from one time to another, at least 0 and at most INT64_MAX. */
int64_t view_time_between(int64_t from, int64_t to);

/* Formats that duration in whole seconds. */
struct quantity_text view_format_duration(int64_t from, int64_t to);

/* Converts an unsigned time from a message. Times above INT64_MAX become INT64_MAX. */
int64_t view_time_from_wire(uint64_t time);

#endif
