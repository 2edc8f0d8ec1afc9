/* SPDX-License-Identifier: Apache-2.0 */
#include "client/start_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/backoff.h"
#include "base/system/program.h"
#include "base/system/spawn_detached.h"
#include "base/text/quantity.h"
#include "client/dial.h"
#include "client/unix_socket.h"
#include "client/user_directory.h"
#include "model/helper_variables.h"

#define LOCK_NAME "start"
#define LOG_NAME  "log"

/* The maximum number of attempts to create files, which a cleaner of temporary files may remove. */
enum { TRIES_MAX = 5 };

/* The descriptors that are open while a daemon is started; -1: not open. */
struct daemon_start {
    const struct pool_address *address;
    int directory;
    int lock;
    int listening;
    int log;
    int ready_read; /* the daemon's line is read here */
    int ready_write;
};

static void close_open(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

static void finish_start(struct daemon_start *start)
{
    close_open(&start->ready_write);
    close_open(&start->ready_read);
    close_open(&start->log);
    close_open(&start->listening);
    close_open(&start->lock);
    close_open(&start->directory);
}

static int set_start_error(const struct daemon_start *start, int number, const char *what,
                           const char *name, struct berth_error *error)
{
    return error_set_errno(error, number, "cannot %s %s/%s", what, start->address->directory, name);
}

/* Opens a file in the directory for writing, with mode 0600 also under another file-mode mask. */
static int open_file(const struct daemon_start *start, const char *name, int flags, int *ret_file)
{
    int file =
        openat(start->directory, name,
               O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | flags, S_IRUSR | S_IWUSR);

    if (file < 0)
        return errno;
    if (fchmod(file, S_IRUSR | S_IWUSR) < 0) {
        int number = errno;

        close(file);
        return number;
    }
    *ret_file = file;
    return 0;
}

/* Waits for the lock. The time is limited, because the process that holds it may be stopped. */
static int wait_for_lock(int lock)
{
    struct backoff backoff;

    backoff_begin(&backoff, dial_settings.start_timeout, 4 * BACKOFF_PAUSE_MIN);
    while (flock(lock, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return errno;
        if (!backoff_sleep(&backoff))
            return EWOULDBLOCK;
    }
    return 0;
}

static bool is_same_file(const struct daemon_start *start, const char *name, int file)
{
    struct stat held;
    struct stat named;

    return fstat(file, &held) == 0 &&
           fstatat(start->directory, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/* Opens the directory and locks it against other commands that start a daemon. */
static int lock_directory(struct daemon_start *start, struct berth_error *error)
{
    int number = ENOENT;

    for (unsigned i = 0; i < TRIES_MAX && number == ENOENT; i++) {
        int code;

        close_open(&start->lock);
        close_open(&start->directory);
        code = user_directory_open(start->address, &start->directory, error);
        if (code < 0)
            return code;
        number = open_file(start, LOCK_NAME, O_RDWR, &start->lock);
        if (number == 0)
            number = wait_for_lock(start->lock);
        if (number == 0 && !is_same_file(start, LOCK_NAME, start->lock))
            number = ENOENT;
    }
    if (number == EWOULDBLOCK)
        return error_set(error, BERTH_ERROR_IO,
                         "%s/" LOCK_NAME ": another command has been starting the daemon for %s",
                         start->address->directory,
                         quantity_format_duration(dial_settings.start_timeout).text);
    return number == 0 ? 0 : set_start_error(start, number, "lock", LOCK_NAME, error);
}

/* Returns whether no daemon listens on the socket. Called with the lock held. */
static bool has_no_listener(const struct daemon_start *start)
{
    int socket = -1;
    int number = unix_socket_connect(start->address->socket, &socket);

    if (number == 0)
        close(socket);
    return number == ENOENT || number == ECONNREFUSED;
}

static int open_log_and_socket(struct daemon_start *start, struct berth_error *error)
{
    int number = 0;
    int ends[2];

    if (unlinkat(start->directory, POOL_SOCKET_NAME, 0) < 0 && errno != ENOENT)
        return set_start_error(start, errno, "replace", POOL_SOCKET_NAME, error);
    number = open_file(start, LOG_NAME, O_WRONLY | O_APPEND, &start->log);
    if (number != 0)
        return set_start_error(start, number, "open", LOG_NAME, error);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set_errno(error, errno, "cannot start the daemon in %s",
                               start->address->directory);
    start->ready_read = ends[0];
    start->ready_write = ends[1];
    number = unix_socket_listen(start->directory, POOL_SOCKET_NAME, &start->listening);
    if (number != 0)
        return set_start_error(start, number, "listen on", POOL_SOCKET_NAME, error);
    return 0;
}

static int spawn_daemon(struct daemon_start *start, struct berth_error *error)
{
    char found[PATH_MAX];
    const char *program = dial_settings.program;
    char *arguments[6] = {(char *)"berthd", (char *)"--own", start->address->directory};
    struct detached_program detached = {
        .arguments = arguments,
        .input = -1,
        .output = start->ready_write,
        .log = start->log,
        .listening = start->listening,
        .dropped = helper_variables_dropped,
        .paths = helper_variables_paths,
    };

    if (program == NULL) {
        program_find("berthd", found, sizeof(found));
        program = found;
    }
    if (start->address->inventory != NULL) {
        arguments[3] = (char *)"--inventory";
        arguments[4] = start->address->inventory;
    }
    detached.program = program;
    return spawn_detached(&detached, error);
}

/* Reads up to the end of the line or the file. Returns 0 or an errno, such as ETIMEDOUT. */
static int read_line(int from, char *line, size_t size)
{
    int64_t until = clock_after(clock_now(), dial_settings.start_timeout);
    size_t length = 0;

    line[0] = '\0';
    while (length + 1 < size && strchr(line, '\n') == NULL) {
        struct pollfd waiting = {.fd = from, .events = POLLIN};
        int64_t left = (until - clock_now()) / 1000000;
        int ready = poll(&waiting, 1, left > 0 ? (int)left : 0);
        ssize_t got;

        if (ready == 0)
            return ETIMEDOUT;
        got = ready < 0 ? -1 : read(from, line + length, size - 1 - length);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return errno;
        if (got > 0)
            length += (size_t)got;
        line[length] = '\0';
    }
    line[strcspn(line, "\n")] = '\0';
    return 0;
}

static int wait_until_ready(struct daemon_start *start, struct berth_error *error)
{
    const char *directory = start->address->directory;
    static const char not_good[] = "not good: "; /* prefix of a message about the daemon's input */
    char line[BERTH_ERROR_MESSAGE_SIZE];
    int number;

    close_open(&start->ready_write);
    close_open(&start->listening);
    number = read_line(start->ready_read, line, sizeof(line));
    if (number == 0 && strcmp(line, "ready") == 0)
        return 0;
    if (number == ETIMEDOUT)
        return error_set(error, BERTH_ERROR_IO,
                         "%s: the daemon was not ready after %s: see %s/" LOG_NAME, directory,
                         quantity_format_duration(dial_settings.start_timeout).text, directory);
    unlinkat(start->directory, POOL_SOCKET_NAME, 0);
    if (number != 0)
        return error_set_errno(error, number, "cannot read from the daemon in %s", directory);
    if (strncmp(line, not_good, sizeof(not_good) - 1) == 0)
        return error_set(error, BERTH_ERROR_INVALID, "%s", line + sizeof(not_good) - 1);
    if (line[0] != '\0')
        return error_set(error, BERTH_ERROR_IO, "%s", line);
    error_set(error, BERTH_ERROR_IO, "%s: the daemon did not start: see %s/" LOG_NAME, directory,
              directory);
    return START_DAEMON_NO_ANSWER;
}

static int spawn_and_wait(struct daemon_start *start, struct berth_error *error)
{
    int code = open_log_and_socket(start, error);

    if (code < 0)
        return code;
    code = spawn_daemon(start, error);
    if (code < 0)
        unlinkat(start->directory, POOL_SOCKET_NAME, 0);
    return code < 0 ? code : wait_until_ready(start, error);
}

/* Replaces BERTH_ERROR_NOT_FOUND of a missing file by BERTH_ERROR_IO: to dial's callers, NOT_FOUND
 * means that no daemon runs. */
static int not_found_to_io(int code, struct berth_error *error)
{
    if (code != BERTH_ERROR_NOT_FOUND)
        return code;
    if (error != NULL)
        error->code = BERTH_ERROR_IO;
    return BERTH_ERROR_IO;
}

int start_daemon(const struct pool_address *address, struct berth_error *error)
{
    struct daemon_start start = {address, -1, -1, -1, -1, -1, -1};
    int code = lock_directory(&start, error);

    if (code == 0 && has_no_listener(&start))
        code = spawn_and_wait(&start, error);
    finish_start(&start);
    return not_found_to_io(code, error);
}

bool start_daemon_is_in_progress(const struct pool_address *address)
{
    bool is_locked = false;
    int directory = -1;
    int lock;

    if (user_directory_open(address, &directory, NULL) < 0)
        return false;
    lock = openat(directory, LOCK_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (lock >= 0) {
        is_locked = flock(lock, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
        close(lock);
    }
    close(directory);
    return is_locked;
}
