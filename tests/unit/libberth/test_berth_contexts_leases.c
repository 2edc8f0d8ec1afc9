/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts that belong to leases, and concurrent threads.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/assert_error.h"
#include "support/failing_allocator.h"
#include "support/hardware/cuda_pool.h"

static struct berth_lease claim(struct cuda_pool *world, const char *gpus)
{
    struct berth_request *request;
    struct berth_lease lease;

    assert_works(berth_request_create(&request, &world->error), &world->error);
    assert_works(berth_request_set(request, "gpus", gpus, &world->error), &world->error);
    assert_works(berth_claim(world->pool, request, TIMEOUT, &lease, &world->error), &world->error);
    berth_request_destroy(request);
    return lease;
}

static struct berth_context_set contexts_of(struct cuda_pool *world, struct berth_lease lease)
{
    struct berth_context_set set;

    assert_works(berth_contexts_of_lease(world->pool, lease, NULL, &set, &world->error),
                 &world->error);
    return set;
}

/* ---- A lease and its contexts ---- */

static void a_lease_has_contexts_on_its_devices_alone(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_lease first = claim(world, "1");
    struct berth_lease lease = claim(world, "2");
    struct berth_context_set set = contexts_of(world, lease);

    assert_int_equal(berth_contexts_count(world->pool, set, NULL), 2);
    assert_int_equal(cuda_pool_info(world, cuda_pool_at(world, set, 0)).slot, 1);
    assert_int_equal(cuda_pool_info(world, cuda_pool_at(world, set, 1)).slot, 2);
    assert_false(world->cuda.counts(0).is_active);
    /* A second call gets the same contexts, and another lease gets others. */
    assert_int_equal(contexts_of(world, lease).id, set.id);
    assert_int_not_equal(contexts_of(world, first).id, set.id);
    assert_int_equal(world->cuda.counts(1).references, 1);
    assert_true(world->cuda.counts(0).is_active);
}

static void contexts_end_with_their_lease(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_lease lease = claim(world, "all");
    struct berth_context_set set = contexts_of(world, lease);
    struct berth_context context = cuda_pool_at(world, set, 0);

    assert_works(berth_release(world->pool, lease, &world->error), &world->error);
    assert_all_given_back(world);
    assert_int_equal(berth_contexts_count(world->pool, set, NULL), BERTH_ERROR_NOT_FOUND);
    assert_fails(berth_context_make_current(world->pool, context, &world->error),
                 BERTH_ERROR_NOT_FOUND, &world->error,
                 "set 1 of contexts was released, or ended with its lease");
    assert_int_equal(berth_contexts_of_lease(world->pool, lease, NULL, &set, &world->error),
                     BERTH_ERROR_NOT_FOUND);
    assert_int_equal(berth_release(world->pool, lease, NULL), BERTH_ERROR_NOT_FOUND);
}

static void contexts_may_end_before_their_lease(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_lease lease = claim(world, "1");
    struct berth_context_set set = contexts_of(world, lease);
    struct berth_context_set again;

    assert_works(berth_contexts_release(world->pool, set, &world->error), &world->error);
    assert_all_given_back(world);
    again = contexts_of(world, lease);
    assert_int_not_equal(again.id, set.id);
    assert_works(berth_release(world->pool, lease, &world->error), &world->error);
    assert_all_given_back(world);
}

static void a_lease_that_is_not_held_has_none(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_pool *other = pool_of(1);
    struct berth_context_set set;
    struct berth_lease lease;

    assert_works(berth_claim(other, NULL, 0, &lease, &world->error), &world->error);
    assert_int_equal(berth_contexts_of_lease(world->pool, lease, NULL, &set, NULL),
                     BERTH_ERROR_NOT_FOUND);
    assert_int_equal(
        berth_contexts_of_lease(world->pool, (struct berth_lease){0}, NULL, &set, NULL),
        BERTH_ERROR_NOT_FOUND);
    berth_pool_close(other);
}

static void what_could_not_be_made_leaves_the_lease_as_it_is(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_lease lease = claim(world, "2");
    struct berth_context_set set;

    world->cuda.refuse("cuDevicePrimaryCtxRetain", 1, 2, 1);
    assert_int_equal(berth_contexts_of_lease(world->pool, lease, NULL, &set, NULL),
                     BERTH_ERROR_BUSY);
    assert_all_given_back(world);
    contexts_of(world, lease);
    assert_works(berth_release(world->pool, lease, &world->error), &world->error);
    assert_all_given_back(world);
}

/* ---- The next holder ---- */

/* A thread that claims all devices and then checks which contexts are still on them. */
struct next_holder {
    struct cuda_pool *world;
    bool found_contexts;
};

