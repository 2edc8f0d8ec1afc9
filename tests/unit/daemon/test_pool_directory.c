/* SPDX-License-Identifier: Apache-2.0
 *
 * An ordinary user gives directories to itself; root gives them to another user.
 */
#include "support/unit.h"

#include "daemon/pool_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "daemon/privileges.h"
#include "support/temporary_directory.h"

enum { OTHER_USER = 64980, THIRD_USER = 64981 };

static struct privileges_user receiver(void)
{
    uid_t uid = geteuid() == 0 ? OTHER_USER : geteuid();
    gid_t gid = geteuid() == 0 ? OTHER_USER : getegid();

    return (struct privileges_user){"somebody", uid, gid};
}

static int give(const char *directory, struct berth_error *error)
{
    const struct privileges_user user = receiver();
    char socket[512];

    snprintf(socket, sizeof(socket), "%s/berth.sock", directory);
    return pool_directory_give(&user, socket, error);
}

static void assert_given(const char *name)
{
    const struct privileges_user user = receiver();
    struct stat status;

    assert_int_equal(lstat(name, &status), 0);
    assert_int_equal(status.st_uid, user.uid);
    assert_int_equal(status.st_gid, user.gid);
}

static void assert_not_given(const char *name)
{
    struct stat status;

    assert_int_equal(lstat(name, &status), 0);
    assert_int_equal(status.st_uid, geteuid());
}

static void assert_refused(const char *directory, const char *text)
{
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(give(directory, &error), BERTH_ERROR_PERMISSION);
    if (strstr(error.message, text) == NULL)
        fail_msg("expected a message with '%s', got: %s", text, error.message);
}

static void make_directory(const char *name, mode_t mode)
{
    assert_int_equal(mkdir(name, 0755), 0);
    assert_int_equal(chmod(name, mode), 0);
}

static void make_file(const char *name)
{
    int file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(file >= 0);
    close(file);
}

static void a_missing_directory_is_made(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    mode_t former = umask(0077);
    struct stat status;
    int code = give("berth", &error);

    (void)state;
    assert_int_equal(umask(former), 0077);
    assert_int_equal(code, 0);
    assert_given("berth");
    assert_int_equal(stat("berth", &status), 0);
    assert_int_equal(status.st_mode & 07777, 0755);
}

static void without_its_parent_nothing_is_made(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    assert_int_equal(give("none/berth", &error), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(access("none", F_OK), -1);
}

static void what_is_no_safe_directory_is_refused(void **state)
{
    (void)state;
    make_directory("real", 0755);
    assert_int_equal(symlink("real", "link"), 0);
    assert_refused("link", "expected a directory, got a symlink");
    assert_not_given("real");
    make_file("file");
    assert_refused("file", "expected a directory, got something else");
    make_directory("open", 0775);
    assert_refused("open", "only its owner may write to, got mode 0775");
    make_directory("sticky", 01777);
    assert_refused("sticky", "got mode 1777");
}

static void a_third_users_directory_is_refused(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skip: needs root for another user's directory\n");
        skip();
    }
    make_directory("berth", 0755);
    assert_int_equal(chown("berth", THIRD_USER, THIRD_USER), 0);
    assert_refused("berth", "expected a directory of root or of somebody, got one of user");
}

/* A directory such as /run, or a user's home, is not given away. */
static void a_directory_of_root_with_other_files_is_refused(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skip: needs root for a directory of root\n");
        skip();
    }
    make_directory("berth", 0755);
    make_file("berth/berth.journal");
    make_file("berth/passwd");
    assert_refused("berth", "it contains ");
    assert_not_given("berth");
    assert_not_given("berth/berth.journal");
}

static void files_of_an_earlier_daemon_are_given(void **state)
{
    static const char *const given[] = {"berth/berth.journal", "berth/berth.lock", "berth/log"};
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    make_directory("berth", 0755);
    make_directory("berth/mps", 0731);
    for (size_t i = 0; i < COUNT(given); i++)
        make_file(given[i]);
    assert_int_equal(give("berth", &error), 0);
    assert_given("berth");
    assert_given("berth/mps");
    for (size_t i = 0; i < COUNT(given); i++)
        assert_given(given[i]);
}

/* The user could have made these names while the directory was the user's: links to root's files
 * stay root's. */
static void links_are_not_given(void **state)
{
    const struct privileges_user user = receiver();
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    if (geteuid() != 0) {
        print_message("skip: needs root for files of root\n");
        skip();
    }
    make_directory("berth", 0755);
    make_file("secret");
    make_file("other");
    assert_int_equal(link("secret", "berth/berth.journal"), 0);
    assert_int_equal(symlink("../other", "berth/berth.lock"), 0);
    make_directory("berth/log", 0755);
    assert_int_equal(chown("berth", user.uid, user.gid), 0);
    assert_int_equal(give("berth", &error), 0);
    assert_not_given("secret");
    assert_not_given("other");
    assert_not_given("berth/log");
}

#define TEST(test) \
    cmocka_unit_test_setup_teardown(test, temporary_directory_enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_missing_directory_is_made),
        TEST(without_its_parent_nothing_is_made),
        TEST(what_is_no_safe_directory_is_refused),
        TEST(a_third_users_directory_is_refused),
        TEST(a_directory_of_root_with_other_files_is_refused),
        TEST(files_of_an_earlier_daemon_are_given),
        TEST(links_are_not_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
