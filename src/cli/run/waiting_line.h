/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person sees of a claim that waits: on a terminal one line that updates itself, otherwise
 * nothing, or with --verbose lines.
 */
#ifndef CLI_RUN_WAITING_LINE_H
#define CLI_RUN_WAITING_LINE_H

#include "cli/claim.h"
#include "view/user_names.h"

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
    struct text holders; /* "ann holds 6, bob 2"; empty: not known */
    struct text last;    /* what was printed last, without times */
    struct user_names users;
};

/* Looks at stderr, unless `verbose`. The caller finishes it. */
void waiting_line_init(struct waiting_line *line, bool verbose);

/* Clears the line where there is one. */
void waiting_line_finish(struct waiting_line *line);

/* Keeps the line up to date while it is the claim's listener. */
struct claim_listener waiting_line_listener(struct waiting_line *line);

/* Appends who holds devices under the leases of a page: "ann holds 6, bob 2 and others". */
void waiting_line_describe_holders(const struct wire_message *page, uint64_t parent,
                                   struct user_names *users, struct text *out);

/* What a line is made of. */
struct waiting_line_parts {
    const struct wire_message *waiting;
    const char *holders; /* "": not known */
    int64_t so_far;      /* nanoseconds */
    bool times;          /* with the estimate and how long it has been */
};

/* Appends "berth: waiting, 3rd of 5, starts in about 12m (1m20s so far): ann holds 6; <why>". */
void waiting_line_describe(const struct waiting_line_parts *parts, struct text *out);

/* Appends as much of the text as fits into so many columns; 0: all. */
void waiting_line_append_cut(const char *string, size_t columns, struct text *out);

#endif
