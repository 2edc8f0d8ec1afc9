/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "hardware/supervisor/stalled.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts a process that waits for its end. */
static pid_t start_process(void)
{
    pid_t child = fork();

    assert_true(child >= 0);
    while (child == 0)
        pause();
    return child;
}

static void end_process(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_process_is_remembered_until_it_ends(void **state)
{
    struct stalled_list list = {0};
    pid_t one = start_process();
    pid_t other = start_process();

    (void)state;
    stalled_list_add(&list, (uint64_t)one);
    stalled_list_add(&list, (uint64_t)other);
    stalled_list_forget_ended(&list);
    assert_non_null(stalled_list_find(&list, (uint64_t)one));
    assert_false(stalled_list_find(&list, (uint64_t)one)->wholly);
    assert_int_equal(stalled_list_find(&list, (uint64_t)one)->uid.value, geteuid());
    end_process(one);
    stalled_list_forget_ended(&list);
    assert_null(stalled_list_find(&list, (uint64_t)one));
    assert_non_null(stalled_list_find(&list, (uint64_t)other));
    end_process(other);
    stalled_list_finish(&list);
}

static void a_process_that_stalls_twice_is_avoided_wholly(void **state)
{
    struct stalled_list list = {0};
    pid_t pid = start_process();

    (void)state;
    stalled_list_add(&list, (uint64_t)pid);
    stalled_list_add(&list, (uint64_t)pid);
    assert_int_equal(list.count, 1);
    assert_true(list.items[0].wholly);
    end_process(pid);
    stalled_list_finish(&list);
}

static void a_process_that_has_ended_is_not_remembered(void **state)
{
    struct stalled_list list = {0};
    pid_t pid = start_process();

    (void)state;
    end_process(pid);
    stalled_list_add(&list, (uint64_t)pid);
    stalled_list_add(&list, UINT64_MAX);
    assert_int_equal(list.count, 0);
    stalled_list_finish(&list);
}

static void many_processes_of_a_user_stand_for_all(void **state)
{
    pid_t pids[STALLED_OF_USER_MAX + 1];
    struct stalled_list list = {0};

    (void)state;
    for (int i = 0; i <= STALLED_OF_USER_MAX; i++) {
        assert_false(stalled_list_is_full_of(&list, geteuid()));
        pids[i] = start_process();
        stalled_list_add(&list, (uint64_t)pids[i]);
    }
    assert_true(stalled_list_is_full_of(&list, geteuid()));
    assert_false(stalled_list_is_full_of(&list, geteuid() + 1));
    for (int i = 0; i <= STALLED_OF_USER_MAX; i++)
        end_process(pids[i]);
    stalled_list_forget_ended(&list);
    assert_int_equal(list.count, 0);
    stalled_list_finish(&list);
}

static void a_scan_avoids_the_processes_and_their_users(void **state)
{
    struct stalled_entry processes[] = {
        {.pid = 10, .uid = {true, 1000}},
        {.pid = 11, .uid = {true, 1000}, .wholly = true},
        {.pid = 12, .uid = {true, 0}},
        {.pid = 13},
    };
    const struct stalled_list list = {.items = processes, .count = 4};
    struct avoided avoided = {0};
    const struct proc_watch watch = {.avoided = &avoided};

    (void)state;
    assert_int_equal(stalled_list_avoid(&list, &avoided), 0);
    assert_int_equal(avoided.processes.count, 4);
    assert_false(proc_watch_find_avoided(&watch, 10)->wholly);
    assert_true(proc_watch_find_avoided(&watch, 11)->wholly);
    assert_null(proc_watch_find_avoided(&watch, 14));
    assert_int_equal(avoided.users.count, 1);
    assert_true(proc_watch_avoids_user(&watch, 1000));
    /* All of root's processes would be too many. */
    assert_false(proc_watch_avoids_user(&watch, 0));
    proc_watch_finish_avoided(&avoided);
}

/* A user has many uids for containers. */
static void the_uids_of_a_range_are_one_user(void **state)
{
    struct subordinate_range ranges[] = {{.owner = 100000, .first = 100000, .last = 165535}};
    struct stalled_entry processes[STALLED_OF_USER_MAX + 1];
    struct stalled_list list = {.items = processes, .count = STALLED_OF_USER_MAX + 1};
    struct avoided avoided = {0};
    const struct proc_watch watch = {.avoided = &avoided};

    (void)state;
    list.subordinates.items = ranges;
    list.subordinates.count = 1;
    for (uint64_t i = 0; i <= STALLED_OF_USER_MAX; i++)
        processes[i] = (struct stalled_entry){.pid = 10 + i, .uid = {true, 100000 + i}};
    assert_true(stalled_list_is_full_of(&list, 165535));
    assert_false(stalled_list_is_full_of(&list, 165536));
    assert_int_equal(stalled_list_avoid(&list, &avoided), 0);
    assert_int_equal(avoided.users.count, 1);
    assert_true(proc_watch_avoids_user(&watch, 165535));
    assert_false(proc_watch_avoids_user(&watch, 165536));
    assert_false(proc_watch_avoids_user(&watch, 1000));
    proc_watch_finish_avoided(&avoided);
}

static void with_a_full_list_everybody_is_avoided(void **state)
{
    struct stalled_entry *processes = calloc(STALLED_MAX, sizeof(*processes));
    struct stalled_list list = {.items = processes, .count = STALLED_MAX - 1};

    (void)state;
    assert_non_null(processes);
    for (uint64_t i = 0; i < STALLED_MAX; i++)
        processes[i] = (struct stalled_entry){.pid = 10 + i, .uid = {true, 1000 + i}};
    for (; list.count <= STALLED_MAX; list.count++) {
        struct avoided avoided = {0};
        const struct proc_watch watch = {.avoided = &avoided};

        assert_int_equal(stalled_list_avoid(&list, &avoided), 0);
        assert_true(proc_watch_avoids_user(&watch, 1000));
        assert_int_equal(proc_watch_avoids_user(&watch, 5), list.count == STALLED_MAX);
        proc_watch_finish_avoided(&avoided);
    }
    free(processes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_remembered_until_it_ends),
        cmocka_unit_test(a_process_that_stalls_twice_is_avoided_wholly),
        cmocka_unit_test(a_process_that_has_ended_is_not_remembered),
        cmocka_unit_test(many_processes_of_a_user_stand_for_all),
        cmocka_unit_test(a_scan_avoids_the_processes_and_their_users),
        cmocka_unit_test(the_uids_of_a_range_are_one_user),
        cmocka_unit_test(with_a_full_list_everybody_is_avoided),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
