/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool of readers with a scripted reader: this program itself, under the reader's name. The id
 * of a request's lease says how the reader answers.
 */
#include "support/unit.h"

#include "daemon/processes/reader_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "reader/reader.h"
#include "support/programs/scripted_reader.h"

enum behaviour {
    ANSWER = 1, /* with the exit code 7 */
    STALL,      /* in an access to holder_pid, unless it is known to stall */
    STALL_ONCE, /* the same, but only if the file `socket` does not exist */
    SLOW,       /* but with progress, for a few times as long as a stall */
    BUSY,       /* stays in one access as long, but is not suspended */
    DRAG,       /* for seconds, each access keeps it for less than a stall */
    LONG,       /* quickly makes many accesses, then waits a moment */
    STOP_ONCE,  /* is stopped in an access, but only if the file `socket` does not exist */
    DIE,
    GREET,  /* introduces itself again */
    BABBLE, /* sends a page without processes before the last one */
};

/* ---- The reader ---- */

static void touch(_Atomic uint64_t *progress, uint32_t pid, uint32_t count)
{
    atomic_store(progress, (uint64_t)count << 32 | pid);
}

static bool is_listed(const struct reader_numbers *list, uint32_t number)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] == number)
            return true;
    }
    return false;
}

static void stall(_Atomic uint64_t *progress, uint32_t pid)
{
    touch(progress, pid, 1);
    for (;;)
        pause();
}

static void spin(int64_t time)
{
    int64_t end = clock_now() + time;

    while (clock_now() < end) {
    }
}

static bool is_first_time(const char *path)
{
    int file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

    if (file >= 0)
        close(file);
    return file >= 0;
}

static void behave(const struct reader_request *request, _Atomic uint64_t *progress)
{
    struct reader_process found = {.pid = request->holder_pid, .state = READER_STALLED};
    struct reader_answer answer = {.number = request->number, .exit_code = optional_number_of(7)};

    switch (request->leases.items[0].id) {
    case STALL:
        if (!is_listed(&request->stalled, request->holder_pid))
            stall(progress, request->holder_pid);
        answer.processes.items = &found;
        answer.processes.count = 1;
        break;
    case STALL_ONCE:
        if (is_first_time(request->socket))
            stall(progress, request->holder_pid);
        break;
    case SLOW:
        for (uint32_t i = 1; i <= 40; i++) {
            touch(progress, request->holder_pid, i);
            usleep(2000);
        }
        touch(progress, 0, 0);
        break;
    case BUSY:
        touch(progress, request->holder_pid, 1);
        spin(8 * READER_POOL_STALL);
        touch(progress, 0, 0);
        break;
    case DRAG:
        for (uint32_t i = 1; i <= 600; i++) {
            touch(progress, request->holder_pid, i);
            usleep(5000);
        }
        touch(progress, 0, 0);
        break;
    case LONG:
        for (uint32_t i = 0; i <= READER_POOL_LONG; i++)
            touch(progress, 0, (uint32_t)(atomic_load(progress) >> 32) + 1);
        usleep(20 * 1000);
        break;
    case STOP_ONCE:
        if (is_first_time(request->socket)) {
            touch(progress, request->holder_pid, 1);
            raise(SIGSTOP);
        }
        break;
    case DIE:
        _exit(0);
    case GREET:
        answer.number = 0;
        scripted_reader_answer(&answer, NULL, 0);
        answer.number = request->number;
        break;
    case BABBLE:
        answer.more = true;
        scripted_reader_answer(&answer, NULL, 0);
        answer.more = false;
        break;
    default:
        break;
    }
    scripted_reader_answer(&answer, NULL, 0);
}

static int run_as_reader(void)
{
    static unsigned char packet[READER_PACKET_MAX];
    _Atomic uint64_t *progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED, STDOUT_FILENO, 0);
    ssize_t length;

    if (progress == MAP_FAILED)
        return 1;
    scripted_reader_say_hello();
    while ((length = recv(STDIN_FILENO, packet, sizeof(packet), 0)) > 0) {
        struct reader_request request;

        if (reader_request_decode(packet, (size_t)length, &request, NULL) < 0)
            return 1;
        behave(&request, progress);
        reader_request_finish(&request);
    }
    return 0;
}

