/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/helpers.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/last_line.h"
#include "daemon/offspring.h"

/* What is read of a program's output in one turn of the loop, and after its end. */
enum { CHUNK = 64 * 1024, CHUNKS_AFTER = 16 };

/* Where there is no descriptor or process left for a program, it is tried again this often. */
#define RETRY (DURATION_SECOND / 5)

struct helper {
    struct pool *pool;
    struct list_link in_list; /* of those that wait, run, or are over */
    struct string_list words; /* these two end with NULL */
    struct string_list environment;
    int64_t deadline;
    bool is_patient;
    bool has_persona;
    struct persona persona;
    const char *input;
    char *awaited; /* NULL: nothing */
    void (*done)(void *context, const struct helper_end *end);
    void *context;

    int64_t tried_at; /* when it was its turn first; 0: not yet */
    struct offspring offspring;
    struct watch process;
    struct watch output;
    struct timer late;
    bool told;
    struct helper_end end; /* of one that is over before it ran */
    struct last_line line;
};

struct helpers {
    struct pool *pool;
    struct list waiting[2]; /* [1]: the patient ones */
    struct list running;
    struct list dying; /* killed and told of, but still there */
    struct list over;  /* to be told of */
    size_t count;      /* of those that run */
    size_t patient_count;
    struct timer tell;
    struct timer retry;
};

/* ---- What came of it ---- */

bool helper_succeeded(const struct helper_end *end)
{
    return end->outcome == HELPER_EXITED && end->number == 0;
}

void helper_describe(const struct helper_end *end, struct text *out)
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

static void helper_free(struct helper *helper)
{
    list_remove(&helper->in_list);
    string_list_finish(&helper->words);
    string_list_finish(&helper->environment);
    free(helper->awaited);
    free(helper);
}

static void tell(struct helper *helper, struct helper_end end)
{
    struct text line = {0};

    last_line_append(&helper->line, &line);
    end.deadline = helper->deadline;
    end.last_line = text_string(&line);
    helper->told = true;
    helper->done(helper->context, &end);
    text_finish(&line);
}

/* To be told of from the loop: whoever orders one is not called from within. */
static void be_over(struct helper *helper, enum helper_outcome outcome, int number)
{
    struct helpers *helpers = helper->pool->helpers;

    list_remove(&helper->in_list);
    helper->end = (struct helper_end){.outcome = outcome, .number = number};
    list_append(&helpers->over, &helper->in_list);
    timer_set_at(&helper->pool->loop, &helpers->tell, loop_now(&helper->pool->loop));
}

static void tell_of_all(struct timer *timer)
{
    struct helpers *helpers = container_of(timer, struct helpers, tell);

    /* Who is told may make more of them over, which sets the timer again. */
    list_for_each (link, &helpers->over) {
        struct helper *helper = container_of(link, struct helper, in_list);

        list_remove(&helper->in_list);
        tell(helper, helper->end);
        helper_free(helper);
    }
}

/* ---- Starting ---- */

static void output_is_ready(struct watch *watch, uint32_t events);
static void process_ended(struct watch *watch, uint32_t events);
static void is_late(struct timer *timer);

/* Reads up to so many chunks of what it printed. Returns whether there may be more. */
static bool read_output(struct helper *helper, int chunks)
{
    char chunk[CHUNK];
    ssize_t length = 0;

    for (int i = 0; i < chunks; i++) {
        length = read(helper->output.descriptor, chunk, sizeof(chunk));
        if (length <= 0)
            break;
        last_line_add(&helper->line, chunk, (size_t)length);
    }
    return length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR));
}

static void close_output(struct helper *helper)
{
    if (helper->output.descriptor < 0)
        return;
    loop_remove(&helper->pool->loop, &helper->output);
    close(helper->output.descriptor);
    helper->output.descriptor = -1;
}

/* Starts it. Returns 0 or an errno. */
static int start(struct helper *helper)
{
    struct loop *loop = &helper->pool->loop;
    int number = offspring_start(&helper->offspring,
                                 &(struct offspring_order){
                                     .words = helper->words.items,
                                     .environment = helper->environment.items,
                                     .persona = helper->has_persona ? &helper->persona : NULL,
                                     .input = helper->input,
                                     .awaited = helper->awaited,
                                 });

    if (number != 0)
        return number;
    helper->process =
        (struct watch){.descriptor = helper->offspring.process, .ready = process_ended};
    helper->output =
        (struct watch){.descriptor = helper->offspring.output, .ready = output_is_ready};
    if (loop_add(loop, &helper->process, EPOLLIN, NULL) < 0 ||
        loop_add(loop, &helper->output, EPOLLIN, NULL) < 0) {
        loop_remove(loop, &helper->process);
        loop_remove(loop, &helper->output);
        helper->output.descriptor = -1;
        offspring_undo(&helper->offspring);
        return ENOMEM;
    }
    helper->late.fire = is_late;
    timer_set_at(loop, &helper->late, loop_now(loop) + helper->deadline);
    return 0;
}

