/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/amd/patient.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/system/process_stat.h"
#include "base/text/quantity.h"
#include "base/vector.h"

enum piece_state {
    PENDING,
    DONE,
    ABANDONED,
};

/* One call of abandonable_reads_run, for as long as a thread works on it or hangs in it. */
struct read_group {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    unsigned users;
    const struct abandonable_reads_work *work;
    void *shared;
    uint64_t *pieces;
    enum piece_state *states;
    unsigned char *results;
    size_t count;
    size_t at;              /* the piece that is being done */
    struct runner *current; /* whose results count */
};

/* A thread. It frees this when it ends, unless somebody waits to see that. */
struct runner {
    struct read_group *group;
    pid_t thread;
    atomic_bool is_in_piece; /* set while the group is locked */
    bool is_watched;
    bool has_ended;
    _Alignas(max_align_t) unsigned char result[];
};

struct hanging {
    uint64_t piece;
    struct runner *runner; /* whose group has us as a user */
};

struct abandonable_reads {
    VECTOR_OF(struct hanging);
};

int abandonable_reads_create(struct abandonable_reads **ret_patient, struct berth_error *error)
{
    struct abandonable_reads *reads = calloc(1, sizeof(*reads));

    if (reads == NULL)
        return error_set_memory(error);
    *ret_patient = reads;
    return 0;
}

/* Unlocks it too; the last one frees it. */
static void group_leave(struct read_group *group)
{
    bool is_last = --group->users == 0;

    pthread_mutex_unlock(&group->lock);
    if (!is_last)
        return;
    pthread_cond_destroy(&group->ended);
    pthread_mutex_destroy(&group->lock);
    group->work->finish(group->shared);
    free(group->pieces);
    free(group->states);
    free(group->results);
    free(group);
}

