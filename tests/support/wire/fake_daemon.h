/* SPDX-License-Identifier: Apache-2.0
 *
 * A made-up berthd: the code under test starts the test program itself as the daemon.
 * BERTH_TEST_DAEMON selects its behaviour. It writes files into its directory that say how it was
 * started. It ends on request, and after 40 s at the latest.
 */
#ifndef TESTS_FAKE_DAEMON_H
#define TESTS_FAKE_DAEMON_H

#include "support/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text/quantity.h"
#include "client/dial.h"
#include "client/pool_address.h"
#include "support/temporary_directory.h"
#include "wire/wire.h"

enum { FAKE_LISTENING = 3, FAKE_DESCRIPTORS = 256 };

static inline void fake_require(bool condition)
{
    if (!condition)
        _exit(99);
}

static inline bool fake_is(const char *behaviour)
{
    const char *wanted = getenv("BERTH_TEST_DAEMON");

    return wanted != NULL && strcmp(wanted, behaviour) == 0;
}

/* Appends a line to a file of the directory. */
static inline void fake_note(const char *directory, const char *name, const char *line)
{
    char *path;
    int file;

    fake_require(asprintf(&path, "%s/%s", directory, name) > 0);
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    fake_require(file >= 0 && dprintf(file, "%s\n", line) > 0);
    close(file);
    free(path);
}

static inline bool fake_has(const char *directory, const char *name)
{
    struct stat status;
    char *path;
    bool there;

    fake_require(asprintf(&path, "%s/%s", directory, name) > 0);
    there = stat(path, &status) == 0;
    free(path);
    return there;
}

/* Notes the descriptors that are open before this call. */
static inline void fake_note_descriptors(const char *directory)
{
    char line[1024] = "descriptors";

    for (int i = 0; i < FAKE_DESCRIPTORS; i++) {
        if (fcntl(i, F_GETFD) >= 0)
            snprintf(line + strlen(line), sizeof(line) - strlen(line), " %d", i);
    }
    fake_note(directory, "facts", line);
}

static inline void fake_note_signals(const char *directory)
{
    sigset_t blocked;
    char line[128];
    int odd = 0;

    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int i = 1; i < NSIG; i++) {
        struct sigaction action = {.sa_handler = SIG_DFL};

        /* Sanitizers install handlers of their own. */
        if (sigismember(&blocked, i) == 1 ||
            (sigaction(i, NULL, &action) == 0 && action.sa_handler == SIG_IGN))
            odd++;
    }
    snprintf(line, sizeof(line), "signals blocked or ignored: %d", odd);
    fake_note(directory, "facts", line);
}

static inline void fake_note_environment(const char *directory)
{
    static const char *const names[] = {
        "CUDA_VISIBLE_DEVICES", "BERTH_LEASE",    "BERTH_SOCKET", "BERTH_INVENTORY",
        "LISTEN_FDS",           "LISTEN_FDNAMES", "KEPT"};
    char line[256];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);

        snprintf(line, sizeof(line), "%s %s", names[i], value == NULL ? "unset" : value);
        fake_note(directory, "facts", line);
    }
}

static inline void fake_note_facts(int argc, char **argv)
{
    const char *directory = argv[2];
    const char *pid = getenv("LISTEN_PID");
    /* The session of the test. The parent may still be the intermediate process of the start. */
    const char *session = getenv("TEST_SESSION");
    bool apart = getsid(0) != getpid() && session != NULL && strtol(session, NULL, 10) != getsid(0);
    char line[4096];

    fake_note_descriptors(directory);
    fake_note_signals(directory);
    fake_note_environment(directory);
    fake_require(getcwd(line, sizeof(line)) != NULL);
    fake_note(directory, "facts", line);
    snprintf(line, sizeof(line), "session %s, listens as %s", apart ? "apart" : "shared or led",
             pid != NULL && strtol(pid, NULL, 10) == (long)getpid() ? "itself" : "another");
    fake_note(directory, "facts", line);
    snprintf(line, sizeof(line), "%s %s", argc > 3 ? argv[3] : "no", argc > 4 ? argv[4] : "more");
    fake_note(directory, "facts", line);
}

static inline void fake_say(int to, const struct wire_message *message)
{
    struct text bytes = {0};

    fake_require(wire_encode(message, &bytes, NULL) == 0);
    send(to, bytes.bytes, bytes.length, MSG_NOSIGNAL);
    text_finish(&bytes);
}

/* Does the things that some behaviours do before they answer in the ordinary way. */
static inline void fake_precede(int to, const struct wire_message *question, const char *directory)
{
    struct wire_message other = {.type = WIRE_DONE, .number = question->number + 1000};
    struct wire_message unknown = {.type = (enum wire_type)200, .number = question->number};

    if (fake_is("chatty")) {
        fake_say(to, &other);
        fake_say(to, &unknown);
    }
    if (fake_is("dies once") && !fake_has(directory, "died")) {
        fake_note(directory, "died", "");
        _exit(0);
    }
    if (fake_is("dies always"))
        _exit(0);
}

