/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "proc_reader/process_mark.h"

#include "base/text/quantity.h"
#include "support/hardware/reader_questions.h"

/* Reads the mark of a process with this environment; NULL: it has none that can be read. */
static enum process_mark read_mark(struct question_world *world, const char *variables,
                                   const struct made_up_stat *stat, int *tries,
                                   struct lease_mark *ret_mark)
{
    struct text environment = {0};
    enum process_mark found;
    int pid = FIRST + (int)world->watched_count;

    put_process(world, pid, USER, variables);
    if (stat != NULL)
        made_up_stat(pid, stat);
    found = process_mark_read(&world->files, pid, tries, &environment, ret_mark);
    if (found == PROCESS_MARK_FOUND)
        assert_string_equal(ret_mark->socket, "/a");
    text_finish(&environment);
    return found;
}

/* ---- Marks ---- */

static void a_mark_has_two_variables(void **state)
{
    struct lease_mark mark;
    int tries = 0;

    assert_int_equal(
        read_mark(*state, "PATH=/\nBERTH_LEASE=12\nBERTH_SOCKET=/a\n", NULL, &tries, &mark),
        PROCESS_MARK_FOUND);
    assert_int_equal(mark.lease, 12);
    assert_int_equal(read_mark(*state, "BERTH_LEASE=12\n", NULL, &tries, &mark), PROCESS_MARK_NONE);
    assert_int_equal(read_mark(*state, "BERTH_SOCKET=/a\n", NULL, &tries, &mark),
                     PROCESS_MARK_NONE);
    assert_int_equal(read_mark(*state, "PATH=/\n", NULL, &tries, &mark), PROCESS_MARK_NONE);
}

static void an_environment_may_be_missing(void **state)
{
    struct lease_mark mark;
    int tries = 3;

    assert_int_equal(read_mark(*state, NULL, NULL, &tries, &mark), PROCESS_MARK_UNREADABLE);
    /* The process is gone when its stat file is. */
    assert_int_equal(read_mark(*state, "", NULL, &tries, &mark), PROCESS_MARK_UNREADABLE);
    assert_int_equal(
        read_mark(*state, "", &(struct made_up_stat){.flags = KERNEL_THREAD}, &tries, &mark),
        PROCESS_MARK_UNREADABLE);
    assert_int_equal(read_mark(*state, "", &(struct made_up_stat){.state = 'Z'}, &tries, &mark),
                     PROCESS_MARK_UNREADABLE);
    /* A program without variables. */
    assert_int_equal(
        read_mark(*state, "", &(struct made_up_stat){.environment_end = 4096}, &tries, &mark),
        PROCESS_MARK_UNREADABLE);
    assert_int_equal(tries, 3);
}

static void a_process_inside_execve_is_tried_again(void **state)
{
    const struct made_up_stat starting = {.flags = 0};
    struct lease_mark mark;
    int tries = 5;

    assert_int_equal(read_mark(*state, "", &starting, &tries, &mark), PROCESS_MARK_STARTING);
    assert_int_equal(tries, 0);
    /* All processes of a question share the tries. */
    assert_int_equal(read_mark(*state, "", &starting, &tries, &mark), PROCESS_MARK_STARTING);
    assert_int_equal(tries, 0);
}

static void a_variable_has_its_whole_name(void **state)
{
    static const char bytes[] = "AB=1\0A=2\0A=3\0EMPTY=\0NONE";
    struct text environment = {0};

    (void)state;
    text_append_bytes(&environment, bytes, sizeof(bytes));
    assert_string_equal(process_mark_variable(&environment, "A"), "2");
    assert_string_equal(process_mark_variable(&environment, "AB"), "1");
    assert_string_equal(process_mark_variable(&environment, "EMPTY"), "");
    assert_null(process_mark_variable(&environment, "B"));
    assert_null(process_mark_variable(&environment, "NONE"));
    text_finish(&environment);
}

/* ---- Containers that start ---- */

static uint64_t now(void)
{
    return (uint64_t)clock_read(CLOCK_BOOTTIME);
}

static bool may_follow(struct question_world *world, pid_t pid, uint64_t since,
                       const struct made_up_stat *stat)
{
    made_up_stat(pid, stat);
    return process_mark_may_follow(&world->files, pid, since);
}

static void a_young_runtime_in_another_namespace_may_get_a_mark(void **state)
{
    struct question_world *world = *state;
    pid_t pid = start_in_namespace();
    const struct made_up_stat runtime = {.flags = FORKED_WITHOUT_EXEC, .started = now()};
    struct made_up_stat other = runtime;

    put_process(world, pid, USER, NULL);
    assert_true(may_follow(world, pid, 0, &runtime));
    assert_true(may_follow(world, pid, now() - DURATION_SECOND, &runtime));
    /* The container's own program was executed. */
    other.flags = 0;
    assert_false(may_follow(world, pid, 0, &other));
    /* Its time is over. */
    other = runtime;
    other.started = now() - 6 * DURATION_SECOND;
    assert_false(may_follow(world, pid, 0, &other));
    /* It is older than the lease. */
    assert_false(may_follow(world, pid, now() + DURATION_SECOND, &runtime));
    /* It has ended. */
    other = runtime;
    other.state = 'Z';
    assert_false(may_follow(world, pid, 0, &other));
    other.state = 'X';
    assert_false(may_follow(world, pid, 0, &other));
    end_child(pid);
}

static void a_young_process_of_our_namespace_gets_no_mark(void **state)
{
    struct question_world *world = *state;
    pid_t pid = fork_child(0);
    const struct made_up_stat forked = {.flags = FORKED_WITHOUT_EXEC, .started = now()};

    assert_true(pid > 0);
    put_process(world, pid, USER, NULL);
    assert_false(may_follow(world, pid, 0, &forked));
    /* No process is touched afterwards. */
    assert_int_equal((uint32_t)world->progress, 0);
    end_child(pid);
}

static void a_process_that_is_gone_gets_no_mark(void **state)
{
    struct question_world *world = *state;

    assert_false(process_mark_may_follow(&world->files, FIRST, 0));
    put_process(world, FIRST, USER, NULL);
    assert_false(process_mark_may_follow(&world->files, FIRST, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_QUESTION(a_mark_has_two_variables),
        ON_QUESTION(an_environment_may_be_missing),
        ON_QUESTION(a_process_inside_execve_is_tried_again),
        cmocka_unit_test(a_variable_has_its_whole_name),
        ON_QUESTION(a_young_runtime_in_another_namespace_may_get_a_mark),
        ON_QUESTION(a_young_process_of_our_namespace_gets_no_mark),
        ON_QUESTION(a_process_that_is_gone_gets_no_mark),
    };

    return cmocka_run_group_tests_name("process_mark", tests, NULL, NULL);
}
