/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures libberth inside a program; peers/tokio-pool does the same with a pool on tokio.
 *
 *     local [shared] MODE [COUNT]
 *
 * Prints one number: nanoseconds per operation, unless the mode says otherwise. The comments of the
 * functions describe the modes. With `shared`, a second thread uses the pool first: a pool may be
 * faster as long as only one thread uses it. The program uses only berth/berth.h. Run it on one
 * CPU, as bench/run does (by hand: taskset -c 0). */
#include <berth/berth.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local_wake.h"
#include "measure.h"

enum { DEVICES = 8 };

/* ---- A pool to measure ---- */

static struct berth_pool *open_pool(size_t device_count)
{
    /* Names as long as real ones. */
    static char names[DEVICES][32];
    struct berth_device devices[DEVICES];
    for (size_t i = 0; i < device_count; i++) {
        snprintf(names[i], sizeof(names[i]), "NVIDIA A100-SXM4-80GB %zu", i);
        devices[i] = (struct berth_device){.vendor = BERTH_NVIDIA,
                                           .index = (uint32_t)i,
                                           .mig = BERTH_NO_MIG,
                                           .name = names[i],
                                           .memory = BERTH_UNKNOWN};
    }
    struct berth_pool *pool;
    struct berth_error error = BERTH_ERROR_INIT;
    if (berth_pool_open_devices(devices, device_count, NULL, &pool, &error) != 0)
        give_up("cannot open a pool: %s", error.message);
    return pool;
}

/* Takes free devices of the pool and keeps them. */
static void hold(struct berth_pool *pool, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct berth_lease lease;
        if (berth_try_claim(pool, NULL, &lease, NULL) != 0)
            give_up("a device to hold was not free");
    }
}

static void *claim_once(void *data)
{
    struct berth_pool *pool = data;
    struct berth_lease lease;
    if (berth_claim(pool, NULL, BERTH_FOR_EVER, &lease, NULL) != 0 ||
        berth_release(pool, lease, NULL) != 0)
        give_up("a claim or its release failed");
    return NULL;
}

/* Uses a pool with all devices free, from this thread and from another. */
static void share(struct berth_pool *pool)
{
    pthread_t thread;
    claim_once(pool);
    if (pthread_create(&thread, NULL, claim_once, pool) != 0)
        give_up("cannot start a thread");
    pthread_join(thread, NULL);
}

/* ---- claim, try, try-full ---- */

/* Claims and releases with all devices free. */
static int64_t run_claim(void *data, uint64_t count)
{
    struct berth_pool *pool = data;
    int64_t begin = now();
    for (uint64_t i = 0; i < count; i++) {
        struct berth_lease lease;
        if (berth_claim(pool, NULL, BERTH_FOR_EVER, &lease, NULL) != 0 ||
            berth_release(pool, lease, NULL) != 0)
            give_up("a claim or its release failed");
    }
    return now() - begin;
}

/* Tries to claim, and releases, with all devices free. */
static int64_t run_try(void *data, uint64_t count)
{
    struct berth_pool *pool = data;
    int64_t begin = now();
    for (uint64_t i = 0; i < count; i++) {
        struct berth_lease lease;
        if (berth_try_claim(pool, NULL, &lease, NULL) != 0 || berth_release(pool, lease, NULL) != 0)
            give_up("a claim or its release failed");
    }
    return now() - begin;
}

/* Tries to claim with no device free. */
static int64_t run_try_full(void *data, uint64_t count)
{
    struct berth_pool *pool = data;
    int64_t begin = now();
    for (uint64_t i = 0; i < count; i++) {
        struct berth_lease lease;
        if (berth_try_claim(pool, NULL, &lease, NULL) != BERTH_ERROR_BUSY)
            give_up("a full pool granted a claim");
    }
    return now() - begin;
}

/* ---- snapshot, allocations ---- */

static int64_t run_snapshot(void *data, uint64_t count)
{
    const struct berth_pool *pool = data;
    int64_t begin = now();
    for (uint64_t i = 0; i < count; i++) {
        struct berth_slot slots[DEVICES];
        if (berth_snapshot_leases(pool, slots, DEVICES) != DEVICES)
            give_up("a snapshot failed");
        use_value(slots);
    }
    return now() - begin;
}

/* This program's malloc and its relatives replace those of glibc for every library, and count. */
static _Thread_local uint64_t allocations;

