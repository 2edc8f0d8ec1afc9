/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "proc_reader/proc_index.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "support/failing_allocator.h"
#include "support/hardware/made_up_processes.h"
#include "support/temporary_directory.h"

enum { MANY = 1000, FIRST = 300, USER = 1000 };

static _Atomic uint64_t progress;

static void begin(struct proc_files *files, struct proc_index *index)
{
    *files = (struct proc_files){
        .directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        .progress = &progress,
        .is_old_kernel = true,
        .open_process = made_up_open,
    };
    assert_true(files->directory >= 0);
    assert_int_equal(proc_index_init(index, files), 0);
    assert_int_equal(proc_index_refresh(index, true), 0);
}

static void end(struct proc_files *files, struct proc_index *index)
{
    proc_index_finish(index);
    close(files->directory);
}

static void make_processes(int first, int count)
{
    for (int pid = first; pid < first + count; pid++)
        made_up_process(pid, USER);
}

static unsigned long count_opened(struct proc_index *index)
{
    made_up_opened = 0;
    assert_int_equal(proc_index_refresh(index, true), 0);
    return made_up_opened;
}

static void a_look_costs_nothing_for_processes_that_are_known(void **state)
{
    struct proc_files files;
    struct proc_index index;

    (void)state;
    make_processes(FIRST, MANY);
    made_up_machine(FIRST + MANY - 1, 100000);
    begin(&files, &index);
    assert_int_equal(index.count, MANY);
    assert_int_equal(count_opened(&index), 0);
    make_processes(FIRST + MANY, 2);
    made_up_machine(FIRST + MANY + 1, 100002);
    assert_int_equal(count_opened(&index), 2);
    assert_int_equal(index.count, MANY + 2);
    assert_non_null(proc_index_find(&index, FIRST + MANY + 1));
    assert_int_equal(proc_index_find(&index, FIRST)->user->by_uid.id, USER);
    end(&files, &index);
}

static void a_number_that_is_not_a_process_yet_is_looked_at_again(void **state)
{
    struct proc_files files;
    struct proc_index index;

    (void)state;
    made_up_machine(FIRST, 100);
    begin(&files, &index);
    made_up_machine(FIRST + 1, 101);
    assert_int_equal(proc_index_refresh(&index, true), 0);
    assert_null(proc_index_find(&index, FIRST + 1));
    made_up_process(FIRST + 1, USER);
    assert_int_equal(proc_index_refresh(&index, true), 0);
    assert_non_null(proc_index_find(&index, FIRST + 1));
    end(&files, &index);
}

static void numbers_start_again(void **state)
{
    struct proc_files files;
    struct proc_index index;

    (void)state;
    make_processes(32760, 8);
    make_processes(FIRST + 1, 1);
    made_up_machine(32767, 1000);
    begin(&files, &index);
    proc_index_set_unmarked(proc_index_find(&index, FIRST + 1));
    made_up_process(FIRST + 2, USER);
    made_up_machine(FIRST + 2, 1003);
    assert_int_equal(count_opened(&index), 3);
    assert_non_null(proc_index_find(&index, FIRST + 2));
    /* It is another process now. */
    assert_false(proc_index_find(&index, FIRST + 1)->is_unmarked);
    end(&files, &index);
}

static void after_many_forks_all_are_looked_at(void **state)
{
    struct proc_files files;
    struct proc_index index;

    (void)state;
    make_processes(FIRST, 10);
    made_up_machine(FIRST + 9, 1000);
    begin(&files, &index);
    proc_index_set_unmarked(proc_index_find(&index, FIRST + 3));
    made_up_end(FIRST + 5);
    made_up_machine(FIRST + 9, 1000 + 40000);
    index.refreshed_at -= INT64_C(100000000000); /* as if that had taken 100 s */
    assert_int_equal(proc_index_refresh(&index, true), 0);
    assert_null(proc_index_find(&index, FIRST + 5));
    assert_false(proc_index_find(&index, FIRST + 3)->is_unmarked);
    assert_int_equal(index.count, 9);
    /* Few forks in a long time are no reason. */
    made_up_end(FIRST + 6);
    made_up_machine(FIRST + 9, 1000 + 40001);
    index.refreshed_at -= INT64_C(100000000000);
    assert_int_equal(count_opened(&index), 0);
    assert_int_equal(index.count, 9);
    end(&files, &index);
}

