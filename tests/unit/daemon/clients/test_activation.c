/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/clients/activation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/spawn_detached.h"
#include "support/temporary_directory.h"

/* Opens the manager's end and names it in the environment. */
static int open_manager(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    assert_int_equal(bind(manager, (struct sockaddr *)&address, sizeof(address)), 0);
    setenv("NOTIFY_SOCKET", path, 1);
    return manager;
}

static const char *receive_words(int manager)
{
    static char words[256];
    ssize_t length = recv(manager, words, sizeof(words) - 1, 0);

    words[length < 0 ? 0 : length] = '\0';
    return words;
}

static void a_service_manager_is_told(void **state)
{
    char path[256];
    int alive = -1;
    int manager;

    snprintf(path, sizeof(path), "%s/notify", (const char *)*state);
    manager = open_manager(path);
    activation_ready(-1);
    assert_string_equal(receive_words(manager), "READY=1");
    activation_alive(&alive);
    assert_string_equal(receive_words(manager), "WATCHDOG=1");
    assert_true(alive >= 0);
    activation_alive(&alive);
    assert_string_equal(receive_words(manager), "WATCHDOG=1");
    close(alive);
    activation_stopping();
    assert_string_equal(receive_words(manager), "STOPPING=1");
    activation_reloading();
    assert_int_equal(strncmp(receive_words(manager), "RELOADING=1\nMONOTONIC_USEC=", 27), 0);
    assert_string_equal(receive_words(manager), "");
    unsetenv("NOTIFY_SOCKET");
    activation_ready(-1);
    assert_string_equal(receive_words(manager), "");
    close(manager);
}

/* Signs that a manager does not read, or that it cannot get because it is restarted, are lost; the
 * socket stays, because there may be no other descriptor. */
static void the_socket_for_signs_stays(void **state)
{
    char path[256];
    int alive = -1;
    int first;
    int manager;

    snprintf(path, sizeof(path), "%s/notify", (const char *)*state);
    manager = open_manager(path);
    for (int i = 0; i < 10000; i++)
        activation_alive(&alive);
    first = alive;
    assert_true(first >= 0);
    while (strcmp(receive_words(manager), "") != 0)
        ;
    close(manager);
    unlink(path);
    activation_alive(&alive);
    manager = open_manager(path);
    activation_alive(&alive);
    assert_int_equal(alive, first);
    assert_string_equal(receive_words(manager), "WATCHDOG=1");
    assert_string_equal(receive_words(manager), "");
    close(alive);
    close(manager);
    unsetenv("NOTIFY_SOCKET");
}

static void a_starting_command_is_told(void **state)
{
    int ends[2];
    char words[16] = "";

    (void)state;
    unsetenv("NOTIFY_SOCKET");
    assert_int_equal(pipe(ends), 0);
    activation_ready(ends[1]);
    assert_int_equal(read(ends[0], words, sizeof(words) - 1), 6);
    assert_string_equal(words, "ready\n");
    /* The descriptor is closed. */
    assert_int_equal(read(ends[0], words, sizeof(words)), 0);
    close(ends[0]);
}

/* Exit codes of a child that got a descriptor from its "service manager". */
enum { TAKEN, TAKEN_AND_OWNED, REFUSED, NONE };

static int take_listener(int type, bool listens, const char *names, bool is_other_pid)
{
    int descriptor = socket(AF_UNIX, type, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char pid[16];
    int listener;
    bool is_owned;

    if (bind(descriptor, (struct sockaddr *)&address, sizeof(address.sun_family)) < 0 ||
        (listens && listen(descriptor, 1) < 0) || dup2(descriptor, 3) != 3)
        return -1;
    snprintf(pid, sizeof(pid), "%d", (int)getpid() + is_other_pid);
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_FDNAMES", names, 1);
    if (activation_listener(&listener, &is_owned, NULL) < 0)
        return REFUSED;
    if (getenv("LISTEN_PID") != NULL || getenv("LISTEN_FDS") != NULL)
        return -1;
    return listener < 0 ? NONE : is_owned ? TAKEN_AND_OWNED : TAKEN;
}

static int try_listener(int type, bool listens, const char *names, bool is_other_pid)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(take_listener(type, listens, names, is_other_pid));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_listening_socket_is_taken(void **state)
{
    (void)state;
    assert_int_equal(try_listener(SOCK_SEQPACKET, true, "berth.socket", false), TAKEN);
    assert_int_equal(try_listener(SOCK_SEQPACKET, true, DETACHED_LISTENER, false), TAKEN_AND_OWNED);
    assert_int_equal(try_listener(SOCK_SEQPACKET, true, "berth.socket", true), NONE);
    assert_int_equal(try_listener(SOCK_SEQPACKET, false, "berth.socket", false), REFUSED);
    assert_int_equal(try_listener(SOCK_STREAM, true, "berth.socket", false), REFUSED);
}

static void no_socket_is_fine(void **state)
{
    int listener = 0;
    bool is_owned = true;

    (void)state;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    assert_int_equal(activation_listener(&listener, &is_owned, NULL), 0);
    assert_int_equal(listener, -1);
    assert_false(is_owned);
}

static int64_t ask_watchdog(const char *time, const char *pid)
{
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
    if (time != NULL)
        setenv("WATCHDOG_USEC", time, 1);
    if (pid != NULL)
        setenv("WATCHDOG_PID", pid, 1);
    return activation_watchdog_time();
}

static void the_watchdog_is_for_this_process_only(void **state)
{
    char pid[16];

    (void)state;
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    assert_int_equal(ask_watchdog(NULL, NULL), 0);
    assert_int_equal(ask_watchdog("30000000", NULL), 30 * INT64_C(1000000000));
    assert_int_equal(ask_watchdog("30000000", pid), 30 * INT64_C(1000000000));
    assert_null(getenv("WATCHDOG_USEC"));
    assert_int_equal(ask_watchdog("30000000", "1"), 0);
    assert_int_equal(ask_watchdog("soon", NULL), 0);
    assert_int_equal(ask_watchdog("-1", NULL), 0);
    assert_int_equal(ask_watchdog("99999999999999999999", NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_service_manager_is_told, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test_setup_teardown(the_socket_for_signs_stays, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test(a_starting_command_is_told),
        cmocka_unit_test(a_listening_socket_is_taken),
        cmocka_unit_test(no_socket_is_fine),
        cmocka_unit_test(the_watchdog_is_for_this_process_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