static void *claim_all(void *data)
{
    struct next_holder *holder = data;
    struct berth_lease lease = claim(holder->world, "all");

    for (int unit = 0; unit < CUDA_POOL_SLOTS; unit++)
        holder->found_contexts |= holder->world->cuda.counts(unit).is_active;
    berth_release(holder->world->pool, lease, NULL);
    return NULL;
}

static void devices_are_given_on_without_contexts(void **state)
{
    struct cuda_pool *world = *state;
    struct next_holder holder = {.world = world};
    struct berth_lease lease = claim(world, "all");
    pthread_t thread;

    contexts_of(world, lease);
    pthread_create(&thread, NULL, claim_all, &holder);
    await(berth_pool_pending(world->pool) == 1);
    assert_works(berth_release(world->pool, lease, &world->error), &world->error);
    pthread_join(thread, NULL);
    assert_false(holder.found_contexts);
}

/* ---- Concurrent threads ---- */

struct releaser {
    struct cuda_pool *world;
    struct berth_lease lease;
    struct berth_context_set set;
    atomic_int code;
};

static void *release_lease(void *data)
{
    struct releaser *releaser = data;

    atomic_store(&releaser->code, berth_release(releaser->world->pool, releaser->lease, NULL));
    return NULL;
}

static void *ask_for_contexts(void *data)
{
    struct releaser *releaser = data;

    atomic_store(&releaser->code, berth_contexts_of_lease(releaser->world->pool, releaser->lease,
                                                          NULL, &releaser->set, NULL));
    return NULL;
}

/* A release during the creation of contexts waits for them, and destroys them. */
static void a_lease_is_released_while_its_contexts_are_made(void **state)
{
    struct cuda_pool *world = *state;
    struct releaser asker = {.world = world, .lease = claim(world, "1"), .code = 1};
    struct releaser releaser = {.world = world, .lease = asker.lease, .code = 1};
    pthread_t threads[2];

    world->cuda.hold("cuDevicePrimaryCtxRetain", 0);
    pthread_create(&threads[0], NULL, ask_for_contexts, &asker);
    (world->cuda.await)(1);
    pthread_create(&threads[1], NULL, release_lease, &releaser);
    /* No other claim gets the device before that. */
    assert_int_equal(berth_pool_pending(world->pool), 0);
    assert_int_equal(atomic_load(&releaser.code), 1);
    world->cuda.let_go();
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert_int_equal(atomic_load(&releaser.code), 0);
    /* The contexts were made just before the lease ended, or the call failed. */
    assert_true(atomic_load(&asker.code) == 0 || atomic_load(&asker.code) == BERTH_ERROR_NOT_FOUND);
    assert_all_given_back(world);
}

static void two_threads_ask_for_the_contexts_of_one_lease(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_lease lease = claim(world, "1");
    struct releaser askers[2] = {{.world = world, .lease = lease},
                                 {.world = world, .lease = lease}};
    pthread_t threads[2];

    world->cuda.hold("cuDevicePrimaryCtxRetain", 0);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, ask_for_contexts, &askers[i]);
    (world->cuda.await)(1);
    world->cuda.let_go();
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(askers[0].set.id, askers[1].set.id);
    assert_int_equal(world->cuda.counts(0).retains, 1);
}

enum { THREADS = 8, ROUNDS = 400 };

struct crowd {
    struct cuda_pool *world;
    struct berth_context_set set;
    atomic_uint turns[CUDA_POOL_SLOTS];
    atomic_uint rebuilt;
    atomic_uint wrong;
};

/* Takes turns, breaks a device from time to time, and rebuilds lost contexts. */
static void *use_contexts(void *data)
{
    struct crowd *crowd = data;
    struct berth_pool *pool = crowd->world->pool;

    for (int i = 0; i < ROUNDS; i++) {
        struct berth_context context, fresh;
        enum berth_fault fault;
        int code = berth_contexts_next(pool, crowd->set, &context, NULL);

        if (code == 0) {
            atomic_fetch_add(&crowd->turns[context.position], 1);
            code = berth_context_make_current(pool, context, NULL);
        }
        if (code == 0 && i % 50 == 49)
            code = berth_context_report(pool, context, 700, &fault, NULL);
        for (size_t position = 0; position < CUDA_POOL_SLOTS; position++) {
            struct berth_context_info info = {.size = sizeof(info)};

            if (berth_contexts_at(pool, crowd->set, position, &context, NULL) == 0 &&
                berth_context_info(pool, context, &info, NULL) == 0 &&
                info.fault == BERTH_FAULT_REBUILD &&
                berth_context_rebuild(pool, context, &fresh, NULL) == 0)
                atomic_fetch_add(&crowd->rebuilt, 1);
        }
        if (code < 0 && code != BERTH_ERROR_LOST && code != BERTH_ERROR_STALE)
            atomic_fetch_add(&crowd->wrong, 1);
    }
    return NULL;
}

