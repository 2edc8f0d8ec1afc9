/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "hardware/proc/device_users.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "base/text/utf8.h"
#include "codec/device_tags.h"
#include "hardware/proc/proc_ancestors.h"
#include "support/failing_allocator.h"
#include "support/hardware/process_tree.h"
#include "support/temporary_directory.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void finish(struct device_process *process)
{
    device_process_finish(process);
}

static struct device_process describe(uint64_t pid)
{
    struct sysroot root = process_tree_root();
    struct device_process process = {.pid = pid, .memory = {true, 5}, .lease = 7};

    assert_int_equal(proc_describe_process(&root, NULL, NULL, &process, NULL), 0);
    assert_int_equal(process.pid, pid);
    assert_int_equal(process.memory.value, 5);
    assert_int_equal(process.lease, 7);
    sysroot_finish(&root);
    return process;
}

static void a_process_has_an_owner_a_command_and_a_container(void **state)
{
    static const char words[] = "python3\0train.py\0--name\0two words\0";
    struct device_process process;

    (void)state;
    process_tree_file("proc/12/status", "Name:\tpython3\nUmask:\t0022\nPid:\t12\n"
                                        "Uid:\t1000\t1001\t1002\t1003\nGid:\t1\t2\t3\t4\n");
    process_tree_write("proc/12/cmdline", words, sizeof(words) - 1);
    process_tree_file("proc/12/cgroup", "0::/system.slice/docker-" ID ".scope\n");
    process = describe(12);
    assert_true(process.uid.known);
    assert_int_equal(process.uid.value, 1001);
    assert_string_equal(process.command, "python3 train.py --name two words");
    assert_string_equal(process.container, ID);
    finish(&process);
}

