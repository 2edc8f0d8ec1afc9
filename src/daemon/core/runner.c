/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/runner.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/error.h"
#include "base/list.h"
#include "base/string_list.h"
#include "base/text/quantity.h"
#include "daemon/core/child.h"
#include "daemon/core/last_line.h"
#include "daemon/core/loop.h"

/* The bytes of a read, and the most reads of the output that remains after the end. */
enum { CHUNK = 64 * 1024, CHUNKS_AFTER = 16 };

/* The pause before another start where descriptors, processes or memory ran out. */
#define RETRY (DURATION_SECOND / 5)

struct helper {
    struct runner *runner;
    struct list_link in_list; /* one of the runner's lists */
    struct string_list words; /* ends with NULL, as the next */
    struct string_list environment;
    int64_t deadline;
    bool is_low_priority;
    bool may_signal;
    const char *input;
    struct launcher *launcher;
    enum launcher_program program;
    struct user_identity persona;
    char *awaited; /* NULL: none */
    void (*done)(void *context, const struct runner_end *end);
    void *context;

    int64_t tried_at; /* the time of the first attempt; 0: none yet */
    struct child offspring;
    struct watch process;
    struct watch output;
    struct timer late;
    bool is_reported;
    struct runner_end end; /* of a helper that never ran */
    size_t output_max;
    struct text kept; /* of the output */
    struct last_line line;
};

struct runner {
    struct loop *loop;
    struct list waiting[2]; /* [1]: low priority */
    struct list running;
    struct list dying; /* killed and reported, not yet reaped */
    struct list over;  /* not yet reported */
    size_t count;      /* running */
    size_t low_priority_count;
    struct timer report;
    struct timer retry;
};

/* ---- Ends ---- */

bool runner_succeeded(const struct runner_end *end)
{
    return end->outcome == HELPER_EXITED && end->number == 0;
}

void runner_describe_end(const struct runner_end *end, struct text *out)
{
    switch (end->outcome) {
    case HELPER_EXITED:
        text_append_format(out, "exit code %d", end->number);
        break;
    case HELPER_KILLED:
        text_append_format(out, "signal %d (%s)", end->number, strsignal(end->number));
        break;
    case HELPER_LATE:
        text_append_format(out, "no end within %s", quantity_format_duration(end->deadline).text);
        break;
    case HELPER_NOT_STARTED:
        text_append_format(out, "cannot be started: %s", strerror(end->number));
        break;
    }
    if (end->last_line[0] != '\0')
        text_append_format(out, ": %s", end->last_line);
}

static void free_helper(struct helper *helper)
{
    list_remove(&helper->in_list);
    string_list_finish(&helper->words);
    string_list_finish(&helper->environment);
    free(helper->awaited);
    text_finish(&helper->kept);
    free(helper);
}

static void report_end(struct helper *helper, struct runner_end end)
{
    struct text line = {0};

    last_line_append(&helper->line, &line);
    end.deadline = helper->deadline;
    end.last_line = text_string(&line);
    end.output = &helper->kept;
    helper->is_reported = true;
    helper->done(helper->context, &end);
    text_finish(&line);
}

/* Reports the end from the loop, so that runner_start() never calls `done`. */
static void end_unstarted(struct helper *helper, enum runner_outcome outcome, int number)
{
    struct runner *runner = helper->runner;

    list_remove(&helper->in_list);
    helper->end = (struct runner_end){.outcome = outcome, .number = number};
    list_append(&runner->over, &helper->in_list);
    loop_set_timer(helper->runner->loop, &runner->report, loop_now(helper->runner->loop));
}

static void report_ended(struct timer *timer)
{
    struct runner *runner = container_of(timer, struct runner, report);

    /* A callback may end more helpers, which sets the timer again. */
    list_for_each (link, &runner->over) {
        struct helper *helper = container_of(link, struct helper, in_list);

        list_remove(&helper->in_list);
        report_end(helper, helper->end);
        free_helper(helper);
    }
}

/* ---- Starting ---- */

static void receive_output(struct watch *watch, uint32_t events);
static void reap_process(struct watch *watch, uint32_t events);
static void kill_late(struct timer *timer);

static void keep_output(struct helper *helper, const char *bytes, size_t length)
{
    size_t room = helper->output_max - helper->kept.length;

    if (room > 0)
        text_append_bytes(&helper->kept, bytes, length < room ? length : room);
}

/* Reads at most `chunks` chunks of the output. Returns whether there may be more. */
static bool read_output(struct helper *helper, int chunks)
{
    char chunk[CHUNK];
    ssize_t length = 0;

    for (int i = 0; i < chunks; i++) {
        length = read(helper->output.descriptor, chunk, sizeof(chunk));
        if (length <= 0)
            break;
        last_line_add(&helper->line, chunk, (size_t)length);
        keep_output(helper, chunk, (size_t)length);
    }
    return length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR));
}

