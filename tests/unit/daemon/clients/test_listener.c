/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/clients/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/assert_error.h"
#include "support/temporary_directory.h"

/* A path that is too long for a socket address is the business of one test only. */
static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (connect(client, (struct sockaddr *)&address, sizeof(address)) == 0)
        return client;
    close(client);
    return -1;
}

static void open_listener(struct listener *listener, const char *path, bool is_own)
{
    listener_init(listener, path, -1, false);
    listener->is_own = is_own;
    assert_int_equal(listener_lock(listener, NULL), 0);
    assert_int_equal(listener_open(listener, NULL), 0);
}

static void clients_can_connect_until_the_end(void **state)
{
    struct listener listener;
    struct stat status;
    int client;

    (void)state;
    open_listener(&listener, "./berth.sock", false);
    assert_int_equal(stat("berth.sock", &status), 0);
    assert_int_equal(status.st_mode & 07777, 0666);
    client = connect_to("berth.sock");
    assert_true(client >= 0);
    close(client);
    listener_finish(&listener);
    assert_int_equal(access("berth.sock", F_OK), -1);
    assert_int_equal(connect_to("berth.sock"), -1);
}

static void a_second_daemon_is_refused(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct listener listener;
    int lock = open("berth.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    (void)state;
    assert_int_equal(flock(lock, LOCK_EX), 0);
    listener_init(&listener, "./berth.sock", -1, false);
    assert_fails(listener_lock(&listener, &error), BERTH_ERROR_BUSY, &error,
                 "cannot lock ./berth.lock: another daemon uses it");
    listener_finish(&listener);
    close(lock);
}

static void a_leftover_socket_is_replaced(void **state)
{
    struct listener first;
    struct listener second;

    (void)state;
    open_listener(&first, "./berth.sock", false);
    /* The first daemon was killed. */
    close(first.lock);
    first.lock = -1;
    open_listener(&second, "./berth.sock", false);
    /* It must not remove the path of its successor. */
    listener_finish(&first);
    assert_int_equal(access("berth.sock", F_OK), 0);
    listener_finish(&second);
}

static void a_directory_that_others_can_open_is_refused(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct listener listener;
    struct stat status;

    (void)state;
    assert_int_equal(mkdir("private", 0755), 0);
    listener_init(&listener, "./private/berth.sock", -1, false);
    listener.is_own = true;
    assert_int_equal(listener_lock(&listener, &error), BERTH_ERROR_PERMISSION);
    assert_non_null(strstr(error.message, "closed to others (mode 0700)"));
    listener_finish(&listener);
    assert_int_equal(chmod("private", 0700), 0);
    open_listener(&listener, "./private/berth.sock", true);
    assert_int_equal(stat("private/berth.sock", &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    listener_finish(&listener);
}

static void a_symlink_is_not_followed(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct listener listener;

    (void)state;
    assert_int_equal(mkdir("elsewhere", 0700), 0);
    assert_int_equal(symlink("elsewhere", "private"), 0);
    listener_init(&listener, "./private/berth.sock", -1, false);
    listener.is_own = true;
    assert_true(listener_lock(&listener, &error) < 0);
    listener_finish(&listener);
    assert_int_equal(symlink("victim", "berth.lock"), 0);
    listener_init(&listener, "./berth.sock", -1, false);
    assert_true(listener_lock(&listener, &error) < 0);
    listener_finish(&listener);
    assert_int_equal(access("victim", F_OK), -1);
}

static void an_idle_daemon_stops_listening(void **state)
{
    struct listener listener;
    int client;

    (void)state;
    open_listener(&listener, "./berth.sock", false);
    client = connect_to("berth.sock");
    assert_true(client >= 0);
    assert_false(listener_close_unused(&listener));
    close(accept4(listener.watch.descriptor, NULL, NULL, SOCK_CLOEXEC));
    close(client);
    assert_true(listener_close_unused(&listener));
    assert_int_equal(access("berth.sock", F_OK), -1);
    listener_finish(&listener);
}

/* A command holds the file `start` while it starts a daemon. */
static void a_starting_command_keeps_the_socket(void **state)
{
    struct listener listener;
    int start = open("start", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    (void)state;
    assert_int_equal(flock(start, LOCK_EX), 0);
    open_listener(&listener, "./berth.sock", false);
    assert_false(listener_close_unused(&listener));
    close(start);
    assert_true(listener_close_unused(&listener));
    listener_finish(&listener);
}

static void a_long_path_is_refused(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct listener listener;
    char path[256];

    (void)state;
    memset(path, 'x', sizeof(path));
    memcpy(path, "./", 2);
    path[150] = '\0';
    listener_init(&listener, path, -1, false);
    assert_int_equal(listener_lock(&listener, &error), 0);
    assert_int_equal(listener_open(&listener, &error), BERTH_ERROR_INVALID);
    assert_non_null(strstr(error.message, "at most 107 bytes, got 150"));
    listener_finish(&listener);
}

#define IN_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, temporary_directory_enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(clients_can_connect_until_the_end),
        IN_DIRECTORY(a_second_daemon_is_refused),
        IN_DIRECTORY(a_leftover_socket_is_replaced),
        IN_DIRECTORY(a_directory_that_others_can_open_is_refused),
        IN_DIRECTORY(a_symlink_is_not_followed),
        IN_DIRECTORY(an_idle_daemon_stops_listening),
        IN_DIRECTORY(a_starting_command_keeps_the_socket),
        IN_DIRECTORY(a_long_path_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
