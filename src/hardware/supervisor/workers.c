/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/supervisor/workers.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "hardware/supervisor/worker.h"
#include "probe/probe_channel.h"

enum {
    STUCK_MAX = 16,    /* workers of a lane that are stuck; then it waits */
    DYING_TIMEOUT = 50 /* milliseconds until a worker that let go of its socket is dead */
};

/* A worker that is stuck for so long is killed, and what it was at has failed. A library may take
 * half a minute to start on a machine with many GPUs. */
#define STUCK_TIME_MAX INT64_C(60000000000)

struct crew_worker {
    pid_t pid;
    unsigned lane;
    struct channel channel;
    struct task *task; /* NULL: none */
    bool has_task;     /* it is at one, though perhaps nobody cares any more */
    bool replaced;     /* another one does the lane's tasks */
    int64_t since;     /* when it began its task */
    int64_t timeout;   /* the task's */
};

void crew_init(struct crew *crew, const struct root *root, const struct vendor_table *const *tables)
{
    *crew = (struct crew){.root = root, .tables = tables};
    for (size_t i = 0; i < LANES; i++)
        list_init(&crew->lanes[i]);
}

/* ---- Workers ---- */

/* How the process ended: its wait status; -1 when it has not, as one that a driver holds. */
static int reap(pid_t pid)
{
    struct pollfd ending = {.fd = pidfd_open(pid, 0), .events = POLLIN};
    int status = -1;

    if (ending.fd >= 0) {
        poll(&ending, 1, DYING_TIMEOUT);
        close(ending.fd);
    }
    return waitpid(pid, &status, WNOHANG) == pid ? status : -1;
}

/* Takes it out of the crew. Returns its wait status, or -1. */
static int dismiss(struct crew *crew, size_t place, bool by_force)
{
    struct crew_worker *worker = crew->workers.items[place];
    pid_t *abandoned;
    int status;

    if (by_force)
        kill(worker->pid, SIGKILL);
    channel_finish(&worker->channel);
    status = by_force ? -1 : reap(worker->pid);
    abandoned = status == -1 ? vector_append(&crew->abandoned) : NULL;
    if (abandoned != NULL)
        *abandoned = worker->pid;
    free(worker);
    crew->workers.items[place] = crew->workers.items[--crew->workers.count];
    return status;
}

/* Those that have ended at last. */
static void reap_abandoned(struct crew *crew)
{
    for (size_t i = crew->abandoned.count; i-- > 0;) {
        if (waitpid(crew->abandoned.items[i], NULL, WNOHANG) != 0)
            crew->abandoned.items[i] = crew->abandoned.items[--crew->abandoned.count];
    }
}

void crew_finish(struct crew *crew)
{
    while (crew->workers.count > 0) {
        struct crew_worker *worker = crew->workers.items[0];

        if (worker->task != NULL)
            text_finish(&worker->task->packet);
        /* One that is at nothing ends by itself when its socket does. */
        dismiss(crew, 0, worker->has_task);
    }
    vector_finish(&crew->workers);
    vector_finish(&crew->abandoned);
}

static struct crew_worker *worker_of(const struct crew *crew, unsigned lane)
{
    for (size_t i = 0; i < crew->workers.count; i++) {
        struct crew_worker *worker = crew->workers.items[i];

        if (worker->lane == lane && !worker->replaced)
            return worker;
    }
    return NULL;
}

static struct crew_worker *hire(struct crew *crew, unsigned lane)
{
    struct crew_worker *worker = calloc(1, sizeof(*worker));
    struct crew_worker **place = worker == NULL ? NULL : vector_append(&crew->workers);
    int socket = -1;
    int pid = place == NULL ? -ENOMEM : worker_start(crew->root, crew->tables, &socket);

    if (pid < 0) {
        if (place != NULL)
            crew->workers.count--;
        free(worker);
        return NULL;
    }
    worker->pid = pid;
    worker->lane = lane;
    channel_init(&worker->channel, socket);
    *place = worker;
    return worker;
}

/* ---- Tasks ---- */

int crew_add(struct crew *crew, struct task *task, const struct step *step)
{
    int code;

    text_clear(&task->packet);
    code = step_encode(step, &task->packet);
    if (code < 0) {
        text_finish(&task->packet);
        return code;
    }
    task->about = step->about.count;
    task->waits = true;
    list_append(&crew->lanes[task->lane], &task->in_lane);
    return 0;
}

void crew_forget(struct crew *crew, struct task *task)
{
    if (task->waits)
        list_remove(&task->in_lane);
    for (size_t i = 0; task->runs && i < crew->workers.count; i++) {
        if (crew->workers.items[i]->task == task)
            crew->workers.items[i]->task = NULL;
    }
    task->waits = task->runs = task->stuck = false;
    text_finish(&task->packet);
}

/* Tells that the worker's task is over. */
static void tell(struct crew *crew, struct crew_worker *worker, struct step_result *result)
{
    struct task *task = worker->task;

    worker->task = NULL;
    worker->has_task = false;
    if (task != NULL) {
        task->runs = task->stuck = false;
        text_finish(&task->packet);
        crew->done(crew->context, task, result);
    }
    step_result_finish(result);
}

