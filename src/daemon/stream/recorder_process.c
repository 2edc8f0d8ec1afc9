/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/stream/recorder_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "daemon/core/child.h"
#include "daemon/core/rate_limit.h"
#include "model/machine/machine_report.h"

/* The pause before the first start, so that the first lease does not wait for it. */
#define START_PAUSE (DURATION_SECOND / 20)

enum {
    LINE_LENGTH_MAX = BERTH_ERROR_MESSAGE_SIZE + 32,
    NUMBER_LENGTH_MAX = 32,
    WRITER_FAILURES_MAX = 3,
};

/* The maximum number of log lines about the recorder's reports: this number at once, then one per
 * LINE_TIME. Processes of other users can make faults come and go. */
#define LINE_TIME     DURATION_SECOND
#define LINES_AT_ONCE 50

struct recorder_process {
    struct recorder_process_settings settings;
    char *program; /* the settings' texts */
    char *pool_name;
    char *file; /* NULL: no history is kept */
    int64_t keep;
    uint64_t size;
    bool shows_commands;

    bool is_wanted;     /* there was a lease, so it must run */
    struct child child; /* its pid is 0 while none runs */
    struct watch process;
    struct watch output; /* descriptor -1: closed */
    bool is_connected;
    struct timer start;
    struct timer timeout;
    int64_t started_at; /* in the loop's time */
    unsigned failures;  /* in a row */
    bool is_dismissed;  /* the daemon disconnected it, so its end is no failure */
    bool has_written;   /* since it was started */
    char line[LINE_LENGTH_MAX];
    size_t line_length;
    char reported[LINE_LENGTH_MAX];         /* the fault that it reports; "": none */
    char failed[BERTH_ERROR_MESSAGE_SIZE];  /* why it does not run; "": it runs */
    char hanging[BERTH_ERROR_MESSAGE_SIZE]; /* says that it does not ask; "": it asks */
    struct problem_list problems;           /* of these three */
    struct rate_limit lines;                /* of log lines about its reports */
};

int64_t recorder_process_restart_after(unsigned failures)
{
    int64_t after = RECORDER_RESTART_FIRST;

    while (failures-- > 1 && after < RECORDER_RESTART_LAST)
        after *= 2;
    return after < RECORDER_RESTART_LAST ? after : RECORDER_RESTART_LAST;
}

const char *recorder_process_file(const struct recorder_process *recorder)
{
    return recorder->file;
}

/* ---- Problems ---- */

static void collect_problems(struct recorder_process *recorder)
{
    const char *const texts[] = {recorder->failed, recorder->hanging, recorder->reported};

    machine_report_finish_problems(&recorder->problems);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i][0] != '\0')
            machine_report_add_problem(&recorder->problems, PROBLEM_OF_HISTORY, "%s", texts[i]);
    }
    recorder->settings.events.problems_changed(recorder->settings.events.context);
}

static bool may_log(struct recorder_process *recorder)
{
    int64_t now = loop_now(recorder->settings.loop);

    if (rate_limit_ready_at(&recorder->lines, LINES_AT_ONCE * LINE_TIME) >= now)
        return false;
    rate_limit_take(&recorder->lines, now, LINE_TIME);
    return true;
}

/* Sets one of the three texts; "": the fault is gone. */
static void set_problem(struct recorder_process *recorder, char *place, size_t size,
                        const char *words)
{
    const struct recorder_process_settings *settings = &recorder->settings;

    if (strcmp(place, words) == 0)
        return;
    snprintf(place, size, "%s", words);
    if (may_log(recorder)) {
        if (*words != '\0')
            log_line(settings->log, pool_clock_now(settings->clock), "problem",
                     "backend=\"history\" message=%s", log_quote(words).text);
        else
            log_line(settings->log, pool_clock_now(settings->clock), "recorder", "what=good");
    }
    collect_problems(recorder);
}

/* Forgets the faults of a process that has ended. */
static void forget_problems(struct recorder_process *recorder)
{
    recorder->reported[0] = recorder->hanging[0] = '\0';
    collect_problems(recorder);
}

const struct problem_list *recorder_process_problems(const struct recorder_process *recorder)
{
    return &recorder->problems;
}

/* ---- Output ---- */

