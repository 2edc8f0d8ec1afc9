/* SPDX-License-Identifier: Apache-2.0
 *
 * What is left of a lease, with the real berth-reader and real processes.
 */
#include "support/unit.h"

#include "daemon/processes/leftovers.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "daemon/core/pidfd.h"
#include "reader/reader_messages.h"
#include "support/programs/marked_process.h"
#include "support/programs/scripted_reader.h"

/* Returns the socket in the marks; runs of the test beside each other have different ones. */
static const char *pool_socket(void)
{
    static char path[64];

    if (*path == '\0')
        snprintf(path, sizeof(path), "/run/test-leftovers-%d/berth.sock", (int)getpid());
    return path;
}

enum { LEASE = 5150, OTHER_LEASE = 5151 };

/* Both signals end it, but it says which one it got by its exit code. */
#define PATIENT  "trap 'exit 15' TERM; sleep 600 & echo; wait $!; while :; do :; done"
#define STUBBORN "trap '' TERM; sleep 600 & echo; wait $!; while :; do :; done"

struct world {
    struct loop loop;
    struct reader_pool *readers;
    struct spared_processes spared;
    struct leftovers *leftovers;
    struct timer timeout;
    bool is_late;
    bool has_looked;
    bool is_gone;
    struct optional_number exit_code;
    int64_t spent;
};

/* ---- A reader that cannot decide at once ---- */

/* Answers the first two requests with a process that may yet show to be of the lease. */
static int run_as_reader(void)
{
    static unsigned char packet[READER_PACKET_MAX];
    ssize_t length;

    scripted_reader_say_hello();
    for (int i = 1; (length = recv(STDIN_FILENO, packet, sizeof(packet), 0)) > 0; i++) {
        struct reader_request request;
        struct reader_process starting = {.state = READER_LATER, .has_descriptor = true};
        struct reader_answer answer = {0};
        int descriptor;

        if (reader_request_decode(packet, (size_t)length, &request, NULL) < 0)
            return 1;
        starting.pid = request.holder_pid;
        descriptor = pidfd_open_process((pid_t)request.holder_pid);
        answer.number = request.number;
        answer.processes.items = &starting;
        answer.processes.count = i <= 2;
        scripted_reader_answer(&answer, &descriptor, answer.processes.count);
        close(descriptor);
        reader_request_finish(&request);
    }
    return 0;
}

/* ---- The tests' side ---- */

static void looked(void *context, bool is_gone, struct optional_number exit_code)
{
    struct world *world = context;

    world->has_looked = true;
    world->is_gone = is_gone;
    world->exit_code = exit_code;
    world->loop.ended = true;
}

static void gone(void *context)
{
    struct world *world = context;

    world->is_gone = true;
    world->loop.ended = true;
}

static void spent(void *context, int64_t time)
{
    struct world *world = context;

    assert_true(time >= 0);
    world->spent += time;
}

static void do_nothing(void *context)
{
    (void)context;
}

static void ignore_stalled(void *context, const struct stalled_process *process)
{
    (void)context;
    (void)process;
}

static void ignore_failed(void *context, const char *reason)
{
    (void)context;
    (void)reason;
}

static void is_too_late(struct timer *timer)
{
    struct world *world = container_of(timer, struct world, timeout);

    world->is_late = true;
    world->loop.ended = true;
}

/* Runs the loop until the next event. */
static void run(struct world *world)
{
    const struct loop_turn turn = {do_nothing, do_nothing, world};

    world->loop.ended = false;
    world->timeout.fire = is_too_late;
    loop_set_timer(&world->loop, &world->timeout, loop_now(&world->loop) + 20 * DURATION_SECOND);
    loop_run(&world->loop, &turn);
    assert_false(world->is_late);
    loop_set_timer(&world->loop, &world->timeout, LOOP_NEVER);
}

