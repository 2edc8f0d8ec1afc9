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

#define PAST_LEASES_MAX    5000
#define PAST_HOURS_MAX     168
#define PAST_HOURS_DEFAULT 24
#define PAST_ANSWERS_KEPT  8

/* What is asked. */
struct past_question {
    bool is_report;
    enum history_by by;
    uint32_t hours;
};

struct past_job;
struct past_asker;

/* Zeroed memory is to be initialised. */
struct past {
    int ends[2]; /* of the pipe by which the thread says that it is done */
    struct event *done;
    struct past_job *running; /* NULL: nothing is asked now */
    struct {
        VECTOR_OF(struct past_asker *); /* in order */
    } askers;
    struct past_answer {
        struct past_question question;
        struct shared_text *text; /* NULL: none */
        int64_t until;            /* clock_now()'s */
    } answers[PAST_ANSWERS_KEPT];
    size_t next; /* of the answers: which is replaced */
};

int past_init(struct past *past, struct event_base *base, struct berth_error *error);
/* When no connection is left. */
void past_finish(struct past *past);

/* Answers with the document, of the leases in this file; NULL: none is kept. */
void past_answer(struct past *past, const char *file, const struct past_question *question,
                 struct connection *connection);

/* Reads "hours=24" and, for reports, "by=user" from a query. Fails with BERTH_ERROR_INVALID. */
int past_read_question(struct span query, bool is_report, struct past_question *ret_question,
                       struct berth_error *error);

#endif