/* Returns whether the line is this word and a number. */
static bool parse_number(const char *line, const char *word, uint64_t *ret_number)
{
    size_t length = strlen(word);

    return strncmp(line, word, length) == 0 &&
           quantity_parse_number(line + length, 0, UINT64_MAX, ret_number, NULL) == 0;
}

/* "problem TEXT", "good", "known NUMBER", "missing NUMBER". */
static void take_line(struct recorder_process *recorder, const char *line)
{
    static const char problem[] = "problem ";
    const struct recorder_process_settings *settings = &recorder->settings;
    uint64_t number;

    if (strncmp(line, problem, strlen(problem)) == 0) {
        set_problem(recorder, recorder->reported, sizeof(recorder->reported),
                    line + strlen(problem));
    } else if (strcmp(line, "good") == 0) {
        set_problem(recorder, recorder->reported, sizeof(recorder->reported), "");
    } else if (parse_number(line, "known ", &number)) {
        recorder->has_written = true;
        settings->events.written(settings->events.context, number);
    } else if (parse_number(line, "missing ", &number)) {
        log_line(settings->log, pool_clock_now(settings->clock), "recorder",
                 "what=missing leases=%llu", (unsigned long long)number);
    } else if (*line != '\0' && may_log(recorder)) {
        log_line(settings->log, pool_clock_now(settings->clock), "recorder", "what=said text=%s",
                 log_quote(line).text);
    }
}

