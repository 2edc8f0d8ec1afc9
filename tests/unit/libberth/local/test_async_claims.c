/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims that do not block: callbacks, tickets, the descriptor.
 */
#include "support/unit.h"

#include <berth/berth.h>
#include <poll.h>
#include <stdatomic.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/programs/pools.h"

/* The results that callbacks have received. */
struct diary {
    struct berth_pool *pool;
    atomic_int calls;
    uint64_t ticket;
    int code;
    struct berth_lease lease;
    pthread_t thread;
    int claimed;         /* the result of a claim within the callback */
    atomic_int deepest;  /* callbacks that ran within each other */
    atomic_int to_start; /* the claims that the callback makes */
};

/* The callbacks that this thread is in: the timer thread may run one at the same time as the
 * test. */
static __thread int depth;

static void note(void *data, struct berth_ticket ticket, int code, struct berth_lease lease)
{
    struct diary *diary = data;

    diary->ticket = ticket.id;
    diary->code = code;
    diary->lease = lease;
    diary->thread = pthread_self();
    atomic_fetch_add(&diary->calls, 1);
}

static struct berth_claim_options noting(struct diary *diary)
{
    return (struct berth_claim_options){
        .size = sizeof(struct berth_claim_options), .done = note, .data = diary};
}

static void a_free_device_is_told_before_start_returns(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct diary diary = {.pool = pool};
    const struct berth_claim_options options = noting(&diary);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_ticket ticket;

    (void)state;
    assert_works(berth_claim_start(pool, NULL, &options, &ticket, &error), &error);
    await(atomic_load(&diary.calls) == 1);
    assert_int_equal(diary.code, 0);
    assert_int_equal(diary.ticket, ticket.id);
    assert_int_equal(device_of(pool, diary.lease).slot, 0);
    release(pool, diary.lease);
    berth_pool_close(pool);
}

static void who_releases_runs_the_callback(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_lease lease = claim_one(pool);
    struct diary diary = {.pool = pool};
    const struct berth_claim_options options = noting(&diary);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_ticket ticket;

    (void)state;
    assert_works(berth_claim_start(pool, NULL, &options, &ticket, &error), &error);
    assert_int_equal(berth_pool_pending(pool), 1);
    assert_int_equal(diary.calls, 0);
    release(pool, lease);
    await(atomic_load(&diary.calls) == 1);
    assert_int_equal(diary.code, 0);
    assert_int_equal(diary.ticket, ticket.id);
    assert_true(pthread_equal(diary.thread, pthread_self()));
    assert_true(diary.lease.id > lease.id);
    assert_int_equal(berth_cancel(pool, ticket, NULL), BERTH_ERROR_NOT_FOUND);
    release(pool, diary.lease);
    berth_pool_close(pool);
}

static void cancelling_runs_the_callback(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct diary diary = {.pool = pool};
    const struct berth_claim_options options = noting(&diary);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_ticket ticket;

    (void)state;
    claim_one(pool);
    assert_works(berth_claim_start(pool, NULL, &options, &ticket, &error), &error);
    assert_works(berth_cancel(pool, ticket, &error), &error);
    await(atomic_load(&diary.calls) == 1);
    assert_int_equal(diary.code, BERTH_ERROR_CANCELLED);
    assert_int_equal(diary.lease.id, 0);
    assert_int_equal(berth_cancel(pool, ticket, NULL), BERTH_ERROR_NOT_FOUND);
    await(atomic_load(&diary.calls) == 1);
    berth_pool_close(pool);
}

static void a_deadline_runs_the_callback(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct diary diaries[3] = {{0}};
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_ticket ticket;

    (void)state;
    claim_one(pool);
    for (size_t i = 0; i < COUNT(diaries); i++) {
        struct berth_claim_options options = noting(&diaries[i]);

        options.timeout = (int64_t)(3 - i) * MILLISECOND;
        assert_works(berth_claim_start(pool, NULL, &options, &ticket, &error), &error);
    }
    for (size_t i = 0; i < COUNT(diaries); i++) {
        await(atomic_load(&diaries[i].calls) == 1);
        assert_int_equal(diaries[i].code, BERTH_ERROR_TIMED_OUT);
    }
    assert_int_equal(berth_pool_pending(pool), 0);
    berth_pool_close(pool);
}

