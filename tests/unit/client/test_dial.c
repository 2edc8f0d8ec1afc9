/* SPDX-License-Identifier: Apache-2.0 */
#include "support/wire/dial_checks.h"

#include "client/dial.h"

#include <pthread.h>

#include "client/unix_socket.h"

enum { STRANGER = 12345 };

/* Creates a socket of this process in a directory. Returns it if it stays open, else -1. */
static int listen_at(const char *directory, bool stays)
{
    int place = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int listening = -1;

    assert_true(place >= 0);
    assert_int_equal(unix_socket_listen(place, "berth.sock", &listening), 0);
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

    assert_dials(&address, DIAL_START);
    assert_dials(&address, DIAL_START);
    assert_dials(&address, DIAL_ONLY);
    assert_int_equal(stat(address.directory, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    assert_int_equal(stat(address.socket, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(fake_end_all(address.directory), 1);
    pool_address_finish(&address);
}

static void dialling_only_starts_no_daemon(void **state)
{
    struct pool_address address = fake_address(state);

    assert_dialling_fails(&address, DIAL_ONLY, BERTH_ERROR_NOT_FOUND, address.socket,
                          ": no daemon is running (no such socket)");
    assert_int_equal(access(address.directory, F_OK), -1);
    assert_int_equal(mkdir(address.directory, 0700), 0);
    listen_at(address.directory, false);
    assert_dialling_fails(&address, DIAL_ONLY, BERTH_ERROR_NOT_FOUND, address.socket,
                          ": no daemon is running (connection refused)");
    pool_address_finish(&address);
}

static void a_stale_socket_is_replaced(void **state)
{
    struct pool_address address = fake_address(state);

    assert_int_equal(mkdir(address.directory, 0700), 0);
    listen_at(address.directory, false);
    assert_dials(&address, DIAL_START);
    assert_int_equal(fake_end_all(address.directory), 1);
    assert_dials(&address, DIAL_START);
    assert_int_equal(fake_end_all(address.directory), 2);
    pool_address_finish(&address);
}

static void an_untrusted_directory_is_refused(void **state)
{
    struct pool_address address = fake_address(state);

    assert_int_equal(mkdir("real", 0700), 0);
    assert_int_equal(symlink("real", address.directory), 0);
    assert_dialling_fails(&address, DIAL_START, BERTH_ERROR_PERMISSION, address.directory,
                          ": expected a directory, got a symlink");
    assert_int_equal(access("real/start", F_OK), -1);
    assert_int_equal(unlink(address.directory), 0);
    assert_int_equal(mkdir(address.directory, 0700), 0);
    assert_int_equal(chmod(address.directory, 0770), 0);
    assert_dialling_fails(&address, DIAL_START, BERTH_ERROR_PERMISSION, address.directory,
                          ": expected a directory with mode 0700, got mode 0770");
    assert_int_equal(chmod(address.directory, 01701), 0);
    assert_dialling_fails(&address, DIAL_ONLY, BERTH_ERROR_PERMISSION, address.directory,
                          ": expected a directory with mode 0700, got mode 1701");
    assert_int_equal(rmdir(address.directory), 0);
    close(open(address.directory, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_dialling_fails(&address, DIAL_START, BERTH_ERROR_PERMISSION, address.directory,
                          ": expected a directory, got a file");
    pool_address_finish(&address);
}

/* The directory is refused even if a process listens in it. */
static void an_untrusted_directory_with_a_daemon_is_refused(void **state)
{
    struct pool_address address = fake_address(state);
    int listening;

    assert_int_equal(mkdir(address.directory, 0700), 0);
    listening = listen_at(address.directory, true);
    assert_dials(&address, DIAL_ONLY);
    assert_int_equal(chmod(address.directory, 0701), 0);
    assert_dialling_fails(&address, DIAL_START, BERTH_ERROR_PERMISSION, address.directory,
                          ": expected a directory with mode 0700, got mode 0701");
    assert_int_equal(chmod(address.directory, 0700), 0);
    assert_int_equal(rename(address.directory, "real"), 0);
    assert_int_equal(symlink("real", address.directory), 0);
    assert_dialling_fails(&address, DIAL_START, BERTH_ERROR_PERMISSION, address.directory,
                          ": expected a directory, got a symlink");
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
             ": expected a directory of root, got one of user %d; set "
             "BERTH_RUNTIME_DIR to use another directory",
             STRANGER);
    assert_int_equal(mkdir(address.directory, 0700), 0);
    assert_int_equal(chown(address.directory, STRANGER, STRANGER), 0);
    assert_dialling_fails(&address, DIAL_START, BERTH_ERROR_PERMISSION, address.directory, message);
    assert_dialling_fails(&address, DIAL_ONLY, BERTH_ERROR_PERMISSION, address.directory, message);
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
    /* SO_PEERCRED has the user at the time of listen(). */
    assert_int_equal(seteuid(STRANGER), 0);
    assert_int_equal(listen(listening, 5), 0);
    assert_int_equal(seteuid(0), 0);
    snprintf(message, sizeof(message), ": expected a daemon of root, got one of user %d", STRANGER);
    assert_dialling_fails(&address, DIAL_START, BERTH_ERROR_PERMISSION, address.socket, message);
    address.own = false;
    assert_dials(&address, DIAL_START);
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
    assert_dialling_fails(&address, DIAL_ONLY, BERTH_ERROR_NOT_FOUND, address.socket,
                          ": no daemon is running (no such socket)");
    assert_dials(&address, DIAL_START);
    assert_dials(&address, DIAL_ONLY);
    address.own = false;
    assert_dials(&address, DIAL_ONLY);
    assert_int_equal(fake_end_all(address.directory), 1);
    pool_address_finish(&address);
}

static void a_socket_that_is_not_ours_is_never_replaced(void **state)
{
    struct pool_address address = foreign_address(state);

    dial_settings.refusal_timeout = DURATION_SECOND / 50;
    assert_dialling_fails(&address, DIAL_START, BERTH_ERROR_NOT_FOUND, address.socket,
                          ": no daemon is running (no such socket)");
    address.machine = true;
    assert_dialling_fails(&address, DIAL_START, BERTH_ERROR_NOT_FOUND, address.socket,
                          ": no daemon is running (no such socket)");
    listen_at(address.directory, false);
    assert_dialling_fails(&address, DIAL_START, BERTH_ERROR_NOT_FOUND, address.socket,
                          ": no daemon is running (connection refused)");
    address.machine = false;
    assert_dialling_fails(&address, DIAL_START, BERTH_ERROR_NOT_FOUND, address.socket,
                          ": no daemon is running (connection refused)");
    assert_int_equal(fake_end_all(address.directory), 0);
    pool_address_finish(&address);
}

/* A daemon that restarts while the test runs. */
struct replacing {
    const struct pool_address *address;
    int listening;
};

static void *replace_socket(void *context)
{
    struct replacing *replacing = context;

    unlink(replacing->address->socket);
    replacing->listening = listen_at(replacing->address->directory, true);
    return NULL;
}

static void one_that_comes_back_is_waited_for(void **state)
{
    struct pool_address address = foreign_address(state);
    struct replacing replacing = {&address, -1};
    pthread_t thread;

    dial_settings.refusal_timeout = 20 * DURATION_SECOND;
    address.machine = true;
    listen_at(address.directory, false);
    assert_int_equal(pthread_create(&thread, NULL, replace_socket, &replacing), 0);
    assert_dials(&address, DIAL_START);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(replacing.listening);
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
    assert_int_equal(unix_socket_connect(address.socket, &waiting), 0);
    dial_settings.refusal_timeout = DURATION_SECOND / 50;
    assert_dialling_fails(&address, DIAL_START, BERTH_ERROR_IO, address.socket,
                          ": the daemon accepts no more connections");
    address.own = false;
    assert_dialling_fails(&address, DIAL_START, BERTH_ERROR_IO, address.socket,
                          ": the daemon accepts no more connections");
    close(waiting);
    close(listening);
    pool_address_finish(&address);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        fake_daemon_test(the_first_command_starts_a_daemon),
        fake_daemon_test(dialling_only_starts_no_daemon),
        fake_daemon_test(a_stale_socket_is_replaced),
        fake_daemon_test(an_untrusted_directory_is_refused),
        fake_daemon_test(an_untrusted_directory_with_a_daemon_is_refused),
        fake_daemon_test(somebody_elses_directory_is_refused),
        fake_daemon_test(somebody_elses_daemon_is_refused),
        fake_daemon_test(long_paths_work),
        fake_daemon_test(a_socket_that_is_not_ours_is_never_replaced),
        fake_daemon_test(one_that_comes_back_is_waited_for),
        fake_daemon_test(a_full_daemon_is_waited_for_in_vain),
    };

    fake_daemon_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
