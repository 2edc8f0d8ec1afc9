/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person sees of a claim that waits: on a terminal one line that updates itself, otherwise
 * nothing, or with --verbose lines.
 */
#ifndef CLI_WAITING_LINE_H
#define CLI_WAITING_LINE_H

#include "cli/claiming.h"

enum waiting_style {
    WAITING_SILENT,
    WAITING_LINE,  /* one line that updates itself */
    WAITING_LINES, /* a line whenever something has changed */
};

/* On stderr. */
struct waiting_line {
    enum waiting_style style;
    int64_t since;       /* when the wait began; 0: it has not */
    bool drawn;          /* the line is there and has to be cleared */
    struct text content; /* what was printed last */
};

/* Looks at stderr, unless `verbose`. The caller finishes it. */
void waiting_line_init(struct waiting_line *line, bool verbose);

/* Clears the line where there is one. */
void waiting_line_finish(struct waiting_line *line);

/* Keeps the line up to date while it is the claim's listener. */
struct claim_listener waiting_line_listener(struct waiting_line *line);

/* Appends "waiting, 3rd of 5: <why>; starts in about 12m". */
void waiting_describe(const struct wire_message *waiting, struct text *out);

/* Appends "berth: <head> (<so_far> so far)", the head cut to what `columns` leave (0: no limit). */
void waiting_fit(const char *head, int64_t so_far, size_t columns, struct text *out);

#endif