/* A callback that releases the device at once: each release grants the next claim. */
static void pass_on(void *data, struct berth_ticket ticket, int code, struct berth_lease lease)
{
    struct diary *diary = data;

    (void)ticket;
    depth++;
    if (depth > diary->deepest)
        diary->deepest = depth;
    if (code == 0)
        berth_release(diary->pool, lease, NULL);
    depth--;
    diary->calls++;
}

static void callbacks_that_release_do_not_pile_up(void **state)
{
    enum { CLAIMS = 50000 };
    struct berth_pool *pool = pool_of(1);
    struct berth_lease lease = claim_one(pool);
    struct diary diary = {.pool = pool};
    const struct berth_claim_options options = {
        .size = sizeof(options), .done = pass_on, .data = &diary};
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_ticket ticket;

    (void)state;
    for (int i = 0; i < CLAIMS; i++)
        assert_works(berth_claim_start(pool, NULL, &options, &ticket, &error), &error);
    assert_int_equal(berth_pool_pending(pool), CLAIMS);
    release(pool, lease);
    await(atomic_load(&diary.calls) == CLAIMS);
    assert_int_equal(diary.deepest, 1);
    assert_int_equal(berth_pool_pending(pool), 0);
    berth_pool_close(pool);
}

/* A callback that claims again, and is granted again. */
static void go_on(void *data, struct berth_ticket ticket, int code, struct berth_lease lease)
{
    struct diary *diary = data;
    const struct berth_claim_options options = {
        .size = sizeof(options), .done = go_on, .data = diary};

    pass_on(data, ticket, code, lease);
    depth++;
    if (diary->to_start-- > 0)
        berth_claim_start(diary->pool, NULL, &options, &ticket, NULL);
    depth--;
}

static void callbacks_that_claim_do_not_pile_up(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct diary diary = {.pool = pool, .to_start = 20000};
    const struct berth_claim_options options = {
        .size = sizeof(options), .done = go_on, .data = &diary};
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_ticket ticket;

    (void)state;
    assert_works(berth_claim_start(pool, NULL, &options, &ticket, &error), &error);
    await(atomic_load(&diary.calls) == 20001);
    assert_int_equal(diary.deepest, 1);
    berth_pool_close(pool);
}

/* Releases the device, which grants it to the next claim, and waits for the device again. The next
 * claim's callback releases the device, so it must run before this callback ends. */
static void release_then_claim(void *data, struct berth_ticket ticket, int code,
                               struct berth_lease lease)
{
    struct diary *diary = data;

    (void)ticket;
    berth_release(diary->pool, lease, NULL);
    diary->code = code < 0 ? code : berth_claim(diary->pool, NULL, TIMEOUT, &diary->lease, NULL);
    diary->calls++;
}

static void a_callback_may_wait(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_lease lease = claim_one(pool);
    struct diary diaries[2] = {{.pool = pool}, {.pool = pool}};
    const struct berth_claim_options options[2] = {
        {.size = sizeof(options[0]), .done = release_then_claim, .data = &diaries[0]},
        {.size = sizeof(options[0]), .done = pass_on, .data = &diaries[1]},
    };
    struct berth_ticket ticket;

    (void)state;
    assert_int_equal(berth_claim_start(pool, NULL, &options[0], &ticket, NULL), 0);
    assert_int_equal(berth_claim_start(pool, NULL, &options[1], &ticket, NULL), 0);
    release(pool, lease);
    await(atomic_load(&diaries[0].calls) == 1);
    await(atomic_load(&diaries[1].calls) == 1);
    assert_int_equal(diaries[0].code, 0);
    release(pool, diaries[0].lease);
    berth_pool_close(pool);
}