static void many_threads_use_break_and_rebuild(void **state)
{
    struct cuda_pool *world = *state;
    struct crowd crowd = {.world = world, .set = cuda_pool_set(world)};
    pthread_t threads[THREADS];
    uint32_t generations = 0;

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, use_contexts, &crowd);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&crowd.wrong), 0);
    assert_true(atomic_load(&crowd.rebuilt) > 0);
    for (size_t i = 0; i < CUDA_POOL_SLOTS; i++)
        generations += cuda_pool_at(world, crowd.set, i).generation - 1;
    assert_int_equal(generations, atomic_load(&crowd.rebuilt));
    assert_works(berth_contexts_release(world->pool, crowd.set, &world->error), &world->error);
    assert_all_given_back(world);
}

static void *take_turns(void *data)
{
    struct crowd *crowd = data;

    for (int i = 0; i < ROUNDS * CUDA_POOL_SLOTS; i++) {
        struct berth_context context;

        if (berth_contexts_next(crowd->world->pool, crowd->set, &context, NULL) == 0)
            atomic_fetch_add(&crowd->turns[context.position], 1);
    }
    return NULL;
}

static void turns_are_even_over_threads(void **state)
{
    struct cuda_pool *world = *state;
    struct crowd crowd = {.world = world, .set = cuda_pool_set(world)};
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, take_turns, &crowd);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < CUDA_POOL_SLOTS; i++)
        assert_int_equal(atomic_load(&crowd.turns[i]), THREADS * ROUNDS);
}

/* ---- No memory ---- */

struct poor {
    struct cuda_pool *world;
    struct berth_lease lease;
};

/* All calls that create and describe sets. */
static int make_and_end(void *data)
{
    const struct poor *poor = data;
    struct berth_pool *pool = poor->world->pool;
    struct berth_context_set sets[2] = {{0}};
    char line[128];
    int code = berth_contexts_create(pool, NULL, &sets[0], NULL);

    if (code == 0)
        code = berth_contexts_of_lease(pool, poor->lease, NULL, &sets[1], NULL);
    if (code == 0)
        code = berth_contexts_describe(pool, sets[1], line, sizeof(line), NULL);
    for (size_t i = 0; i < 2; i++) {
        if (sets[i].id != 0)
            assert_int_equal(berth_contexts_release(pool, sets[i], NULL), 0);
    }
    assert_all_given_back(poor->world);
    return code > 0 ? 0 : code;
}

static void memory_that_runs_out_is_said(void **state)
{
    struct cuda_pool *world = *state;
    struct poor poor = {.world = world, .lease = claim(world, "2")};

    assert_true(failing_allocator_try_all(make_and_end, &poor) >= 4);
}

/* A driver does not work in a child process. */
static void a_child_is_refused(void **state)
{
    struct cuda_pool *world = *state;
    struct berth_context_set set = cuda_pool_set(world);
    struct berth_context context = cuda_pool_at(world, set, 0);
    pid_t child = fork();
    int status;

    if (child == 0) {
        struct berth_context_set other;
        int wrong = berth_contexts_create(world->pool, NULL, &other, NULL) != BERTH_ERROR_FORKED;

        wrong += berth_contexts_count(world->pool, set, NULL) != BERTH_ERROR_FORKED;
        wrong += berth_context_make_current(world->pool, context, NULL) != BERTH_ERROR_FORKED;
        wrong += berth_context_current(world->pool, &context, NULL) != BERTH_ERROR_FORKED;
        wrong += berth_contexts_release(world->pool, set, NULL) != BERTH_ERROR_FORKED;
        _exit(wrong);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_works(berth_context_make_current(world->pool, context, &world->error), &world->error);
}

#define leases_test(function) \
    cmocka_unit_test_setup_teardown(function, cuda_pool_enter, cuda_pool_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        leases_test(a_lease_has_contexts_on_its_devices_alone),
        leases_test(contexts_end_with_their_lease),
        leases_test(contexts_may_end_before_their_lease),
        leases_test(a_lease_that_is_not_held_has_none),
        leases_test(what_could_not_be_made_leaves_the_lease_as_it_is),
        leases_test(devices_are_given_on_without_contexts),
        leases_test(a_lease_is_released_while_its_contexts_are_made),
        leases_test(two_threads_ask_for_the_contexts_of_one_lease),
        leases_test(many_threads_use_break_and_rebuild),
        leases_test(turns_are_even_over_threads),
        leases_test(memory_that_runs_out_is_said),
        leases_test(a_child_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
