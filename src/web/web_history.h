/* SPDX-License-Identifier: Apache-2.0
 *
 * The history of leases over HTTP. A thread reads the file, because its disk may be slow. Equal
 * requests at the same time get the same answer. Call all functions in the thread of the event
 * loop.
 */
#ifndef WEB_WEB_HISTORY_H
#define WEB_WEB_HISTORY_H

#include <berth/error.h>
#include <event2/event.h>
#include <stdint.h>

#include "base/vector.h"
#include "history/history.h"
#include "web/http_server.h"

#define WEB_HISTORY_LEASES_MAX    5000
#define WEB_HISTORY_HOURS_MAX     168
#define WEB_HISTORY_HOURS_DEFAULT 24
#define WEB_HISTORY_ANSWERS_MAX   8

/* A request for the history or for a report. */
struct web_history_query {
    bool is_report;
    enum history_by by;
    uint32_t hours;
};

struct history_job;
struct history_request;

/* Call web_history_init() before use. */
struct web_history {
    int ends[2]; /* the ends of a pipe; the thread writes to it when it is done */
    struct event *done;
    struct history_job *running; /* NULL: no thread runs */
    struct {
        VECTOR_OF(struct history_request *); /* in order */
    } requests;
    struct cached_history {
        struct web_history_query question;
        struct shared_text *text; /* NULL: none */
        int64_t until;            /* by clock_now() */
    } answers[WEB_HISTORY_ANSWERS_MAX];
    size_t next; /* the answer to replace next */
    bool limits_commands;
};

/* `limits_commands`: answers have the names of programs only, no command lines. */
int web_history_init(struct web_history *history, struct event_base *base, bool limits_commands,
                     struct berth_error *error);
/* Call it after the last connection was closed. Blocks for a second at most. */
void web_history_finish(struct web_history *history);

/* Answers with the document, at once if it is cached. `file` is the history file; NULL: the pool
 * keeps none. */
void web_history_answer(struct web_history *history, const char *file,
                        const struct web_history_query *question,
                        struct http_connection *connection);

/* Parses "hours=24" and, for reports, "by=user" of a query. Fails with BERTH_ERROR_INVALID. */
int web_history_read_query(struct span query, bool is_report,
                           struct web_history_query *ret_question, struct berth_error *error);

#endif