/* Whether there may be room for it a little later. */
static bool is_worth_another_try(const struct helper *helper, int number)
{
    return (number == EMFILE || number == ENFILE || number == ENOMEM || number == EAGAIN) &&
           loop_now(&helper->pool->loop) < helper->tried_at + helper->deadline;
}

/* Starts the one whose turn it is. Returns whether another one may follow. */
static bool start_next(struct helpers *helpers)
{
    struct loop *loop = &helpers->pool->loop;
    bool is_patient = list_is_empty(&helpers->waiting[false]);
    struct list_link *first = list_first(&helpers->waiting[is_patient]);
    struct helper *helper;
    int number;

    if (first == NULL || helpers->count >= HELPERS_MAX ||
        (is_patient && helpers->patient_count >= HELPERS_PATIENT_MAX))
        return false;
    helper = container_of(first, struct helper, in_list);
    if (helper->tried_at == 0)
        helper->tried_at = loop_now(loop);
    number = start(helper);
    if (number != 0 && is_worth_another_try(helper, number)) {
        timer_set_at(loop, &helpers->retry, loop_now(loop) + RETRY);
        return false;
    }
    if (number != 0) {
        be_over(helper, HELPER_NOT_STARTED, number);
        return true;
    }
    list_remove(&helper->in_list);
    list_append(&helpers->running, &helper->in_list);
    helpers->count++;
    helpers->patient_count += is_patient;
    return true;
}

static void start_waiting(struct helpers *helpers)
{
    if (list_is_linked(&helpers->retry.in_loop))
        return;
    while (start_next(helpers)) {
    }
}

static void try_again(struct timer *timer)
{
    start_waiting(container_of(timer, struct helpers, retry));
}

/* ---- Running ---- */

static void output_is_ready(struct watch *watch, uint32_t events)
{
    struct helper *helper = container_of(watch, struct helper, output);

    (void)events;
    if (!read_output(helper, 1))
        close_output(helper);
}

/* It counts no more among those that run. */
static void leave_running(struct helper *helper)
{
    struct helpers *helpers = helper->pool->helpers;

    list_remove(&helper->in_list);
    helpers->count--;
    helpers->patient_count -= helper->is_patient;
}

static void close_all(struct helper *helper)
{
    struct loop *loop = &helper->pool->loop;

    timer_set_at(loop, &helper->late, LOOP_NEVER);
    close_output(helper);
    loop_remove(loop, &helper->process);
    close(helper->process.descriptor);
    close(helper->offspring.report);
}

static struct helper_end end_of(const struct offspring_end *ended)
{
    if (ended->failure != 0)
        return (struct helper_end){.outcome = HELPER_NOT_STARTED, .number = ended->failure};
    return (struct helper_end){
        .outcome = ended->is_killed ? HELPER_KILLED : HELPER_EXITED,
        .number = ended->number,
    };
}

static void process_ended(struct watch *watch, uint32_t events)
{
    struct helper *helper = container_of(watch, struct helper, process);
    struct helpers *helpers = helper->pool->helpers;
    struct offspring_end ended;

    (void)events;
    if (!offspring_reap(&helper->offspring, &ended))
        return;
    /* What it left behind may have the other end for ever. */
    if (helper->output.descriptor >= 0)
        read_output(helper, CHUNKS_AFTER);
    close_all(helper);
    if (!helper->told) {
        leave_running(helper);
        tell(helper, end_of(&ended));
    }
    helper_free(helper);
    start_waiting(helpers);
}

/* Whoever waits for it does not wait for its end, which may never come while a driver holds it. */
static void is_late(struct timer *timer)
{
    struct helper *helper = container_of(timer, struct helper, late);
    struct helpers *helpers = helper->pool->helpers;

    offspring_kill(&helper->offspring);
    if (helper->output.descriptor >= 0)
        read_output(helper, CHUNKS_AFTER);
    close_output(helper);
    leave_running(helper);
    list_append(&helpers->dying, &helper->in_list);
    tell(helper, (struct helper_end){.outcome = HELPER_LATE});
    start_waiting(helpers);
}

