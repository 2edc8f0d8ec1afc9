/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_daemon.h"

#include "client/dial.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/file.h"
#include "client/unix_socket.h"
#include "support/assert_error.h"
#include "support/failing_allocator.h"

enum { STRANGER = 12345, RACERS = 8 };

static void check_dials(const struct pool_address *address, enum dial_how how)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int socket = -1;
    int code = dial(address, how, &socket, &error);

    assert_string_equal(error.message, "");
    assert_int_equal(code, 0);
    assert_int_equal(fcntl(socket, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(socket, F_GETFL) & O_NONBLOCK, 0);
    close(socket);
}

/* That dialling fails with this code, and the message is `place` and `message`. */
static void check_fails(const struct pool_address *address, enum dial_how how, int code,
                        const char *place, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int socket = -7;
    char *whole;

    assert_true(asprintf(&whole, "%s%s", place, message) > 0);
    assert_fails(dial(address, how, &socket, &error), code, &error, whole);
    assert_int_equal(socket, -7);
    free(whole);
}

/* A file of the daemon's directory; the caller finishes the text. */
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
        fail_msg("wanted '%s' in\n%s", line, text_string(&facts));
    text_finish(&facts);
}

/* Somebody who listens at the path, of this process; -1 for one who has gone. */
static int listen_at(const char *directory, bool stays)
{
    int place = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int listening = -1;

    assert_true(place >= 0);
    assert_int_equal(unix_listen(place, "berth.sock", &listening), 0);
    close(place);
    if (!stays) {
        close(listening);
        return -1;
    }
    return listening;
}

static struct pool_address foreign_address(void **state)
{
    struct pool_address address = fake_address(state);

    address.own = false;
    assert_int_equal(mkdir(address.directory, 0700), 0);
    return address;
}

