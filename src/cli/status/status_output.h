/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the parts of `berth status` as text. A failed allocation is recorded in `out`.
 */
#ifndef CLI_STATUS_STATUS_OUTPUT_H
#define CLI_STATUS_STATUS_OUTPUT_H

#include "base/system/user_names.h"
#include "base/text/quantity.h"
#include "base/text/terminal.h"
#include "base/text/text.h"
#include "client/pool_address.h"
#include "view/pool_view.h"
#include "view/view_facts.h"

/* The input of all functions here. It borrows all that it points to. */
struct status_picture {
    const struct pool_view *view;
    const struct pool_address *address; /* the pool's address */
    struct user_names *users;
    int64_t now; /* by the daemon's clock */
    struct terminal terminal;
    const char *note; /* a line below the headline, such as the time; NULL: none */
    bool stale;       /* the view is old, so the note is a warning */
};

/* Appends the headline, a table of the devices with their holders, and the queue, fitted to the
 * terminal. */
void status_write(const struct status_picture *picture, struct text *out);

/* The parts of status_write(). The last three append nothing if there are no blockers, claims or
 * problems. Blockers begin with an empty line. */
void status_write_headline(const struct status_picture *picture, struct text *out);
void status_write_devices(const struct status_picture *picture, struct text *out);
void status_write_blockers(const struct status_picture *picture, struct text *out);
void status_write_queue(const struct status_picture *picture, struct text *out);
void status_write_problems(const struct status_picture *picture, struct text *out);

/* Appends one line in a style. Control characters are replaced, and the line is cut to the width of
 * the terminal. */
void status_write_line(const struct status_picture *picture, enum style style, const char *line,
                       struct text *out);

#endif
