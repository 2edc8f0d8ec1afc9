/* SPDX-License-Identifier: Apache-2.0
 *
 * The user's own file of command lines.
 */
#include "support/unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/kept_commands.h"
#include "support/temporary_directory.h"

static int enter_home(void **state)
{
    char path[4096];
    int code = temporary_directory_enter(state);

    if (code == 0 && getcwd(path, sizeof(path)) != NULL)
        code = setenv("XDG_STATE_HOME", path, 1);
    return code;
}

static void keep(const char *pool, uint64_t id, const char *command, bool own)
{
    const struct pool_address address = {.own = own};
    struct client_claim claim = {.id = id};

    claim.question.command = (char *)command;
    claim.grant.about.pool = (char *)pool;
    kept_commands_add(&address, &claim);
}

static void check_kept(const char *pool, uint64_t id, const char *recorded, const char *wanted)
{
    struct kept_commands kept;
    const char *found;

    assert_int_equal(kept_commands_read(&kept, NULL), 0);
    found = kept_commands_find(&kept, pool, id, recorded);
    if (wanted == NULL)
        assert_null(found);
    else
        assert_string_equal(found == NULL ? "" : found, wanted);
    kept_commands_finish(&kept);
}

static void write_file(const char *content)
{
    FILE *file = fopen("berth/commands", "w");

    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    fclose(file);
}

static void commands_are_found_again(void **state)
{
    struct stat status;

    (void)state;
    check_kept("pool", 1, "python", NULL);
    keep("pool", 1, "/usr/bin/python train.py --key=secret", false);
    keep("pool", 12, "sh -c first\nsecond\\n\\", false);
    keep("other", 1, "true", false);
    check_kept("pool", 1, "python", "/usr/bin/python train.py --key=secret");
    check_kept("pool", 12, "sh", "sh -c first\nsecond\\n\\");
    check_kept("other", 1, "/bin/true", "true");
    /* Not this lease: another pool, id or program. */
    check_kept("third", 1, "python", NULL);
    check_kept("pool", 2, "python", NULL);
    check_kept("pool", 1, "perl", NULL);
    check_kept("pool", 1, NULL, NULL);
    check_kept(NULL, 1, "python", NULL);
    assert_int_equal(stat("berth/commands", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(stat("berth", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
}

static void own_pools_need_no_file(void **state)
{
    (void)state;
    keep("pool", 1, "true", true);
    keep("pool", 2, NULL, false);
    assert_int_equal(access("berth", F_OK), -1);
}

static void the_files_do_not_grow_without_end(void **state)
{
    enum { LEASES = 1000, LONG = 4000 };
    char command[LONG + 1];
    struct stat file;
    struct stat old;

    (void)state;
    memset(command, 'x', LONG);
    command[LONG] = '\0';
    for (uint64_t id = 1; id <= LEASES; id++)
        keep("pool", id, command, false);
    assert_int_equal(stat("berth/commands", &file), 0);
    assert_int_equal(stat("berth/commands.old", &old), 0);
    assert_true(file.st_size < KEPT_COMMANDS_FULL);
    assert_true(old.st_size < KEPT_COMMANDS_FULL + 2 * LONG);
    check_kept("pool", LEASES, command, command);
    check_kept("pool", LEASES - KEPT_COMMANDS_FULL / (LONG + 100), command, command);
    check_kept("pool", 1, command, NULL);
}

/* A pipe that nobody writes to must not block the history. */
static void a_pipe_counts_as_empty(void **state)
{
    (void)state;
    assert_int_equal(mkdir("berth", 0700), 0);
    assert_int_equal(mkfifo("berth/commands", 0600), 0);
    alarm(20);
    keep("p", 1, "sh -c true", false);
    check_kept("p", 1, "sh", NULL);
    alarm(0);
}

static void damaged_lines_are_skipped(void **state)
{
    (void)state;
    keep("pool", 1, "true", false);
    write_file("\n \nonly\npool x true\npool 0 true\npool 3\n  \npool 4 true \\");
    check_kept("pool", 4, "true", "true \\");
    check_kept("pool", 3, "true", NULL);
    assert_int_equal(unlink("berth/commands"), 0);
    assert_int_equal(mkdir("berth/commands", 0700), 0);
    keep("pool", 5, "true", false);
    check_kept("pool", 5, "true", NULL);
}

#define AT_HOME(test) cmocka_unit_test_setup_teardown(test, enter_home, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        AT_HOME(commands_are_found_again),          AT_HOME(own_pools_need_no_file),
        AT_HOME(the_files_do_not_grow_without_end), AT_HOME(a_pipe_counts_as_empty),
        AT_HOME(damaged_lines_are_skipped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