#define EXPORTED __attribute__((visibility("default")))

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

EXPORTED void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

EXPORTED void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

EXPORTED void *realloc(void *old, size_t size)
{
    allocations++;
    return __libc_realloc(old, size);
}

EXPORTED void *aligned_alloc(size_t alignment, size_t size)
{
    allocations++;
    return __libc_memalign(alignment, size);
}

EXPORTED int posix_memalign(void **ret_block, size_t alignment, size_t size)
{
    void *block = aligned_alloc(alignment, size);
    if (block == NULL)
        return ENOMEM;
    *ret_block = block;
    return 0;
}

/* Returns the number of allocations per snapshot, over many snapshots. */
static double allocations_of_snapshot(struct berth_pool *pool, size_t count)
{
    (void)count;
    enum { SNAPSHOTS = 1000 };
    uint64_t before = allocations;
    free(malloc(1));
    if (allocations != before + 1)
        give_up("allocations are not counted");
    before = allocations;
    run_snapshot(pool, SNAPSHOTS);
    return (double)(allocations - before) / SNAPSHOTS;
}

/* ---- handoff ---- */

/* A task that claims, yields and releases in a loop, like the tasks of peers/tokio-pool. Its grant
 * puts it into the run queue, and so does its yield. When it runs after that, it releases its
 * lease, which grants the claim of the task that has waited longest, and claims again. */
struct task {
    struct task *next;
    struct berth_lease lease;
    bool has_yielded;
    struct handoff *handoff;
};

struct handoff {
    struct berth_pool *pool;
    struct task *tasks;
    size_t task_count;
    struct task *first; /* the run queue */
    struct task **last;
};

static void push(struct handoff *handoff, struct task *task)
{
    task->next = NULL;
    *handoff->last = task;
    handoff->last = &task->next;
}

static struct task *pop(struct handoff *handoff)
{
    struct task *task = handoff->first;
    if (task == NULL)
        give_up("all tasks wait, but none has a device");
    handoff->first = task->next;
    if (handoff->first == NULL)
        handoff->last = &handoff->first;
    return task;
}

static void granted(void *data, struct berth_ticket ticket, int code, struct berth_lease lease)
{
    struct task *task = data;
    (void)ticket;
    if (code != 0)
        give_up("a claim ended with %s", berth_error_describe(code));
    task->lease = lease;
    push(task->handoff, task);
}

static void start_claim(struct task *task)
{
    struct berth_claim_options options = {.size = sizeof(options), .done = granted, .data = task};
    struct berth_ticket ticket;
    task->has_yielded = false;
    if (berth_claim_start(task->handoff->pool, NULL, &options, &ticket, NULL) != 0)
        give_up("cannot start a claim");
}

/* There are more tasks than devices: every release hands its device to a waiting task. Timing
 * starts when each task has had a device once, and ends `count` hand-offs later. */
static int64_t run_handoff(void *data, uint64_t count)
{
    struct handoff *handoff = data;
    handoff->first = NULL;
    handoff->last = &handoff->first;
    for (size_t i = 0; i < handoff->task_count; i++)
        start_claim(&handoff->tasks[i]);

    uint64_t from = handoff->task_count, to = from + count, done = 0;
    int64_t begin = 0, end = 0;
    for (size_t tasks_left = handoff->task_count; tasks_left > 0;) {
        struct task *task = pop(handoff);
        if (!task->has_yielded) {
            task->has_yielded = true;
            push(handoff, task);
            continue;
        }
        if (berth_release(handoff->pool, task->lease, NULL) != 0)
            give_up("a release failed");
        done++;
        if (done == from)
            begin = now();
        else if (done == to)
            end = now();
        if (done < to)
            start_claim(task);
        else
            tasks_left--;
    }
    return end - begin;
}

static double time_of_handoff(struct berth_pool *pool, size_t task_count)
{
    struct task *tasks = calloc(task_count, sizeof(*tasks));
    if (tasks == NULL)
        give_up("cannot allocate the tasks");
    struct handoff handoff = {.pool = pool, .tasks = tasks, .task_count = task_count};
    for (size_t i = 0; i < task_count; i++)
        tasks[i].handoff = &handoff;
    double time = quickest(run_handoff, &handoff);
    free(tasks);
    return time;
}

