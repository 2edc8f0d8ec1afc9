/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/holder_identity.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text/quantity.h"
#include "daemon/core/log.h"
#include "daemon/core/pidfd.h"
#include "daemon/core/pool_clock.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/job.h"
#include "daemon/leases/lease_ending.h"
#include "daemon/leases/pool.h"
#include "daemon/processes/reader_pool.h"
#include "daemon/processes/signal_right.h"

/* The pause before the readers are asked again about holders without an answer. */
#define RETRY DURATION_SECOND

/* After so many questions without an answer, the process's user decides. Readers do not answer a
 * user with very many stalled processes. */
enum { UNANSWERED_MAX = 5 };

/* The holders of one user that one request asks about, by the ids of their jobs. */
struct identity_request {
    struct pool *pool;
    struct {
        VECTOR_OF(uint64_t);
    } ids;
};

bool holder_identity_matches(uint64_t started, int64_t claimed, uint64_t known_ticks)
{
    uint64_t tick = (uint64_t)DURATION_SECOND / (uint64_t)sysconf(_SC_CLK_TCK);

    if (known_ticks != 0)
        return started / tick == known_ticks;
    return claimed >= 0 && started <= (uint64_t)claimed;
}

static bool is_unconfirmed(const struct job *job)
{
    return job->guard != NULL && job->guard->is_unconfirmed && job->guard->process.descriptor >= 0;
}

static bool is_of_user(const struct pool *pool, const struct job *job, uint32_t uid)
{
    return signal_right_covers(&(struct signal_right){job->holder->uid, &pool->accounts.ranges},
                               uid);
}

/* Ends the lease, or allows signals to its holder from now on. */
static void decide_holder(struct pool *pool, struct job *job, bool is_holder)
{
    if (!is_holder)
        log_line(&pool->log, pool_clock_now(&pool->clock), "holder", "id=%" PRIu64 " what=gone",
                 job->by_id.id);
    lease_ending_confirm(pool, job, is_holder);
}

/* Ends the leases whose holders' pids belong to other users' processes now, which no reader may
 * touch. A holder may also have become a program of root, for example by sudo. */
static void give_up_strangers(struct pool *pool)
{
    list_for_each (link, &pool->jobs) {
        struct job *job = container_of(link, struct job, in_pool);
        uint32_t uid;

        if (is_unconfirmed(job) && !job->holder->is_asked &&
            pidfd_find_user(job->guard->process.descriptor, job->holder->pid, &uid) && uid != 0 &&
            !is_of_user(pool, job, uid))
            decide_holder(pool, job, false);
    }
}

static void take_identity(struct pool *pool, uint64_t id, const struct reader_process *found)
{
    struct job *job = job_of_id(pool, id);
    bool is_holder;

    /* If the process has ended meanwhile, the facts may be those of another process. */
    if (job == NULL || !is_unconfirmed(job) || pidfd_has_ended(job->guard->process.descriptor))
        return;
    if (found->state == READER_STALLED) {
        /* Only the process's user can be known. A process must not keep its lease for ever by not
         * answering. */
        decide_holder(pool, job,
                      found->uid.known && is_of_user(pool, job, (uint32_t)found->uid.value));
        return;
    }
    is_holder =
        found->state == READER_FOUND &&
        holder_identity_matches(found->started, pool_clock_loop_time(&pool->clock, job->since),
                                job->holder->started);
    if (is_holder) {
        job->holder->began = found->started;
        job_holder_note_session(job->holder);
    }
    if (is_holder && job->adopted && found->container != NULL)
        job_keep_container(pool, job, found->container);
    decide_holder(pool, job, is_holder);
}

static void ask_again(struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, identity_timer);

    holder_identity_confirm(pool);
    engine_events_settle(pool);
}

/* Marks the holders from this one on as not asked, and sets the timer for the next question. */
static void ask_later(struct pool *pool, const struct identity_request *asked, size_t first)
{
    /* At the end of the daemon, the readers end after the jobs. */
    if (list_is_empty(&pool->jobs))
        return;
    for (size_t i = first; i < asked->ids.count; i++) {
        struct job *job = job_of_id(pool, asked->ids.items[i]);

        if (job == NULL)
            continue;
        job->holder->is_asked = false;
        job->holder->unanswered++;
    }
    pool->identity_timer.fire = ask_again;
    if (first < asked->ids.count && !list_is_linked(&pool->identity_timer.in_loop))
        loop_set_timer(&pool->loop, &pool->identity_timer, loop_now(&pool->loop) + RETRY);
}

static void take_identities(void *context, struct reader_answer *answer)
{
    struct identity_request *asked = context;
    struct pool *pool = asked->pool;
    size_t count = answer == NULL ? 0 : answer->processes.count;

    for (size_t i = 0; i < asked->ids.count && i < count; i++)
        take_identity(pool, asked->ids.items[i], &answer->processes.items[i]);
    ask_later(pool, asked, count);
    vector_finish(&asked->ids);
    free(asked);
    if (answer != NULL)
        engine_events_settle(pool);
}

static int add_job(const struct job *job, struct identity_request *asked,
                   struct reader_request *request)
{
    uint64_t *id = vector_append(&asked->ids);
    uint32_t *pid = id == NULL ? NULL : vector_append(&request->pids);

    if (pid == NULL)
        return BERTH_ERROR_MEMORY;
    *id = job->by_id.id;
    *pid = (uint32_t)job->holder->pid;
    job->holder->is_asked = true;
    if (job->adopted)
        request->identity_only = false; /* the process may have started a container */
    return 0;
}

/* Adds the unconfirmed holders of this user. */
static void add_unconfirmed(struct pool *pool, uint32_t account, struct identity_request *asked,
                            struct reader_request *request)
{
    list_for_each (link, &pool->jobs) {
        const struct job *job = container_of(link, struct job, in_pool);

        if (job->holder->account != account || !is_unconfirmed(job) || job->holder->is_asked)
            continue;
        if (request->pids.count >= READER_PROCESSES_MAX || add_job(job, asked, request) < 0)
            return;
    }
}

static void ask_identities(struct pool *pool, const struct job *first)
{
    struct identity_request *asked = calloc(1, sizeof(*asked));
    struct reader_request request = {.question = READER_DESCRIBE, .identity_only = true};

    if (asked == NULL)
        return;
    asked->pool = pool;
    add_unconfirmed(pool, first->holder->account, asked, &request);
    if (reader_pool_ask(pool->readers, first->holder->account, &request, take_identities, asked) ==
        NULL) {
        ask_later(pool, asked, 0);
        vector_finish(&asked->ids);
        free(asked);
    }
}

/* Without answers, the user of the process decides. */
static void give_up_questions(struct pool *pool)
{
    list_for_each (link, &pool->jobs) {
        struct job *job = container_of(link, struct job, in_pool);
        uint32_t uid;

        if (is_unconfirmed(job) && job->holder->unanswered >= UNANSWERED_MAX &&
            pidfd_find_user(job->guard->process.descriptor, job->holder->pid, &uid))
            decide_holder(pool, job, is_of_user(pool, job, uid));
    }
}

void holder_identity_confirm(struct pool *pool)
{
    give_up_strangers(pool);
    give_up_questions(pool);
    list_for_each (link, &pool->jobs) {
        const struct job *job = container_of(link, struct job, in_pool);

        if (is_unconfirmed(job) && !job->holder->is_asked)
            ask_identities(pool, job);
    }
}
