/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop behind --watch: shows a picture again whenever it changes, until the user ends it. On a
 * terminal the picture is redrawn in place. Elsewhere each change is printed after the last one, as
 * a block or as a line of JSON.
 */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text/text.h"

/* The subject of a watch. All functions are called in the thread that called watch_run(). */
struct watch_subject {
    void *context;
    bool json;     /* never on the screen */
    bool has_time; /* the time stands above each picture, except in JSON */

    /* Reads the newest state. Returns 1 if something may have changed, 0 if nothing has changed, or
     * a negative code, which ends the watch. */
    int (*update)(void *context, bool on_screen, struct berth_error *error);

    /* Appends the picture; nothing if there is nothing to show yet. */
    void (*write)(void *context, bool on_screen, struct text *out);

    /* Returns a number that changes when the picture is worth printing again. Called only without a
     * screen. NULL: every change of the picture counts. */
    uint64_t (*fingerprint)(void *context);

    /* Returns how long to wait for the next update, in nanoseconds, and the descriptor that ends
     * the wait early when it is readable; -1: none. */
    int64_t (*wait)(void *context, int *ret_descriptor);
};

/* Watches until standard output is closed or `update` fails. Returns the exit code, after printing
 * the error with the verb's name before it. */
int watch_run(const struct watch_subject *subject, const char *verb);

#endif