static void the_first_command_starts_a_daemon(void **state)
{
    struct pool_address address = fake_address(state);
    struct stat status;

    check_dials(&address, DIAL_START);
    check_dials(&address, DIAL_START);
    check_dials(&address, DIAL_ONLY);
    assert_int_equal(stat(address.directory, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    assert_int_equal(stat(address.socket, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(fake_end_all(address.directory), 1);
    pool_address_finish(&address);
}

static void nobody_is_started_by_who_only_dials(void **state)
{
    struct pool_address address = fake_address(state);

    check_fails(&address, DIAL_ONLY, BERTH_ERROR_NOT_FOUND, address.socket,
                ": wanted a running daemon, found no socket");
    assert_int_equal(access(address.directory, F_OK), -1);
    assert_int_equal(mkdir(address.directory, 0700), 0);
    listen_at(address.directory, false);
    check_fails(&address, DIAL_ONLY, BERTH_ERROR_NOT_FOUND, address.socket,
                ": wanted a running daemon, found a socket that nobody listens on");
    pool_address_finish(&address);
}

static void a_stale_socket_is_replaced(void **state)
{
    struct pool_address address = fake_address(state);

    assert_int_equal(mkdir(address.directory, 0700), 0);
    listen_at(address.directory, false);
    check_dials(&address, DIAL_START);
    assert_int_equal(fake_end_all(address.directory), 1);
    check_dials(&address, DIAL_START);
    assert_int_equal(fake_end_all(address.directory), 2);
    pool_address_finish(&address);
}

static void the_daemon_starts_with_nothing_of_ours(void **state)
{
    struct pool_address address = fake_address(state);
    struct text text;

    setenv("CUDA_VISIBLE_DEVICES", "3", 1);
    setenv("BERTH_LEASE", "17", 1);
    setenv("BERTH_SOCKET", "/somewhere", 1);
    setenv("LISTEN_FDS", "7", 1);
    setenv("KEPT", "yes", 1);
    check_dials(&address, DIAL_START);
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("BERTH_LEASE");
    unsetenv("BERTH_SOCKET");
    unsetenv("LISTEN_FDS");
    unsetenv("KEPT");
    check_fact(&address, "descriptors 0 1 2 3\n");
    check_fact(&address, "signals blocked or ignored: 0\n");
    check_fact(&address, "CUDA_VISIBLE_DEVICES unset\n");
    check_fact(&address, "BERTH_LEASE unset\n");
    check_fact(&address, "BERTH_SOCKET unset\n");
    check_fact(&address, "LISTEN_FDS 1\n");
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
    check_fails(&address, DIAL_ONLY, BERTH_ERROR_NOT_FOUND, address.socket,
                ": wanted a running daemon, found no socket");
    check_dials(&address, DIAL_START);
    check_fact(&address, "--inventory /dev/null\n");
    assert_int_equal(stat("own", &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    assert_int_equal(fake_end_all(address.directory), 1);
    assert_int_equal(chmod("own", 0750), 0);
    check_fails(&(struct pool_address){.own = true,
                                       .inventory = address.inventory,
                                       .directory = (char[]){"own/0123"},
                                       .socket = (char[]){"own/0123/berth.sock"}},
                DIAL_START, BERTH_ERROR_PERMISSION, "own",
                ": wanted a directory that is closed to others (mode 0700), found mode 0750");
    pool_address_finish(&address);
}

/* What a child does: waits until all are there, then dials. */
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

static void an_untrusted_directory_is_refused(void **state)
{
    struct pool_address address = fake_address(state);

    assert_int_equal(mkdir("real", 0700), 0);
    assert_int_equal(symlink("real", address.directory), 0);
    check_fails(&address, DIAL_START, BERTH_ERROR_PERMISSION, address.directory,
                ": wanted a directory, found a symlink");
    assert_int_equal(access("real/start", F_OK), -1);
    assert_int_equal(unlink(address.directory), 0);
    assert_int_equal(mkdir(address.directory, 0700), 0);
    assert_int_equal(chmod(address.directory, 0770), 0);
    check_fails(&address, DIAL_START, BERTH_ERROR_PERMISSION, address.directory,
                ": wanted a directory that is closed to others (mode 0700), found mode 0770");
    assert_int_equal(chmod(address.directory, 01701), 0);
    check_fails(&address, DIAL_ONLY, BERTH_ERROR_PERMISSION, address.directory,
                ": wanted a directory that is closed to others (mode 0700), found mode 1701");
    assert_int_equal(rmdir(address.directory), 0);
    close(open(address.directory, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    check_fails(&address, DIAL_START, BERTH_ERROR_PERMISSION, address.directory,
                ": wanted a directory, found a file");
    pool_address_finish(&address);
}

/* Also when somebody answers in it. */
static void an_untrusted_directory_with_a_daemon_is_refused(void **state)
{
    struct pool_address address = fake_address(state);
    int listening;

    assert_int_equal(mkdir(address.directory, 0700), 0);
    listening = listen_at(address.directory, true);
    check_dials(&address, DIAL_ONLY);
    assert_int_equal(chmod(address.directory, 0701), 0);
    check_fails(&address, DIAL_START, BERTH_ERROR_PERMISSION, address.directory,
                ": wanted a directory that is closed to others (mode 0700), found mode 0701");
    assert_int_equal(chmod(address.directory, 0700), 0);
    assert_int_equal(rename(address.directory, "real"), 0);
    assert_int_equal(symlink("real", address.directory), 0);
    check_fails(&address, DIAL_START, BERTH_ERROR_PERMISSION, address.directory,
                ": wanted a directory, found a symlink");
    close(listening);
    pool_address_finish(&address);
}

static void skip_unless_root(void)
{
    if (geteuid() == 0)
        return;
    print_message("skip: only root can act as two users\n");
    skip();
}

static void somebody_elses_directory_is_refused(void **state)
{
    struct pool_address address = fake_address(state);
    char message[256];

    if (geteuid() != 0)
        pool_address_finish(&address);
    skip_unless_root();
    snprintf(message, sizeof(message),
             ": wanted a directory of user 0, found one of user %d; BERTH_RUNTIME_DIR can name "
             "another place",
             STRANGER);
    assert_int_equal(mkdir(address.directory, 0700), 0);
    assert_int_equal(chown(address.directory, STRANGER, STRANGER), 0);
    check_fails(&address, DIAL_START, BERTH_ERROR_PERMISSION, address.directory, message);
    check_fails(&address, DIAL_ONLY, BERTH_ERROR_PERMISSION, address.directory, message);
    pool_address_finish(&address);
}

static void somebody_elses_daemon_is_refused(void **state)
{
    struct pool_address address = fake_address(state);
    char message[256];
    int listening;

    if (geteuid() != 0)
        pool_address_finish(&address);
    skip_unless_root();
    assert_int_equal(mkdir(address.directory, 0700), 0);
    listening = listen_at(address.directory, true);
    /* Who listens is who last said so. */
    assert_int_equal(seteuid(STRANGER), 0);
    assert_int_equal(listen(listening, 5), 0);
    assert_int_equal(seteuid(0), 0);
    snprintf(message, sizeof(message), ": wanted a daemon of user 0, found one of user %d",
             STRANGER);
    check_fails(&address, DIAL_START, BERTH_ERROR_PERMISSION, address.socket, message);
    address.own = false;
    check_dials(&address, DIAL_START);
    close(listening);
    pool_address_finish(&address);
}

static void long_paths_work(void **state)
{
    struct pool_address address = {.own = true};
    char part[201];

    memset(part, 'x', sizeof(part) - 1);
    part[sizeof(part) - 1] = '\0';
    assert_true(asprintf(&address.directory, "%s/%s", (char *)*state, part) > 0);
    assert_int_equal(mkdir(address.directory, 0700), 0);
    free(address.directory);
    assert_true(asprintf(&address.directory, "%s/%s/%s", (char *)*state, part, part) > 0);
    assert_true(asprintf(&address.socket, "%s/berth.sock", address.directory) > 0);
    check_fails(&address, DIAL_ONLY, BERTH_ERROR_NOT_FOUND, address.socket,
                ": wanted a running daemon, found no socket");
    check_dials(&address, DIAL_START);
    check_dials(&address, DIAL_ONLY);
    address.own = false;
    check_dials(&address, DIAL_ONLY);
    assert_int_equal(fake_end_all(address.directory), 1);
    pool_address_finish(&address);
}

static void what_the_daemon_says_is_our_error(void **state)
{
    struct pool_address address = fake_address(state);

    setenv("BERTH_TEST_DAEMON", "error", 1);
    check_fails(&address, DIAL_START, BERTH_ERROR_IO, "",
                "inventory.yaml:3:1: wanted a device, found nothing");
    assert_int_equal(access(address.socket, F_OK), -1);
    setenv("BERTH_TEST_DAEMON", "good", 1);
    check_dials(&address, DIAL_START);
    pool_address_finish(&address);
}

static void check_says_see_log(const struct pool_address *address, const char *what)
{
    char *message;

    assert_true(asprintf(&message, ": the daemon %s: see %s/log", what, address->directory) > 0);
    check_fails(address, DIAL_START, BERTH_ERROR_IO, address->directory, message);
    free(message);
}

static void a_daemon_without_a_word_points_to_the_log(void **state)
{
    struct pool_address address = fake_address(state);

    setenv("BERTH_TEST_DAEMON", "silent", 1);
    check_says_see_log(&address, "did not start");
    assert_int_equal(access(address.socket, F_OK), -1);
    setenv("BERTH_TEST_DAEMON", "ends at once", 1);
    check_says_see_log(&address, "ended as soon as it had started, 5 times");
    setenv("BERTH_TEST_DAEMON", "stuck", 1);
    dial_settings.start_patience = DURATION_SECOND / 20;
    check_says_see_log(&address, "was not ready after 50ms");
    pool_address_finish(&address);
}

static void a_missing_program_is_named(void **state)
{
    struct pool_address address = fake_address(state);

    dial_settings.program = "/nonexistent/berthd";
    check_fails(&address, DIAL_START, BERTH_ERROR_IO, dial_settings.program,
                ": cannot start the daemon: No such file or directory");
    assert_int_equal(access(address.socket, F_OK), -1);
    dial_settings.program = "/dev/null";
    check_fails(&address, DIAL_START, BERTH_ERROR_PERMISSION, dial_settings.program,
                ": cannot start the daemon: Permission denied");
    pool_address_finish(&address);
}

/* A starter that was stopped holds up the others for so long, and no longer. */
static void another_starter_is_not_waited_for_for_ever(void **state)
{
    struct pool_address address = fake_address(state);
    int lock;

    assert_int_equal(mkdir(address.directory, 0700), 0);
    assert_int_equal(chdir(address.directory), 0);
    lock = open("start", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    dial_settings.start_patience = DURATION_SECOND / 20;
    check_fails(&address, DIAL_START, BERTH_ERROR_IO, address.directory,
                "/start: another command has been starting the daemon for 50ms");
    close(lock);
    pool_address_finish(&address);
}

static void what_cannot_be_made_is_named(void **state)
{
    struct pool_address address = {.own = true};

    assert_true(asprintf(&address.directory, "%s/absent/own", (char *)*state) > 0);
    assert_true(asprintf(&address.socket, "%s/berth.sock", address.directory) > 0);
    check_fails(&address, DIAL_START, BERTH_ERROR_IO, address.directory,
                ": cannot make the directory: No such file or directory");
    pool_address_finish(&address);
    address = fake_address(state);
    assert_int_equal(mkdir(address.directory, 0700), 0);
    assert_int_equal(chdir(address.directory), 0);
    assert_int_equal(mkdir("log", 0700), 0);
    check_fails(&address, DIAL_START, BERTH_ERROR_IO, address.directory,
                "/log: cannot open it: Is a directory");
    assert_int_equal(rmdir("log"), 0);
    assert_int_equal(mkdir("berth.sock", 0700), 0);
    check_fails(&address, DIAL_START, BERTH_ERROR_IO, address.directory,
                "/berth.sock: cannot replace it: Is a directory");
    assert_int_equal(rmdir("berth.sock"), 0);
    assert_int_equal(unlink("start"), 0);
    assert_int_equal(symlink("elsewhere", "start"), 0);
    check_fails(&address, DIAL_START, BERTH_ERROR_IO, address.directory,
                "/start: cannot lock it: Too many levels of symbolic links");
    assert_int_equal(access("elsewhere", F_OK), -1);
    pool_address_finish(&address);
}

/* In a child, since it is left without what a test needs. */
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
    check_dials(address, DIAL_ONLY);
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

    for (size_t i = 0; i < sizeof(spoil) / sizeof(spoil[0]); i++) {
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
    assert_int_equal(sigaction(SIGCHLD, &counting, &before), 0);
    check_dials(&address, DIAL_START);
    assert_int_equal(children_ended, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(fake_end_all(address.directory), 1);
    assert_int_equal(children_ended, 0);
    assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
    pool_address_finish(&address);
}

static void a_socket_that_is_not_ours_is_never_replaced(void **state)
{
    struct pool_address address = foreign_address(state);

    dial_settings.refusal_patience = DURATION_SECOND / 50;
    check_fails(&address, DIAL_START, BERTH_ERROR_NOT_FOUND, address.socket,
                ": wanted a running daemon, found no socket");
    address.machine = true;
    check_fails(&address, DIAL_START, BERTH_ERROR_NOT_FOUND, address.socket,
                ": wanted a running daemon, found no socket");
    listen_at(address.directory, false);
    check_fails(&address, DIAL_START, BERTH_ERROR_NOT_FOUND, address.socket,
                ": wanted a running daemon, found a socket that nobody listens on");
    address.machine = false;
    check_fails(&address, DIAL_START, BERTH_ERROR_NOT_FOUND, address.socket,
                ": wanted a running daemon, found a socket that nobody listens on");
    assert_int_equal(fake_end_all(address.directory), 0);
    pool_address_finish(&address);
}

static void *replace_socket(void *context)
{
    const struct pool_address *address = context;

    unlink(address->socket);
    return (void *)(intptr_t)listen_at(address->directory, true);
}

static void one_that_comes_back_is_waited_for(void **state)
{
    struct pool_address address = foreign_address(state);
    pthread_t replacing;
    void *listening;

    dial_settings.refusal_patience = 20 * DURATION_SECOND;
    address.machine = true;
    listen_at(address.directory, false);
    assert_int_equal(pthread_create(&replacing, NULL, replace_socket, &address), 0);
    check_dials(&address, DIAL_START);
    assert_int_equal(pthread_join(replacing, &listening), 0);
    close((int)(intptr_t)listening);
    pool_address_finish(&address);
}

static void a_full_daemon_is_waited_for_in_vain(void **state)
{
    struct pool_address address = fake_address(state);
    int waiting = -1;
    int listening;

    assert_int_equal(mkdir(address.directory, 0700), 0);
    listening = listen_at(address.directory, true);
    assert_int_equal(listen(listening, 0), 0);
    assert_int_equal(unix_connect(address.socket, &waiting), 0);
    dial_settings.refusal_patience = DURATION_SECOND / 50;
    check_fails(&address, DIAL_START, BERTH_ERROR_IO, address.socket,
                ": the daemon takes no more connections");
    address.own = false;
    check_fails(&address, DIAL_START, BERTH_ERROR_IO, address.socket,
                ": the daemon takes no more connections");
    close(waiting);
    close(listening);
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
        fake_daemon_test(the_first_command_starts_a_daemon),
        fake_daemon_test(nobody_is_started_by_who_only_dials),
        fake_daemon_test(a_stale_socket_is_replaced),
        fake_daemon_test(the_daemon_starts_with_nothing_of_ours),
        fake_daemon_test(an_inventory_has_a_directory_below),
        fake_daemon_test(racers_start_one_daemon),
        fake_daemon_test(an_untrusted_directory_is_refused),
        fake_daemon_test(an_untrusted_directory_with_a_daemon_is_refused),
        fake_daemon_test(somebody_elses_directory_is_refused),
        fake_daemon_test(somebody_elses_daemon_is_refused),
        fake_daemon_test(long_paths_work),
        fake_daemon_test(what_the_daemon_says_is_our_error),
        fake_daemon_test(a_daemon_without_a_word_points_to_the_log),
        fake_daemon_test(a_missing_program_is_named),
        fake_daemon_test(another_starter_is_not_waited_for_for_ever),
        fake_daemon_test(what_cannot_be_made_is_named),
        fake_daemon_test(odd_surroundings_do_not_matter),
        fake_daemon_test(the_host_sees_no_child),
        fake_daemon_test(a_socket_that_is_not_ours_is_never_replaced),
        fake_daemon_test(one_that_comes_back_is_waited_for),
        fake_daemon_test(a_full_daemon_is_waited_for_in_vain),
        fake_daemon_test(every_allocation_may_fail),
    };

    fake_daemon_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
