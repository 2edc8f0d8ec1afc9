/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/supervisor/workers.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/process_stat.h"
#include "probe/probe_channel.h"

enum {
    STUCK_MAX = 16, /* stuck workers per lane; with more, the lane blocks */
    PROCESS_STAT_SIZE = 1024,
    EXIT_TIMEOUT = 50 /* milliseconds that a worker may take to exit after it closed its socket */
};

/* A worker that is stuck for this long is killed, and its task fails. A library may take half a
 * minute to start on a machine with many GPUs. */
#define STUCK_TIME_MAX INT64_C(60000000000)

/* A reader of /proc that sleeps at one process for STALL_TIME is stalled by that process. A reader
 * that is ready to run may only wait for a CPU, so it gets more time. */
#define STALL_TIME     INT64_C(30000000)
#define STALL_TIME_MAX INT64_C(300000000)

struct worker_process {
    pid_t pid;
    unsigned lane;
    struct probe_channel channel;
    struct task *task; /* NULL: none */
    bool has_task;     /* it executes a task, which may have been cancelled */
    bool replaced;     /* another worker executes the lane's tasks */
    int64_t since;     /* when it started its task */
    int64_t timeout;   /* the task's timeout */

    /* Of a worker that reads /proc. */
    proc_touched *touched; /* shared with it; NULL: it does not read /proc */
    uint64_t last_touched; /* `*touched` at the last check */
    int64_t touched_since; /* since when it has that value */
    int64_t check_at;      /* when to check again */
};

void workers_init(struct workers *workers, const struct sysroot *root,
                  const struct vendor_table *const *tables)
{
    *workers = (struct workers){.root = root, .tables = tables};
    for (size_t i = 0; i < LANES; i++)
        list_init(&workers->lanes[i]);
}

/* ---- Workers ---- */

/* Returns the wait status of the process; -1 if it has not ended, because a driver blocks it. */
static int reap_process(pid_t pid)
{
    struct pollfd ending = {.fd = pidfd_open(pid, 0), .events = POLLIN};
    int status = -1;

    if (ending.fd >= 0) {
        poll(&ending, 1, EXIT_TIMEOUT);
        close(ending.fd);
    }
    return waitpid(pid, &status, WNOHANG) == pid ? status : -1;
}

/* Removes the worker. Returns its wait status, or -1 if it has not ended. */
static int remove_worker(struct workers *workers, size_t place, bool by_force)
{
    struct worker_process *worker = workers->active.items[place];
    pid_t *abandoned;
    int status;

    if (by_force)
        kill(worker->pid, SIGKILL);
    probe_channel_finish(&worker->channel);
    if (worker->touched != NULL)
        munmap(worker->touched, sizeof(*worker->touched));
    status = by_force ? -1 : reap_process(worker->pid);
    abandoned = status == -1 ? vector_append(&workers->abandoned) : NULL;
    if (abandoned != NULL)
        *abandoned = worker->pid;
    free(worker);
    workers->active.items[place] = workers->active.items[--workers->active.count];
    return status;
}

/* Reaps killed workers that have ended since. */
static void reap_abandoned(struct workers *workers)
{
    for (size_t i = workers->abandoned.count; i-- > 0;) {
        if (waitpid(workers->abandoned.items[i], NULL, WNOHANG) != 0)
            workers->abandoned.items[i] = workers->abandoned.items[--workers->abandoned.count];
    }
}

void workers_finish(struct workers *workers)
{
    while (workers->active.count > 0) {
        struct worker_process *worker = workers->active.items[0];

        if (worker->task != NULL)
            text_finish(&worker->task->packet);
        /* An idle worker exits when its socket is closed. */
        remove_worker(workers, 0, worker->has_task);
    }
    vector_finish(&workers->active);
    vector_finish(&workers->abandoned);
}

static struct worker_process *find_worker(const struct workers *workers, unsigned lane)
{
    for (size_t i = 0; i < workers->active.count; i++) {
        struct worker_process *worker = workers->active.items[i];

        if (worker->lane == lane && !worker->replaced)
            return worker;
    }
    return NULL;
}

