/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes that are left of a lease, in a made-up /proc, and the files that were opened to
 * find them.
 */
#include "support/unit.h"

#include "proc_reader/proc_question.h"

#include "base/text/quantity.h"
#include "support/hardware/reader_questions.h"

static void find(struct question_world *world)
{
    ask(world, proc_question_find_leftovers);
}

static void add_range(struct question_world *world, uint32_t first, uint32_t count)
{
    struct reader_range *range = vector_append(&world->request.ranges);

    assert_non_null(range);
    *range = (struct reader_range){first, count};
}

static uint64_t now(void)
{
    return (uint64_t)clock_read(CLOCK_BOOTTIME);
}

/* ---- Marks ---- */

static void processes_with_the_mark_are_left(void **state)
{
    struct question_world *world = *state;

    put_marked(world, FIRST, USER, LEASE);
    put_marked(world, FIRST + 1, USER, LEASE + 1);
    put_process(world, FIRST + 2, USER, "BERTH_LEASE=4711\nBERTH_SOCKET=/other\n");
    put_process(world, FIRST + 3, USER, "PATH=/bin\n");
    put_process(world, FIRST + 4, USER, NULL);
    find(world);
    assert_int_equal(count_answers(world), 1);
    assert_int_equal(state_of(world, FIRST), READER_OURS);
    assert_int_equal(find_answer(world, FIRST)->lease, LEASE);
    assert_int_equal(find_answer(world, FIRST)->uid.value, USER);
    assert_true(find_answer(world, FIRST)->descriptor >= 0);
}

static void an_old_process_without_a_mark_is_read_once(void **state)
{
    struct question_world *world = *state;

    put_process(world, FIRST, USER, "PATH=/bin\n");
    made_up_stat(FIRST, &(struct made_up_stat){.environment_end = 1, .started = 1});
    find(world);
    assert_string_equal(opened_files(world, FIRST), "stat environ ");
    find(world);
    assert_string_equal(opened_files(world, FIRST), "");
    /* A young one may still get a mark. */
    put_process(world, FIRST + 1, USER, "PATH=/bin\n");
    made_up_stat(FIRST + 1, &(struct made_up_stat){.environment_end = 1, .started = now()});
    find(world);
    find(world);
    assert_string_equal(opened_files(world, FIRST + 1), "stat environ ");
}

static void a_process_inside_execve_may_carry_a_mark_later(void **state)
{
    struct question_world *world = *state;

    put_process(world, FIRST, USER, "");
    made_up_stat(FIRST, &(struct made_up_stat){.started = now()});
    find(world);
    assert_int_equal(state_of(world, FIRST), READER_LATER);
    made_up_environment(FIRST, "BERTH_LEASE=4711\nBERTH_SOCKET=/run/test/berth.sock\n");
    find(world);
    assert_int_equal(state_of(world, FIRST), READER_OURS);
}

static void a_container_that_starts_may_carry_a_mark_later(void **state)
{
    struct question_world *world = *state;
    pid_t pid = start_in_namespace();

    put_process(world, pid, USER, "PATH=/bin\n");
    made_up_stat(pid, &(struct made_up_stat){
                          .flags = FORKED_WITHOUT_EXEC, .environment_end = 1, .started = now()});
    find(world);
    assert_int_equal(count_answers(world), 0);
    world->request.containers_matter = true;
    find(world);
    assert_int_equal(state_of(world, pid), READER_CONTAINER);
    end_child(pid);
}