static void close_output(struct helper *helper)
{
    if (helper->output.descriptor < 0)
        return;
    loop_remove(helper->runner->loop, &helper->output);
    close(helper->output.descriptor);
    helper->output.descriptor = -1;
}

/* Returns 0 or an errno. */
static int start_helper(struct helper *helper)
{
    struct loop *loop = helper->runner->loop;
    int number = child_start(&helper->offspring, &(struct child_order){
                                                     .words = helper->words.items,
                                                     .environment = helper->environment.items,
                                                     .may_signal = helper->may_signal,
                                                     .input = helper->input,
                                                     .launcher = helper->launcher,
                                                     .program = helper->program,
                                                     .persona = helper->persona,
                                                     .awaited = helper->awaited,
                                                 });

    if (number != 0)
        return number;
    helper->process =
        (struct watch){.descriptor = helper->offspring.process, .ready = reap_process};
    helper->output =
        (struct watch){.descriptor = helper->offspring.output, .ready = receive_output};
    if (loop_add(loop, &helper->process, EPOLLIN, NULL) < 0 ||
        loop_add(loop, &helper->output, EPOLLIN, NULL) < 0) {
        loop_remove(loop, &helper->process);
        loop_remove(loop, &helper->output);
        helper->output.descriptor = -1;
        child_undo(&helper->offspring);
        return ENOMEM;
    }
    helper->late = (struct timer){.fire = kill_late, .skips_suspend = true};
    loop_set_timer(loop, &helper->late, loop_now(loop) + helper->deadline);
    return 0;
}

/* Returns whether a later attempt may find what was missing. */
static bool may_retry(const struct helper *helper, int number)
{
    return (number == EMFILE || number == ENFILE || number == ENOMEM || number == EAGAIN) &&
           loop_now(helper->runner->loop) < helper->tried_at + helper->deadline;
}

/* Starts the next helper in the queue. Returns whether another one may follow. */
static bool start_next(struct runner *runner)
{
    struct loop *loop = runner->loop;
    bool is_low_priority = list_is_empty(&runner->waiting[false]);
    struct list_link *first = list_first(&runner->waiting[is_low_priority]);
    struct helper *helper;
    int number;

    if (first == NULL || runner->count >= HELPERS_MAX ||
        (is_low_priority && runner->low_priority_count >= HELPERS_LOW_PRIORITY_MAX))
        return false;
    helper = container_of(first, struct helper, in_list);
    if (helper->tried_at == 0)
        helper->tried_at = loop_now(loop);
    number = start_helper(helper);
    if (number != 0 && may_retry(helper, number)) {
        loop_set_timer(loop, &runner->retry, loop_now(loop) + RETRY);
        return false;
    }
    if (number != 0) {
        end_unstarted(helper, HELPER_NOT_STARTED, number);
        return true;
    }
    list_remove(&helper->in_list);
    list_append(&runner->running, &helper->in_list);
    runner->count++;
    runner->low_priority_count += is_low_priority;
    return true;
}

static void start_waiting(struct runner *runner)
{
    if (list_is_linked(&runner->retry.in_loop))
        return;
    while (start_next(runner)) {
    }
}

static void retry_start(struct timer *timer)
{
    start_waiting(container_of(timer, struct runner, retry));
}

/* ---- Running ---- */

static void receive_output(struct watch *watch, uint32_t events)
{
    struct helper *helper = container_of(watch, struct helper, output);

    (void)events;
    if (!read_output(helper, 1))
        close_output(helper);
}

static void remove_running(struct helper *helper)
{
    struct runner *runner = helper->runner;

    list_remove(&helper->in_list);
    runner->count--;
    runner->low_priority_count -= helper->is_low_priority;
}

static void close_descriptors(struct helper *helper)
{
    struct loop *loop = helper->runner->loop;

    loop_set_timer(loop, &helper->late, LOOP_NEVER);
    close_output(helper);
    loop_remove(loop, &helper->process);
    close(helper->process.descriptor);
    close(helper->offspring.report);
}

static struct runner_end convert_end(const struct child_end *ended)
{
    if (ended->failure != 0)
        return (struct runner_end){.outcome = HELPER_NOT_STARTED, .number = ended->failure};
    return (struct runner_end){
        .outcome = ended->is_killed ? HELPER_KILLED : HELPER_EXITED,
        .number = ended->number,
    };
}

static void reap_process(struct watch *watch, uint32_t events)
{
    struct helper *helper = container_of(watch, struct helper, process);
    struct runner *runner = helper->runner;
    struct child_end ended;

    (void)events;
    if (!child_reap(&helper->offspring, &ended))
        return;
    /* Do not wait for the end of the output: a descendant may keep the pipe open. */
    if (helper->output.descriptor >= 0)
        read_output(helper, CHUNKS_AFTER);
    close_descriptors(helper);
    if (!helper->is_reported) {
        remove_running(helper);
        report_end(helper, convert_end(&ended));
    }
    free_helper(helper);
    start_waiting(runner);
}