/* Returns memory to share with the next worker; NULL: none. */
static proc_touched *share_memory(void)
{
    void *place =
        mmap(NULL, sizeof(proc_touched), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return place == MAP_FAILED ? NULL : place;
}

static struct worker_process *start_worker(struct workers *workers, unsigned lane)
{
    struct worker_process *worker = calloc(1, sizeof(*worker));
    struct worker_process **place = worker == NULL ? NULL : vector_append(&workers->active);
    proc_touched *touched = worker_reads_proc(lane) ? share_memory() : NULL;
    int socket = -1;
    int pid = place == NULL ? -ENOMEM
                            : worker_start(workers->root, workers->tables, lane, touched, &socket);

    /* The other workers must not write there. */
    if (touched != NULL && pid >= 0)
        madvise(touched, sizeof(*touched), MADV_DONTFORK);
    else if (touched != NULL)
        munmap(touched, sizeof(*touched));
    if (pid < 0) {
        if (place != NULL)
            workers->active.count--;
        free(worker);
        return NULL;
    }
    worker->pid = pid;
    worker->lane = lane;
    worker->touched = touched;
    probe_channel_init(&worker->channel, socket);
    *place = worker;
    return worker;
}

/* ---- Tasks ---- */

int workers_add_task(struct workers *workers, struct task *task, const struct step *step)
{
    int code;

    text_clear(&task->packet);
    code = task_codec_encode_step(step, &task->packet);
    if (code < 0) {
        text_finish(&task->packet);
        return code;
    }
    task->about = step->about.count;
    task->waits = true;
    list_append(&workers->lanes[task->lane], &task->in_lane);
    return 0;
}

void workers_cancel_task(struct workers *workers, struct task *task)
{
    if (task->waits)
        list_remove(&task->in_lane);
    for (size_t i = 0; task->runs && i < workers->active.count; i++) {
        if (workers->active.items[i]->task == task)
            workers->active.items[i]->task = NULL;
    }
    task->waits = task->runs = task->stuck = false;
    text_finish(&task->packet);
}

bool workers_is_busy(const struct task *task)
{
    return task->waits || (task->runs && !task->stuck);
}

/* Ends the worker's task and passes its result to `done`. */
static void finish_task(struct workers *workers, struct worker_process *worker,
                        struct step_result *result)
{
    struct task *task = worker->task;

    worker->task = NULL;
    worker->has_task = false;
    if (task != NULL) {
        task->runs = task->stuck = false;
        text_finish(&task->packet);
        workers->done(workers->context, task, result);
    }
    task_codec_finish_result(result);
}

static void fail_task(struct workers *workers, struct task *task, int code, const char *message)
{
    struct step_result result = {.code = code, .message = strdup(message), .lost = true};

    task->runs = task->stuck = task->waits = false;
    text_finish(&task->packet);
    workers->done(workers->context, task, &result);
    task_codec_finish_result(&result);
}

/* Handles a worker that sleeps at a process. */
static void lose_stalled_worker(struct workers *workers, size_t place, uint64_t pid)
{
    struct task *task = workers->active.items[place]->task;
    struct step_result result = {.code = BERTH_ERROR_TIMED_OUT, .lost = true, .stalled_at = pid};

    remove_worker(workers, place, true);
    if (task == NULL)
        return;
    result.message = strdup("does not answer");
    task->runs = task->stuck = task->waits = false;
    text_finish(&task->packet);
    workers->done(workers->context, task, &result);
    task_codec_finish_result(&result);
}

/* Handles a worker that has ended, or whose answer is invalid (`by_force`). */
static void lose_worker(struct workers *workers, size_t place, bool by_force)
{
    struct task *task = workers->active.items[place]->task;
    int status = remove_worker(workers, place, by_force);
    struct text message = {0};

    if (task == NULL)
        return;
    if (status != -1 && WIFSIGNALED(status))
        text_append_format(&message, "crashed (SIG%s)", sigabbrev_np(WTERMSIG(status)));
    else
        text_append(&message, by_force ? "gave an invalid answer" : "crashed");
    fail_task(workers, task, BERTH_ERROR_IO, text_string(&message));
    text_finish(&message);
}

/* ---- A turn ---- */

/* Receives a result from one worker. Returns false if the worker was removed. */
static bool receive_result(struct workers *workers, size_t place)
{
    struct worker_process *worker = workers->active.items[place];
    const unsigned char *bytes = NULL;
    size_t length = 0;
    int code = probe_channel_flush(&worker->channel);

    if (code == 0)
        code = probe_channel_receive(&worker->channel, &bytes, &length);
    if (code == 1) {
        struct step_result result;
        size_t about = worker->task == NULL ? SIZE_MAX : worker->task->about;

        if (!worker->has_task ||
            task_codec_decode_result(bytes, length, about, &result, NULL) < 0) {
            lose_worker(workers, place, true);
            return false;
        }
        finish_task(workers, worker, &result);
    } else if (code < 0) {
        lose_worker(workers, place, false);
        return false;
    }
    if (!worker->replaced || worker->has_task)
        return true;
    remove_worker(workers, place, false);
    return false;
}

static size_t count_stuck(const struct workers *workers, unsigned lane)
{
    size_t count = 0;

    for (size_t i = 0; i < workers->active.count; i++)
        count += workers->active.items[i]->lane == lane && workers->active.items[i]->replaced;
    return count;
}

static bool is_sleeping(pid_t pid)
{
    char buffer[PROCESS_STAT_SIZE];
    const char *fields = process_stat_fields(pid, buffer, sizeof(buffer));

    return fields != NULL && strchr("SD", process_stat_state(fields)) != NULL;
}

/* Checks whether a process stalls the worker. Returns false if the worker was removed. */
static bool check_touched(struct workers *workers, size_t place, int64_t now)
{
    struct worker_process *worker = workers->active.items[place];
    uint64_t touched;

    if (worker->touched == NULL || !worker->has_task)
        return true;
    touched = atomic_load(worker->touched);
    if (touched != worker->last_touched) {
        worker->last_touched = touched;
        worker->touched_since = now;
    }
    if ((uint32_t)touched == 0 || now < worker->touched_since + STALL_TIME ||
        (now < worker->touched_since + STALL_TIME_MAX && !is_sleeping(worker->pid))) {
        worker->check_at = now + STALL_TIME;
        return true;
    }
    lose_stalled_worker(workers, place, (uint32_t)touched);
    return false;
}

/* Returns when check_timeout() must act on the worker; INT64_MAX: never. */
static int64_t task_deadline(const struct workers *workers, const struct worker_process *worker)
{
    if (!worker->has_task)
        return INT64_MAX;
    if (worker->replaced || count_stuck(workers, worker->lane) >= STUCK_MAX)
        return worker->since + STUCK_TIME_MAX;
    return worker->since + worker->timeout;
}

/* Returns when the worker must be checked; INT64_MAX: never. */
static int64_t worker_deadline(const struct workers *workers, const struct worker_process *worker)
{
    int64_t deadline = task_deadline(workers, worker);

    return worker->touched != NULL && worker->has_task && worker->check_at < deadline
               ? worker->check_at
               : deadline;
}

/* Replaces or kills a worker that exceeds its time. Returns false if the worker was removed. */
static bool check_timeout(struct workers *workers, size_t place, int64_t now)
{
    struct worker_process *worker = workers->active.items[place];
    struct task *task = worker->task;

    if (now < task_deadline(workers, worker))
        return true;
    if (now >= worker->since + STUCK_TIME_MAX) {
        remove_worker(workers, place, true);
        if (task != NULL)
            fail_task(workers, task, BERTH_ERROR_TIMED_OUT, "does not answer");
        return false;
    }
    worker->replaced = true;
    if (task != NULL) {
        task->stuck = true;
        workers->stalled(workers->context, task);
    }
    return true;
}

/* Gives the next task of the lane to the lane's worker. */
static void start_next_task(struct workers *workers, unsigned lane, int64_t now)
{
    struct list *waiting = &workers->lanes[lane];
    struct worker_process *worker = find_worker(workers, lane);

    while (!list_is_empty(waiting) && (worker == NULL || !worker->has_task)) {
        struct task *task = container_of(list_first(waiting), struct task, in_lane);

        list_remove(&task->in_lane);
        task->waits = false;
        if (worker == NULL)
            worker = start_worker(workers, lane);
        if (worker == NULL) {
            fail_task(workers, task, BERTH_ERROR_IO, "cannot start a worker process");
            continue;
        }
        worker->task = task;
        worker->has_task = task->runs = true;
        worker->since = worker->touched_since = now;
        worker->check_at = now + STALL_TIME;
        if (worker->touched != NULL)
            worker->last_touched = atomic_load(worker->touched);
        worker->timeout = task->timeout;
        /* If this fails, the next receive fails as well. */
        probe_channel_send(&worker->channel, task->packet.bytes, task->packet.length);
    }
}

void workers_run(struct workers *workers, int64_t now)
{
    reap_abandoned(workers);
    for (size_t i = workers->active.count; i-- > 0;)
        receive_result(workers, i);
    for (size_t i = workers->active.count; i-- > 0;) {
        if (check_touched(workers, i, now))
            check_timeout(workers, i, now);
    }
    for (unsigned lane = 0; lane < LANES; lane++)
        start_next_task(workers, lane, now);
}

size_t workers_fill_pollfds(const struct workers *workers, struct pollfd *ret_waiting, size_t max)
{
    for (size_t i = 0; i < workers->active.count && i < max; i++)
        ret_waiting[i] = (struct pollfd){
            .fd = workers->active.items[i]->channel.descriptor,
            .events = POLLIN |
                      (probe_channel_has_unsent(&workers->active.items[i]->channel) ? POLLOUT : 0),
        };
    return workers->active.count;
}

int64_t workers_next_time(const struct workers *workers)
{
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < workers->active.count; i++) {
        int64_t time = worker_deadline(workers, workers->active.items[i]);

        if (time < next)
            next = time;
    }
    return next;
}
