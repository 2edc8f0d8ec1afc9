/* SPDX-License-Identifier: Apache-2.0 */
#include "web/web_history.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"

/* For how long an answer is good. */
static const int64_t kept_time = 2 * DURATION_SECOND;

/* Belongs to the thread from its start until the pipe says that it is done. */
struct past_job {
    pthread_t thread;
    int end; /* of the pipe */
    struct past_question question;
    char *file;
    int64_t now;
    struct text document;
    struct berth_error error;
};

struct past_asker {
    struct past *past;
    struct connection *connection;
    struct past_question question;
    char *file;
};

static void free_job(struct past_job *job)
{
    if (job == NULL)
        return;
    text_finish(&job->document);
    free(job->file);
    free(job);
}

static void remove_asker(struct past_asker *asker)
{
    struct past *past = asker->past;
    size_t at = 0;

    while (past->askers.items[at] != asker)
        at++;
    past->askers.count--;
    memmove(past->askers.items + at, past->askers.items + at + 1,
            (past->askers.count - at) * sizeof(*past->askers.items));
    free(asker->file);
    free(asker);
}

static bool is_same(const struct past_question *one, const struct past_question *other)
{
    return one->is_report == other->is_report && one->hours == other->hours &&
           (!one->is_report || one->by == other->by);
}

/* ---- In the thread ---- */

static int write_report(struct history *history, const struct history_query *query,
                        struct past_job *job)
{
    struct history_report report = {0};
    int code = 0;

    if (history != NULL)
        code = history_report(history, query, job->question.by, &report, &job->error);
    if (code == 0)
        history_write_report_json(&report, job->question.by, JSON_COMPACT, &job->document);
    if (code == 0 && history != NULL)
        history_report_finish(&report);
    return code;
}

static void read_file(struct past_job *job)
{
    const struct history_query query = {
        .since = job->now - (int64_t)job->question.hours * DURATION_HOUR,
        .until = job->now,
        .now = job->now,
        .max = PAST_LEASES_MAX,
    };
    struct history *history = NULL;
    int code = 0;

    if (job->file != NULL)
        code = history_open_read(job->file, &history, &job->error);
    /* Nothing was written yet. */
    if (code == BERTH_ERROR_NOT_FOUND) {
        code = 0;
        job->error = (struct berth_error)BERTH_ERROR_INIT;
    }
    if (code < 0)
        return;
    if (job->question.is_report)
        write_report(history, &query, job);
    else if (history != NULL)
        history_write_json(history, &query, JSON_COMPACT, &job->document, &job->error);
    else
        history_write_json_empty(JSON_COMPACT, &job->document);
    history_close(history);
}

static void *run(void *context)
{
    struct past_job *job = context;
    ssize_t sent;

    read_file(job);
    do {
        sent = write(job->end, "", 1);
    } while (sent < 0 && errno == EINTR);
    return NULL;
}

/* ---- Around it ---- */

static void answer(struct connection *connection, struct shared_text *text)
{
    connection_answer(connection, &(struct answer){.status = 200,
                                                   .type = "application/json",
                                                   .headers = "Cache-Control: no-store\r\n",
                                                   .shared = text});
}

static void refuse(struct connection *connection, const struct berth_error *error)
{
    connection_answer_line(connection, 503, "history: %s",
                           error->message[0] == '\0' ? "out of memory" : error->message);
}

/* Starts what the first of those who wait asks. One at a time: a disk that hangs, hangs one. */
static int start(struct past *past, const struct past_asker *asker, struct berth_error *error)
{
    struct past_job *job = calloc(1, sizeof(*job));
    int number;

    if (job == NULL)
        return error_set_memory(error);
    *job = (struct past_job){
        .end = past->ends[1],
        .question = asker->question,
        .file = asker->file == NULL ? NULL : strdup(asker->file),
        .now = clock_read(CLOCK_REALTIME),
        .error = BERTH_ERROR_INIT,
    };
    number = asker->file != NULL && job->file == NULL
                 ? ENOMEM
                 : pthread_create(&job->thread, NULL, run, job);
    if (number != 0) {
        free_job(job);
        return error_set_errno(error, number, "a thread");
    }
    past->running = job;
    return 0;
}

static void start_next(struct past *past)
{
    struct berth_error error = BERTH_ERROR_INIT;

    while (past->running == NULL && past->askers.count > 0) {
        struct past_asker *asker = past->askers.items[0];

        if (start(past, asker, &error) < 0) {
            refuse(asker->connection, &error);
            remove_asker(asker);
        }
    }
}

