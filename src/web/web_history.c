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
#include "web/web_commands.h"

/* How long an answer is cached. */
static const int64_t cache_time = 2 * DURATION_SECOND;

/* A query that a thread executes. The thread owns it from its start until it writes to the pipe. */
struct history_job {
    pthread_t thread;
    int end; /* the pipe's end to write to */
    struct web_history_query question;
    bool limits_commands;
    char *file;
    int64_t now;
    struct text document;
    struct berth_error error;
};

struct history_request {
    struct web_history *history;
    struct http_connection *connection;
    struct web_history_query question;
    char *file;
};

static void free_job(struct history_job *job)
{
    if (job == NULL)
        return;
    text_finish(&job->document);
    free(job->file);
    free(job);
}

static void remove_request(struct history_request *request)
{
    struct web_history *history = request->history;
    size_t at = 0;

    while (history->requests.items[at] != request)
        at++;
    history->requests.count--;
    memmove(history->requests.items + at, history->requests.items + at + 1,
            (history->requests.count - at) * sizeof(*history->requests.items));
    free(request->file);
    free(request);
}

static bool is_same_query(const struct web_history_query *one,
                          const struct web_history_query *other)
{
    return one->is_report == other->is_report && one->hours == other->hours &&
           (!one->is_report || one->by == other->by);
}

/* ---- In the thread ---- */

static int write_report(struct history *history, const struct history_query *query,
                        struct history_job *job)
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

static void read_history(struct history_job *job)
{
    const struct history_query query = {
        .since = job->now - (int64_t)job->question.hours * DURATION_HOUR,
        .until = job->now,
        .now = job->now,
        .max = WEB_HISTORY_LEASES_MAX,
    };
    struct history *history = NULL;
    int code = 0;

    if (job->file != NULL)
        code = history_open_read(job->file, &history, &job->error);
    /* No file means that no lease was recorded yet. */
    if (code == BERTH_ERROR_NOT_FOUND) {
        code = 0;
        job->error = (struct berth_error)BERTH_ERROR_INIT;
    }
    if (code < 0)
        return;
    if (job->question.is_report)
        write_report(history, &query, job);
    else if (history != NULL && job->limits_commands)
        web_commands_write_history(history, &query, &job->document, &job->error);
    else if (history != NULL)
        history_write_json(history, &query, JSON_COMPACT, &job->document, &job->error);
    else
        history_write_json_empty(JSON_COMPACT, &job->document);
    history_close(history);
}

static void *run_job(void *context)
{
    struct history_job *job = context;
    ssize_t sent;

    read_history(job);
    do {
        sent = write(job->end, "", 1);
    } while (sent < 0 && errno == EINTR);
    return NULL;
}

/* ---- In the event loop ---- */

static void send_answer(struct http_connection *connection, struct shared_text *text)
{
    http_answer_send(connection, &(struct http_answer){.status = 200,
                                                       .type = "application/json",
                                                       .headers = "Cache-Control: no-store\r\n",
                                                       .shared = text});
}

static void send_refusal(struct http_connection *connection, const struct berth_error *error)
{
    http_answer_send_line(connection, 503, "history: %s",
                          error->message[0] == '\0' ? "out of memory" : error->message);
}

/* Starts the thread for a request. Only one thread runs at a time, so a disk that hangs blocks only
 * one. */
static int start_job(struct web_history *history, const struct history_request *request,
                     struct berth_error *error)
{
    struct history_job *job = calloc(1, sizeof(*job));
    int number;

    if (job == NULL)
        return error_set_memory(error);
    *job = (struct history_job){
        .end = history->ends[1],
        .question = request->question,
        .limits_commands = history->limits_commands,
        .file = request->file == NULL ? NULL : strdup(request->file),
        .now = clock_read(CLOCK_REALTIME),
        .error = BERTH_ERROR_INIT,
    };
    number = request->file != NULL && job->file == NULL
                 ? ENOMEM
                 : pthread_create(&job->thread, NULL, run_job, job);
    if (number != 0) {
        free_job(job);
        return error_set_errno(error, number, "cannot start a thread");
    }
    history->running = job;
    return 0;
}

static void start_next_job(struct web_history *history)
{
    struct berth_error error = BERTH_ERROR_INIT;

    while (history->running == NULL && history->requests.count > 0) {
        struct history_request *request = history->requests.items[0];

        if (start_job(history, request, &error) < 0) {
            send_refusal(request->connection, &error);
            remove_request(request);
        }
    }
}

static void cache_answer(struct web_history *history, const struct web_history_query *question,
                         struct shared_text *text)
{
    struct cached_history *kept = &history->answers[history->next];