static void older_and_spared_processes_are_not_opened(void **state)
{
    struct question_world *world = *state;

    put_marked(world, FIRST, USER, LEASE);
    put_parent(FIRST, 1);
    put_marked(world, FIRST + 1, OTHER, LEASE);
    put_parent(FIRST + 1, 1);
    find(world);
    assert_int_equal(count_answers(world), 1);
    world->request.since = now();
    /* It is old, although the user is new. */
    made_up_chown(FIRST + 1, USER);
    assert_int_equal(proc_index_set(&world->index, -1, FIRST + 1), 0);
    put_marked(world, FIRST + 2, USER, LEASE);
    put_marked(world, FIRST + 3, USER, LEASE);
    add_number(&world->request.spared, FIRST + 3);
    find(world);
    assert_int_equal(count_answers(world), 1);
    assert_int_equal(state_of(world, FIRST + 2), READER_OURS);
    assert_string_equal(opened_files(world, FIRST), "");
    assert_string_equal(opened_files(world, FIRST + 1), "");
    assert_string_equal(opened_files(world, FIRST + 3), "");
}

/* ---- The user rule ---- */

static void processes_of_other_users_are_not_opened(void **state)
{
    struct question_world *world = *state;

    put_marked(world, FIRST, USER, LEASE);
    put_marked(world, FIRST + 1, OTHER, LEASE);
    put_parent(FIRST + 1, FIRST);
    put_marked(world, FIRST + 2, 0, LEASE);
    put_parent(FIRST + 2, FIRST);
    find(world);
    assert_int_equal(count_answers(world), 1);
    assert_int_equal(state_of(world, FIRST), READER_OURS);
    assert_string_equal(opened_files(world, FIRST + 1), "");
    assert_string_equal(opened_files(world, FIRST + 2), "");
}

static void subordinate_users_count_as_the_user(void **state)
{
    struct question_world *world = *state;

    add_range(world, SUBORDINATE, 10);
    add_range(world, SUBORDINATE + 1000, 1);
    put_marked(world, FIRST, SUBORDINATE - 1, LEASE);
    put_marked(world, FIRST + 1, SUBORDINATE, LEASE);
    put_marked(world, FIRST + 2, SUBORDINATE + 9, LEASE);
    put_marked(world, FIRST + 3, SUBORDINATE + 10, LEASE);
    put_marked(world, FIRST + 4, SUBORDINATE + 1000, LEASE);
    find(world);
    assert_int_equal(count_answers(world), 3);
    assert_int_equal(state_of(world, FIRST + 1), READER_OURS);
    assert_int_equal(find_answer(world, FIRST + 1)->uid.value, SUBORDINATE);
    assert_int_equal(state_of(world, FIRST + 2), READER_OURS);
    assert_int_equal(state_of(world, FIRST + 4), READER_OURS);
    assert_string_equal(opened_files(world, FIRST), "");
    assert_string_equal(opened_files(world, FIRST + 3), "");
    /* Root has no subordinate uids. */
    world->request.uid = 0;
    find(world);
    assert_int_equal(count_answers(world), 0);
    assert_string_equal(opened_files(world, FIRST + 1), "");
}

/* A process may change its user after the reader learned of it. */
static void the_user_at_the_time_of_the_question_counts(void **state)
{
    struct question_world *world = *state;

    put_marked(world, FIRST, USER, LEASE);
    assert_int_equal(proc_index_refresh(&world->index, true), 0);
    made_up_chown(FIRST, OTHER);
    find(world);
    assert_int_equal(count_answers(world), 0);
    assert_string_equal(opened_files(world, FIRST), "");
}

static void a_process_that_stalled_a_reader_is_not_opened(void **state)
{
    struct question_world *world = *state;

    put_marked(world, FIRST, USER, LEASE);
    put_marked(world, FIRST + 1, OTHER, LEASE);
    add_number(&world->request.stalled, FIRST);
    add_number(&world->request.stalled, FIRST + 1);
    find(world);
    assert_int_equal(count_answers(world), 1);
    assert_int_equal(state_of(world, FIRST), READER_STALLED);
    assert_int_equal(find_answer(world, FIRST)->uid.value, USER);
    assert_string_equal(opened_files(world, FIRST), "");
    assert_string_equal(opened_files(world, FIRST + 1), "");
}

/* ---- Processes of root ---- */