static void keep(struct past *past, const struct past_question *question, struct shared_text *text)
{
    struct past_answer *kept = &past->answers[past->next];

    past->next = (past->next + 1) % PAST_ANSWERS_KEPT;
    shared_text_release(kept->text);
    text->references++;
    *kept = (struct past_answer){*question, text, clock_now() + kept_time};
}

/* Tells everybody who asked that. */
static void tell(struct past *past, struct past_job *job)
{
    struct shared_text *text = job->error.code == 0 ? shared_text_create(&job->document) : NULL;

    if (text != NULL)
        keep(past, &job->question, text);
    for (size_t i = 0; i < past->askers.count;) {
        struct past_asker *asker = past->askers.items[i];

        if (!is_same(&asker->question, &job->question)) {
            i++;
            continue;
        }
        if (text != NULL)
            answer(asker->connection, text);
        else
            refuse(asker->connection, &job->error);
        remove_asker(asker);
    }
    shared_text_release(text);
}

static void on_done(evutil_socket_t descriptor, short what, void *context)
{
    struct past *past = context;
    struct past_job *job = past->running;
    char byte;

    (void)what;
    if (read(descriptor, &byte, 1) != 1 || job == NULL)
        return;
    pthread_join(job->thread, NULL);
    past->running = NULL;
    tell(past, job);
    free_job(job);
    start_next(past);
}

int past_init(struct past *past, struct event_base *base, struct berth_error *error)
{
    if (pipe2(past->ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        int number = errno;

        past->ends[0] = past->ends[1] = -1;
        return error_set_errno(error, number, "a pipe");
    }
    past->done = event_new(base, past->ends[0], EV_READ | EV_PERSIST, on_done, past);
    if (past->done == NULL || event_add(past->done, NULL) != 0)
        return error_set_memory(error);
    return 0;
}

void past_finish(struct past *past)
{
    struct timespec until;

    if (past->done == NULL)
        return;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    /* One that hangs ends with us. */
    if (past->running != NULL && pthread_timedjoin_np(past->running->thread, NULL, &until) == 0)
        free_job(past->running);
    for (size_t i = 0; i < PAST_ANSWERS_KEPT; i++)
        shared_text_release(past->answers[i].text);
    vector_finish(&past->askers);
    event_free(past->done);
    close(past->ends[0]);
    close(past->ends[1]);
}

static void on_closed(void *context)
{
    remove_asker(context);
}

void past_answer(struct past *past, const char *file, const struct past_question *question,
                 struct connection *connection)
{
    static const struct stream_events events = {.closed = on_closed};
    struct past_asker *asker;
    struct past_asker **place;

    for (size_t i = 0; i < PAST_ANSWERS_KEPT; i++) {
        if (past->answers[i].text != NULL && clock_now() < past->answers[i].until &&
            is_same(&past->answers[i].question, question)) {
            answer(connection, past->answers[i].text);
            return;
        }
    }
    asker = calloc(1, sizeof(*asker));
    place = asker == NULL ? NULL : vector_append(&past->askers);
    if (place == NULL) {
        free(asker);
        refuse(connection, &(struct berth_error)BERTH_ERROR_INIT);
        return;
    }
    *place = asker;
    *asker = (struct past_asker){
        .past = past,
        .connection = connection,
        .question = *question,
        .file = file == NULL ? NULL : strdup(file),
    };
    if (file != NULL && asker->file == NULL) {
        remove_asker(asker);
        refuse(connection, &(struct berth_error)BERTH_ERROR_INIT);
        return;
    }
    connection_wait(connection, &events, asker);
    start_next(past);
}

/* ---- What is asked ---- */

static int read_hours(struct span query, uint32_t *ret_hours, struct berth_error *error)
{
    struct text text = {0};
    uint64_t hours = PAST_HOURS_DEFAULT;
    int code = 0;

    if (http_form_find(query, "hours", &text))
        code = quantity_parse_number(text_string(&text), 1, PAST_HOURS_MAX, &hours, error);
    text_finish(&text);
    if (code < 0) {
        error_wrap(error, BERTH_ERROR_INVALID, "hours");
        return BERTH_ERROR_INVALID;
    }
    *ret_hours = (uint32_t)hours;
    return 0;
}

int past_read_question(struct span query, bool is_report, struct past_question *ret_question,
                       struct berth_error *error)
{
    struct past_question question = {.is_report = is_report};
    struct text text = {0};
    int by = HISTORY_BY_USER;
    int code = read_hours(query, &question.hours, error);

    if (code < 0)
        return code;
    if (is_report && http_form_find(query, "by", &text))
        code = choice_parse(history_by_names, text_string(&text), &by, error);
    text_finish(&text);
    if (code < 0)
        return error_wrap(error, BERTH_ERROR_INVALID, "by");
    question.by = (enum history_by)by;
    *ret_question = question;
    return 0;
}
