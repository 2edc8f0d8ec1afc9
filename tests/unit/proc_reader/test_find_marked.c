/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "proc_reader/proc_question.h"

#include "support/hardware/reader_questions.h"

static void find(struct question_world *world)
{
    ask(world, proc_question_find_marked);
}

static void processes_of_all_users_and_leases_are_found(void **state)
{
    struct question_world *world = *state;

    put_marked(world, FIRST, USER, 7);
    put_marked(world, FIRST + 1, OTHER, 8);
    put_marked(world, FIRST + 2, 0, 9);
    put_process(world, FIRST + 3, USER, "PATH=/bin\n");
    put_process(world, FIRST + 4, USER, "BERTH_LEASE=7\nBERTH_SOCKET=/other\n");
    find(world);
    assert_int_equal(count_answers(world), 3);
    for (int i = 0; i < 3; i++) {
        const struct reader_process *process = find_answer(world, FIRST + i);

        assert_non_null(process);
        assert_int_equal(process->state, READER_FOUND);
        assert_int_equal(process->lease, 7 + i);
        assert_true(process->descriptor >= 0);
        assert_null(process->devices);
    }
    assert_int_equal(find_answer(world, FIRST + 1)->uid.value, OTHER);
    assert_int_equal(find_answer(world, FIRST + 2)->uid.value, 0);
    assert_string_equal(opened_files(world, FIRST), "environ ");
}

static void the_devices_of_a_process_are_named(void **state)
{
    struct question_world *world = *state;
    char variables[8192] = "BERTH_LEASE=7\nBERTH_SOCKET=/run/test/berth.sock\nBERTH_DEVICES=";
    size_t length = strlen(variables);

    put_process(world, FIRST, USER,
                "BERTH_DEVICES=nvidia0,nvidia1\nBERTH_LEASE=7\nBERTH_SOCKET=/run/test/"
                "berth.sock\n");
    /* A text that does not fit into a message is left out. */
    memset(variables + length, 'x', 5000);
    memcpy(variables + length + 5000, "\n", 2);
    put_process(world, FIRST + 1, USER, variables);
    find(world);
    assert_string_equal(find_answer(world, FIRST)->devices, "nvidia0,nvidia1");
    assert_int_equal(find_answer(world, FIRST + 1)->lease, 7);
    assert_null(find_answer(world, FIRST + 1)->devices);
}

static void a_process_that_stalled_a_reader_is_not_opened(void **state)
{
    struct question_world *world = *state;

    put_marked(world, FIRST, OTHER, LEASE);
    put_marked(world, FIRST + 1, USER, LEASE);
    add_number(&world->request.stalled, FIRST);
    find(world);
    assert_int_equal(count_answers(world), 2);
    assert_int_equal(state_of(world, FIRST), READER_STALLED);
    assert_int_equal(find_answer(world, FIRST)->uid.value, OTHER);
    assert_int_equal(find_answer(world, FIRST)->lease, 0);
    assert_string_equal(opened_files(world, FIRST), "");
}

/* The lease's user and its marks do not matter: this question is asked after a restart. */
static void the_fields_of_other_questions_are_ignored(void **state)
{
    struct question_world *world = *state;

    put_marked(world, FIRST, OTHER, LEASE + 1);
    find(world);
    assert_int_equal(count_answers(world), 1);
    free(world->request.socket);
    world->request.socket = NULL;
    find(world);
    assert_int_equal(count_answers(world), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_QUESTION(processes_of_all_users_and_leases_are_found),
        ON_QUESTION(the_devices_of_a_process_are_named),
        ON_QUESTION(a_process_that_stalled_a_reader_is_not_opened),
        ON_QUESTION(the_fields_of_other_questions_are_ignored),
    };

    return cmocka_run_group_tests_name("find_marked", tests, NULL, NULL);
}