static void take_output(struct recorder_process *recorder, const char *bytes, size_t length)
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
static bool read_output(struct recorder_process *recorder)
{
    char chunk[1024];
    ssize_t length = read(recorder->output.descriptor, chunk, sizeof(chunk));

    if (length > 0)
        take_output(recorder, chunk, (size_t)length);
    return length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Reads the last lines of a process that has ended. */
static void drain_output(struct recorder_process *recorder)
{
    bool has_more = recorder->output.descriptor >= 0;

    while (has_more) {
        errno = 0;
        has_more = read_output(recorder) && errno != EAGAIN;
    }
}

static void close_output(struct recorder_process *recorder)
{
    if (recorder->output.descriptor < 0)
        return;
    loop_remove(recorder->settings.loop, &recorder->output);
    close(recorder->output.descriptor);
    recorder->output.descriptor = -1;
}

static void output_is_ready(struct watch *watch, uint32_t events)
{
    struct recorder_process *recorder = container_of(watch, struct recorder_process, output);

    (void)events;
    if (!read_output(recorder))
        close_output(recorder);
}

/* ---- Start and end of the process ---- */

static void start_after(struct recorder_process *recorder, int64_t pause)
{
    struct loop *loop = recorder->settings.loop;

    loop_set_timer(loop, &recorder->start, loop_now(loop) + pause);
}

static void disconnect_follower(struct recorder_process *recorder)
{
    if (recorder->is_connected)
        recorder->settings.events.disconnect(recorder->settings.events.context);
}

/* Reports why the recorder does not run, and plans its restart. */
static void take_failure(struct recorder_process *recorder, const char *reason)
{
    char words[BERTH_ERROR_MESSAGE_SIZE];

    recorder->failures++;
    /* A recorder that has written is restarted soon, because until then only the daemon's memory
     * has the leases. */
    if (recorder->has_written && recorder->failures > WRITER_FAILURES_MAX)
        recorder->failures = WRITER_FAILURES_MAX;
    recorder->has_written = false;
    snprintf(words, sizeof(words), "berth-recorder: %s; leases are not recorded", reason);
    set_problem(recorder, recorder->failed, sizeof(recorder->failed), words);
    start_after(recorder, recorder_process_restart_after(recorder->failures));
}

/* `reported`: the fault that it has reported, which may be the reason. */
static void describe_end(const struct child_end *end, const char *reported, char *words,
                         size_t size)
{
    const char *colon = *reported == '\0' ? "" : ": ";

    if (end->failure != 0)
        snprintf(words, size, "cannot be started: %s", strerror(end->failure));
    else if (end->is_killed)
        snprintf(words, size, "ended by signal %d%s%.200s", end->number, colon, reported);
    else
        snprintf(words, size, "ended with exit code %d%s%.200s", end->number, colon, reported);
}

/* Closes all descriptors of the process, which may still run. */
static void release_process(struct recorder_process *recorder)
{
    struct loop *loop = recorder->settings.loop;

    if (recorder->child.pid == 0)
        return;
    close_output(recorder);
    loop_remove(loop, &recorder->process);
    close(recorder->child.process);
    close(recorder->child.report);
    recorder->child = (struct child){0};
    loop_set_timer(loop, &recorder->timeout, LOOP_NEVER);
}

static void process_ended(struct watch *watch, uint32_t events)
{
    struct recorder_process *recorder = container_of(watch, struct recorder_process, process);
    struct child_end end;
    char reason[BERTH_ERROR_MESSAGE_SIZE / 2];

    (void)events;
    if (!child_reap(&recorder->child, &end))
        return;
    drain_output(recorder);
    release_process(recorder);
    describe_end(&end, recorder->reported, reason, sizeof(reason));
    forget_problems(recorder);
    /* The next recorder reads everything again that this one has not written. */
    disconnect_follower(recorder);
    if (recorder->is_dismissed) {
        recorder->is_dismissed = false;
        if (recorder->file != NULL)
            start_after(recorder, 0);
        return;
    }
    if (loop_now(recorder->settings.loop) - recorder->started_at >= RECORDER_GOOD_LIFE)
        recorder->failures = 0;
    take_failure(recorder, reason);
}

static void await_question(struct recorder_process *recorder)
{
    struct loop *loop = recorder->settings.loop;

    loop_set_timer(loop, &recorder->timeout, loop_now(loop) + recorder->settings.timeout);
}

static void report_timeout(struct timer *timer)
{
    struct recorder_process *recorder = container_of(timer, struct recorder_process, timeout);
    char words[BERTH_ERROR_MESSAGE_SIZE];

    if (recorder->file == NULL)
        return; /* it was dismissed */
    snprintf(
        words, sizeof(words),
        "berth-recorder: no progress within %s, perhaps because of the disk of %s; leases are not "
        "recorded",
        quantity_format_duration(recorder->settings.timeout).text, recorder->file);
    set_problem(recorder, recorder->hanging, sizeof(recorder->hanging), words);
}

/* Starts the program; `connection` becomes its input. Returns 0 or an errno. */
static int start_program(struct recorder_process *recorder, int connection)
{
    char keep[NUMBER_LENGTH_MAX];
    char size[NUMBER_LENGTH_MAX];
    char *const words[] = {
        recorder->program,
        recorder->file,
        recorder->pool_name,
        keep,
        (char *)(recorder->settings.is_own ? "owner" : "all"),
        size,
        (char *)(recorder->shows_commands ? "commands" : "programs"),
        NULL,
    };

    snprintf(size, sizeof(size), "%llu", (unsigned long long)recorder->size);
    snprintf(keep, sizeof(keep), "%lld.%09lld", (long long)(recorder->keep / DURATION_SECOND),
             (long long)(recorder->keep % DURATION_SECOND));
    return child_start(&recorder->child, &(struct child_order){
                                             .words = words,
                                             .environment = environ,
                                             .connection = &connection,
                                             .outlives = true,
                                         });
}

/* Watches a process that was started. Returns 0, or an errno after ending it. */
static int watch_process(struct recorder_process *recorder, int connection)
{
    const struct recorder_process_events *events = &recorder->settings.events;
    struct loop *loop = recorder->settings.loop;

    recorder->process =
        (struct watch){.descriptor = recorder->child.process, .ready = process_ended};
    recorder->output =
        (struct watch){.descriptor = recorder->child.output, .ready = output_is_ready};
    if (loop_add(loop, &recorder->process, EPOLLIN, NULL) == 0 &&
        loop_add(loop, &recorder->output, EPOLLIN, NULL) == 0)
        recorder->is_connected = events->connect(events->context, connection);
    if (recorder->is_connected)
        return 0;
    loop_remove(loop, &recorder->process);
    loop_remove(loop, &recorder->output);
    recorder->output.descriptor = -1;
    child_undo(&recorder->child);
    return ENOMEM;
}

static void start_process(struct timer *timer)
{
    struct recorder_process *recorder = container_of(timer, struct recorder_process, start);
    const struct recorder_process_settings *settings = &recorder->settings;
    char reason[128];
    int ends[2];
    int number = 0;

    /* While the connection of the last one is open, news may be sent there. */
    if (recorder->child.pid != 0 || recorder->is_connected || recorder->file == NULL)
        return;
    recorder->line_length = 0;
    recorder->started_at = loop_now(settings->loop);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
        number = errno;
    } else {
        number = start_program(recorder, ends[1]);
        close(ends[1]);
        if (number == 0)
            number = watch_process(recorder, ends[0]);
        if (number != 0)
            close(ends[0]);
    }
    if (number != 0) {
        snprintf(reason, sizeof(reason), "cannot be started: %s", strerror(number));
        take_failure(recorder, reason);
        return;
    }
    log_line(settings->log, pool_clock_now(settings->clock), "recorder",
             "what=started pid=%d file=%s", (int)recorder->child.pid,
             log_quote(recorder->file).text);
    await_question(recorder);
}

