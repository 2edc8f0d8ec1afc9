/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "proc_reader/proc_question.h"

#include "base/text/quantity.h"
#include "support/hardware/reader_questions.h"

static const struct reader_process *describe(struct question_world *world, int pid)
{
    world->request.pids.count = 0;
    add_number(&world->request.pids, pid);
    ask(world, proc_question_describe);
    assert_int_equal(count_answers(world), 1);
    return find_answer(world, pid);
}

/* A process of USER with two ancestors, and all of its files. */
static void put_family(struct question_world *world)
{
    put_marked(world, FIRST, USER, LEASE);
    made_up_stat(FIRST,
                 &(struct made_up_stat){.parent = FIRST + 1, .started = 9 * DURATION_SECOND});
    put_status(FIRST, "Name:\tUid:\t7\nPid:\t1\nPPid:\t5000002\nUid:\t1000\t1001\t1002\t1003\n"
                      "Gid:\t2000\t2001\t2002\t2003\nGroups:\t4 24 2000 \nNStgid:\t1\n");
    put_process(world, FIRST + 1, OTHER, NULL);
    put_parent(FIRST + 1, FIRST + 2);
    put_process(world, FIRST + 2, 0, NULL);
    put_parent(FIRST + 2, 0);
}

static void all_facts_of_a_process_are_told(void **state)
{
    struct question_world *world = *state;
    const struct reader_process *process;

    put_family(world);
    process = describe(world, FIRST);
    assert_int_equal(process->state, READER_FOUND);
    assert_true(process->descriptor >= 0);
    assert_int_equal(process->parent, FIRST + 1);
    assert_int_equal(process->started, 9 * DURATION_SECOND);
    assert_true(process->uid.known && process->uid.value == 1000);
    assert_true(process->gid.known && process->gid.value == 2000);
    assert_int_equal(process->groups.count, 3);
    assert_int_equal(process->groups.items[0], 4);
    assert_int_equal(process->groups.items[2], 2000);
    assert_int_equal(process->lease, LEASE);
    assert_string_equal(process->socket, question_socket);
    assert_null(process->devices);
    assert_false(process->owner.known);
    assert_null(process->container);
    assert_int_equal(process->ancestors.count, 2);
    assert_int_equal(process->ancestors.items[0], FIRST + 1);
    assert_int_equal(process->ancestors.items[1], FIRST + 2);
    /* Of the ancestors, only the parents are read. */
    assert_string_equal(opened_files(world, FIRST + 1), "status ");
    assert_string_equal(opened_files(world, FIRST + 2), "status ");
}

static void the_identity_needs_no_environment(void **state)
{
    struct question_world *world = *state;
    const struct reader_process *process;

    put_family(world);
    world->request.identity_only = true;
    process = describe(world, FIRST);
    assert_int_equal(process->uid.value, 1000);
    assert_int_equal(process->parent, FIRST + 1);
    assert_int_equal(process->started, 9 * DURATION_SECOND);
    assert_false(process->gid.known);
    assert_int_equal(process->groups.count, 0);
    assert_int_equal(process->ancestors.count, 0);
    assert_int_equal(process->lease, 0);
    assert_string_equal(opened_files(world, FIRST), "stat status ");
    assert_string_equal(opened_files(world, FIRST + 1), "");
}

static void a_process_that_stalled_a_reader_is_not_opened(void **state)
{
    struct question_world *world = *state;
    const struct reader_process *process;

    put_family(world);
    add_number(&world->request.stalled, FIRST);
    process = describe(world, FIRST);
    assert_int_equal(process->state, READER_STALLED);
    assert_int_equal(process->uid.value, USER);
    assert_int_equal(process->lease, 0);
    assert_int_equal(process->parent, 0);
    assert_string_equal(opened_files(world, FIRST), "");
}

static void an_ancestor_that_stalled_a_reader_is_not_opened(void **state)
{
    struct question_world *world = *state;
    const struct reader_process *process;

    put_family(world);
    add_number(&world->request.stalled, FIRST + 1);
    process = describe(world, FIRST);
    assert_int_equal(process->state, READER_FOUND);
    assert_int_equal(process->ancestors.count, 1);
    assert_int_equal(process->ancestors.items[0], FIRST + 1);
    assert_string_equal(opened_files(world, FIRST + 1), "");
}

static void every_process_has_its_place_in_the_answer(void **state)
{
    struct question_world *world = *state;
    const struct reader_processes *answers = &world->question.pages.page.processes;

    put_process(world, FIRST + 1, USER, NULL);
    add_number(&world->request.pids, FIRST);
    add_number(&world->request.pids, FIRST + 1);
    add_number(&world->request.pids, 0);
    add_number(&world->request.pids, -1);
    add_number(&world->request.pids, FIRST + 1);
    ask(world, proc_question_describe);
    assert_int_equal(answers->count, 3);
    assert_int_equal(answers->items[0].pid, FIRST);
    assert_int_equal(answers->items[0].state, READER_GONE);
    assert_int_equal(answers->items[0].descriptor, -1);
    assert_int_equal(answers->items[1].pid, FIRST + 1);
    assert_int_equal(answers->items[1].state, READER_FOUND);
    assert_int_equal(answers->items[2].pid, FIRST + 1);
}

/* Ancestors that are each other's parents do not exist, but their numbers may be given out anew. */
static void the_number_of_ancestors_is_limited(void **state)
{
    struct question_world *world = *state;

    put_process(world, FIRST, USER, NULL);
    put_parent(FIRST, FIRST + 1);
    put_process(world, FIRST + 1, USER, NULL);
    put_parent(FIRST + 1, FIRST);
    assert_int_equal(describe(world, FIRST)->ancestors.count, 64);
}

static void damaged_facts_are_unknown(void **state)
{
    struct question_world *world = *state;
    const struct reader_process *process;

    put_process(world, FIRST, USER, "BERTH_LEASE=x\nBERTH_SOCKET=/a\n");
    put_status(FIRST, "Uid:\t1000\nUid:\t\nGid:\t99999999999\nGroups:\t\n7\n");
    process = describe(world, FIRST);
    assert_int_equal(process->state, READER_FOUND);
    assert_false(process->uid.known);
    assert_false(process->gid.known);
    assert_int_equal(process->groups.count, 0);
    assert_int_equal(process->lease, 0);
    assert_null(process->socket);
    assert_int_equal(process->started, 0);
    assert_int_equal(process->parent, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_QUESTION(all_facts_of_a_process_are_told),
        ON_QUESTION(the_identity_needs_no_environment),
        ON_QUESTION(a_process_that_stalled_a_reader_is_not_opened),
        ON_QUESTION(an_ancestor_that_stalled_a_reader_is_not_opened),
        ON_QUESTION(every_process_has_its_place_in_the_answer),
        ON_QUESTION(the_number_of_ancestors_is_limited),
        ON_QUESTION(damaged_facts_are_unknown),
    };

    return cmocka_run_group_tests_name("describe", tests, NULL, NULL);
}
