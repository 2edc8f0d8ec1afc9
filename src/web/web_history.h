/* SPDX-License-Identifier: Apache-2.0
 *
 * Past leases over HTTP. The file may be on a disk that takes its time, so that it is read in a
 * thread; whoever asks the same at the same time gets the same answer.
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

/* What is asked. */
struct web_history_query {
    bool is_report;
    enum history_by by;
    uint32_t hours;
};

struct history_job;
struct history_request;

/* Zeroed memory is to be initialised. */
struct web_history {
    int ends[2]; /* of the pipe by which the thread says that it is done */
    struct event *done;
    struct history_job *running; /* NULL: nothing is asked now */
    struct {
        VECTOR_OF(struct history_request *); /* in order */
    } requests;
    struct cached_history {
        struct web_history_query question;
        struct shared_text *text; /* NULL: none */
        int64_t until;            /* clock_now()'s */
    } answers[WEB_HISTORY_ANSWERS_MAX];
    size_t next; /* of the answers: which is replaced */
};

int web_history_init(struct web_history *history, struct event_base *base,
                     struct berth_error *error);
/* When no connection is left. */
void web_history_finish(struct web_history *history);

/* Answers with the document, of the leases in this file; NULL: none is kept. */
void web_history_answer(struct web_history *history, const char *file,
                        const struct web_history_query *question,
                        struct http_connection *connection);

/* Reads "hours=24" and, for reports, "by=user" from a query. Fails with BERTH_ERROR_INVALID. */
int web_history_read_query(struct span query, bool is_report,
                           struct web_history_query *ret_question, struct berth_error *error);

#endif