static void start_session(struct question_world *world, pid_t *ret_inside, pid_t *ret_outside)
{
    *ret_inside = fork_child(0);
    *ret_outside = fork_child(0);
    assert_true(*ret_inside > 0 && *ret_outside > 0);
    world->request.session = (uint32_t)getsid(0);
    put_marked(world, *ret_inside, 0, LEASE);
    put_marked(world, FIRST, 0, LEASE); /* there is no such process, so it has no session */
}

static void marked_processes_of_root_in_the_session_are_foreign(void **state)
{
    struct question_world *world = *state;
    pid_t one, other;

    start_session(world, &one, &other);
    put_process(world, other, 0, "PATH=/bin\n");
    find(world);
    assert_int_equal(count_answers(world), 1);
    assert_int_equal(state_of(world, one), READER_FOREIGN);
    assert_int_equal(find_answer(world, one)->lease, LEASE);
    assert_int_equal(find_answer(world, one)->uid.value, 0);
    assert_string_equal(opened_files(world, FIRST), "");
    /* It is no leftover, so its descendants are none. */
    put_process(world, FIRST + 1, USER, "PATH=/bin\n");
    put_parent(FIRST + 1, one);
    put_marked(world, FIRST + 2, USER, LEASE);
    find(world);
    assert_int_equal(count_answers(world), 2);
    assert_int_equal(state_of(world, FIRST + 1), 0);
    end_child(one);
    end_child(other);
}

static void no_process_of_root_is_opened_without_its_session(void **state)
{
    struct question_world *world = *state;
    pid_t one, other;

    start_session(world, &one, &other);
    put_marked(world, other, OTHER, LEASE);
    world->request.session = 0;
    find(world);
    assert_int_equal(count_answers(world), 0);
    assert_string_equal(opened_files(world, one), "");
    /* Nor one that stalled a reader, nor another user's. */
    world->request.session = (uint32_t)getsid(0);
    add_number(&world->request.stalled, one);
    find(world);
    assert_int_equal(count_answers(world), 0);
    assert_string_equal(opened_files(world, one), "");
    assert_string_equal(opened_files(world, other), "");
    end_child(one);
    end_child(other);
}

static void a_lease_of_root_has_no_foreign_processes(void **state)
{
    struct question_world *world = *state;
    pid_t one, other;

    start_session(world, &one, &other);
    world->request.uid = 0;
    find(world);
    assert_int_equal(count_answers(world), 2);
    assert_int_equal(state_of(world, one), READER_OURS);
    assert_int_equal(state_of(world, FIRST), READER_OURS);
    end_child(one);
    end_child(other);
}

/* ---- Descendants ---- */

static void descendants_of_leftovers_need_no_mark(void **state)
{
    struct question_world *world = *state;

    put_marked(world, FIRST, USER, LEASE);
    for (int i = 1; i <= 4; i++)
        put_process(world, FIRST + i, USER, "PATH=/bin\n");
    put_parent(FIRST + 1, FIRST);
    put_parent(FIRST + 2, FIRST + 1);
    put_parent(FIRST + 3, 1);
    put_parent(FIRST + 4, FIRST + 3);
    find(world);
    assert_int_equal(count_answers(world), 3);
    assert_int_equal(state_of(world, FIRST + 1), READER_OURS);
    assert_int_equal(state_of(world, FIRST + 2), READER_OURS);
    assert_int_equal(find_answer(world, FIRST + 2)->lease, 0);
}

static void an_adopted_process_needs_no_mark(void **state)
{
    struct question_world *world = *state;

    put_process(world, FIRST, USER, "PATH=/bin\n");
    put_process(world, FIRST + 1, USER, "PATH=/bin\n");
    put_parent(FIRST + 1, FIRST);
    world->request.root_pid = FIRST;
    find(world);
    assert_int_equal(count_answers(world), 2);
    assert_int_equal(state_of(world, FIRST), READER_OURS);
    assert_int_equal(state_of(world, FIRST + 1), READER_OURS);
    /* Unless it is another user's by now. */
    made_up_chown(FIRST, OTHER);
    find(world);
    assert_int_equal(state_of(world, FIRST), 0);
    assert_string_equal(opened_files(world, FIRST), "");
}