/* ---- The test's side ---- */

enum { ANSWERS_MAX = 128 };

struct given_answer {
    struct world *world;
    bool is_there;
    bool is_null;
    bool is_stalled; /* it names a stalled process */
    size_t order;    /* it was this answer, from 1 */
};

struct world {
    struct loop loop;
    struct reader_pool *pool;
    uint32_t (*find_account)(void *context, uint32_t uid);
    struct timer timeout;
    bool is_late;
    size_t count; /* of answers */
    size_t wanted;
    struct given_answer answers[ANSWERS_MAX];
    size_t slowed; /* events */
    size_t stalled;
    size_t failures;  /* likewise */
    size_t successes; /* after failures */
};

static void end_if_done(struct world *world)
{
    if (world->count >= world->wanted)
        world->loop.ended = true;
}

static void take_answer(void *context, struct reader_answer *answer)
{
    struct given_answer *given = context;

    assert_false(given->is_there);
    given->is_there = true;
    given->is_null = answer == NULL;
    given->is_stalled = answer != NULL && answer->processes.count > 0 &&
                        answer->processes.items[0].state == READER_STALLED;
    given->order = ++given->world->count;
    if (answer != NULL)
        assert_true(answer->exit_code.known && answer->exit_code.value == 7);
    end_if_done(given->world);
}

static void count_stalled(void *context, const struct stalled_process *process)
{
    struct world *world = context;

    assert_true(process->pid > 0);
    world->stalled++;
}

static uint32_t find_account(void *context, uint32_t uid)
{
    const struct world *world = context;

    /* By default, the processes are those of the user that asks. */
    return world->find_account == NULL ? 1 : world->find_account(context, uid);
}

static void count_slowed(void *context)
{
    struct world *world = context;

    world->slowed++;
}

static void count_failed(void *context, const char *reason)
{
    struct world *world = context;

    if (reason != NULL)
        world->failures++;
    else
        world->successes++;
}

static void do_nothing(void *context)
{
    (void)context;
}

static void is_too_late(struct timer *timer)
{
    struct world *world = container_of(timer, struct world, timeout);

    world->is_late = true;
    world->loop.ended = true;
}

/* Runs the loop until so many answers have come. */
static void run_until(struct world *world, size_t wanted)
{
    const struct loop_turn turn = {do_nothing, do_nothing, world};

    world->wanted = wanted;
    world->loop.ended = false;
    world->timeout.fire = is_too_late;
    loop_set_timer(&world->loop, &world->timeout, loop_now(&world->loop) + 20 * DURATION_SECOND);
    if (world->count < wanted)
        loop_run(&world->loop, &turn);
    assert_false(world->is_late);
    loop_set_timer(&world->loop, &world->timeout, LOOP_NEVER);
}

static struct reader_query *ask(struct world *world, struct given_answer *given, uint32_t uid,
                                enum behaviour behaviour, pid_t pid, const char *path)
{
    struct reader_request request = {
        .question = READER_LEFTOVERS,
        .uid = uid,
        .holder_pid = (uint32_t)pid,
        .socket = path == NULL ? NULL : strdup(path),
    };
    struct reader_lease *lease = vector_append(&request.leases);
    struct reader_query *query;

    assert_non_null(lease);
    lease->id = behaviour;
    given->world = world;
    query = reader_pool_ask(world->pool, uid, &request, take_answer, given);
    assert_non_null(query);
    return query;
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    char self[PATH_MAX] = {0};

    assert_non_null(world);
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    assert_int_equal(setenv("BERTH_READER", self, 1), 0);
    assert_int_equal(loop_init(&world->loop, NULL), 0);
    assert_int_equal(reader_pool_create(&world->loop,
                                        &(struct reader_pool_events){
                                            .slowed = count_slowed,
                                            .find_account = find_account,
                                            .stalled = count_stalled,
                                            .failed = count_failed,
                                            .context = world,
                                        },
                                        &world->pool, NULL),
                     0);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    reader_pool_destroy(world->pool);
    loop_finish(&world->loop);
    free(world);
    return 0;
}

