/* SPDX-License-Identifier: Apache-2.0
 *
 * All control daemons of a pool, and what the journal knows of them.
 */
#include "support/unit.h"

#include "daemon/mps/mps.h"

#include "support/daemons/mps_stage.h"

static void paths_and_marks(void **state)
{
    struct mps_stage *stage = *state;
    struct text base = {0};

    mps_append_base("/run/berth/berth.sock", &base);
    assert_string_equal(text_string(&base), "/run/berth/mps");
    text_clear(&base);
    mps_append_base(stage->socket, &base);
    assert_string_equal(text_string(&base), mps_base(stage->mps));
    text_finish(&base);
    assert_true(mps_mark(0) == UINT64_C(1) << 63);
    assert_true(mps_mark(5) == (UINT64_C(1) << 63) + 5);
}

static void nothing_works_without_the_program(void **state)
{
    struct mps_stage *stage = *state;
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(mps_check(stage->mps, NULL), 0);
    stage->has_program = false;
    assert_int_equal(mps_check(stage->mps, &error), BERTH_ERROR_IMPOSSIBLE);
    assert_string_equal(error.message,
                        "sharing mps: cannot use MPS: /nonexistent/program: no such file");
}

static void records_of_the_journal(void **state)
{
    struct mps_stage *stage = *state;
    char pipe[] = "/p";
    const struct mps_record record = {
        .user = {.uid = 1001, .gid = 100}, .pid = 77, .started = 99, .pipe = pipe, .log = "/l"};
    struct mps_record known;

    assert_false(mps_find_record(stage->mps, 0, &known));
    assert_int_equal(mps_restore(stage->mps, 0, &record), 0);
    /* The texts are copied. */
    pipe[1] = 'x';
    assert_true(mps_find_record(stage->mps, 0, &known));
    assert_int_equal(known.user.uid, 1001);
    assert_int_equal(known.user.gid, 100);
    assert_int_equal(known.pid, 77);
    assert_int_equal(known.started, 99);
    assert_string_equal(known.pipe, "/p");
    assert_string_equal(known.log, "/l");
    /* A later record says that it is gone. */
    assert_int_equal(mps_restore(stage->mps, 0, NULL), 0);
    assert_false(mps_find_record(stage->mps, 0, &known));
    mps_resume(stage->mps);
    assert_false(mps_is_present(stage->mps, 0));
    /* A slot that a pool with fewer devices lacks. */
    assert_int_equal(mps_restore(stage->mps, 1, &record), 0);
}

static void nothing_to_stop(void **state)
{
    struct mps_stage *stage = *state;

    mps_stop(stage->mps, 0);
    assert_int_equal(stage->leavings + stage->gones, 0);
    mps_destroy(NULL);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, mps_stage_begin, mps_stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(paths_and_marks),
        TEST(nothing_works_without_the_program),
        TEST(records_of_the_journal),
        TEST(nothing_to_stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