static void tell_failure(struct crew *crew, struct task *task, int code, const char *words)
{
    struct step_result result = {.code = code, .message = strdup(words), .lost = true};

    task->runs = task->stuck = task->waits = false;
    text_finish(&task->packet);
    crew->done(crew->context, task, &result);
    step_result_finish(&result);
}

/* The worker is gone, or talks nonsense. */
static void lose(struct crew *crew, size_t place, bool by_force)
{
    struct task *task = crew->workers.items[place]->task;
    int status = dismiss(crew, place, by_force);
    struct text words = {0};

    if (task == NULL)
        return;
    if (status != -1 && WIFSIGNALED(status))
        text_append_format(&words, "crashed (SIG%s)", sigabbrev_np(WTERMSIG(status)));
    else
        text_append(&words, by_force ? "gave an answer that makes no sense" : "crashed");
    tell_failure(crew, task, BERTH_ERROR_IO, text_string(&words));
    text_finish(&words);
}

/* ---- A turn ---- */

/* Results that have come from one worker. Returns false when it is not there any more. */
static bool hear(struct crew *crew, size_t place)
{
    struct crew_worker *worker = crew->workers.items[place];
    const unsigned char *bytes = NULL;
    size_t length = 0;
    int code = channel_flush(&worker->channel);

    if (code == 0)
        code = channel_receive(&worker->channel, &bytes, &length);
    if (code == 1) {
        struct step_result result;
        size_t about = worker->task == NULL ? SIZE_MAX : worker->task->about;

        if (!worker->has_task || step_result_decode(bytes, length, about, &result, NULL) < 0) {
            lose(crew, place, true);
            return false;
        }
        tell(crew, worker, &result);
    } else if (code < 0) {
        lose(crew, place, false);
        return false;
    }
    if (!worker->replaced || worker->has_task)
        return true;
    dismiss(crew, place, false);
    return false;
}

static size_t count_stuck(const struct crew *crew, unsigned lane)
{
    size_t count = 0;

    for (size_t i = 0; i < crew->workers.count; i++)
        count += crew->workers.items[i]->lane == lane && crew->workers.items[i]->replaced;
    return count;
}

/* When the worker is to be looked after; INT64_MAX: never. */
static int64_t due(const struct crew *crew, const struct crew_worker *worker)
{
    if (!worker->has_task)
        return INT64_MAX;
    if (worker->replaced || count_stuck(crew, worker->lane) >= STUCK_MAX)
        return worker->since + STUCK_TIME_MAX;
    return worker->since + worker->timeout;
}

/* Returns false when it is not there any more. */
static bool look_after(struct crew *crew, size_t place, int64_t now)
{
    struct crew_worker *worker = crew->workers.items[place];
    struct task *task = worker->task;

    if (now < due(crew, worker))
        return true;
    if (now >= worker->since + STUCK_TIME_MAX) {
        dismiss(crew, place, true);
        if (task != NULL)
            tell_failure(crew, task, BERTH_ERROR_TIMED_OUT, "does not answer");
        return false;
    }
    worker->replaced = true;
    if (task != NULL) {
        task->stuck = true;
        crew->stalled(crew->context, task);
    }
    return true;
}

/* Gives the lane's worker the next task. */
static void go_on(struct crew *crew, unsigned lane, int64_t now)
{
    struct list *waiting = &crew->lanes[lane];
    struct crew_worker *worker = worker_of(crew, lane);

    while (!list_is_empty(waiting) && (worker == NULL || !worker->has_task)) {
        struct task *task = container_of(list_first(waiting), struct task, in_lane);

        list_remove(&task->in_lane);
        task->waits = false;
        if (worker == NULL)
            worker = hire(crew, lane);
        if (worker == NULL) {
            tell_failure(crew, task, BERTH_ERROR_IO, "cannot start a process to look");
            continue;
        }
        worker->task = task;
        worker->has_task = task->runs = true;
        worker->since = now;
        worker->timeout = task->timeout;
        /* A failure shows when it is heard. */
        channel_send(&worker->channel, task->packet.bytes, task->packet.length);
    }
}

void crew_turn(struct crew *crew, int64_t now)
{
    reap_abandoned(crew);
    for (size_t i = crew->workers.count; i-- > 0;)
        hear(crew, i);
    for (size_t i = crew->workers.count; i-- > 0;)
        look_after(crew, i, now);
    for (unsigned lane = 0; lane < LANES; lane++)
        go_on(crew, lane, now);
}

size_t crew_watch(const struct crew *crew, struct pollfd *ret_waiting, size_t max)
{
    for (size_t i = 0; i < crew->workers.count && i < max; i++)
        ret_waiting[i] = (struct pollfd){
            .fd = crew->workers.items[i]->channel.descriptor,
            .events = POLLIN | (channel_has_unsent(&crew->workers.items[i]->channel) ? POLLOUT : 0),
        };
    return crew->workers.count;
}

int64_t crew_next_time(const struct crew *crew)
{
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < crew->workers.count; i++) {
        int64_t time = due(crew, crew->workers.items[i]);

        if (time < next)
            next = time;
    }
    return next;
}