    history->next = (history->next + 1) % WEB_HISTORY_ANSWERS_MAX;
    web_shared_text_release(kept->text);
    text->references++;
    *kept = (struct cached_history){*question, text, clock_now() + cache_time};
}

/* Answers all requests with this query. */
static void answer_requests(struct web_history *history, struct history_job *job)
{
    struct shared_text *text = job->error.code == 0 ? web_shared_text_create(&job->document) : NULL;

    if (text != NULL)
        cache_answer(history, &job->question, text);
    for (size_t i = 0; i < history->requests.count;) {
        struct history_request *request = history->requests.items[i];

        if (!is_same_query(&request->question, &job->question)) {
            i++;
            continue;
        }
        if (text != NULL)
            send_answer(request->connection, text);
        else
            send_refusal(request->connection, &job->error);
        remove_request(request);
    }
    web_shared_text_release(text);
}

static void on_done(evutil_socket_t descriptor, short what, void *context)
{
    struct web_history *history = context;
    struct history_job *job = history->running;
    char byte;

    (void)what;
    if (read(descriptor, &byte, 1) != 1 || job == NULL)
        return;
    pthread_join(job->thread, NULL);
    history->running = NULL;
    answer_requests(history, job);
    free_job(job);
    start_next_job(history);
}

int web_history_init(struct web_history *history, struct event_base *base, bool limits_commands,
                     struct berth_error *error)
{
    history->limits_commands = limits_commands;
    if (pipe2(history->ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        int number = errno;

        history->ends[0] = history->ends[1] = -1;
        return error_set_errno(error, number, "cannot create a pipe");
    }
    history->done = event_new(base, history->ends[0], EV_READ | EV_PERSIST, on_done, history);
    if (history->done == NULL || event_add(history->done, NULL) != 0)
        return error_set_memory(error);
    return 0;
}

void web_history_finish(struct web_history *history)
{
    struct timespec until;

    if (history->done == NULL)
        return;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    /* A thread that hangs ends with the process. */
    if (history->running != NULL &&
        pthread_timedjoin_np(history->running->thread, NULL, &until) == 0)
        free_job(history->running);
    for (size_t i = 0; i < WEB_HISTORY_ANSWERS_MAX; i++)
        web_shared_text_release(history->answers[i].text);
    vector_finish(&history->requests);
    event_free(history->done);
    close(history->ends[0]);
    close(history->ends[1]);
}

static void on_closed(void *context)
{
    remove_request(context);
}

void web_history_answer(struct web_history *history, const char *file,
                        const struct web_history_query *question,
                        struct http_connection *connection)
{
    static const struct stream_events events = {.closed = on_closed};
    struct history_request *request;
    struct history_request **place;

    for (size_t i = 0; i < WEB_HISTORY_ANSWERS_MAX; i++) {
        if (history->answers[i].text != NULL && clock_now() < history->answers[i].until &&
            is_same_query(&history->answers[i].question, question)) {
            send_answer(connection, history->answers[i].text);
            return;
        }
    }
    request = calloc(1, sizeof(*request));
    place = request == NULL ? NULL : vector_append(&history->requests);
    if (place == NULL) {
        free(request);
        send_refusal(connection, &(struct berth_error)BERTH_ERROR_INIT);
        return;
    }
    *place = request;
    *request = (struct history_request){
        .history = history,
        .connection = connection,
        .question = *question,
        .file = file == NULL ? NULL : strdup(file),
    };
    if (file != NULL && request->file == NULL) {
        remove_request(request);
        send_refusal(connection, &(struct berth_error)BERTH_ERROR_INIT);
        return;
    }
    http_answer_defer(connection, &events, request);
    start_next_job(history);
}

/* ---- Queries ---- */

static int read_hours(struct span query, uint32_t *ret_hours, struct berth_error *error)
{
    struct text text = {0};
    uint64_t hours = WEB_HISTORY_HOURS_DEFAULT;
    int code = 0;

    if (http_form_find(query, "hours", &text))
        code = quantity_parse_number(text_string(&text), 1, WEB_HISTORY_HOURS_MAX, &hours, error);
    text_finish(&text);
    if (code < 0) {
        error_wrap(error, BERTH_ERROR_INVALID, "hours");
        return BERTH_ERROR_INVALID;
    }
    *ret_hours = (uint32_t)hours;
    return 0;
}

int web_history_read_query(struct span query, bool is_report,
                           struct web_history_query *ret_question, struct berth_error *error)
{
    struct web_history_query question = {.is_report = is_report};
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
