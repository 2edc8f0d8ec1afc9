/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool shown again whenever it changes.
 */
#ifndef CLI_STATUS_STATUS_WATCH_H
#define CLI_STATUS_STATUS_WATCH_H

#include <stdbool.h>

#include "base/text/text.h"
#include "client/pool_address.h"
#include "view/pool_view.h"
#include "view/user_names.h"

/* How it is shown. */
struct status_display {
    const struct pool_address *address;
    struct user_names *users;
    int64_t now; /* by the pool's clock */
    bool json;
    bool repeats; /* it is not shown once only */
    bool stale;   /* the note says that it is old */
};

/* Appends a view, for people with a note at its headline; NULL: none. */
void status_append_view(const struct status_display *shown, const struct pool_view *view,
                        const char *note, struct text *out);

/* Shows the pool until somebody ends it, or the daemon is gone for too long. Returns the exit code,
 * after saying why. */
int status_watch(const char *inventory, bool json);

#endif