/* Works until nothing is due. A busy machine may take so long that it is due again. */
static void work(struct proc_index *index)
{
    int pause;

    do
        pause = proc_index_work(index);
    while (pause == 0);
    assert_true(pause > 0);
}

static void processes_that_ended_are_forgotten_in_time(void **state)
{
    struct proc_files files;
    struct proc_index index;

    (void)state;
    make_processes(FIRST, 600);
    made_up_machine(FIRST + 599, 1000);
    begin(&files, &index);
    for (int pid = FIRST; pid < FIRST + 500; pid++)
        made_up_end(pid);
    work(&index);
    assert_int_equal(index.count, 600);
    index.swept_at -= INT64_C(61000000000);
    work(&index);
    assert_int_equal(index.count, 100);
    end(&files, &index);
}

static void roots_process_may_become_a_users(void **state)
{
    struct proc_files files;
    struct proc_index index;
    struct proc_entry *entry;

    (void)state;
    made_up_process(FIRST, 0);
    made_up_process(FIRST + 1, 0);
    made_up_machine(FIRST + 1, 1000);
    begin(&files, &index);
    made_up_chown(FIRST, USER);
    assert_int_equal(proc_index_refresh(&index, true), 0);
    assert_int_equal(proc_index_find(&index, FIRST)->user->by_uid.id, USER);
    /* A settled process is not looked up again. */
    entry = proc_index_find(&index, FIRST + 1);
    assert_int_equal(entry->user->by_uid.id, 0);
    entry->seen -= PROC_INDEX_SETTLED;
    assert_int_equal(count_opened(&index), 1);
    assert_int_equal(count_opened(&index), 0);
    work(&index);
    end(&files, &index);
}

static void new_processes_are_learned_about_while_there_is_no_question(void **state)
{
    struct proc_files files;
    struct proc_index index;
    int64_t moment = INT64_C(1100000000);

    (void)state;
    make_processes(FIRST, 10);
    made_up_machine(FIRST + 9, 1000);
    begin(&files, &index);
    made_up_end(FIRST + 5);
    make_processes(FIRST + 2000, 500);
    made_up_machine(FIRST + 2499, 3490);
    index.refreshed_at -= moment;
    index.pending_at -= moment;
    assert_int_equal(proc_index_work(&index), 0);
    assert_non_null(proc_index_find(&index, FIRST + 2499));
    /* There were many, so the next look is soon. */
    assert_int_equal(index.pause, 250000000);
    made_up_opened = 0;
    index.refreshed_at -= moment;
    index.pending_at -= moment;
    assert_int_equal(proc_index_work(&index), 0);
    assert_int_equal(count_opened(&index), 0);
    end(&files, &index);
}

static void at_rest_the_index_is_refreshed_less_often(void **state)
{
    struct proc_files files;
    struct proc_index index;
    int64_t longest = 0;

    (void)state;
    make_processes(FIRST, 10);
    made_up_machine(FIRST + 9, 1000);
    begin(&files, &index);
    for (int i = 0; i < 10; i++) {
        index.refreshed_at -= index.pause;
        work(&index);
        assert_true(index.pause >= longest);
        longest = index.pause;
    }
    assert_int_equal(longest, INT64_C(8000000000));
    make_processes(FIRST + 10, 1);
    made_up_machine(FIRST + 10, 1001);
    index.refreshed_at -= index.pause;
    assert_int_equal(proc_index_work(&index), 0);
    assert_int_equal(index.pause, 1000000000);
    end(&files, &index);
}