static void make_leftovers(struct world *world, pid_t holder, pid_t root)
{
    uint64_t lease = LEASE;

    world->leftovers = leftovers_new(
        &(struct leftovers_settings){
            .loop = &world->loop,
            .readers = world->readers,
            .spared = &world->spared,
            .socket = pool_socket(),
            .uid = getuid(),
            .leases = &(struct id_list){.items = &lease, .count = 1, .capacity = 1},
            .holder = holder,
            .root = root,
        },
        &(struct leftovers_events){looked, gone, spent, world});
    assert_non_null(world->leftovers);
}

static int set_up_with(void **state, const char *reader)
{
    struct world *world = calloc(1, sizeof(*world));

    assert_non_null(world);
    assert_int_equal(setenv("BERTH_READER", reader, 1), 0);
    assert_int_equal(loop_init(&world->loop, NULL), 0);
    spared_processes_init(&world->spared, &world->loop);
    assert_int_equal(reader_pool_create(&world->loop,
                                        &(struct reader_pool_events){
                                            .slowed = do_nothing,
                                            .stalled = ignore_stalled,
                                            .failed = ignore_failed,
                                            .context = world,
                                        },
                                        &world->readers, NULL),
                     0);
    *state = world;
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, READER_PROGRAM);
}

static int set_up_scripted(void **state)
{
    char self[PATH_MAX] = {0};

    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    return set_up_with(state, self);
}

static int tear_down(void **state)
{
    struct world *world = *state;

    leftovers_free(world->leftovers);
    reader_pool_destroy(world->readers);
    spared_processes_finish(&world->spared);
    loop_finish(&world->loop);
    free(world);
    return 0;
}

static pid_t start(unsigned long lease, const char *script)
{
    return marked_process_start(
        &(struct marked_process){.lease = lease, .socket = pool_socket(), .script = script});
}

static void look(struct world *world, bool wants_exit_code)
{
    world->has_looked = false;
    leftovers_look(world->leftovers, wants_exit_code);
    run(world);
    assert_true(world->has_looked);
}

struct listed {
    size_t count;
    size_t killed;
    bool has_uid;
};

static void list_process(void *context, const struct leftover_process *process)
{
    struct listed *listed = context;

    listed->count++;
    listed->killed += process->killed_at > 0;
    listed->has_uid = process->uid.known && process->uid.value == getuid() && process->since > 0;
}

static size_t count_left(const struct world *world)
{
    struct listed listed = {0};

    leftovers_each(world->leftovers, list_process, &listed);
    return listed.count;
}

static void nothing_is_left(void **state)
{
    struct world *world = *state;
    pid_t other = start(OTHER_LEASE, NULL);

    make_leftovers(world, 0, 0);
    look(world, false);
    assert_true(world->is_gone);
    assert_int_equal(count_left(world), 0);
    assert_true(world->spent >= 0);
    marked_process_end(other);
}

static void assert_ended_by(pid_t pid, int wanted)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status), wanted);
}

static void what_is_left_is_signalled_until_it_is_gone(void **state)
{
    struct world *world = *state;
    pid_t patient = start(LEASE, PATIENT);
    pid_t stubborn = start(LEASE, STUBBORN);
    pid_t other = start(OTHER_LEASE, NULL);

    make_leftovers(world, 0, 0);
    look(world, false);
    assert_false(world->is_gone);
    /* Their children descend from them. */
    assert_int_equal(count_left(world), 4);
    leftovers_signal(world->leftovers, SIGTERM);
    assert_ended_by(patient, 15);
    leftovers_signal(world->leftovers, SIGKILL);
    run(world);
    assert_true(world->is_gone);
    assert_ended_by(stubborn, -SIGKILL);
    assert_int_equal(kill(other, 0), 0);
    marked_process_end(other);
}

static void a_signal_before_the_first_look_reaches_all(void **state)
{
    struct world *world = *state;
    pid_t left = start(LEASE, PATIENT);

    make_leftovers(world, 0, 0);
    leftovers_signal(world->leftovers, SIGTERM);
    run(world);
    assert_true(world->is_gone);
    assert_ended_by(left, 15);
}

