/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "hardware/amd/patient.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/system/clock.h"
#include "base/system/process_stat.h"
#include "base/text/quantity.h"
#include "support/failing_allocator.h"

#define MILLISECOND (DURATION_SECOND / 1000)

/* Pieces from here on hang until the gate opens. */
enum { HANGING = 100 };

/* One for each test, as threads may be in it longer than the test. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool is_open;
};

static struct gate gates[8];
static atomic_int finished;

static void wait_at(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    while (!gate->is_open)
        pthread_cond_wait(&gate->opened, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void open_gate(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->is_open = true;
    pthread_cond_broadcast(&gate->opened);
    pthread_mutex_unlock(&gate->lock);
}

/* What a look at a thread opens first, if anything, and waits for: that the thread has left its
 * piece, and waits for the lock that is held by who looks. */
static struct gate *opened_by_look;
static atomic_bool has_left;

const char *__real_process_stat_fields(pid_t pid, char *buffer, size_t size);
const char *__wrap_process_stat_fields(pid_t pid, char *buffer, size_t size);

const char *__wrap_process_stat_fields(pid_t pid, char *buffer, size_t size)
{
    int64_t until = clock_now() + 20 * DURATION_SECOND;
    const char *fields = __real_process_stat_fields(pid, buffer, size);

    if (opened_by_look == NULL || fields == NULL)
        return fields;
    open_gate(opened_by_look);
    while (!has_left || process_stat_state(fields) != 'S') {
        assert_true(clock_now() < until);
        fields = __real_process_stat_fields(pid, buffer, size);
        assert_non_null(fields);
    }
    opened_by_look = NULL;
    return fields;
}

static void square(const void *shared, uint64_t piece, void *result)
{
    struct gate *const *gate = shared;

    if (piece >= HANGING)
        wait_at(*gate);
    *(uint64_t *)result = piece * piece;
    has_left = true;
}

static void count_finished(void *shared)
{
    free(shared);
    finished++;
}

static const struct abandonable_reads_work squares = {
    .run = square,
    .finish = count_finished,
    .result_size = sizeof(uint64_t),
};

static int run(struct abandonable_reads *reads, struct gate *gate, const uint64_t *pieces,
               size_t count, uint64_t *results, bool *done)
{
    struct gate **shared = malloc(sizeof(*shared));

    if (shared == NULL)
        return BERTH_ERROR_MEMORY;
    *shared = gate;
    return abandonable_reads_run(reads, &squares, shared, pieces, count, 20 * MILLISECOND, results,
                                 done, NULL);
}

static struct gate *fresh_gate(void)
{
    static size_t used;
    struct gate *gate = &gates[used++];

    assert_true(used <= COUNT(gates));
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->opened, NULL);
    return gate;
}

/* Threads that were left behind end in their own time. */
static void wait_until_finished(int wanted)
{
    int64_t until = clock_now() + 20 * DURATION_SECOND;

    while (finished < wanted) {
        assert_true(clock_now() < until);
        sched_yield();
    }
}

static void all_pieces_are_done(void **state)
{
    static const uint64_t pieces[] = {3, 1, 99};
    struct gate *gate = fresh_gate();
    uint64_t results[COUNT(pieces)];
    bool done[COUNT(pieces)];
    struct abandonable_reads *reads;
    int before = finished;

    (void)state;
    assert_int_equal(abandonable_reads_create(&reads, NULL), 0);
    assert_int_equal(run(reads, gate, pieces, COUNT(pieces), results, done), 0);
    for (size_t i = 0; i < COUNT(pieces); i++)
        assert_true(done[i] && results[i] == pieces[i] * pieces[i]);
    assert_int_equal(run(reads, gate, NULL, 0, NULL, NULL), 0);
    wait_until_finished(before + 2);
    abandonable_reads_destroy(reads);
}

