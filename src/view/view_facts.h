/* SPDX-License-Identifier: Apache-2.0
 *
 * What a look at a pool means: judgements and figures that all who show one share. Pure.
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

/* How many devices there are that can be leased, and how they stand. */
struct view_census {
    size_t devices;
    size_t free;
    size_t leased; /* by one alone */
    size_t shared;
    size_t share_left; /* of those that are shared */
    size_t others;     /* neither free nor leased, or not only */
};
struct view_census view_count_devices(const struct pool_view *view);

/* Appends which pool it is; `address` is where it was looked for. */
void view_append_pool_name(const struct pool_view *view, const struct pool_address *address,
                           struct text *out);

/* What a device's state means, for people; NULL: the state says it all. Who uses it without a
 * lease, and why it is out of service, is said elsewhere if it is known. */
const char *view_device_note(const struct slot_info *slot);

/* How a state is to look. */
enum style view_state_style(enum slot_state state);

/* Whether a lease is held and has not been used for long enough to speak of it. */
bool view_is_idle(const struct lease_info *lease);

/* Why a claim waits, without the request that this repeats; NULL: unknown. */
const char *view_claim_reason(const struct claim_info *claim);

/* The lease of an id; NULL: there is none, or not any more. */
const struct lease_info *view_find_lease(const struct pool_view *view, uint64_t id);

/* When a claim is expected to start, `past` nanoseconds after that was said: "now", "in 5m". */
struct quantity_text view_format_start(uint64_t estimate, int64_t past);

/* Whether a process is what is left of a lease that has ended. */
bool view_is_leftover(const struct pool_view *view, const struct slot_info *slot,
                      const struct device_process *process);

/* Whether it is known who uses the device without a lease. */
bool view_is_squatted(const struct slot_info *slot);

/* Whether the device is out of service, or will be once its leases have ended. */
bool view_is_drained(const struct slot_info *slot);

/* The model without its vendor, which the id names already; NULL: unknown. */
const char *view_device_model(const struct device *device);

/* How much of its memory is in use, in bytes; unknown where its size or what is free is. */
struct optional_number view_memory_used(const struct device *device);

/* Appends how much is used and how much there is: "60/80 GiB". Where it is unknown how much is
 * used, "80 GiB", or "-/80 GiB" beside devices of which it is known (`beside`). Nothing where the
 * size is unknown. */
void view_append_memory(struct text *out, const struct device *device, bool beside);
/* Adds a cell with that to a table. */
void view_add_memory_cell(struct table *table, const struct device *device, bool beside);

/* Nanoseconds from one time to another, as far as they can be counted; at least 0. */
int64_t view_time_between(int64_t from, int64_t to);

/* That span for people, in whole seconds: less is only noise. */
struct quantity_text view_format_duration(int64_t from, int64_t to);

/* A time that came as a number without a sign. */
int64_t view_time_from_wire(uint64_t time);

#endif
