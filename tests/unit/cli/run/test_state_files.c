/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "cli/run/state_files.h"
#include "support/failing_allocator.h"
#include "support/temporary_directory.h"

/* A setup function: a temporary directory as the state's home. */
static int enter(void **state)
{
    if (temporary_directory_enter(state) < 0)
        return -1;
    return setenv("XDG_STATE_HOME", *state, 1);
}

static struct state_files find(uint64_t id)
{
    struct state_files files;

    assert_int_equal(state_files_find("pool", id, &files, NULL), 0);
    return files;
}

static void write_text(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void names(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct state_files files;

    (void)state;
    setenv("XDG_STATE_HOME", "/s", 1);
    setenv("HOME", "/h", 1);
    files = find(UINT64_MAX);
    assert_string_equal(files.directory, "/s/berth/pool");
    assert_string_equal(files.log, "/s/berth/pool/18446744073709551615.log");
    assert_string_equal(files.exit, "/s/berth/pool/18446744073709551615.exit");
    state_files_finish(&files);

    setenv("XDG_STATE_HOME", "relative", 1);
    files = find(1);
    assert_string_equal(files.log, "/h/.local/state/berth/pool/1.log");
    state_files_finish(&files);

    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    assert_int_equal(state_files_find("pool", 1, &files, &error), BERTH_ERROR_NOT_FOUND);
    assert_string_equal(error.message, "HOME: expected an absolute path, got ''");
}

static void a_log_is_made_with_all_above_it(void **state)
{
    struct state_files files = find(1);
    struct stat status;
    int log = -1;

    (void)state;
    for (int i = 0; i < 2; i++) { /* the second call appends */
        assert_int_equal(state_files_create_log(&files, &log, NULL), 0);
        assert_int_equal(write(log, "x", 1), 1);
        close(log);
    }
    assert_int_equal(stat(files.log, &status), 0);
    assert_int_equal(status.st_size, 2);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(stat(files.directory, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    state_files_finish(&files);
}

static void no_place_for_a_log(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct state_files files = find(1);
    char *directory = strdup(files.directory);
    int log = -1;

    (void)state;
    write_text("berth", "a file");
    assert_true(state_files_create_log(&files, &log, &error) < 0);
    assert_int_equal(log, -1);
    assert_string_equal(files.directory, directory); /* restored */
    free(directory);
    state_files_finish(&files);
}

static void exit_codes(void **state)
{
    struct state_files files = find(7);
    int code = -1;
    int log;

    (void)state;
    assert_int_equal(state_files_read_exit(&files, &code, NULL), BERTH_ERROR_NOT_FOUND);
    assert_true(state_files_write_exit(&files, 3, NULL) < 0); /* the directory does not exist */
    assert_int_equal(state_files_create_log(&files, &log, NULL), 0);
    close(log);
    for (int wanted = 0; wanted <= 255; wanted += 51) {
        assert_int_equal(state_files_write_exit(&files, wanted, NULL), 0);
        assert_int_equal(state_files_read_exit(&files, &code, NULL), 0);
        assert_int_equal(code, wanted);
    }
    state_files_finish(&files);
}

static void strange_exit_codes(void **state)
{
    static const char *const contents[] = {"", "\n", "x\n", "256\n", "-1\n", "1 \n", "1\n\n"};
    struct state_files files = find(7);
    int code = -1;
    int log;

    (void)state;
    assert_int_equal(state_files_create_log(&files, &log, NULL), 0);
    close(log);
    for (size_t i = 0; i < sizeof(contents) / sizeof(*contents); i++) {
        write_text(files.exit, contents[i]);
        assert_int_equal(state_files_read_exit(&files, &code, NULL), BERTH_ERROR_SYNTAX);
    }
    write_text(files.exit, "1234567890123456789\n");
    assert_int_equal(state_files_read_exit(&files, &code, NULL), BERTH_ERROR_LIMIT);
    assert_int_equal(code, -1);
    state_files_finish(&files);
}

static void no_memory(void **state)
{
    struct state_files files;
    unsigned long n = 0;
    int code;

    (void)state;
    do {
        failing_allocator_start(++n);
        code = state_files_find("pool", 1, &files, NULL);
        assert_int_equal(code, failing_allocator_stop() ? BERTH_ERROR_MEMORY : 0);
    } while (code < 0);
    assert_true(n > 2);
    state_files_finish(&files);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names),
        TEST(a_log_is_made_with_all_above_it),
        TEST(no_place_for_a_log),
        TEST(exit_codes),
        TEST(strange_exit_codes),
        TEST(no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