static void after_many_forks_the_sweep_needs_no_question(void **state)
{
    struct proc_files files;
    struct proc_index index;

    (void)state;
    make_processes(FIRST, 600);
    made_up_machine(FIRST + 599, 1000);
    begin(&files, &index);
    proc_index_set_unmarked(proc_index_find(&index, FIRST + 3));
    made_up_end(FIRST + 5);
    made_up_machine(FIRST + 599, 1000 + 40000);
    index.refreshed_at -= INT64_C(100000000000);
    work(&index);
    assert_null(proc_index_find(&index, FIRST + 5));
    assert_false(proc_index_find(&index, FIRST + 3)->is_unmarked);
    assert_int_equal(index.count, 599);
    assert_int_equal(count_opened(&index), 0);
    end(&files, &index);
}

enum { ENDED = 200 };

/* Processes of this test, and how often they were opened. */
static pid_t watched[ENDED];
static unsigned long opened_watched;

static int open_and_count(const struct proc_files *files, pid_t pid)
{
    (void)files;
    for (int i = 0; i < ENDED; i++)
        opened_watched += watched[i] == pid;
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static pid_t start_process(void)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    while (pid == 0)
        pause();
    return pid;
}

static void end_process(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_look_costs_nothing_for_processes_that_have_ended(void **state)
{
    struct proc_files files = {
        .directory = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        .progress = &progress,
        .is_old_kernel = true,
        .open_process = open_and_count,
    };
    struct proc_index index;
    pid_t first;
    pid_t last;

    (void)state;
    assert_int_equal(proc_index_init(&index, &files), 0);
    assert_int_equal(proc_index_refresh(&index, true), 0);
    first = start_process();
    for (int i = 0; i < ENDED; i++) {
        watched[i] = start_process();
        end_process(watched[i]);
    }
    last = start_process();
    assert_int_equal(proc_index_refresh(&index, true), 0);
    assert_non_null(proc_index_find(&index, first));
    assert_non_null(proc_index_find(&index, last));
    assert_int_equal(opened_watched, 0);
    end_process(first);
    end_process(last);
    end(&files, &index);
}

static int fill(void *context)
{
    struct proc_files *files = context;
    struct proc_index index;
    int code = proc_index_init(&index, files);

    if (code < 0)
        return code;
    code = proc_index_refresh(&index, true);
    proc_index_finish(&index);
    return code;
}

static void out_of_memory_is_reported(void **state)
{
    struct proc_files files = {
        .directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        .progress = &progress,
        .is_old_kernel = true,
        .open_process = made_up_open,
    };

    (void)state;
    make_processes(FIRST, 3);
    made_up_machine(FIRST + 2, 1000);
    for (unsigned long n = 1;; n++) {
        bool refused;

        failing_allocator_start(n);
        (void)fill(&files);
        refused = failing_allocator_stop();
        if (!refused)
            break;
    }
    assert_int_equal(fill(&files), 0);
    close(files.directory);
}

int main(void)
{
#define IN_A_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, temporary_directory_enter, temporary_directory_leave)
    const struct CMUnitTest tests[] = {
        IN_A_DIRECTORY(a_look_costs_nothing_for_processes_that_are_known),
        IN_A_DIRECTORY(a_number_that_is_not_a_process_yet_is_looked_at_again),
        IN_A_DIRECTORY(numbers_start_again),
        IN_A_DIRECTORY(after_many_forks_all_are_looked_at),
        IN_A_DIRECTORY(processes_that_ended_are_forgotten_in_time),
        IN_A_DIRECTORY(roots_process_may_become_a_users),
        IN_A_DIRECTORY(new_processes_are_learned_about_while_there_is_no_question),
        IN_A_DIRECTORY(at_rest_the_index_is_refreshed_less_often),
        IN_A_DIRECTORY(after_many_forks_the_sweep_needs_no_question),
        cmocka_unit_test(a_look_costs_nothing_for_processes_that_have_ended),
        IN_A_DIRECTORY(out_of_memory_is_reported),
    };

    return cmocka_run_group_tests_name("proc_index", tests, NULL, NULL);
}
