/* SPDX-License-Identifier: Apache-2.0
 *
 * A look at a pool for people and for programs. A failed allocation is remembered by `out`.
 */
#ifndef CLI_STATUS_OUTPUT_H
#define CLI_STATUS_OUTPUT_H

#include "base/json.h"
#include "base/quantity.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/pool_view.h"
#include "cli/user_names.h"
#include "client/address.h"

/* What is shown, and how. Points to the caller's. */
struct status_picture {
    const struct pool_view *view;
    const struct pool_address *address; /* where it was looked for */
    struct user_names *users;
    struct terminal terminal;
    const char *note; /* below the headline, such as the time; NULL: none */
    bool stale;       /* the note says that the view is old */
};

/* Appends the headline, a table of the devices with their holders, and the queue, fitted to the
 * terminal. */
void status_write(const struct status_picture *picture, struct text *out);

/* The parts of it. Those after the first two append nothing when nothing is in anybody's way,
 * nobody waits and nothing is wrong. Hindrances begin with an empty line. */
void status_write_headline(const struct status_picture *picture, struct text *out);
void status_write_devices(const struct status_picture *picture, struct text *out);
void status_write_hindrances(const struct status_picture *picture, struct text *out);
void status_write_queue(const struct status_picture *picture, struct text *out);
void status_write_problems(const struct status_picture *picture, struct text *out);

/* Appends the berth.status/1 document. */
void status_write_json(const struct status_picture *picture, enum json_layout layout,
                       struct text *out);

/* Whether a process is what is left of a lease that has ended. */
bool status_lingers(const struct pool_view *view, const struct wire_slot *slot,
                    const struct device_process *process);

/* Whether it is known who uses the device without a lease. */
bool status_is_squatted(const struct wire_slot *slot);

/* Whether the device is out of service, or will be once its leases have ended. */
bool status_is_drained(const struct wire_slot *slot);

/* Appends one line in a style, inert and cut to the terminal's width. */
void status_write_line(const struct status_picture *picture, enum style style, const char *line,
                       struct text *out);

/* The model without its vendor, which the id names already; NULL: unknown. */
const char *status_model(const struct device *device);

/* Nanoseconds from one time to another, as far as they can be counted; at least 0. */
int64_t status_span(int64_t from, int64_t to);

/* That span for people, in whole seconds: less is only noise. */
struct quantity_text status_duration(int64_t from, int64_t to);

/* A time that came as a number without a sign. */
int64_t status_time(uint64_t time);

#endif
