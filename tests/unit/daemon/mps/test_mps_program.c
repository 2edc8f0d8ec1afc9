/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/mps/mps_program.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "support/temporary_directory.h"

static void make_file(const char *name, mode_t mode)
{
    int file = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, mode);

    assert_true(file >= 0);
    close(file);
    assert_int_equal(chmod(name, mode), 0);
}

static void a_named_program_is_found(void **state)
{
    struct mps_program program = {0};

    (void)state;
    make_file("program", 0755);
    assert_string_equal(mps_program_find(&program, "program", DURATION_HOUR), "program");
    mps_program_finish(&program);
}

static void check_fault(const char *named, const char *fault)
{
    struct mps_program program = {0};

    assert_null(mps_program_find(&program, named, DURATION_HOUR));
    assert_string_equal(text_string(&program.fault), fault);
    mps_program_finish(&program);
}

static void faults_are_described(void **state)
{
    (void)state;
    make_file("file", 0644);
    check_fault("missing", "missing: no such file");
    check_fault("file", "file: is not executable");
    check_fault(".", ".: is a directory");
}

/* A result is used again for a while. */
static void it_is_not_searched_for_all_the_time(void **state)
{
    struct mps_program program = {0};
    int64_t now = DURATION_HOUR;

    (void)state;
    assert_null(mps_program_find(&program, "program", now));
    make_file("program", 0755);
    assert_null(mps_program_find(&program, "program", now + MPS_PROGRAM_KNOWN_FOR));
    now += MPS_PROGRAM_KNOWN_FOR + 1;
    assert_non_null(mps_program_find(&program, "program", now));
    assert_int_equal(unlink("program"), 0);
    assert_non_null(mps_program_find(&program, "program", now + MPS_PROGRAM_KNOWN_FOR));
    assert_null(mps_program_find(&program, "program", now + MPS_PROGRAM_KNOWN_FOR + 1));
    mps_program_finish(&program);
}

static void another_name_is_looked_at_at_once(void **state)
{
    struct mps_program program = {0};

    (void)state;
    make_file("program", 0755);
    make_file("other", 0755);
    assert_string_equal(mps_program_find(&program, "program", DURATION_HOUR), "program");
    assert_string_equal(mps_program_find(&program, "other", DURATION_HOUR), "other");
    assert_null(mps_program_find(&program, "missing", DURATION_HOUR));
    assert_string_equal(mps_program_find(&program, "other", DURATION_HOUR), "other");
    mps_program_finish(&program);
}

static void the_standard_directories_are_searched(void **state)
{
    static const char name[] = "nvidia-cuda-mps-control";
    struct mps_program program = {0};
    const char *found = mps_program_find(&program, NULL, DURATION_HOUR);

    (void)state;
    /* Some machines have it. */
    if (found != NULL)
        assert_string_equal(strrchr(found, '/') + 1, name);
    else
        assert_non_null(strstr(text_string(&program.fault), "not found in /usr/bin, "));
    mps_program_finish(&program);
}

#define TEST(test) \
    cmocka_unit_test_setup_teardown(test, temporary_directory_enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_named_program_is_found),
        TEST(faults_are_described),
        TEST(it_is_not_searched_for_all_the_time),
        TEST(another_name_is_looked_at_at_once),
        cmocka_unit_test(the_standard_directories_are_searched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
