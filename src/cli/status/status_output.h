/* SPDX-License-Identifier: Apache-2.0
 *
 * A look at a pool for people and for programs. A failed allocation is remembered by `out`.
 */
#ifndef CLI_STATUS_STATUS_OUTPUT_H
#define CLI_STATUS_STATUS_OUTPUT_H

#include "base/text/quantity.h"
#include "base/text/terminal.h"
#include "base/text/text.h"
#include "client/pool_address.h"
#include "view/pool_view.h"
#include "view/user_names.h"
#include "view/view_facts.h"

/* What is shown, and how. Points to the caller's. */
struct status_picture {
    const struct pool_view *view;
    const struct pool_address *address; /* where it was looked for */
    struct user_names *users;
    int64_t now; /* by the pool's clock */
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
void status_write_blockers(const struct status_picture *picture, struct text *out);
void status_write_queue(const struct status_picture *picture, struct text *out);
void status_write_problems(const struct status_picture *picture, struct text *out);

/* Appends one line in a style, inert and cut to the terminal's width. */
void status_write_line(const struct status_picture *picture, enum style style, const char *line,
                       struct text *out);

#endif