static void closing_runs_the_callbacks(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct diary diaries[3] = {{0}};
    struct berth_ticket ticket;

    (void)state;
    claim_one(pool);
    for (size_t i = 0; i < COUNT(diaries); i++) {
        const struct berth_claim_options options = noting(&diaries[i]);

        assert_int_equal(berth_claim_start(pool, NULL, &options, &ticket, NULL), 0);
    }
    berth_pool_close(pool);
    for (size_t i = 0; i < COUNT(diaries); i++) {
        await(atomic_load(&diaries[i].calls) == 1);
        assert_int_equal(diaries[i].code, BERTH_ERROR_CANCELLED);
    }
}

/* Claims again when the pool closes. */
static void persist(void *data, struct berth_ticket ticket, int code, struct berth_lease lease)
{
    struct diary *diary = data;

    (void)ticket;
    (void)lease;
    diary->code = code;
    diary->calls++;
    diary->claimed = berth_claim(diary->pool, NULL, BERTH_FOR_EVER, &diary->lease, NULL);
}

static void a_pool_that_closes_takes_no_claim(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct diary diary = {.pool = pool};
    const struct berth_claim_options options = {
        .size = sizeof(options), .done = persist, .data = &diary};
    struct berth_ticket ticket;

    (void)state;
    claim_one(pool);
    assert_int_equal(berth_claim_start(pool, NULL, &options, &ticket, NULL), 0);
    berth_pool_close(pool);
    await(atomic_load(&diary.calls) == 1);
    assert_int_equal(diary.code, BERTH_ERROR_CANCELLED);
    assert_int_equal(diary.claimed, BERTH_ERROR_CANCELLED);
}