static void the_process_that_asked_is_ended_later(void **state)
{
    struct world *world = *state;
    pid_t asker = start(LEASE, NULL);
    pid_t left = start(LEASE, NULL);

    make_leftovers(world, 0, 0);
    leftovers_spare(world->leftovers, asker, loop_now(&world->loop) + 3 * DURATION_SECOND);
    look(world, false);
    assert_int_equal(count_left(world), 1);
    assert_true(spared_processes_has(&world->spared, asker));
    leftovers_signal(world->leftovers, SIGTERM);
    run(world);
    assert_true(world->is_gone);
    assert_ended_by(left, -SIGTERM);
    assert_int_equal(waitpid(asker, NULL, WNOHANG), 0);
    /* Its time comes while the loop does something else. */
    while (spared_processes_has(&world->spared, asker))
        look(world, false);
    assert_ended_by(asker, -SIGKILL);
}

/* The first report would say that something may be left, and the second one would come too late. */
static void looks_that_overlap_have_one_report(void **state)
{
    struct world *world = *state;

    make_leftovers(world, 0, 0);
    leftovers_look(world->leftovers, false);
    leftovers_signal(world->leftovers, SIGKILL);
    look(world, false);
    assert_true(world->is_gone);
    assert_int_equal(count_left(world), 0);
}

static void an_adopted_process_and_what_it_started_are_left(void **state)
{
    struct world *world = *state;
    pid_t root = start(0, PATIENT);

    make_leftovers(world, 0, root);
    look(world, false);
    assert_int_equal(count_left(world), 2);
    leftovers_signal(world->leftovers, SIGKILL);
    run(world);
    assert_true(world->is_gone);
    assert_ended_by(root, -SIGKILL);
}

static void the_holders_exit_code_comes_with_the_look(void **state)
{
    struct world *world = *state;
    pid_t holder = start(0, "echo; exit 9");
    siginfo_t info;

    assert_int_equal(waitid(P_PID, (id_t)holder, &info, WEXITED | WNOWAIT), 0);
    make_leftovers(world, holder, 0);
    look(world, true);
    assert_true(world->exit_code.known);
    assert_int_equal(world->exit_code.value, 9);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
}

static void what_is_left_can_be_named(void **state)
{
    struct world *world = *state;
    pid_t left = start(LEASE, NULL);
    struct listed listed = {0};

    make_leftovers(world, 0, 0);
    look(world, false);
    leftovers_each(world->leftovers, list_process, &listed);
    assert_int_equal(listed.count, 1);
    assert_int_equal(listed.killed, 0);
    assert_true(listed.has_uid);
    leftovers_signal(world->leftovers, SIGKILL);
    leftovers_each(world->leftovers, list_process, &listed);
    assert_int_equal(listed.killed, 1);
    assert_ended_by(left, -SIGKILL);
}

static void a_process_that_becomes_a_program_delays_the_report(void **state)
{
    struct world *world = *state;
    pid_t starting = start(0, NULL);

    make_leftovers(world, starting, 0);
    look(world, false);
    assert_true(world->is_gone);
    marked_process_end(starting);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define LEFTOVERS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        LEFTOVERS_TEST(nothing_is_left),
        LEFTOVERS_TEST(what_is_left_is_signalled_until_it_is_gone),
        LEFTOVERS_TEST(a_signal_before_the_first_look_reaches_all),
        LEFTOVERS_TEST(the_process_that_asked_is_ended_later),
        LEFTOVERS_TEST(looks_that_overlap_have_one_report),
        LEFTOVERS_TEST(an_adopted_process_and_what_it_started_are_left),
        LEFTOVERS_TEST(the_holders_exit_code_comes_with_the_look),
        LEFTOVERS_TEST(what_is_left_can_be_named),
        cmocka_unit_test_setup_teardown(a_process_that_becomes_a_program_delays_the_report,
                                        set_up_scripted, tear_down),
    };

    if (argc > 0 && strcmp(argv[0], "berth-reader") == 0)
        return run_as_reader();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
