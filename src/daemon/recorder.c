/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/recorder.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/program.h"
#include "base/text/quantity.h"
#include "daemon/connection.h"
#include "daemon/history_file.h"
#include "daemon/news.h"
#include "daemon/offspring.h"
#include "daemon/past.h"

/* The first lease is out of the door by then. */
#define START_PAUSE (DURATION_SECOND / 20)

enum {
    LINE_LENGTH_MAX = BERTH_ERROR_MESSAGE_SIZE + 32,
    KEEP_MAX = 32,
    FAILURES_OF_GOOD_ONES = 3,
};

struct recorder {
    struct pool *pool;
    bool is_wanted;             /* there was a lease */
    struct offspring offspring; /* its pid is 0 while none runs */
    struct watch process;
    struct watch output;           /* descriptor -1: it was closed */
    struct connection *connection; /* NULL: none, or not any more */
    struct timer start;
    struct timer timeout;
    int64_t timeout_time;
    int64_t started_at; /* in the loop's time */
    unsigned failures;  /* in a row */
    bool is_dismissed;  /* it ends because we said so */
    bool has_written;   /* in this life */
    char line[LINE_LENGTH_MAX];
    size_t line_length;
    char said[LINE_LENGTH_MAX];             /* what it says is wrong; "": nothing */
    char failed[BERTH_ERROR_MESSAGE_SIZE];  /* why it does not run; "": it does */
    char hanging[BERTH_ERROR_MESSAGE_SIZE]; /* that it does not ask; "": it does */
    struct problem_list problems;           /* of these three */
};

int64_t recorder_restart_after(unsigned failures)
{
    int64_t after = RECORDER_RESTART_FIRST;

    while (failures-- > 1 && after < RECORDER_RESTART_LAST)
        after *= 2;
    return after < RECORDER_RESTART_LAST ? after : RECORDER_RESTART_LAST;
}

/* ---- What is wrong ---- */

static void collect_problems(struct recorder *recorder)
{
    const char *const texts[] = {recorder->failed, recorder->hanging, recorder->said};

    machine_report_finish_problems(&recorder->problems);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i][0] != '\0')
            machine_report_add_problem(&recorder->problems, "history", "%s", texts[i]);
    }
    news_note(recorder->pool, WIRE_NEWS_LOAD);
}

/* One of the three is now this; "": it is well. */
static void set_problem(struct recorder *recorder, char *place, size_t size, const char *words)
{
    struct pool *pool = recorder->pool;

    if (strcmp(place, words) == 0)
        return;
    snprintf(place, size, "%s", words);
    if (*words != '\0')
        log_line(&pool->log, pool_now(pool), "problem", "backend=\"history\" message=%s",
                 log_quote(words).text);
    else
        log_line(&pool->log, pool_now(pool), "recorder", "what=good");
    collect_problems(recorder);
}

/* It has ended: what was wrong with it is not any more. */
static void forget_problems(struct recorder *recorder)
{
    recorder->said[0] = recorder->hanging[0] = '\0';
    collect_problems(recorder);
}

const struct problem_list *recorder_problems(const struct pool *pool)
{
    return pool->recorder == NULL ? NULL : &pool->recorder->problems;
}

/* ---- What it says ---- */

/* Whether the line is this word and a number. */
static bool has_number(const char *line, const char *word, uint64_t *ret_number)
{
    size_t length = strlen(word);

    return strncmp(line, word, length) == 0 &&
           quantity_parse_number(line + length, 0, UINT64_MAX, ret_number, NULL) == 0;
}

/* "problem TEXT", "good", "known NUMBER", "missing NUMBER". */
static void take_line(struct recorder *recorder, const char *line)
{
    static const char problem[] = "problem ";
    struct pool *pool = recorder->pool;
    uint64_t number;

    if (strncmp(line, problem, strlen(problem)) == 0) {
        set_problem(recorder, recorder->said, sizeof(recorder->said), line + strlen(problem));
    } else if (strcmp(line, "good") == 0) {
        set_problem(recorder, recorder->said, sizeof(recorder->said), "");
    } else if (has_number(line, "known ", &number)) {
        recorder->has_written = true;
        past_known(pool, number);
    } else if (has_number(line, "missing ", &number)) {
        log_line(&pool->log, pool_now(pool), "recorder", "what=missing leases=%llu",
                 (unsigned long long)number);
    } else if (*line != '\0') {
        log_line(&pool->log, pool_now(pool), "recorder", "what=said text=%s", log_quote(line).text);
    }
}

