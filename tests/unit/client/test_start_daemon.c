/* SPDX-License-Identifier: Apache-2.0 */
#include "support/wire/dial_checks.h"

#include "client/start_daemon.h"

#include <errno.h>
#include <sys/file.h>

#include "base/count.h"
#include "base/system/file.h"
#include "base/system/spawn_detached.h"
#include "support/failing_allocator.h"

enum { STRANGER = 12345, RACERS = 8 };

/* Returns a file of the daemon's directory; the caller finishes the text. */
static struct text content(const struct pool_address *address, const char *name)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text text = {0};
    char *path;

    assert_true(asprintf(&path, "%s/%s", address->directory, name) > 0);
    assert_int_equal(file_read(path, 1 << 16, &text, &error), 0);
    free(path);
    return text;
}

static void check_fact(const struct pool_address *address, const char *line)
{
    struct text facts = content(address, "facts");

    if (strstr(text_string(&facts), line) == NULL)
        fail_msg("expected '%s' in\n%s", line, text_string(&facts));
    text_finish(&facts);
}

static void the_daemon_starts_with_nothing_of_ours(void **state)
{
    struct pool_address address = fake_address(state);
    struct text text;
    char session[32];

    snprintf(session, sizeof(session), "%d", (int)getsid(0));
    setenv("TEST_SESSION", session, 1);
    setenv("CUDA_VISIBLE_DEVICES", "3", 1);
    setenv("BERTH_LEASE", "17", 1);
    setenv("BERTH_SOCKET", "/somewhere", 1);
    setenv("LISTEN_FDS", "7", 1);
    setenv("LISTEN_FDNAMES", "another", 1);
    setenv("KEPT", "yes", 1);
    assert_dials(&address, DIAL_START);
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("BERTH_LEASE");
    unsetenv("BERTH_SOCKET");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    unsetenv("KEPT");
    unsetenv("TEST_SESSION");
    check_fact(&address, "descriptors 0 1 2 3\n");
    check_fact(&address, "signals blocked or ignored: 0\n");
    check_fact(&address, "CUDA_VISIBLE_DEVICES unset\n");
    check_fact(&address, "BERTH_LEASE unset\n");
    check_fact(&address, "BERTH_SOCKET unset\n");
    check_fact(&address, "LISTEN_FDS 1\n");
    check_fact(&address, "LISTEN_FDNAMES " DETACHED_LISTENER "\n");
    check_fact(&address, "KEPT yes\n");
    check_fact(&address, "\n/\n");
    check_fact(&address, "session apart, listens as itself\n");
    check_fact(&address, "\nno more\n");
    text = content(&address, "log");
    assert_string_equal(text_string(&text), "a line for the log\n");
    text_finish(&text);
    pool_address_finish(&address);
}