/* Reports the helper as late at once: a process in a driver call may never end. */
static void kill_late(struct timer *timer)
{
    struct helper *helper = container_of(timer, struct helper, late);
    struct runner *runner = helper->runner;

    child_kill(&helper->offspring);
    if (helper->output.descriptor >= 0)
        read_output(helper, CHUNKS_AFTER);
    close_output(helper);
    remove_running(helper);
    list_append(&runner->dying, &helper->in_list);
    report_end(helper, (struct runner_end){.outcome = HELPER_LATE});
    start_waiting(runner);
}

void runner_kill(struct helper *helper)
{
    if (helper->offspring.pid != 0)
        child_kill(&helper->offspring);
    else
        end_unstarted(helper, HELPER_KILLED, SIGKILL);
}

/* ---- Ordering ---- */

static int copy_strings(struct string_list *to, const struct string_list *from)
{
    char *const *string;

    vector_for_each (string, from) {
        if (string_list_append(to, *string) < 0)
            return BERTH_ERROR_MEMORY;
    }
    return 0;
}

/* Appends the NULL that execve() needs. */
static int terminate_list(struct string_list *list)
{
    char **place = vector_append(list);

    if (place == NULL)
        return BERTH_ERROR_MEMORY;
    *place = NULL;
    return 0;
}

static int copy_order(struct helper *helper, const struct runner_order *order)
{
    int code = copy_strings(&helper->words, order->words);

    if (code == 0 && order->last_word != NULL)
        code = string_list_append(&helper->words, order->last_word);
    if (code == 0)
        code = terminate_list(&helper->words);
    if (code == 0)
        code = string_list_append(&helper->environment, "PATH=/usr/sbin:/usr/bin:/sbin:/bin");
    if (code == 0)
        code =
            order->environment == NULL ? 0 : copy_strings(&helper->environment, order->environment);
    if (code == 0 && order->awaited != NULL) {
        helper->awaited = strdup(order->awaited);
        code = helper->awaited == NULL ? BERTH_ERROR_MEMORY : 0;
    }
    return code < 0 ? code : terminate_list(&helper->environment);
}

struct helper *runner_start(struct runner *runner, const struct runner_order *order)
{
    struct helper *helper = calloc(1, sizeof(*helper));

    if (helper == NULL)
        return NULL;
    helper->runner = runner;
    helper->deadline = order->deadline;
    helper->is_low_priority = order->is_low_priority;
    helper->input = order->input;
    helper->may_signal = order->may_signal;
    helper->output_max = order->output_max;
    helper->launcher = order->launcher;
    helper->program = order->program;
    helper->persona = order->persona;
    helper->done = order->done;
    helper->context = order->context;
    helper->output.descriptor = -1;
    if (copy_order(helper, order) < 0) {
        free_helper(helper);
        return NULL;
    }
    list_append(&runner->waiting[order->is_low_priority], &helper->in_list);
    start_waiting(runner);
    return helper;
}

bool runner_is_busy(const struct runner *runner)
{
    return runner != NULL &&
           (runner->count > 0 || !list_is_empty(&runner->waiting[false]) ||
            !list_is_empty(&runner->waiting[true]) || !list_is_empty(&runner->over));
}

struct runner *runner_create(struct loop *loop)
{
    struct runner *runner = calloc(1, sizeof(*runner));

    if (runner == NULL)
        return NULL;
    runner->loop = loop;
    list_init(&runner->waiting[false]);
    list_init(&runner->waiting[true]);
    list_init(&runner->running);
    list_init(&runner->dying);
    list_init(&runner->over);
    runner->report.fire = report_ended;
    runner->retry.fire = retry_start;
    /* With an inherited SIG_IGN, the kernel would reap the children before us. */
    signal(SIGCHLD, SIG_DFL);
    return runner;
}

static void free_helpers(struct list *list, bool are_running)
{
    list_for_each (link, list) {
        struct helper *helper = container_of(link, struct helper, in_list);

        if (are_running) {
            child_kill(&helper->offspring);
            close_descriptors(helper);
        }
        free_helper(helper);
    }
}

void runner_destroy(struct runner *runner)
{
    if (runner == NULL)
        return;
    loop_set_timer(runner->loop, &runner->report, LOOP_NEVER);
    loop_set_timer(runner->loop, &runner->retry, LOOP_NEVER);
    free_helpers(&runner->waiting[false], false);
    free_helpers(&runner->waiting[true], false);
    free_helpers(&runner->over, false);
    free_helpers(&runner->running, true);
    free_helpers(&runner->dying, true);
    free(runner);
}