static void take_output(struct recorder *recorder, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\n') {
            recorder->line[recorder->line_length] = '\0';
            recorder->line_length = 0;
            take_line(recorder, recorder->line);
        } else if (recorder->line_length + 1 < sizeof(recorder->line)) {
            recorder->line[recorder->line_length++] = bytes[i];
        }
    }
}

/* Returns whether there may be more. */
static bool read_output(struct recorder *recorder)
{
    char chunk[1024];
    ssize_t length = read(recorder->output.descriptor, chunk, sizeof(chunk));

    if (length > 0)
        take_output(recorder, chunk, (size_t)length);
    return length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR));
}

/* The last words of one that has ended. */
static void drain_output(struct recorder *recorder)
{
    bool has_more = recorder->output.descriptor >= 0;

    while (has_more) {
        errno = 0;
        has_more = read_output(recorder) && errno != EAGAIN;
    }
}

static void close_output(struct recorder *recorder)
{
    if (recorder->output.descriptor < 0)
        return;
    loop_remove(&recorder->pool->loop, &recorder->output);
    close(recorder->output.descriptor);
    recorder->output.descriptor = -1;
}

static void output_is_ready(struct watch *watch, uint32_t events)
{
    struct recorder *recorder = container_of(watch, struct recorder, output);

    (void)events;
    if (!read_output(recorder))
        close_output(recorder);
}

/* ---- Its life ---- */

static void start_after(struct recorder *recorder, int64_t pause)
{
    struct loop *loop = &recorder->pool->loop;

    timer_set_at(loop, &recorder->start, loop_now(loop) + pause);
}

/* It is not there, for this reason. */
static void fail(struct recorder *recorder, const char *reason)
{
    char words[BERTH_ERROR_MESSAGE_SIZE];

    recorder->failures++;
    /* One that does its work is missed: what is over meanwhile is only in our memory. */
    if (recorder->has_written && recorder->failures > FAILURES_OF_GOOD_ONES)
        recorder->failures = FAILURES_OF_GOOD_ONES;
    recorder->has_written = false;
    snprintf(words, sizeof(words), "berth-recorder: %s; leases are not recorded", reason);
    set_problem(recorder, recorder->failed, sizeof(recorder->failed), words);
    start_after(recorder, recorder_restart_after(recorder->failures));
}

/* `said`: what it said was wrong, which may be why. */
static void describe_end(const struct offspring_end *end, const char *said, char *words,
                         size_t size)
{
    const char *colon = *said == '\0' ? "" : ": ";

    if (end->failure != 0)
        snprintf(words, size, "cannot be started: %s", strerror(end->failure));
    else if (end->is_killed)
        snprintf(words, size, "ended by signal %d%s%.200s", end->number, colon, said);
    else
        snprintf(words, size, "ended with exit code %d%s%.200s", end->number, colon, said);
}

/* Closes what there is of it; it need not have ended. */
static void let_go(struct recorder *recorder)
{
    struct loop *loop = &recorder->pool->loop;

    if (recorder->offspring.pid == 0)
        return;
    close_output(recorder);
    loop_remove(loop, &recorder->process);
    close(recorder->offspring.process);
    close(recorder->offspring.report);
    recorder->offspring = (struct offspring){0};
    timer_set_at(loop, &recorder->timeout, LOOP_NEVER);
}