static void an_inventory_has_a_directory_below(void **state)
{
    struct pool_address address = {.own = true, .inventory = strdup("/dev/null")};
    struct stat status;

    assert_true(asprintf(&address.directory, "%s/own/0123", (char *)*state) > 0);
    assert_true(asprintf(&address.socket, "%s/berth.sock", address.directory) > 0);
    assert_dialling_fails(&address, DIAL_ONLY, BERTH_ERROR_NOT_FOUND, address.socket,
                          ": no daemon is running (no such socket)");
    assert_dials(&address, DIAL_START);
    check_fact(&address, "--inventory /dev/null\n");
    assert_int_equal(stat("own", &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    assert_int_equal(fake_end_all(address.directory), 1);
    assert_int_equal(chmod("own", 0750), 0);
    assert_dialling_fails(&(struct pool_address){.own = true,
                                                 .inventory = address.inventory,
                                                 .directory = (char[]){"own/0123"},
                                                 .socket = (char[]){"own/0123/berth.sock"}},
                          DIAL_START, BERTH_ERROR_PERMISSION, "own",
                          ": expected a directory with mode 0700, got mode 0750");
    pool_address_finish(&address);
}

/* Runs in a child: waits until all children are ready, then dials. */
static void race(const struct pool_address *address, int go)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int socket = -1;
    char byte;

    if (read(go, &byte, 1) != 0)
        _exit(98);
    if (dial(address, DIAL_START, &socket, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        _exit(97);
    }
    _exit(0);
}

static void racers_start_one_daemon(void **state)
{
    struct pool_address address = fake_address(state);
    pid_t racers[RACERS];
    int go[2];

    for (unsigned round = 1; round <= 3; round++) {
        assert_int_equal(pipe2(go, O_CLOEXEC), 0);
        for (int i = 0; i < RACERS; i++) {
            racers[i] = fork();
            assert_true(racers[i] >= 0);
            if (racers[i] == 0) {
                close(go[1]);
                race(&address, go[0]);
            }
        }
        close(go[0]);
        close(go[1]);
        for (int i = 0; i < RACERS; i++) {
            int status;

            assert_int_equal(waitpid(racers[i], &status, 0), racers[i]);
            assert_int_equal(status, 0);
        }
        assert_int_equal(fake_end_all(address.directory), round);
    }
    pool_address_finish(&address);
}

static void what_the_daemon_says_is_our_error(void **state)
{
    struct pool_address address = fake_address(state);

    setenv("BERTH_TEST_DAEMON", "error", 1);
    assert_dialling_fails(&address, DIAL_START, BERTH_ERROR_IO, "",
                          "inventory.yaml:3:1: expected a device, got nothing");
    assert_int_equal(access(address.socket, F_OK), -1);
    setenv("BERTH_TEST_DAEMON", "good", 1);
    assert_dials(&address, DIAL_START);
    pool_address_finish(&address);
}

static void check_says_see_log(const struct pool_address *address, const char *what)
{
    char *message;

    assert_true(asprintf(&message, ": the daemon %s: see %s/log", what, address->directory) > 0);
    assert_dialling_fails(address, DIAL_START, BERTH_ERROR_IO, address->directory, message);
    free(message);
}

static void a_daemon_without_a_word_points_to_the_log(void **state)
{
    struct pool_address address = fake_address(state);

    setenv("BERTH_TEST_DAEMON", "silent", 1);
    check_says_see_log(&address, "did not start");
    assert_int_equal(access(address.socket, F_OK), -1);
    setenv("BERTH_TEST_DAEMON", "ends at once", 1);
    check_says_see_log(&address, "ended right after its start, 5 times");
    setenv("BERTH_TEST_DAEMON", "stuck", 1);
    dial_settings.start_timeout = DURATION_SECOND / 20;
    check_says_see_log(&address, "was not ready after 50ms");
    pool_address_finish(&address);
}

/* Asserts that the start fails with the message `what`, `place`, `rest`. */
static void assert_start_fails(const struct pool_address *address, int code, const char *what,
                               const char *place, const char *rest)
{
    char *start;

    assert_true(asprintf(&start, "%s%s", what, place) > 0);
    assert_dialling_fails(address, DIAL_START, code, start, rest);
    free(start);
}

static void a_missing_program_is_named(void **state)
{
    struct pool_address address = fake_address(state);

    dial_settings.program = "/nonexistent/berthd";
    assert_start_fails(&address, BERTH_ERROR_IO, "cannot start ", dial_settings.program,
                       ": No such file or directory");
    assert_int_equal(access(address.socket, F_OK), -1);
    dial_settings.program = "/dev/null";
    assert_start_fails(&address, BERTH_ERROR_PERMISSION, "cannot start ", dial_settings.program,
                       ": Permission denied");
    pool_address_finish(&address);
}

/* A process that was stopped while it started a daemon delays others only for a limited time. */
static void another_starter_is_not_waited_for_for_ever(void **state)
{
    struct pool_address address = fake_address(state);
    int lock;

    assert_int_equal(mkdir(address.directory, 0700), 0);
    assert_int_equal(chdir(address.directory), 0);
    lock = open("start", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    dial_settings.start_timeout = DURATION_SECOND / 20;
    assert_dialling_fails(&address, DIAL_START, BERTH_ERROR_IO, address.directory,
                          "/start: another command has been starting the daemon for 50ms");
    close(lock);
    pool_address_finish(&address);
}

static void what_cannot_be_made_is_named(void **state)
{
    struct pool_address address = {.own = true};

    assert_true(asprintf(&address.directory, "%s/absent/own", (char *)*state) > 0);
    assert_true(asprintf(&address.socket, "%s/berth.sock", address.directory) > 0);
    assert_start_fails(&address, BERTH_ERROR_IO, "cannot create the directory ", address.directory,
                       ": No such file or directory");
    pool_address_finish(&address);
    address = fake_address(state);
    assert_int_equal(mkdir(address.directory, 0700), 0);
    assert_int_equal(chdir(address.directory), 0);
    assert_int_equal(mkdir("log", 0700), 0);
    assert_start_fails(&address, BERTH_ERROR_IO, "cannot open ", address.directory,
                       "/log: Is a directory");
    assert_int_equal(rmdir("log"), 0);
    assert_int_equal(mkdir("berth.sock", 0700), 0);
    assert_start_fails(&address, BERTH_ERROR_IO, "cannot replace ", address.directory,
                       "/berth.sock: Is a directory");
    assert_int_equal(rmdir("berth.sock"), 0);
    assert_int_equal(unlink("start"), 0);
    assert_int_equal(symlink("elsewhere", "start"), 0);
    assert_start_fails(&address, BERTH_ERROR_IO, "cannot lock ", address.directory,
                       "/start: Too many levels of symbolic links");
    assert_int_equal(access("elsewhere", F_OK), -1);
    pool_address_finish(&address);
}

/* Runs as an ordinary user, because root ignores modes. */
static void an_unwritable_directory_is_named(void **state)
{
    struct pool_address address = fake_address(state);
    uid_t user = geteuid();

    assert_int_equal(mkdir(address.directory, 0700), 0);
    if (user == 0) {
        assert_int_equal(chmod(*state, 0711), 0);
        assert_int_equal(chown(address.directory, STRANGER, STRANGER), 0);
        assert_int_equal(seteuid(STRANGER), 0);
    }
    assert_int_equal(chmod(address.directory, 0500), 0);
    assert_start_fails(&address, BERTH_ERROR_PERMISSION, "cannot lock ", address.directory,
                       "/start: Permission denied");
    assert_int_equal(chmod(address.directory, 0700), 0);
    assert_int_equal(seteuid(user), 0);
    pool_address_finish(&address);
}

/* Starts a daemon from a child process that `spoil` has put into an odd state. */
static void check_in_child(const struct pool_address *address, void (*spoil)(void))
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        int socket = -1;

        spoil();
        _exit(dial(address, DIAL_START, &socket, NULL) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    check_fact(address, "descriptors 0 1 2 3\n");
    check_fact(address, "signals blocked or ignored: 0\n");
    check_fact(address, "\n/\n");
    assert_dials(address, DIAL_ONLY);
    assert_int_equal(fake_end_all(address->directory), 1);
}

static void close_the_standard_ones(void)
{
    close(0);
    close(1);
    close(2);
}

static void open_many(void)
{
    for (int i = 0; i < 50; i++)
        fake_require(dup(2) >= 0);
}

static void spoil_signals(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_IGN);
}

static void take_all_permissions(void)
{
    umask(0777);
}

static void lose_the_working_directory(void)
{
    fake_require(mkdir("lost", 0700) == 0 && chdir("lost") == 0 && rmdir("../lost") == 0);
}

static void lose_the_environment(void)
{
    fake_require(clearenv() == 0);
}

static void odd_surroundings_do_not_matter(void **state)
{
    void (*const spoil[])(void) = {
        close_the_standard_ones,
        open_many,
        spoil_signals,
        take_all_permissions,
        lose_the_working_directory,
        lose_the_environment,
    };

    for (size_t i = 0; i < COUNT(spoil); i++) {
        struct pool_address address = {.own = true};

        assert_true(asprintf(&address.directory, "%s/own%zu", (char *)*state, i) > 0);
        assert_true(asprintf(&address.socket, "%s/berth.sock", address.directory) > 0);
        check_in_child(&address, spoil[i]);
        pool_address_finish(&address);
    }
}

static volatile sig_atomic_t children_ended;

static void count_child(int number)
{
    (void)number;
    children_ended++;
}

static void the_host_sees_no_child(void **state)
{
    struct pool_address address = fake_address(state);
    struct sigaction counting = {.sa_handler = count_child};
    struct sigaction before;

    children_ended = 0;
    fake_adopt(false);
    /* A process that an earlier test adopted may still be ending. */
    while (waitpid(-1, NULL, __WALL) > 0)
        continue;
    assert_int_equal(sigaction(SIGCHLD, &counting, &before), 0);
    assert_dials(&address, DIAL_START);
    assert_int_equal(children_ended, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(fake_end_all(address.directory), 1);
    assert_int_equal(children_ended, 0);
    assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
    pool_address_finish(&address);
}

static int dial_with_little_memory(void *context)
{
    const struct pool_address *address = context;
    int socket = -1;
    int code = dial(address, DIAL_START, &socket, NULL);

    if (socket >= 0)
        close(socket);
    return code;
}

static void every_allocation_may_fail(void **state)
{
    struct pool_address address = fake_address(state);

    failing_allocator_try_all(dial_with_little_memory, &address);
    pool_address_finish(&address);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        fake_daemon_test(the_daemon_starts_with_nothing_of_ours),
        fake_daemon_test(an_inventory_has_a_directory_below),
        fake_daemon_test(racers_start_one_daemon),
        fake_daemon_test(what_the_daemon_says_is_our_error),
        fake_daemon_test(a_daemon_without_a_word_points_to_the_log),
        fake_daemon_test(a_missing_program_is_named),
        fake_daemon_test(another_starter_is_not_waited_for_for_ever),
        fake_daemon_test(what_cannot_be_made_is_named),
        fake_daemon_test(an_unwritable_directory_is_named),
        fake_daemon_test(odd_surroundings_do_not_matter),
        fake_daemon_test(the_host_sees_no_child),
        fake_daemon_test(every_allocation_may_fail),
    };

    fake_daemon_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