void helper_kill(struct helper *helper)
{
    if (helper->offspring.pid != 0)
        offspring_kill(&helper->offspring);
    else
        be_over(helper, HELPER_KILLED, SIGKILL);
}

/* ---- Ordering ---- */

static int copy_list(struct string_list *to, const struct string_list *from)
{
    char *const *string;

    vector_for_each (string, from) {
        if (string_list_append(to, *string) < 0)
            return BERTH_ERROR_MEMORY;
    }
    return 0;
}

/* Ends the list as execve wants it. */
static int end_list(struct string_list *list)
{
    char **place = vector_append(list);

    if (place == NULL)
        return BERTH_ERROR_MEMORY;
    *place = NULL;
    return 0;
}

static int copy_order(struct helper *helper, const struct helper_order *order)
{
    int code = copy_list(&helper->words, order->words);

    if (code == 0 && order->last_word != NULL)
        code = string_list_append(&helper->words, order->last_word);
    if (code == 0)
        code = end_list(&helper->words);
    if (code == 0)
        code = string_list_append(&helper->environment, "PATH=/usr/sbin:/usr/bin:/sbin:/bin");
    if (code == 0)
        code = copy_list(&helper->environment, order->environment);
    if (code == 0 && order->awaited != NULL) {
        helper->awaited = strdup(order->awaited);
        code = helper->awaited == NULL ? BERTH_ERROR_MEMORY : 0;
    }
    return code < 0 ? code : end_list(&helper->environment);
}

struct helper *helper_start(struct pool *pool, const struct helper_order *order)
{
    struct helpers *helpers = pool->helpers;
    struct helper *helper = calloc(1, sizeof(*helper));

    if (helper == NULL)
        return NULL;
    helper->pool = pool;
    helper->deadline = order->deadline;
    helper->is_patient = order->is_patient;
    helper->input = order->input;
    helper->has_persona = order->persona != NULL;
    if (order->persona != NULL)
        helper->persona = *order->persona;
    helper->done = order->done;
    helper->context = order->context;
    helper->output.descriptor = -1;
    if (copy_order(helper, order) < 0) {
        helper_free(helper);
        return NULL;
    }
    list_append(&helpers->waiting[order->is_patient], &helper->in_list);
    start_waiting(helpers);
    return helper;
}

bool helpers_are_busy(const struct pool *pool)
{
    const struct helpers *helpers = pool->helpers;

    return helpers != NULL &&
           (helpers->count > 0 || !list_is_empty(&helpers->waiting[false]) ||
            !list_is_empty(&helpers->waiting[true]) || !list_is_empty(&helpers->over));
}

int helpers_init(struct pool *pool, struct berth_error *error)
{
    struct helpers *helpers = calloc(1, sizeof(*helpers));

    if (helpers == NULL)
        return error_set_memory(error);
    helpers->pool = pool;
    list_init(&helpers->waiting[false]);
    list_init(&helpers->waiting[true]);
    list_init(&helpers->running);
    list_init(&helpers->dying);
    list_init(&helpers->over);
    helpers->tell.fire = tell_of_all;
    helpers->retry.fire = try_again;
    pool->helpers = helpers;
    /* Whoever started us may not have wanted to know of its children's ends. We do. */
    signal(SIGCHLD, SIG_DFL);
    return 0;
}

static void forget_all(struct list *list, bool run)
{
    list_for_each (link, list) {
        struct helper *helper = container_of(link, struct helper, in_list);

        if (run) {
            offspring_kill(&helper->offspring);
            close_all(helper);
        }
        helper_free(helper);
    }
}

void helpers_finish(struct pool *pool)
{
    struct helpers *helpers = pool->helpers;

    if (helpers == NULL)
        return;
    timer_set_at(&pool->loop, &helpers->tell, LOOP_NEVER);
    timer_set_at(&pool->loop, &helpers->retry, LOOP_NEVER);
    forget_all(&helpers->waiting[false], false);
    forget_all(&helpers->waiting[true], false);
    forget_all(&helpers->over, false);
    forget_all(&helpers->running, true);
    forget_all(&helpers->dying, true);
    free(helpers);
    pool->helpers = NULL;
}