static inline void fake_answer(int to, const struct wire_message *question, const char *directory)
{
    struct wire_message answer = {.type = WIRE_POOL, .number = question->number};

    fake_precede(to, question, directory);
    if (question->type == WIRE_STOP)
        _exit(0);
    if (fake_is("garbage"))
        send(to, "garbage, and more of it", 23, MSG_NOSIGNAL);
    else if (fake_is("long")) {
        char *bytes = calloc(1, WIRE_MESSAGE_MAX + 1);

        send(to, bytes, WIRE_MESSAGE_MAX + 1, MSG_NOSIGNAL);
        free(bytes);
    } else {
        if (fake_is("other answer"))
            answer.type = WIRE_DONE;
        if (fake_is("refuses")) {
            answer.type = WIRE_REFUSED;
            answer.error = (uint32_t)-BERTH_ERROR_BUSY;
            answer.text = (char *)"it is taken";
        }
        if (answer.type == WIRE_POOL)
            answer.pid = (int32_t)getpid();
        fake_say(to, &answer);
    }
}

static inline void fake_serve_one(int connection, const char *directory)
{
    unsigned char *packet = malloc(WIRE_MESSAGE_MAX);
    struct wire_message closing = {
        .type = WIRE_CLOSING, .error = (uint32_t)-BERTH_ERROR_LIMIT, .text = (char *)"too many"};
    ssize_t length;

    if (fake_is("closes") || fake_is("closes late")) {
        struct pollfd question = {.fd = connection, .events = POLLIN};

        /* Because the question is not read, the client gets a reset before the last message. */
        if (fake_is("closes late"))
            poll(&question, 1, -1);
        fake_say(connection, &closing);
    } else {
        while ((length = recv(connection, packet, WIRE_MESSAGE_MAX, 0)) > 0) {
            struct wire_message question;

            fake_require(wire_decode(packet, (size_t)length, &question, NULL) == 0);
            fake_answer(connection, &question, directory);
            wire_message_finish(&question);
        }
    }
    free(packet);
    close(connection);
}

/* Serves one connection after the other. */
static inline void fake_serve(const char *directory)
{
    for (;;) {
        int connection = accept4(FAKE_LISTENING, NULL, NULL, SOCK_CLOEXEC);

        fake_require(connection >= 0);
        fake_serve_one(connection, directory);
    }
}

/* Call this first in main. Does not return if the program was started as the daemon. */
static inline void fake_daemon_main(int argc, char **argv)
{
    char pid[32];

    if (argc < 3 || strcmp(argv[1], "--own") != 0)
        return;
    alarm(40);
    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    fake_note(argv[2], "started", pid);
    fake_note_facts(argc, argv);
    fprintf(stderr, "a line for the log\n");
    if (fake_is("silent"))
        _exit(1);
    if (fake_is("stuck"))
        pause();
    if (fake_is("error")) {
        dprintf(STDOUT_FILENO, "inventory.yaml:3:1: expected a device, got nothing\n");
        _exit(1);
    }
    if (fake_is("ends at once"))
        close(FAKE_LISTENING);
    dprintf(STDOUT_FILENO, "ready\n");
    close(STDOUT_FILENO);
    if (fake_is("ends at once"))
        _exit(0);
    fake_serve(argv[2]);
}

/* Returns an address of the test's own, in a subdirectory that does not exist yet. */
static inline struct pool_address fake_address(void **state)
{
    struct pool_address address = {.own = true};

    assert_true(asprintf(&address.directory, "%s/own", (char *)*state) > 0);
    assert_true(asprintf(&address.socket, "%s/berth.sock", address.directory) > 0);
    return address;
}

/* Makes daemons that lose their parent children of this process, so that it can reap them. Not
 * every machine's first process does. */
static inline void fake_adopt(bool adopt)
{
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, adopt, 0, 0, 0), 0);
}

static inline void fake_end_process(pid_t pid)
{
    int handle = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd ended = {.fd = handle, .events = POLLIN};

    if (handle < 0)
        return;
    syscall(SYS_pidfd_send_signal, handle, SIGKILL, NULL, 0);
    poll(&ended, 1, 10000);
    waitpid(pid, NULL, WNOHANG);
    close(handle);
}

/* Ends the daemons of a directory that still run. Returns how many were started there. */
static inline unsigned fake_end_all(const char *directory)
{
    unsigned count = 0;
    char line[64];
    char *path;
    FILE *file;

    assert_true(asprintf(&path, "%s/started", directory) > 0);
    file = fopen(path, "re");
    free(path);
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        fake_end_process((pid_t)strtol(line, NULL, 10));
        count++;
    }
    fclose(file);
    return count;
}

static inline int fake_enter(void **state)
{
    static char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

    if (length <= 0)
        return -1;
    program[length] = '\0';
    dial_settings = (struct dial_settings){
        .program = program,
        .refusal_timeout = DURATION_SECOND,
        .start_timeout = 20 * DURATION_SECOND,
        .reconnect_timeout = 20 * DURATION_SECOND,
    };
    setenv("BERTH_TEST_DAEMON", "good", 1);
    fake_adopt(true);
    return temporary_directory_enter(state);
}

/* Ends the daemons of a directory; called by nftw() for each directory below the temporary one. */
static inline int fake_visit(const char *path, const struct stat *status, int kind,
                             struct FTW *place)
{
    (void)status;
    (void)place;
    if (kind == FTW_D)
        fake_end_all(path);
    return 0;
}

static inline int fake_leave(void **state)
{
    if (nftw(*state, fake_visit, 8, FTW_PHYS) < 0)
        return -1;
    return temporary_directory_leave(state);
}

#define fake_daemon_test(test) cmocka_unit_test_setup_teardown(test, fake_enter, fake_leave)

#endif