static void what_hangs_costs_itself(void **state)
{
    static const uint64_t pieces[] = {100, 2, 101, 3, 102};
    struct gate *gate = fresh_gate();
    uint64_t results[COUNT(pieces)];
    bool done[COUNT(pieces)];
    struct abandonable_reads *reads;
    int before = finished;
    int runs = 0;
    int64_t start;

    (void)state;
    assert_int_equal(abandonable_reads_create(&reads, NULL), 0);
    for (; runs < 10; runs++) {
        start = clock_now();
        memset(results, 0xff, sizeof(results));
        assert_int_equal(run(reads, gate, pieces, COUNT(pieces), results, done), 0);
        for (size_t i = 0; i < COUNT(pieces); i++) {
            assert_int_equal(done[i], pieces[i] < HANGING);
            assert_int_equal(results[i], done[i] ? pieces[i] * pieces[i] : 0);
        }
        if (runs == 0)
            assert_true(clock_now() - start >= 3 * 20 * MILLISECOND);
    }
    open_gate(gate);
    /* When the threads have come back, all can be had. */
    start = clock_now();
    do {
        assert_true(clock_now() - start < 20 * DURATION_SECOND);
        assert_int_equal(run(reads, gate, pieces, COUNT(pieces), results, done), 0);
        runs++;
    } while (!done[0] || !done[2] || !done[4]);
    for (size_t i = 0; i < COUNT(pieces); i++)
        assert_true(done[i] && results[i] == pieces[i] * pieces[i]);
    abandonable_reads_destroy(reads);
    wait_until_finished(before + runs);
}

static void what_is_back_while_it_is_looked_at_does_not_hang(void **state)
{
    static const uint64_t pieces[] = {100, 2};
    struct gate *gate = fresh_gate();
    uint64_t results[COUNT(pieces)];
    bool done[COUNT(pieces)];
    struct abandonable_reads *reads;
    int before = finished;

    (void)state;
    assert_int_equal(abandonable_reads_create(&reads, NULL), 0);
    has_left = false;
    opened_by_look = gate;
    assert_int_equal(run(reads, gate, pieces, COUNT(pieces), results, done), 0);
    assert_null(opened_by_look);
    for (size_t i = 0; i < COUNT(pieces); i++)
        assert_true(done[i] && results[i] == pieces[i] * pieces[i]);
    wait_until_finished(before + 1);
    abandonable_reads_destroy(reads);
}

static void threads_may_outlive_it(void **state)
{
    static const uint64_t pieces[] = {1, 100};
    struct gate *gate = fresh_gate();
    uint64_t results[COUNT(pieces)];
    bool done[COUNT(pieces)];
    struct abandonable_reads *reads;
    int before = finished;

    (void)state;
    assert_int_equal(abandonable_reads_create(&reads, NULL), 0);
    assert_int_equal(run(reads, gate, pieces, COUNT(pieces), results, done), 0);
    assert_true(done[0] && !done[1]);
    abandonable_reads_destroy(reads);
    assert_int_equal(finished, before);
    open_gate(gate);
    wait_until_finished(before + 1);
    abandonable_reads_destroy(NULL);
}

static void when_all_hang_it_is_an_error(void **state)
{
    struct gate *gate = fresh_gate();
    uint64_t pieces[ABANDONABLE_READS_HANGING_MAX + 1];
    uint64_t results[COUNT(pieces)];
    bool done[COUNT(pieces)];
    struct abandonable_reads *reads;
    int before = finished;

    (void)state;
    for (size_t i = 0; i < COUNT(pieces); i++)
        pieces[i] = HANGING + i;
    assert_int_equal(abandonable_reads_create(&reads, NULL), 0);
    assert_int_equal(run(reads, gate, pieces, COUNT(pieces), results, done), BERTH_ERROR_IO);
    open_gate(gate);
    abandonable_reads_destroy(reads);
    wait_until_finished(before + 1);
}

static int run_once(void *context)
{
    static const uint64_t pieces[] = {1, 2};
    uint64_t results[COUNT(pieces)];
    bool done[COUNT(pieces)];
    struct abandonable_reads *reads;
    int code = abandonable_reads_create(&reads, NULL);

    if (code == 0) {
        code = run(reads, context, pieces, COUNT(pieces), results, done);
        abandonable_reads_destroy(reads);
    }
    return code;
}

static void failed_allocations_are_said(void **state)
{
    (void)state;
    assert_true(failing_allocator_try_all(run_once, fresh_gate()) >= 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_pieces_are_done),
        cmocka_unit_test(what_hangs_costs_itself),
        cmocka_unit_test(what_is_back_while_it_is_looked_at_does_not_hang),
        cmocka_unit_test(threads_may_outlive_it),
        cmocka_unit_test(when_all_hang_it_is_an_error),
        cmocka_unit_test(failed_allocations_are_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
