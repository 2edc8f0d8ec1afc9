/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/core/pidfd.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"
#include "base/system/clock.h"
#include "base/system/process_stat.h"

/* A child that runs until it is killed. */
static pid_t start_child(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "a) Z 1 (b");
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    return pid;
}

static void a_process_is_known_by_its_descriptor(void **state)
{
    pid_t child = start_child();
    int descriptor = pidfd_open_process(child);
    uint32_t uid = 1;

    (void)state;
    assert_true(descriptor >= 0);
    assert_false(pidfd_has_ended(descriptor));
    assert_false(pidfd_is_zombie(descriptor));
    /* Kernels before 6.13 do not report it. */
    if (pidfd_user(descriptor, &uid))
        assert_int_equal(uid, getuid());
    uid = 1;
    assert_true(pidfd_find_user(descriptor, child, &uid));
    assert_int_equal(uid, geteuid());
    pidfd_signal(descriptor, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(pidfd_has_ended(descriptor));
    assert_false(pidfd_is_zombie(descriptor));
    assert_false(pidfd_find_user(descriptor, child, &uid));
    pidfd_signal(descriptor, SIGKILL);
    close(descriptor);
    assert_int_equal(pidfd_open_process(child), -1);
}

static void how_old_a_process_is(void **state)
{
    int64_t tick = 1000000000 / sysconf(_SC_CLK_TCK);
    int64_t before = clock_read(CLOCK_BOOTTIME);
    pid_t child = start_child();
    char buffer[1024];
    const char *fields = process_stat_fields(child, buffer, sizeof(buffer));
    int64_t age = fields == NULL ? -1 : process_stat_age(fields);

    (void)state;
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(age >= 0);
    assert_true(age <= clock_read(CLOCK_BOOTTIME) - before + tick);
}

struct child {
    pid_t pid;
    int descriptor;
};

/* Returns a child that has ended: by this signal, or with this code if the signal is 0. The caller
 * must wait for it. */
static struct child ended_child(int number, int code)
{
    struct child child = {.pid = fork()};
    siginfo_t info;

    if (child.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        raise(SIGSTOP);
        _exit(code);
    }
    assert_true(child.pid > 0);
    assert_int_equal(waitid(P_PID, (id_t)child.pid, &info, WSTOPPED), 0);
    child.descriptor = pidfd_open_process(child.pid);
    assert_true(child.descriptor >= 0);
    assert_int_equal(kill(child.pid, number == 0 ? SIGCONT : number), 0);
    assert_int_equal(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT), 0);
    return child;
}

static void how_a_process_ended_is_known(void **state)
{
    static const struct {
        int number;
        int code;
        int wanted;
    } rows[] = {{0, 0, 0}, {0, 3, 3}, {0, 255, 255}, {SIGKILL, 0, 137}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct child child = ended_child(rows[i].number, rows[i].code);
        int code;

        assert_true(pidfd_is_zombie(child.descriptor));
        assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
        assert_false(pidfd_is_zombie(child.descriptor));
        /* Kernels before 6.15 do not report it. */
        code = pidfd_exit_code(child.descriptor);
        assert_true(code == rows[i].wanted || code == -1);
        close(child.descriptor);
    }
}

static void one_that_only_waits_to_be_reaped_has_ended(void **state)
{
    pid_t child = start_child();
    siginfo_t info;

    (void)state;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(process_stat_started(child), 0);
    assert_int_equal(pidfd_open_process(child), -1);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void fields_are_counted_as_the_manual_does(void **state)
{
    static const char fields[] = " T 41 42 43 0 -1";
    pid_t child = start_child();
    char buffer[1024];
    const char *real;

    (void)state;
    assert_int_equal(process_stat_state(fields), 'T');
    assert_false(process_stat_has_ended(fields));
    assert_true(process_stat_has_ended(" Z 1") && process_stat_has_ended(" X 1"));
    assert_int_equal(process_stat_state(""), 0);
    assert_int_equal(process_stat_number(fields, 4), 41);
    assert_int_equal(process_stat_number(fields, 6), 43);
    assert_int_equal(process_stat_number(fields, 52), 0);
    real = process_stat_fields(child, buffer, sizeof(buffer));
    assert_non_null(real);
    assert_int_equal(process_stat_number(real, 4), getpid());
    assert_int_equal(process_stat_number(real, 6), getsid(0));
    assert_int_equal(process_stat_parent(child), getpid());
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(process_stat_parent(child), 0);
}

static void the_other_side_of_a_socket_is_known(void **state)
{
    int sockets[2];
    int descriptor;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
    descriptor = pidfd_open_peer(sockets[0], getpid());
    assert_true(descriptor >= 0);
    assert_false(pidfd_has_ended(descriptor));
    close(descriptor);
    close(sockets[0]);
    close(sockets[1]);
}

static void numbers_that_are_none_are_refused(void **state)
{
    (void)state;
    assert_int_equal(process_stat_started(0), 0);
    assert_int_equal(process_stat_started(-1), 0);
    assert_int_equal(pidfd_open_process(0), -1);
    assert_int_equal(pidfd_open_process(-5), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_known_by_its_descriptor),
        cmocka_unit_test(how_old_a_process_is),
        cmocka_unit_test(how_a_process_ended_is_known),
        cmocka_unit_test(one_that_only_waits_to_be_reaped_has_ended),
        cmocka_unit_test(fields_are_counted_as_the_manual_does),
        cmocka_unit_test(the_other_side_of_a_socket_is_known),
        cmocka_unit_test(numbers_that_are_none_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