/* ---- memory ---- */

static void ignore(void *data, struct berth_ticket ticket, int code, struct berth_lease lease)
{
    (void)data, (void)ticket, (void)code, (void)lease;
}

/* Returns the bytes that malloc has allocated, including its overhead per block. */
static size_t bytes_allocated(void)
{
    struct mallinfo2 information = mallinfo2();
    return information.uordblks + information.hblkhd;
}

/* Returns the bytes of private resident memory. */
static size_t bytes_resident(void)
{
    size_t pages = 0, shared_pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL || fscanf(file, "%*u %zu %zu", &pages, &shared_pages) != 2)
        give_up("cannot read /proc/self/statm");
    fclose(file);
    return (pages - shared_pages) * (size_t)sysconf(_SC_PAGESIZE);
}

/* Returns the bytes of memory per waiter: the growth of malloc's allocations or of the resident
 * memory, whichever is larger, because a library may get its memory elsewhere. A waiter is a
 * started claim with a callback; all share one request. */
static double memory_of_waiter(struct berth_pool *pool, size_t waiters)
{
    struct berth_request *request;
    if (berth_request_create(&request, NULL) != 0)
        give_up("cannot create a request");
    size_t resident = bytes_resident();
    size_t allocated = bytes_allocated();
    for (size_t i = 0; i < waiters; i++) {
        struct berth_claim_options options = {.size = sizeof(options), .done = ignore};
        struct berth_ticket ticket;
        if (berth_claim_start(pool, request, &options, &ticket, NULL) != 0)
            give_up("cannot start a claim");
    }
    allocated = bytes_allocated() - allocated;
    resident = bytes_resident() - resident;
    if (berth_pool_pending(pool) != waiters)
        give_up("expected %zu waiters, got %zu", waiters, berth_pool_pending(pool));
    berth_request_destroy(request);
    return (double)(allocated > resident ? allocated : resident) / (double)waiters;
}

/* ---- wake, futex ---- */

static double wake(struct berth_pool *pool, size_t count)
{
    (void)count;
    return time_of_wake(pool);
}

static double futex(struct berth_pool *pool, size_t count)
{
    (void)pool, (void)count;
    return time_of_futex_wake();
}

/* ---- The command line ---- */

struct mode {
    const char *name;
    size_t devices;
    size_t held;                                /* devices to claim before the measurement */
    size_t min_count;                           /* 0: it takes no count */
    int64_t (*run)(void *pool, uint64_t count); /* timed by quickest(); NULL: `measure` */
    double (*measure)(struct berth_pool *pool, size_t count);
};

static const struct mode modes[] = {
    {"claim", DEVICES, 0, 0, run_claim, NULL},
    {"try", DEVICES, 0, 0, run_try, NULL},
    {"try-full", DEVICES, DEVICES, 0, run_try_full, NULL},
    {"snapshot", DEVICES, DEVICES / 2, 0, run_snapshot, NULL},
    {"allocations", DEVICES, DEVICES / 2, 0, NULL, allocations_of_snapshot},
    {"handoff", DEVICES, 0, DEVICES + 1, NULL, time_of_handoff},
    {"memory", DEVICES, DEVICES, 1, NULL, memory_of_waiter},
    {"wake", 1, 0, 0, NULL, wake},
    {"futex", 1, 0, 0, NULL, futex},
};

static const struct mode *find_mode(int argc, char **argv, size_t *ret_count)
{
    for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(argv[1], modes[i].name) != 0)
            continue;
        *ret_count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
        bool fits = argc == (modes[i].min_count > 0 ? 3 : 2);
        return fits && *ret_count >= modes[i].min_count ? &modes[i] : NULL;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    bool is_shared = argc > 1 && strcmp(argv[1], "shared") == 0;
    size_t count;
    const struct mode *mode = find_mode(argc - is_shared, argv + is_shared, &count);
    if (mode == NULL)
        give_up("usage: local [shared] claim|try|try-full|snapshot|allocations|wake|futex|"
                "handoff TASKS|memory WAITERS");
    struct berth_pool *pool = open_pool(mode->devices);
    if (is_shared)
        share(pool);
    hold(pool, mode->held);
    printf("%.3f\n", mode->run != NULL ? quickest(mode->run, pool) : mode->measure(pool, count));
    berth_pool_close(pool);
    return 0;
}