/* Takes over what is shared, also on failure. */
static struct read_group *group_create(const struct abandonable_reads_work *work, void *shared,
                                       const uint64_t *pieces, size_t count)
{
    struct read_group *group = calloc(1, sizeof(*group));
    pthread_condattr_t monotonic;

    if (group == NULL) {
        work->finish(shared);
        return NULL;
    }
    pthread_mutex_init(&group->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&group->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    group->users = 1;
    group->work = work;
    group->shared = shared;
    group->count = count;
    group->pieces = calloc(count + 1, sizeof(*group->pieces));
    group->states = calloc(count + 1, sizeof(*group->states));
    group->results = calloc(count + 1, work->result_size);
    if (group->pieces == NULL || group->states == NULL || group->results == NULL) {
        pthread_mutex_lock(&group->lock);
        group_leave(group);
        return NULL;
    }
    if (count > 0)
        memcpy(group->pieces, pieces, count * sizeof(*pieces));
    return group;
}

static void *run_pieces(void *argument)
{
    struct runner *runner = argument;
    struct read_group *group = runner->group;
    size_t size = group->work->result_size;

    pthread_mutex_lock(&group->lock);
    runner->thread = gettid();
    while (group->current == runner && group->at < group->count) {
        size_t at = group->at;

        if (group->states[at] == PENDING) {
            runner->is_in_piece = true;
            pthread_mutex_unlock(&group->lock);
            memset(runner->result, 0, size);
            group->work->run(group->shared, group->pieces[at], runner->result);
            runner->is_in_piece = false;
            pthread_mutex_lock(&group->lock);
            if (group->current != runner)
                break; /* it took too long */
            memcpy(group->results + at * size, runner->result, size);
            group->states[at] = DONE;
        }
        group->at = at + 1;
    }
    pthread_cond_signal(&group->ended);
    runner->has_ended = true;
    if (!runner->is_watched)
        free(runner);
    group_leave(group);
    return NULL;
}

/* Starts a thread that goes on with the work; the group is locked. Signals are for others. */
static int start_runner(struct read_group *group, struct berth_error *error)
{
    struct runner *runner = calloc(1, sizeof(*runner) + group->work->result_size);
    sigset_t all, before;
    pthread_t thread;
    int number;

    if (runner == NULL)
        return error_set_memory(error);
    runner->group = group;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    number = pthread_create(&thread, NULL, run_pieces, runner);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (number != 0) {
        free(runner);
        return error_set_errno(error, number, "expected a thread");
    }
    pthread_detach(thread);
    group->users++;
    group->current = runner;
    return 0;
}

/* Whether the thread waits in its piece for something, other than its turn on a busy machine; the
 * group is locked. One that is back waits too, for the lock: whether it is has to be asked last. */
static bool is_hanging(const struct runner *runner)
{
    char buffer[512];
    const char *fields = process_stat_fields(runner->thread, buffer, sizeof(buffer));
    bool is_waiting = fields == NULL || process_stat_state(fields) != 'R';

    return is_waiting && runner->is_in_piece;
}

/* Gives up the piece that is being done; the group is locked. */
static int abandon_piece(struct abandonable_reads *reads, struct read_group *group,
                         struct berth_error *error)
{
    struct hanging *hanging;

    if (reads->count >= ABANDONABLE_READS_HANGING_MAX)
        return error_set(error, BERTH_ERROR_IO, "expected at most %d files that do not answer",
                         ABANDONABLE_READS_HANGING_MAX);
    hanging = vector_append(reads);
    if (hanging == NULL)
        return error_set_memory(error);
    *hanging = (struct hanging){.piece = group->pieces[group->at], .runner = group->current};
    group->current->is_watched = true;
    group->current = NULL;
    group->users++;
    group->states[group->at++] = ABANDONED;
    return group->at < group->count ? start_runner(group, error) : 0;
}

/* Waits until all is done; the group is locked. */
static int wait_for_end(struct abandonable_reads *reads, struct read_group *group, int64_t timeout,
                        struct berth_error *error)
{
    int code = 0;

    while (code == 0 && group->at < group->count) {
        int64_t until = clock_after(clock_now(), timeout);
        struct timespec deadline = {.tv_sec = until / DURATION_SECOND,
                                    .tv_nsec = until % DURATION_SECOND};
        size_t before = group->at;
        int number = 0;

        while (number == 0 && group->at < group->count)
            number = pthread_cond_timedwait(&group->ended, &group->lock, &deadline);
        if (number != 0 && group->at == before && is_hanging(group->current))
            code = abandon_piece(reads, group, error);
    }
    return code;
}

/* Forgets the pieces whose threads have come back. */
static void forget_ended(struct abandonable_reads *reads)
{
    size_t kept = 0;

    for (size_t i = 0; i < reads->count; i++) {
        struct runner *runner = reads->items[i].runner;
        struct read_group *group = runner->group;

        pthread_mutex_lock(&group->lock);
        if (runner->has_ended) {
            free(runner);
            group_leave(group);
        } else {
            pthread_mutex_unlock(&group->lock);
            reads->items[kept++] = reads->items[i];
        }
    }
    reads->count = kept;
}

int abandonable_reads_run(struct abandonable_reads *reads,
                          const struct abandonable_reads_work *work, void *shared,
                          const uint64_t *pieces, size_t count, int64_t timeout, void *ret_results,
                          bool *ret_done, struct berth_error *error)
{
    struct read_group *group = group_create(work, shared, pieces, count);
    int code = 0;

    if (group == NULL)
        return error_set_memory(error);
    forget_ended(reads);
    pthread_mutex_lock(&group->lock);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < reads->count; j++)
            if (pieces[i] == reads->items[j].piece)
                group->states[i] = ABANDONED;
    if (count > 0)
        code = start_runner(group, error);
    if (code == 0)
        code = wait_for_end(reads, group, timeout, error);
    group->current = NULL; /* whoever still works on it does so in vain */
    for (size_t i = 0; i < count && code == 0; i++)
        ret_done[i] = group->states[i] == DONE;
    if (count > 0 && code == 0)
        memcpy(ret_results, group->results, count * work->result_size);
    group_leave(group);
    return code;
}

void abandonable_reads_destroy(struct abandonable_reads *reads)
{
    if (reads == NULL)
        return;
    for (size_t i = 0; i < reads->count; i++) {
        struct runner *runner = reads->items[i].runner;
        struct read_group *group = runner->group;

        pthread_mutex_lock(&group->lock);
        if (runner->has_ended)
            free(runner);
        else
            runner->is_watched = false;
        group_leave(group);
    }
    vector_finish(reads);
    free(reads);
}