/* ---- Leases and the connection ---- */

void recorder_process_want(struct recorder_process *recorder)
{
    if (recorder->is_wanted || recorder->file == NULL)
        return;
    recorder->is_wanted = true;
    start_after(recorder, START_PAUSE);
}

void recorder_process_asked(struct recorder_process *recorder)
{
    loop_set_timer(recorder->settings.loop, &recorder->timeout, LOOP_NEVER);
    set_problem(recorder, recorder->hanging, sizeof(recorder->hanging), "");
    set_problem(recorder, recorder->failed, sizeof(recorder->failed), "");
}

void recorder_process_answered(struct recorder_process *recorder)
{
    if (!list_is_linked(&recorder->timeout.in_loop))
        await_question(recorder);
}

void recorder_process_hung_up(struct recorder_process *recorder)
{
    recorder->is_connected = false;
    /* A start may have found the connection still open. */
    if (recorder->child.pid == 0 && recorder->is_wanted &&
        !list_is_linked(&recorder->start.in_loop))
        start_after(recorder, recorder_process_restart_after(recorder->failures));
}

/* ---- Create and destroy ---- */

/* Returns false without memory; then nothing has changed. */
static bool copy_order(struct recorder_process *recorder, const struct recorder_order *order)
{
    char *file = order->file == NULL ? NULL : strdup(order->file);

    if (file == NULL && order->file != NULL)
        return false;
    free(recorder->file);
    recorder->file = file;
    recorder->keep = order->keep;
    recorder->size = order->size;
    recorder->shows_commands = order->shows_commands;
    return true;
}

int recorder_process_create(struct recorder_process **ret_recorder,
                            const struct recorder_process_settings *settings,
                            const struct recorder_order *order, struct berth_error *error)
{
    struct recorder_process *recorder = calloc(1, sizeof(*recorder));

    if (recorder == NULL)
        return error_set_memory(error);
    recorder->settings = *settings;
    recorder->output.descriptor = -1;
    recorder->start.fire = start_process;
    recorder->timeout.fire = report_timeout;
    recorder->timeout.skips_suspend = true;
    recorder->program = strdup(settings->program);
    recorder->pool_name = strdup(settings->pool_name);
    if (recorder->program == NULL || recorder->pool_name == NULL || !copy_order(recorder, order)) {
        recorder_process_destroy(recorder);
        return error_set_memory(error);
    }
    *ret_recorder = recorder;
    return 0;
}

void recorder_process_destroy(struct recorder_process *recorder)
{
    if (recorder == NULL)
        return;
    release_process(recorder);
    loop_set_timer(recorder->settings.loop, &recorder->start, LOOP_NEVER);
    loop_set_timer(recorder->settings.loop, &recorder->timeout, LOOP_NEVER);
    machine_report_finish_problems(&recorder->problems);
    free(recorder->program);
    free(recorder->pool_name);
    free(recorder->file);
    free(recorder);
}

void recorder_process_set_order(struct recorder_process *recorder,
                                const struct recorder_order *order)
{
    if (!copy_order(recorder, order))
        return;
    recorder->failures = 0;
    /* A restart is simpler than a message with the changes. */
    if (recorder->child.pid != 0) {
        recorder->is_dismissed = true;
        disconnect_follower(recorder);
    } else if (recorder->file == NULL) {
        loop_set_timer(recorder->settings.loop, &recorder->start, LOOP_NEVER);
        set_problem(recorder, recorder->failed, sizeof(recorder->failed), "");
        recorder->is_wanted = false;
    } else if (recorder->is_wanted) {
        start_after(recorder, 0);
    }
}