static void an_outcome_is_collected_once(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_ticket ticket;
    struct berth_lease lease = {0};

    (void)state;
    assert_works(berth_claim_start(pool, NULL, NULL, &ticket, &error), &error);
    assert_works(berth_claim_wait(pool, ticket, 0, &lease, &error), &error);
    assert_int_equal(device_of(pool, lease).slot, 0);
    assert_int_equal(berth_claim_wait(pool, ticket, 0, &lease, &error), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(error.code, BERTH_ERROR_NOT_FOUND);
    assert_int_equal(berth_claim_wait(pool, (struct berth_ticket){.id = 1}, 0, &lease, NULL),
                     BERTH_ERROR_NOT_FOUND);
    berth_pool_close(pool);
}

static void waiting_for_an_outcome_may_end_early(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_lease lease = claim_one(pool);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_ticket ticket;
    struct berth_lease next = {.id = 7};

    (void)state;
    assert_works(berth_claim_start(pool, NULL, NULL, &ticket, &error), &error);
    assert_int_equal(berth_claim_wait(pool, ticket, 0, &next, &error), BERTH_ERROR_BUSY);
    assert_int_equal(berth_claim_wait(pool, ticket, MILLISECOND, &next, &error), BERTH_ERROR_BUSY);
    assert_int_equal(next.id, 7);
    assert_int_equal(berth_pool_pending(pool), 1);
    release(pool, lease);
    assert_works(berth_claim_wait(pool, ticket, MILLISECOND, &next, &error), &error);
    assert_int_equal(device_of(pool, next).slot, 0);
    berth_pool_close(pool);
}

static void cancelled_and_late_claims_keep_how_they_ended(void **state)
{
    struct berth_pool *pool = pool_of(1);
    const struct berth_claim_options brief = {.size = sizeof(brief), .timeout = MILLISECOND};
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_ticket cancelled;
    struct berth_ticket late;
    struct berth_lease lease;

    (void)state;
    claim_one(pool);
    assert_works(berth_claim_start(pool, NULL, NULL, &cancelled, &error), &error);
    assert_works(berth_claim_start(pool, NULL, &brief, &late, &error), &error);
    assert_works(berth_cancel(pool, cancelled, &error), &error);
    assert_fails(berth_claim_wait(pool, cancelled, 0, &lease, &error), BERTH_ERROR_CANCELLED,
                 &error, "the claim was cancelled");
    assert_int_equal(berth_claim_wait(pool, late, TIMEOUT, &lease, &error), BERTH_ERROR_TIMED_OUT);
    assert_int_equal(berth_claim_wait(pool, late, TIMEOUT, &lease, &error), BERTH_ERROR_NOT_FOUND);
    berth_pool_close(pool);
}

/* A thread that waits for the outcome of a ticket. */
struct collector {
    struct berth_pool *pool;
    struct berth_ticket ticket;
    pthread_t thread;
    atomic_bool began;
    int code;
    struct berth_lease lease;
};

static void *collect(void *argument)
{
    struct collector *collector = argument;

    atomic_store(&collector->began, true);
    collector->code = berth_claim_wait(collector->pool, collector->ticket, BERTH_FOR_EVER,
                                       &collector->lease, NULL);
    return NULL;
}

static void another_thread_may_cancel_what_is_waited_for(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct collector collector = {.pool = pool};

    (void)state;
    claim_one(pool);
    assert_int_equal(berth_claim_start(pool, NULL, NULL, &collector.ticket, NULL), 0);
    assert_int_equal(pthread_create(&collector.thread, NULL, collect, &collector), 0);
    await(atomic_load(&collector.began));
    assert_int_equal(berth_cancel(pool, collector.ticket, NULL), 0);
    join_thread(collector.thread);
    assert_int_equal(collector.code, BERTH_ERROR_CANCELLED);
    berth_pool_close(pool);
}

static void of_several_collectors_one_gets_the_outcome(void **state)
{
    enum { COLLECTORS = 4 };
    struct berth_pool *pool = pool_of(1);
    struct berth_lease lease = claim_one(pool);
    struct collector collectors[COLLECTORS];
    struct berth_ticket ticket;
    int granted = 0;

    (void)state;
    assert_int_equal(berth_claim_start(pool, NULL, NULL, &ticket, NULL), 0);
    for (size_t i = 0; i < COLLECTORS; i++) {
        collectors[i] = (struct collector){.pool = pool, .ticket = ticket};
        assert_int_equal(pthread_create(&collectors[i].thread, NULL, collect, &collectors[i]), 0);
        await(atomic_load(&collectors[i].began));
    }
    release(pool, lease);
    for (size_t i = 0; i < COLLECTORS; i++) {
        join_thread(collectors[i].thread);
        granted += collectors[i].code == 0;
        assert_true(collectors[i].code == 0 || collectors[i].code == BERTH_ERROR_NOT_FOUND);
    }
    assert_int_equal(granted, 1);
    berth_pool_close(pool);
}

static bool is_readable(int descriptor)
{
    struct pollfd poll_one = {.fd = descriptor, .events = POLLIN};

    return poll(&poll_one, 1, 0) == 1 && (poll_one.revents & POLLIN) != 0;
}

static void the_descriptor_is_readable_while_an_outcome_is_kept(void **state)
{
    struct berth_pool *pool = pool_of(2);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_ticket tickets[3];
    struct berth_ticket found;
    struct berth_lease lease;
    int descriptor;
    int code;

    (void)state;
    assert_works(berth_claim_start(pool, NULL, NULL, &tickets[0], &error), &error);
    descriptor = berth_pool_descriptor(pool, &error);
    assert_true(descriptor >= 0);
    assert_int_equal(berth_pool_descriptor(pool, &error), descriptor);
    assert_true(is_readable(descriptor));
    assert_works(berth_claim_start(pool, NULL, NULL, &tickets[1], &error), &error);
    assert_works(berth_claim_start(pool, NULL, NULL, &tickets[2], &error), &error);
    for (size_t i = 0; i < 2; i++) {
        assert_true(is_readable(descriptor));
        assert_works(berth_claim_next(pool, &found, &code, &lease, &error), &error);
        assert_int_equal(code, 0);
        assert_int_equal(found.id, tickets[i].id);
        assert_int_equal(device_of(pool, lease).slot, i);
    }
    assert_false(is_readable(descriptor));
    assert_int_equal(berth_claim_next(pool, &found, &code, &lease, &error), BERTH_ERROR_BUSY);
    release(pool, lease);
    assert_true(is_readable(descriptor));
    assert_works(berth_claim_wait(pool, tickets[2], 0, &lease, &error), &error);
    assert_false(is_readable(descriptor));
    berth_pool_close(pool);
}

static void polling_wakes_when_another_thread_releases(void **state)
{
    struct berth_pool *pool = pool_of(1);
    struct berth_lease lease = claim_one(pool);
    struct berth_ticket ticket;
    struct pollfd poll_one = {.fd = berth_pool_descriptor(pool, NULL), .events = POLLIN};
    struct claimer claimer = {.pool = pool, .timeout = BERTH_FOR_EVER};
    int code;

    (void)state;
    /* The thread's claim is first in the queue, so its release grants the claim of this test. */
    assert_int_equal(pthread_create(&claimer.thread, NULL, claimer_run, &claimer), 0);
    await(berth_pool_pending(pool) == 1);
    assert_int_equal(berth_claim_start(pool, NULL, NULL, &ticket, NULL), 0);
    release(pool, lease);
    release(pool, claimer_join(&claimer));
    assert_int_equal(poll(&poll_one, 1, -1), 1);
    assert_int_equal(berth_claim_next(pool, &ticket, &code, &lease, NULL), 0);
    assert_int_equal(code, 0);
    berth_pool_close(pool);
}

static void options_of_another_size_are_read_or_refused(void **state)
{
    struct larger {
        struct berth_claim_options known;
        long unknown;
    } larger = {.known = {.size = sizeof(larger)}};
    const struct berth_claim_options none = {.size = 0};
    const struct berth_claim_options old = {.size = offsetof(struct berth_claim_options, done)};
    struct berth_pool *pool = pool_of(3);
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_ticket ticket;

    (void)state;
    assert_works(berth_claim_start(pool, NULL, &larger.known, &ticket, &error), &error);
    assert_works(berth_claim_start(pool, NULL, &old, &ticket, &error), &error);
    larger.unknown = 1;
    assert_int_equal(berth_claim_start(pool, NULL, &larger.known, &ticket, &error),
                     BERTH_ERROR_INVALID);
    assert_int_equal(berth_claim_start(pool, NULL, &none, &ticket, &error), BERTH_ERROR_INVALID);
    berth_pool_close(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_free_device_is_told_before_start_returns),
        cmocka_unit_test(who_releases_runs_the_callback),
        cmocka_unit_test(cancelling_runs_the_callback),
        cmocka_unit_test(a_deadline_runs_the_callback),
        cmocka_unit_test(callbacks_that_release_do_not_pile_up),
        cmocka_unit_test(callbacks_that_claim_do_not_pile_up),
        cmocka_unit_test(a_callback_may_wait),
        cmocka_unit_test(closing_runs_the_callbacks),
        cmocka_unit_test(a_pool_that_closes_takes_no_claim),
        cmocka_unit_test(an_outcome_is_collected_once),
        cmocka_unit_test(waiting_for_an_outcome_may_end_early),
        cmocka_unit_test(cancelled_and_late_claims_keep_how_they_ended),
        cmocka_unit_test(another_thread_may_cancel_what_is_waited_for),
        cmocka_unit_test(of_several_collectors_one_gets_the_outcome),
        cmocka_unit_test(the_descriptor_is_readable_while_an_outcome_is_kept),
        cmocka_unit_test(polling_wakes_when_another_thread_releases),
        cmocka_unit_test(options_of_another_size_are_read_or_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