/* An adopted process may be left out itself, as a client that ends its own lease. */
static void descendants_of_a_spared_process_are_found(void **state)
{
    struct question_world *world = *state;

    put_process(world, FIRST, USER, "PATH=/bin\n");
    put_process(world, FIRST + 1, USER, "PATH=/bin\n");
    put_parent(FIRST + 1, FIRST);
    put_marked(world, FIRST + 2, USER, LEASE);
    world->request.root_pid = FIRST;
    add_number(&world->request.spared, FIRST);
    find(world);
    assert_int_equal(count_answers(world), 2);
    assert_int_equal(state_of(world, FIRST + 1), READER_OURS);
    assert_int_equal(state_of(world, FIRST + 2), READER_OURS);
}

/* Root may signal all processes, so every user's processes are its lease's. */
static void processes_of_all_users_descend_from_roots_leftovers(void **state)
{
    struct question_world *world = *state;

    world->request.uid = 0;
    put_marked(world, FIRST, 0, LEASE);
    put_process(world, FIRST + 1, USER, "PATH=/bin\n");
    put_parent(FIRST + 1, FIRST);
    put_process(world, FIRST + 2, OTHER, "PATH=/bin\n");
    put_parent(FIRST + 2, FIRST + 1);
    put_marked(world, FIRST + 3, OTHER, LEASE);
    put_parent(FIRST + 3, 1);
    find(world);
    assert_int_equal(count_answers(world), 3);
    assert_int_equal(state_of(world, FIRST + 1), READER_OURS);
    assert_int_equal(find_answer(world, FIRST + 1)->uid.value, USER);
    assert_int_equal(state_of(world, FIRST + 2), READER_OURS);
    /* The mark of a stranger is not read. */
    assert_string_equal(opened_files(world, FIRST + 3), "status ");
}

static void descendants_of_roots_holder_need_a_mark(void **state)
{
    struct question_world *world = *state;

    world->request.uid = 0;
    world->request.holder_pid = FIRST;
    put_process(world, FIRST, 0, "PATH=/bin\n");
    put_marked(world, FIRST + 1, USER, LEASE);
    put_parent(FIRST + 1, FIRST);
    put_process(world, FIRST + 2, USER, "PATH=/bin\n");
    put_parent(FIRST + 2, FIRST);
    put_marked(world, FIRST + 3, USER, LEASE);
    put_parent(FIRST + 3, 1);
    find(world);
    assert_int_equal(count_answers(world), 1);
    assert_int_equal(state_of(world, FIRST + 1), READER_OURS);
    /* A user's lease has no processes of others, not even below the holder. */
    world->request.uid = OTHER;
    find(world);
    assert_int_equal(count_answers(world), 0);
}

/* ---- The holder ---- */

/* A lease that is ended while its command runs: the command is older than the grant, and its
 * children may carry no mark. */
static void the_holder_is_found_although_it_is_old(void **state)
{
    struct question_world *world = *state;

    put_marked(world, FIRST, USER, LEASE);
    put_parent(FIRST, 1);
    put_marked(world, FIRST + 1, USER, LEASE);
    find(world);
    world->request.since = now();
    put_process(world, FIRST + 2, USER, "PATH=/bin\n");
    put_parent(FIRST + 2, FIRST);
    find(world);
    assert_int_equal(count_answers(world), 0);
    world->request.holder_pid = FIRST;
    find(world);
    assert_int_equal(count_answers(world), 2);
    assert_int_equal(state_of(world, FIRST), READER_OURS);
    assert_int_equal(state_of(world, FIRST + 2), READER_OURS);
}