static void a_process_says_of_which_lease_it_is(void **state)
{
    static const struct {
        const char *environment; /* newlines stand for the zero bytes */
        uint64_t lease;
        const char *socket;
    } cases[] = {
        {"HOME=/\nBERTH_LEASE=12\nBERTH_SOCKET=/run/berth/berth.sock\n", 12,
         "/run/berth/berth.sock"},
        {"BERTH_SOCKET=/a\nBERTH_LEASE=12", 12, "/a"},
        {"BERTH_LEASE=12\n", 0, NULL},
        {"BERTH_SOCKET=/a\n", 0, NULL},
        {"BERTH_LEASE=12x\nBERTH_SOCKET=/a\n", 0, NULL},
        {"BERTH_LEASE=-1\nBERTH_SOCKET=/a\n", 0, NULL},
        {"BERTH_LEASE=\nBERTH_SOCKET=/a\n", 0, NULL},
        {"XBERTH_LEASE=12\nBERTH_SOCKET=/a\n", 0, NULL},
        {"", 0, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t length = strlen(cases[i].environment);
        char *environment = strdup(cases[i].environment);
        struct device_process process;

        assert_non_null(environment);
        for (size_t at = 0; at < length; at++)
            environment[at] = (char)(environment[at] == '\n' ? '\0' : environment[at]);
        process_tree_file("proc/12/status", "Name:\ta\n");
        process_tree_write("proc/12/environ", environment, length);
        free(environment);
        process = describe(12);
        assert_int_equal(process.said_lease, cases[i].lease);
        assert_int_equal(process.said_socket == NULL, cases[i].socket == NULL);
        if (cases[i].socket != NULL)
            assert_string_equal(process.said_socket, cases[i].socket);
        finish(&process);
    }
}

#define STAT_FIELDS " S 1 12 12 0 -1 4194304 1 0 0 0 1 1 0 0 20 0 1 0 "

static void a_process_began_at_a_time(void **state)
{
    static const struct {
        const char *machine;
        const char *process;
        int64_t wanted; /* in milliseconds */
    } cases[] = {
        {"cpu 1 2\nbtime 1700000000\nprocesses 7\n", "12 (a) b (c)" STAT_FIELDS "250 9\n",
         1700000002500},
        {"cpu 1 2\n", "12 (a)" STAT_FIELDS "250 9\n", 0},
        {"btime x\n", "12 (a)" STAT_FIELDS "250 9\n", 0},
        {"btime 1700000000\n", "12 (a)" STAT_FIELDS "x 9\n", 0},
        {"btime 1700000000\n", "12 (a) S 1 2 3\n", 0},
        {"btime 1700000000\n", "12 a\n", 0},
        {"btime 18446744073709551615\n", "12 (a)" STAT_FIELDS "250 9\n", 0},
        {"btime 1700000000\n", "12 (a)" STAT_FIELDS "18446744073709551615 9\n", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct device_process process;

        process_tree_file("proc/12/status", "Name:\ta\n");
        process_tree_file("proc/stat", cases[i].machine);
        process_tree_file("proc/12/stat", cases[i].process);
        process = describe(12);
        assert_int_equal(process.started, cases[i].wanted * 1000000);
        finish(&process);
    }
}

/* If berth runs in a container itself, all visible processes are in it. */
static void our_own_container_says_nothing(void **state)
{
    struct device_process process;

    (void)state;
    process_tree_file("proc/12/status", "Name:\ta\n");
    process_tree_file("proc/12/cgroup", "0::/docker/" ID "\n");
    process_tree_file("proc/self/cgroup", "0::/docker/" ID "/init\n");
    process = describe(12);
    assert_null(process.container);
    finish(&process);
    process_tree_file("proc/self/cgroup", "0::/lxc.payload.web\n");
    process = describe(12);
    assert_string_equal(process.container, ID);
    finish(&process);
}

static void what_is_not_there_is_unknown(void **state)
{
    struct device_process process;

    (void)state;
    process_tree_file("proc/12/status", "");
    process = describe(12);
    assert_false(process.uid.known);
    assert_null(process.command);
    assert_null(process.container);
    assert_false(process.owner.known);
}

static void without_a_command_line_there_is_a_name(void **state)
{
    struct device_process process;

    (void)state;
    process_tree_file("proc/2/status", "Name:\tkworker/0:1\nUid:\t0\t0\t0\t0\n");
    process_tree_file("proc/2/cmdline", "");
    process_tree_file("proc/2/cgroup", "0::/\n");
    process = describe(2);
    assert_string_equal(process.command, "kworker/0:1");
    assert_int_equal(process.uid.value, 0);
    assert_null(process.container);
    finish(&process);
}

static void owners_that_are_none_are_unknown(void **state)
{
    static const char *const lines[] = {
        "Uid:\n",
        "Uid:\t1\n",
        "Uid:\t1\t\n",
        "Uid:\t1\t-1\t1\t1\n",
        "Uid:\t1\tx\t1\t1\n",
        "Uid:\t1\t4294967296\t1\t1\n",
        "Uid:\t1\t99999999999999999999999\t1\t1\n",
        "Uid:\t1\t2x\t1\t1\n",
        "Uids:\t1\t2\t1\t1\n",
        "Uid:\t1\t2\t1\t1",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++) {
        struct device_process process;

        process_tree_file("proc/2/status", lines[i]);
        process = describe(2);
        assert_false(process.uid.known);
        finish(&process);
    }
    process_tree_file("proc/2/status", "Uid:\t1\t4294967295\t1\t1\n");
    assert_int_equal(describe(2).uid.value, UINT32_MAX);
}

static void what_could_steer_a_terminal_is_replaced(void **state)
{
    static const char words[] = "a\nb\x1b[2J\0\xff\0\0c\0\0";
    struct device_process process;

    (void)state;
    process_tree_file("proc/2/status", "Name:\tx\n");
    process_tree_write("proc/2/cmdline", words, sizeof(words) - 1);
    process = describe(2);
    assert_string_equal(process.command, "a\xEF\xBF\xBD"
                                         "b\xEF\xBF\xBD[2J \xEF\xBF\xBD  c");
    finish(&process);
}

static void long_commands_are_cut_between_characters(void **state)
{
    struct device_process process;
    char words[5000];

    (void)state;
    process_tree_file("proc/2/status", "Name:\tx\n");
    words[0] = 'x';
    for (size_t i = 1; i + 1 < sizeof(words); i += 2)
        memcpy(words + i, "\xc3\xbc", 2);
    process_tree_write("proc/2/cmdline", words, sizeof(words) - 1);
    process = describe(2);
    assert_int_equal(strlen(process.command), PROCESS_TEXT_MAX - 1);
    assert_true(utf8_is_valid(process.command, PROCESS_TEXT_MAX - 1));
    assert_int_equal(memcmp(process.command, words, PROCESS_TEXT_MAX - 1), 0);
    finish(&process);
    memset(words, '\x01', sizeof(words));
    process_tree_write("proc/2/cmdline", words, sizeof(words));
    process = describe(2);
    assert_int_equal(strlen(process.command), PROCESS_TEXT_MAX / 3 * 3);
    finish(&process);
}

static void a_process_that_is_gone_is_not_found(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct sysroot root = process_tree_root();
    struct device_process process = {.pid = 4711};

    (void)state;
    assert_int_equal(proc_describe_process(&root, NULL, NULL, &process, &error),
                     BERTH_ERROR_NOT_FOUND);
    assert_string_equal(error.message, "no process 4711");
    sysroot_finish(&root);
}

static void what_was_said_before_is_replaced(void **state)
{
    struct sysroot root = process_tree_root();
    struct device_process process = {.pid = 2, .command = strdup("x"), .container = strdup("y")};

    (void)state;
    process_tree_file("proc/2/status", "Name:\tz\n");
    assert_int_equal(proc_describe_process(&root, NULL, NULL, &process, NULL), 0);
    assert_string_equal(process.command, "z");
    assert_null(process.container);
    finish(&process);
    sysroot_finish(&root);
}

static int try_to_describe(void *context)
{
    struct device_process process = {.pid = 12};
    int code = proc_describe_process(context, NULL, NULL, &process, NULL);

    finish(&process);
    return code;
}

static void no_memory_is_said(void **state)
{
    struct sysroot root = process_tree_root();

    (void)state;
    process_tree_file("proc/12/status", "Name:\tpython3\nUid:\t1000\t1001\t1002\t1003\n");
    process_tree_file("proc/12/cmdline", "python3");
    process_tree_file("proc/12/cgroup", "0::/docker/" ID "\n");
    assert_true(failing_allocator_try_all(try_to_describe, &root) > 3);
    sysroot_finish(&root);
}

static void we_know_ourselves(void **state)
{
    struct sysroot root = {.prefix = (char *)""};
    struct device_process process = {.pid = (uint64_t)getpid()};

    (void)state;
    assert_int_equal(proc_describe_process(&root, NULL, NULL, &process, NULL), 0);
    assert_true(process.uid.known);
    assert_int_equal(process.uid.value, geteuid());
    assert_non_null(strstr(process.command, "test-proc_describe"));
    assert_true(llabs(process.started - clock_read(CLOCK_REALTIME)) < 3600 * INT64_C(1000000000));
    assert_false(process.owner.known);
    finish(&process);
}

/* Not on a recorded machine, whose processes do not run here. */
static void a_user_namespace_has_an_owner(void **state)
{
    struct sysroot root = {.prefix = (char *)""};
    struct sysroot recorded = {.prefix = (char *)"", .recorded = true};
    struct device_process process = {0};
    int ready[2];
    char byte;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    process.pid = (uint64_t)fork();
    if (process.pid == 0) {
        if (unshare(CLONE_NEWUSER) < 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1) {
        print_message("skip: no user namespaces here\n");
        skip();
    }
    close(ready[0]);
    assert_int_equal(proc_describe_process(&root, NULL, NULL, &process, NULL), 0);
    assert_true(process.owner.known);
    assert_int_equal(process.owner.value, geteuid());
    assert_int_equal(proc_describe_process(&recorded, NULL, NULL, &process, NULL), 0);
    assert_false(process.owner.known);
    kill((pid_t)process.pid, SIGKILL);
    waitpid((pid_t)process.pid, NULL, 0);
    finish(&process);
}

#define TREE_TEST(function) \
    cmocka_unit_test_setup_teardown(function, temporary_directory_enter, temporary_directory_leave)

/* Makes a chain of processes: the parent of each is the one below it, down to `first`. */
static void make_chain(int first, int last)
{
    for (int pid = first; pid <= last; pid++) {
        char path[64], status[128];

        snprintf(path, sizeof(path), "proc/%d/status", pid);
        snprintf(status, sizeof(status), "Name:\ta\nPPid:\t%d\nUid:\t%d\t%d\t%d\t%d\n",
                 pid == first ? 0 : pid - 1, first, first, first, first);
        process_tree_file(path, status);
    }
}

static void a_process_has_ancestors(void **state)
{
    struct device_process process;

    (void)state;
    make_chain(1, 4);
    process = describe(4);
    assert_int_equal(process.ancestor_count, 3);
    assert_int_equal(process.ancestors[0], 3);
    assert_int_equal(process.ancestors[1], 2);
    assert_int_equal(process.ancestors[2], 1);
    finish(&process);
    process = describe(1);
    assert_int_equal(process.ancestor_count, 0);
    assert_null(process.ancestors);
    finish(&process);
    make_chain(1000, 1100);
    process = describe(1100);
    assert_int_equal(process.ancestor_count, DEVICE_ANCESTORS_MAX);
    assert_int_equal(process.ancestors[DEVICE_ANCESTORS_MAX - 1], 1100 - DEVICE_ANCESTORS_MAX);
    finish(&process);
}

/* The processes of one user cannot use up the steps of another one. */
static void ancestors_are_limited_for_each_user(void **state)
{
    struct sysroot root = process_tree_root();
    struct ancestor_budget budget = {0};
    struct device_process deep = {.pid = 1100};
    struct device_process other = {.pid = 2010};

    (void)state;
    make_chain(1000, 1100);
    make_chain(2000, 2010);
    budget.since = clock_now() + DURATION_SECOND * 3600; /* no second passes */
    for (int i = 0; i < ANCESTOR_STEPS_MAX / (DEVICE_ANCESTORS_MAX - 1) + 2; i++)
        assert_int_equal(proc_describe_process(&root, NULL, &budget, &deep, NULL), 0);
    assert_int_equal(deep.ancestor_count, 1);
    assert_int_equal(proc_describe_process(&root, NULL, &budget, &other, NULL), 0);
    assert_int_equal(other.ancestor_count, 10);
    /* In the next second there are more steps. */
    budget.since = clock_now() - 2 * DURATION_SECOND;
    assert_int_equal(proc_describe_process(&root, NULL, &budget, &deep, NULL), 0);
    assert_int_equal(deep.ancestor_count, DEVICE_ANCESTORS_MAX);
    finish(&deep);
    finish(&other);
    vector_finish(&budget);
    sysroot_finish(&root);
}

/* A container of a user may have many uids. */
static void the_uids_of_a_range_share_their_steps(void **state)
{
    enum { UIDS = ANCESTOR_STEPS_MAX / (DEVICE_ANCESTORS_MAX - 1) + 2 };
    struct sysroot root = process_tree_root();
    struct subordinate_range range = {.owner = 100000, .first = 100000, .last = 165535};
    const struct subordinate_uids ranges = {.items = &range, .count = 1};
    struct ancestor_budget budget = {.subordinates = &ranges};
    struct device_process process = {.uid = {.known = true}};
    int64_t now = clock_now();

    (void)state;
    make_chain(1000, 1100);
    for (uint64_t i = 0; i < UIDS; i++) {
        process.uid.value = 100000 + i;
        assert_int_equal(proc_ancestors_find(&root, NULL, &budget, 1099, now, &process), 0);
    }
    assert_int_equal(process.ancestor_count, 1);
    process.uid.value = 1000;
    assert_int_equal(proc_ancestors_find(&root, NULL, &budget, 1099, now, &process), 0);
    assert_int_equal(process.ancestor_count, DEVICE_ANCESTORS_MAX);
    /* Many users do not get the steps anew. */
    for (uint64_t uid = 200000; uid < 300000; uid += 10) {
        process.uid.value = uid;
        assert_int_equal(proc_ancestors_find(&root, NULL, &budget, 1, now, &process), 0);
    }
    process.uid.value = 100000;
    assert_int_equal(proc_ancestors_find(&root, NULL, &budget, 1099, now, &process), 0);
    assert_int_equal(process.ancestor_count, 1);
    finish(&process);
    vector_finish(&budget);
    sysroot_finish(&root);
}

static void an_undecided_process_is_not_asked(void **state)
{
    struct sysroot root = process_tree_root();
    struct device_process process = {.pid = 12, .undecided = true};

    (void)state;
    process_tree_file("proc/12/status", "Name:\tsome thing\nPPid:\t1\nUid:\t5\t6\t7\t8\n");
    process_tree_file("proc/12/environ", "BERTH_LEASE=12");
    process_tree_file("proc/12/cmdline", "other words");
    process_tree_file("proc/12/cgroup", "0::/system.slice/docker-" ID ".scope\n");
    assert_int_equal(proc_describe_process(&root, NULL, NULL, &process, NULL), 0);
    assert_true(process.undecided);
    assert_int_equal(process.uid.value, 6);
    assert_string_equal(process.command, "some thing");
    assert_string_equal(process.container, ID);
    assert_int_equal(process.ancestor_count, 1);
    assert_int_equal(process.said_lease, 0);
    assert_int_equal(process.started, 0);
    finish(&process);
    sysroot_finish(&root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(a_process_has_an_owner_a_command_and_a_container),
        TREE_TEST(a_process_began_at_a_time),
        TREE_TEST(a_process_says_of_which_lease_it_is),
        TREE_TEST(our_own_container_says_nothing),
        TREE_TEST(what_is_not_there_is_unknown),
        TREE_TEST(without_a_command_line_there_is_a_name),
        TREE_TEST(owners_that_are_none_are_unknown),
        TREE_TEST(what_could_steer_a_terminal_is_replaced),
        TREE_TEST(long_commands_are_cut_between_characters),
        TREE_TEST(a_process_that_is_gone_is_not_found),
        TREE_TEST(what_was_said_before_is_replaced),
        TREE_TEST(no_memory_is_said),
        TREE_TEST(a_process_has_ancestors),
        TREE_TEST(ancestors_are_limited_for_each_user),
        TREE_TEST(the_uids_of_a_range_share_their_steps),
        TREE_TEST(an_undecided_process_is_not_asked),
        cmocka_unit_test(we_know_ourselves),
        cmocka_unit_test(a_user_namespace_has_an_owner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