static pid_t start_child(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    return pid;
}

static void end_child(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

struct stalled_search {
    pid_t pid;
    bool is_found;
};

static void compare_stalled(void *context, const struct stalled_process *process)
{
    struct stalled_search *search = context;

    search->is_found = search->is_found || process->pid == search->pid;
}

/* Returns whether the process counts as stalled. */
static bool is_stalled(const struct reader_pool *pool, pid_t pid)
{
    struct stalled_search search = {.pid = pid};

    reader_pool_each_stalled(pool, compare_stalled, &search);
    return search.is_found;
}

static void users_take_turns(void **state)
{
    struct world *world = *state;
    struct given_answer *answers = world->answers;

    /* Both readers are busy with slow requests while the others come. */
    ask(world, &answers[0], 1, SLOW, 0, NULL);
    ask(world, &answers[1], 2, SLOW, 0, NULL);
    for (size_t i = 2; i < 6; i++)
        ask(world, &answers[i], 1, ANSWER, 0, NULL);
    ask(world, &answers[6], 3, ANSWER, 0, NULL);
    run_until(world, 7);
    assert_true(answers[6].order <= 4);
    for (size_t i = 3; i < 6; i++)
        assert_true(answers[i].order > answers[i - 1].order);
    assert_int_equal(world->stalled, 0);
}

static void a_process_that_stalls_two_readers_is_remembered(void **state)
{
    struct world *world = *state;
    pid_t child = start_child();
    struct given_answer *answers = world->answers;

    ask(world, &answers[0], 1, STALL, child, NULL);
    run_until(world, 1);
    assert_true(answers[0].is_stalled);
    assert_int_equal(world->stalled, 1);
    assert_int_equal(world->slowed, 2);
    assert_true(reader_pool_is_slow(world->pool, 1) && !reader_pool_is_slow(world->pool, 2));
    assert_true(is_stalled(world->pool, child));
    assert_false(is_stalled(world->pool, getpid()));
    /* It is not touched again, by anybody. */
    ask(world, &answers[1], 1, STALL, child, NULL);
    ask(world, &answers[2], 2, STALL, child, NULL);
    run_until(world, 3);
    assert_true(answers[1].is_stalled && answers[2].is_stalled);
    assert_int_equal(world->stalled, 1);
    /* Until it has ended. */
    end_child(child);
    ask(world, &answers[3], 2, ANSWER, 0, NULL);
    run_until(world, 4);
    assert_false(is_stalled(world->pool, child));
}

static uint32_t count_for_7(void *context, uint32_t uid)
{
    (void)context;
    assert_int_equal(uid, geteuid());
    return 7;
}

static void check_account(void *context, const struct stalled_process *process)
{
    assert_int_equal(process->account, 7);
    ++*(int *)context;
}

static void a_stalled_process_counts_for_its_owner(void **state)
{
    struct world *world = *state;
    int count = 0;

    world->find_account = count_for_7;
    ask(world, &world->answers[0], 1, STALL, getpid(), NULL);
    run_until(world, 1);
    reader_pool_each_stalled(world->pool, check_account, &count);
    assert_int_equal(count, 1);
}

static void a_reader_that_was_only_slow_blames_no_process(void **state)
{
    struct world *world = *state;
    char path[] = "/tmp/berth-reader-pool-XXXXXX";
    int file = mkstemp(path);

    assert_true(file >= 0);
    close(file);
    unlink(path);
    ask(world, &world->answers[0], 1, STALL_ONCE, getpid(), path);
    run_until(world, 1);
    assert_false(world->answers[0].is_null);
    assert_int_equal(world->stalled, 0);
    unlink(path);
}

/* No process keeps it, but the request takes long. */
static void a_reader_that_works_is_kept(void **state)
{
    struct world *world = *state;

    ask(world, &world->answers[0], 1, BUSY, getpid(), NULL);
    run_until(world, 1);
    assert_false(world->answers[0].is_null);
    assert_int_equal(world->stalled, 0);
    assert_int_equal(world->failures, 0);
    assert_true(reader_pool_is_slow(world->pool, 1));
    assert_true(reader_pool_waited(world->pool) >= READER_POOL_SLOW);
}

static void a_reader_that_was_stopped_is_replaced(void **state)
{
    struct world *world = *state;
    char path[] = "/tmp/berth-reader-pool-XXXXXX";
    int file = mkstemp(path);

    assert_true(file >= 0);
    close(file);
    unlink(path);
    ask(world, &world->answers[0], 1, STOP_ONCE, getpid(), path);
    run_until(world, 1);
    assert_false(world->answers[0].is_null);
    assert_int_equal(world->stalled, 0);
    assert_false(reader_pool_is_slow(world->pool, 1));
    unlink(path);
}

/* Two users whose requests are long do not take both readers. */
static void long_requests_leave_a_reader_for_others(void **state)
{
    struct world *world = *state;
    struct given_answer *answers = world->answers;

    ask(world, &answers[0], 1, LONG, 0, NULL);
    ask(world, &answers[1], 2, LONG, 0, NULL);
    run_until(world, 2);
    assert_true(reader_pool_is_slow(world->pool, 1) && reader_pool_is_slow(world->pool, 2));
    for (size_t i = 2; i < 10; i++)
        ask(world, &answers[i], 1 + i % 2, LONG, 0, NULL);
    for (size_t i = 10; i < 14; i++)
        ask(world, &answers[i], 3, ANSWER, 0, NULL);
    run_until(world, 14);
    for (size_t i = 10; i < 14; i++)
        assert_true(answers[i].order <= 2 + 4 + 3);
    assert_int_equal(world->stalled, 0);
}

/* Users whose processes keep the readers, each for too short a time to be a stall. */
static void slow_requests_do_not_keep_all_readers(void **state)
{
    struct world *world = *state;
    struct given_answer *answers = world->answers;

    ask(world, &answers[0], 1, DRAG, getpid(), NULL);
    ask(world, &answers[1], 2, DRAG, getpid(), NULL);
    for (size_t i = 2; i < 12; i++) {
        ask(world, &answers[i], 3, ANSWER, 0, NULL);
        run_until(world, i - 1);
        assert_true(answers[i].is_there);
    }
    assert_true(reader_pool_is_slow(world->pool, 1) && reader_pool_is_slow(world->pool, 2));
    assert_false(reader_pool_is_slow(world->pool, 3));
    assert_false(answers[0].is_there || answers[1].is_there);
    /* They get their answers nevertheless. */
    run_until(world, 12);
    assert_int_equal(world->stalled, 0);
    assert_int_equal(world->failures, 0);
}

static void a_stall_delays_no_other_user(void **state)
{
    struct world *world = *state;
    struct given_answer *answers = world->answers;
    pid_t children[4];

    for (size_t i = 0; i < 4; i++) {
        children[i] = start_child();
        ask(world, &answers[i], 1, STALL, children[i], NULL);
    }
    for (size_t i = 4; i < 24; i++)
        ask(world, &answers[i], 2, ANSWER, 0, NULL);
    run_until(world, 24);
    for (size_t i = 4; i < 24; i++)
        assert_true(answers[i].order < answers[3].order);
    for (size_t i = 0; i < 4; i++) {
        assert_true(answers[i].is_stalled);
        end_child(children[i]);
    }
    assert_int_equal(world->stalled, 4);
}

static void a_user_with_too_many_stalled_processes_gets_no_answer(void **state)
{
    enum { MORE = READER_POOL_STALLED_MAX + 1 };

    struct world *world = *state;
    pid_t children[MORE];

    for (size_t i = 0; i < MORE; i++) {
        children[i] = start_child();
        ask(world, &world->answers[i], 1, STALL, children[i], NULL);
    }
    run_until(world, MORE);
    for (size_t i = 0; i < MORE; i++)
        assert_int_equal(world->answers[i].is_null, i >= READER_POOL_STALLED_MAX - 1);
    assert_int_equal(world->stalled, READER_POOL_STALLED_MAX);
    /* Others do, and so does the user again once one has ended. */
    ask(world, &world->answers[MORE], 2, ANSWER, 0, NULL);
    run_until(world, MORE + 1);
    end_child(children[0]);
    while (is_stalled(world->pool, children[0])) {
        struct given_answer *given = &world->answers[MORE + 1];

        *given = (struct given_answer){0};
        ask(world, given, 2, ANSWER, 0, NULL);
        run_until(world, world->count + 1);
    }
    world->answers[MORE + 1] = (struct given_answer){0};
    ask(world, &world->answers[MORE + 1], 1, ANSWER, 0, NULL);
    run_until(world, world->count + 1);
    assert_false(world->answers[MORE + 1].is_null);
    for (size_t i = 1; i < MORE; i++)
        end_child(children[i]);
}

static void a_request_that_ends_readers_is_given_up(void **state)
{
    struct world *world = *state;

    ask(world, &world->answers[0], 1, DIE, 0, NULL);
    run_until(world, 1);
    assert_true(world->answers[0].is_null);
    ask(world, &world->answers[1], 1, ANSWER, 0, NULL);
    run_until(world, 2);
    assert_false(world->answers[1].is_null);
}

/* A reader that is controlled by somebody else could keep the daemon busy without end. */
static void check_given_up(struct world *world, enum behaviour behaviour)
{
    ask(world, &world->answers[0], 1, behaviour, 0, NULL);
    run_until(world, 1);
    assert_true(world->answers[0].is_null);
    ask(world, &world->answers[1], 1, ANSWER, 0, NULL);
    run_until(world, 2);
    assert_false(world->answers[1].is_null);
}

static void a_reader_that_introduces_itself_again_is_given_up(void **state)
{
    check_given_up(*state, GREET);
}

static void a_reader_that_sends_empty_pages_is_given_up(void **state)
{
    check_given_up(*state, BABBLE);
}

static void without_a_program_nobody_waits(void **state)
{
    struct world *world = *state;

    assert_int_equal(setenv("BERTH_READER", "/nonexistent/berth-reader", 1), 0);
    ask(world, &world->answers[0], 1, ANSWER, 0, NULL);
    run_until(world, 1);
    assert_true(world->answers[0].is_null);
    assert_true(world->failures > 0);
}

static void a_cancelled_query_is_not_answered(void **state)
{
    struct world *world = *state;
    struct given_answer *answers = world->answers;
    struct reader_query *out;
    struct reader_query *waiting;

    ask(world, &answers[0], 2, ANSWER, 0, NULL);
    run_until(world, 1);
    out = ask(world, &answers[1], 1, SLOW, 0, NULL);
    waiting = ask(world, &answers[2], 1, ANSWER, 0, NULL);
    ask(world, &answers[3], 1, ANSWER, 0, NULL);
    reader_pool_cancel(out);
    reader_pool_cancel(waiting);
    run_until(world, 2);
    assert_true(answers[3].is_there && !answers[1].is_there && !answers[2].is_there);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define POOL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        POOL_TEST(users_take_turns),
        POOL_TEST(a_process_that_stalls_two_readers_is_remembered),
        POOL_TEST(a_stalled_process_counts_for_its_owner),
        POOL_TEST(a_reader_that_was_only_slow_blames_no_process),
        POOL_TEST(a_reader_that_works_is_kept),
        POOL_TEST(a_reader_that_was_stopped_is_replaced),
        POOL_TEST(long_requests_leave_a_reader_for_others),
        POOL_TEST(slow_requests_do_not_keep_all_readers),
        POOL_TEST(a_stall_delays_no_other_user),
        POOL_TEST(a_user_with_too_many_stalled_processes_gets_no_answer),
        POOL_TEST(a_request_that_ends_readers_is_given_up),
        POOL_TEST(a_reader_that_introduces_itself_again_is_given_up),
        POOL_TEST(a_reader_that_sends_empty_pages_is_given_up),
        POOL_TEST(without_a_program_nobody_waits),
        POOL_TEST(a_cancelled_query_is_not_answered),
    };

    if (argc > 0 && strcmp(argv[0], "berth-reader") == 0)
        return run_as_reader();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