/* The holder has ended, and its number is another process's. */
static void another_process_with_the_holders_number_is_not_left(void **state)
{
    struct question_world *world = *state;

    put_process(world, FIRST, USER, "PATH=/bin\n");
    put_parent(FIRST, 1);
    put_marked(world, FIRST + 1, OTHER, LEASE);
    world->request.since = now();
    world->request.holder_pid = FIRST;
    find(world);
    assert_int_equal(count_answers(world), 0);
    world->request.holder_pid = FIRST + 1;
    find(world);
    assert_int_equal(count_answers(world), 0);
    assert_string_equal(opened_files(world, FIRST + 1), "");
}

static void ask_exit_code(struct question_world *world, uint64_t started)
{
    world->request.holder_pid = FIRST;
    world->request.holder_started = started;
    world->request.wants_exit_code = true;
    find(world);
}

static void the_exit_code_is_that_of_the_holder(void **state)
{
    struct question_world *world = *state;
    const struct optional_number *code = &world->question.pages.page.exit_code;
    struct made_up_stat stat = {.state = 'Z', .started = 5 * DURATION_SECOND, .status = 7 << 8};

    put_process(world, FIRST, USER, NULL);
    made_up_stat(FIRST, &stat);
    ask_exit_code(world, 5 * DURATION_SECOND);
    assert_true(code->known && code->value == 7);
    ask_exit_code(world, 0);
    assert_true(code->known && code->value == 7);
    /* Another process has the number. */
    ask_exit_code(world, 6 * DURATION_SECOND);
    assert_false(code->known);
    /* A death by signal. */
    stat.status = SIGTERM;
    made_up_stat(FIRST, &stat);
    ask_exit_code(world, 0);
    assert_true(code->known && code->value == 128 + SIGTERM);
    /* It runs. */
    stat.state = 'S';
    made_up_stat(FIRST, &stat);
    ask_exit_code(world, 0);
    assert_false(code->known);
    stat.state = 'Z';
    made_up_stat(FIRST, &stat);
    made_up_write("5000001/exe", "");
    ask_exit_code(world, 0);
    assert_false(code->known);
}

static void a_holder_that_stalled_a_reader_has_no_exit_code(void **state)
{
    struct question_world *world = *state;

    put_process(world, FIRST, USER, NULL);
    made_up_stat(FIRST, &(struct made_up_stat){.state = 'Z'});
    add_number(&world->request.stalled, FIRST);
    ask_exit_code(world, 0);
    assert_false(world->question.pages.page.exit_code.known);
    assert_string_equal(opened_files(world, FIRST), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_QUESTION(processes_with_the_mark_are_left),
        ON_QUESTION(an_old_process_without_a_mark_is_read_once),
        ON_QUESTION(a_process_inside_execve_may_carry_a_mark_later),
        ON_QUESTION(a_container_that_starts_may_carry_a_mark_later),
        ON_QUESTION(older_and_spared_processes_are_not_opened),
        ON_QUESTION(processes_of_other_users_are_not_opened),
        ON_QUESTION(subordinate_users_count_as_the_user),
        ON_QUESTION(the_user_at_the_time_of_the_question_counts),
        ON_QUESTION(a_process_that_stalled_a_reader_is_not_opened),
        ON_QUESTION(marked_processes_of_root_in_the_session_are_foreign),
        ON_QUESTION(no_process_of_root_is_opened_without_its_session),
        ON_QUESTION(a_lease_of_root_has_no_foreign_processes),
        ON_QUESTION(descendants_of_leftovers_need_no_mark),
        ON_QUESTION(an_adopted_process_needs_no_mark),
        ON_QUESTION(descendants_of_a_spared_process_are_found),
        ON_QUESTION(processes_of_all_users_descend_from_roots_leftovers),
        ON_QUESTION(descendants_of_roots_holder_need_a_mark),
        ON_QUESTION(the_holder_is_found_although_it_is_old),
        ON_QUESTION(another_process_with_the_holders_number_is_not_left),
        ON_QUESTION(the_exit_code_is_that_of_the_holder),
        ON_QUESTION(a_holder_that_stalled_a_reader_has_no_exit_code),
    };

    return cmocka_run_group_tests_name("find_leftovers", tests, NULL, NULL);
}