static void process_ended(struct watch *watch, uint32_t events)
{
    struct recorder *recorder = container_of(watch, struct recorder, process);
    struct pool *pool = recorder->pool;
    struct offspring_end end;
    char reason[BERTH_ERROR_MESSAGE_SIZE / 2];

    (void)events;
    if (!offspring_reap(&recorder->offspring, &end))
        return;
    drain_output(recorder);
    let_go(recorder);
    describe_end(&end, recorder->said, reason, sizeof(reason));
    forget_problems(recorder);
    /* The connection may have more than it has read; whoever comes next reads it anew. */
    if (recorder->connection != NULL)
        shutdown(recorder->connection->watch.descriptor, SHUT_RDWR);
    if (recorder->is_dismissed) {
        recorder->is_dismissed = false;
        if (pool->history_path != NULL)
            start_after(recorder, 0);
        return;
    }
    if (loop_now(&pool->loop) - recorder->started_at >= RECORDER_GOOD_LIFE)
        recorder->failures = 0;
    fail(recorder, reason);
}

static void await_question(struct recorder *recorder)
{
    struct loop *loop = &recorder->pool->loop;

    timer_set_at(loop, &recorder->timeout, loop_now(loop) + recorder->timeout_time);
}

static void timeout_is_over(struct timer *timer)
{
    struct recorder *recorder = container_of(timer, struct recorder, timeout);
    char words[BERTH_ERROR_MESSAGE_SIZE];

    snprintf(
        words, sizeof(words),
        "berth-recorder: no progress within %s, perhaps because of the disk of %s; leases are not "
        "recorded",
        quantity_format_duration(recorder->timeout_time).text, recorder->pool->history_path);
    set_problem(recorder, recorder->hanging, sizeof(recorder->hanging), words);
}

/* The program with its words; ends[1] is its connection. Returns 0 or an errno. */
static int start_program(struct recorder *recorder, const int ends[2])
{
    struct pool *pool = recorder->pool;
    const char *named = getenv("BERTH_RECORDER");
    char path[PATH_MAX];
    char keep[KEEP_MAX];
    char *const words[] = {
        path, pool->history_path, pool->name, keep, (char *)(pool->settings.own ? "owner" : "all"),
        NULL,
    };

    if (named != NULL && *named == '/')
        snprintf(path, sizeof(path), "%s", named);
    else
        program_find("berth-recorder", path, sizeof(path));
    snprintf(keep, sizeof(keep), "%lld.%09lld",
             (long long)(pool->rules.history_keep / DURATION_SECOND),
             (long long)(pool->rules.history_keep % DURATION_SECOND));
    return offspring_start(&recorder->offspring, &(struct offspring_order){
                                                     .words = words,
                                                     .environment = environ,
                                                     .connection = &ends[1],
                                                     .outlives = true,
                                                 });
}

/* Watches over one that was started. Returns 0 or an errno, with nothing left of it. */
static int watch_over(struct recorder *recorder, int connection)
{
    struct pool *pool = recorder->pool;

    recorder->process =
        (struct watch){.descriptor = recorder->offspring.process, .ready = process_ended};
    recorder->output =
        (struct watch){.descriptor = recorder->offspring.output, .ready = output_is_ready};
    if (loop_add(&pool->loop, &recorder->process, EPOLLIN, NULL) == 0 &&
        loop_add(&pool->loop, &recorder->output, EPOLLIN, NULL) == 0)
        recorder->connection = connection_to_recorder(pool, connection);
    if (recorder->connection != NULL)
        return 0;
    loop_remove(&pool->loop, &recorder->process);
    loop_remove(&pool->loop, &recorder->output);
    recorder->output.descriptor = -1;
    offspring_undo(&recorder->offspring);
    return ENOMEM;
}

static void start(struct timer *timer)
{
    struct recorder *recorder = container_of(timer, struct recorder, start);
    struct pool *pool = recorder->pool;
    char reason[128];
    int ends[2];
    int number = 0;

    /* One whose connection is not closed yet is still being told of. */
    if (recorder->offspring.pid != 0 || recorder->connection != NULL || pool->history_path == NULL)
        return;
    recorder->line_length = 0;
    recorder->started_at = loop_now(&pool->loop);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
        number = errno;
    } else {
        number = start_program(recorder, ends);
        close(ends[1]);
        if (number == 0)
            number = watch_over(recorder, ends[0]);
        if (number != 0)
            close(ends[0]);
    }
    if (number != 0) {
        snprintf(reason, sizeof(reason), "cannot be started: %s", strerror(number));
        fail(recorder, reason);
        return;
    }
    log_line(&pool->log, pool_now(pool), "recorder", "what=started pid=%d file=%s",
             (int)recorder->offspring.pid, log_quote(pool->history_path).text);
    await_question(recorder);
}

/* ---- Its connection ---- */

void recorder_want(struct pool *pool)
{
    struct recorder *recorder = pool->recorder;

    if (recorder == NULL || recorder->is_wanted || pool->history_path == NULL)
        return;
    recorder->is_wanted = true;
    start_after(recorder, START_PAUSE);
}

void recorder_asked(struct pool *pool)
{
    struct recorder *recorder = pool->recorder;

    timer_set_at(&pool->loop, &recorder->timeout, LOOP_NEVER);
    set_problem(recorder, recorder->hanging, sizeof(recorder->hanging), "");
    set_problem(recorder, recorder->failed, sizeof(recorder->failed), "");
}

void recorder_answered(struct pool *pool)
{
    if (!list_is_linked(&pool->recorder->timeout.in_loop))
        await_question(pool->recorder);
}

void recorder_hung_up(struct pool *pool)
{
    struct recorder *recorder = pool->recorder;

    if (recorder == NULL)
        return;
    recorder->connection = NULL;
    /* It was waited for. */
    if (recorder->offspring.pid == 0 && recorder->is_wanted &&
        !list_is_linked(&recorder->start.in_loop))
        start_after(recorder, recorder_restart_after(recorder->failures));
}

/* ---- Starting and ending ---- */

static int64_t read_timeout(struct pool *pool)
{
    const char *given = getenv("BERTH_RECORDER_TIMEOUT");
    struct berth_error error = BERTH_ERROR_INIT;
    int64_t timeout = RECORDER_TIMEOUT;

    if (given != NULL && *given != '\0' && quantity_parse_duration(given, &timeout, &error) < 0)
        log_line(&pool->log, pool_now(pool), "error", "what=BERTH_RECORDER_TIMEOUT reason=%s",
                 log_quote(error.message).text);
    return timeout;
}

int recorder_init(struct pool *pool, struct berth_error *error)
{
    struct recorder *recorder = calloc(1, sizeof(*recorder));
    int code;

    if (recorder == NULL)
        return error_set_memory(error);
    code = history_file_find(pool, &pool->history_path, error);
    if (code < 0) {
        free(recorder);
        return code;
    }
    recorder->pool = pool;
    recorder->output.descriptor = -1;
    recorder->start.fire = start;
    recorder->timeout.fire = timeout_is_over;
    recorder->timeout_time = read_timeout(pool);
    pool->recorder = recorder;
    past_set_written(pool, pool->history_path != NULL);
    return 0;
}

void recorder_finish(struct pool *pool)
{
    struct recorder *recorder = pool->recorder;

    if (recorder == NULL)
        return;
    /* It sees that its connection has ended, and writes the rest. */
    let_go(recorder);
    timer_set_at(&pool->loop, &recorder->start, LOOP_NEVER);
    timer_set_at(&pool->loop, &recorder->timeout, LOOP_NEVER);
    machine_report_finish_problems(&recorder->problems);
    free(recorder);
    pool->recorder = NULL;
}

void recorder_apply_rules(struct pool *pool)
{
    struct recorder *recorder = pool->recorder;
    char *path;

    if (history_file_find(pool, &path, NULL) < 0)
        return;
    free(pool->history_path);
    pool->history_path = path;
    past_set_written(pool, pool->history_path != NULL);
    recorder->failures = 0;
    /* It is started anew, which is simpler than telling it what is different now. */
    if (recorder->offspring.pid != 0) {
        recorder->is_dismissed = true;
        if (recorder->connection != NULL)
            shutdown(recorder->connection->watch.descriptor, SHUT_RDWR);
    } else if (path == NULL) {
        timer_set_at(&pool->loop, &recorder->start, LOOP_NEVER);
        set_problem(recorder, recorder->failed, sizeof(recorder->failed), "");
        recorder->is_wanted = false;
    } else if (recorder->is_wanted) {
        start_after(recorder, 0);
    } else if (pool->lease_count > 0) {
        recorder_want(pool);
    }
}
