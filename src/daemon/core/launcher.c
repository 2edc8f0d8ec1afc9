/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/string_list.h"
#include "base/system/child_setup.h"
#include "base/text/text.h"

enum { EXIT_NOT_EXECUTED = 127 };

/* How long the start of the launcher's process may take. */
#define START_TIMEOUT (10 * DURATION_SECOND)

/* The start of an order; the bytes follow. */
struct order_header {
    uint32_t number; /* 0: no reply is expected */
    uint32_t program;
};

/* The first reply has the number 0 and reports whether the launcher is ready. A reply to an order
 * comes with the child's pidfd. */
struct reply {
    uint32_t number;
    int32_t failure; /* an errno; 0: none */
    int32_t pid;
};

/* ---- Messages with descriptors ---- */

union control_buffer {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(LAUNCHER_DESCRIPTORS_MAX * sizeof(int))];
};

/* Returns 0 or an errno. */
static int send_parts(int socket, struct iovec *parts, size_t part_count, const int *descriptors,
                      size_t count, int flags)
{
    union control_buffer control = {0};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = part_count};

    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(count * sizeof(int)),
            .cmsg_level = SOL_SOCKET,
            .cmsg_type = SCM_RIGHTS,
        };
        memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
    }
    while (sendmsg(socket, &message, MSG_NOSIGNAL | flags) < 0) {
        if (errno != EINTR)
            return errno;
    }
    return 0;
}

static void close_descriptors(const int *descriptors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(descriptors[i]);
}

/* Receives a message and its descriptors; some are missing if this process has none free. Returns
 * its length, 0 at the end of the connection, or -1 with errno. */
static ssize_t receive_message(int socket, void *bytes, size_t size, int *descriptors,
                               size_t *ret_count, int flags)
{
    union control_buffer control;
    struct iovec part = {.iov_base = bytes, .iov_len = size};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
    ssize_t length;

    *ret_count = 0;
    do
        length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
    while (length < 0 && errno == EINTR);
    if (length < 0)
        return -1;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header != NULL;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
            *ret_count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(descriptors, CMSG_DATA(header), *ret_count * sizeof(int));
        }
    }
    return length;
}

/* ---- The launcher's process ---- */

static _Noreturn void run_entry(const struct launcher_entry *entry, struct launcher_work *work)
{
    work->context = entry->context;
    entry->run(work);
    _exit(EXIT_NOT_EXECUTED);
}

/* Makes a child of the daemon, so that the daemon learns its exit code and the child ends with the
 * daemon. */
static struct reply fork_for_daemon(const struct launcher_entry *entry, struct launcher_work *work,
                                    int *ret_process)
{
    struct reply reply = {0};
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);

    *ret_process = -1;
    if (pid == 0)
        run_entry(entry, work);
    if (pid < 0) {
        reply.failure = errno;
        return reply;
    }
    reply.pid = pid;
    /* The daemon does not know the child yet, so it cannot have reaped it. */
    *ret_process = (int)syscall(SYS_pidfd_open, pid, 0);
    if (*ret_process < 0) {
        reply.failure = errno;
        kill(pid, SIGKILL);
    }
    return reply;
}

static void send_reply(int socket, const struct reply *reply, int process)
{
    struct iovec part = {.iov_base = (void *)reply, .iov_len = sizeof(*reply)};

    if (send_parts(socket, &part, 1, &process, process >= 0, 0) != 0)
        _exit(EXIT_FAILURE); /* the daemon has ended */
}

static void serve_order(const struct launcher *launcher, const struct order_header *header,
                        struct launcher_work *work)
{
    const struct launcher_entry *entry =
        header->program < LAUNCHER_PROGRAMS ? &launcher->entries[header->program] : NULL;
    struct reply reply = {.failure = EINVAL};
    int process = -1;

    if (entry != NULL && entry->start != NULL && header->number == 0) {
        work->context = entry->context;
        entry->start(work);
        return;
    }
    if (entry != NULL && entry->run != NULL)
        reply = fork_for_daemon(entry, work, &process);
    reply.number = header->number;
    send_reply(launcher->socket, &reply, process);
    if (process >= 0)
        close(process);
}

static _Noreturn void serve_orders(const struct launcher *launcher, pid_t daemon)
{
    static char bytes[sizeof(struct order_header) + LAUNCHER_BYTES_MAX];
    struct order_header header;
    ssize_t length;

    for (;;) {
        struct launcher_work work = {.daemon = daemon};

        length = receive_message(launcher->socket, bytes, sizeof(bytes), work.descriptors,
                                 &work.descriptor_count, 0);
        if (length <= 0)
            _exit(EXIT_SUCCESS);
        if (length >= (ssize_t)sizeof(header)) {
            memcpy(&header, bytes, sizeof(header));
            work.bytes = bytes + sizeof(header);
            work.length = (size_t)length - sizeof(header);
            serve_order(launcher, &header, &work);
        }
        close_descriptors(work.descriptors, work.descriptor_count);
    }
}

/* The launcher ends with the daemon's connection, not by the signals of the daemon's terminal. */
static void ignore_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGPIPE};

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        signal(signals[i], SIG_IGN);
}

static _Noreturn void be_launcher(struct launcher *launcher, int socket, pid_t daemon,
                                  int (*prepare)(void *context), void *context)
{
    struct reply ready = {0};
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    child_setup_reset_signals();
    ignore_signals();
    prctl(PR_SET_NAME, "berth-launcher");
    if (nothing < 0 || child_setup_descriptors(-1, nothing, &socket) < 0)
        _exit(EXIT_FAILURE);
    launcher->socket = socket;
    ready.failure = prepare(context);
    send_reply(socket, &ready, -1);
    if (ready.failure != 0)
        _exit(EXIT_FAILURE);
    serve_orders(launcher, daemon);
}

/* ---- The daemon's side ---- */

void launcher_init(struct launcher *launcher, const struct launcher_entry *entries)
{
    *launcher = (struct launcher){.entries = entries, .socket = -1};
}

/* Ends a child that cannot be used. It has not been reaped, so its number is still its own. */
static void end_child(const struct reply *reply)
{
    if (reply->pid <= 0)
        return;
    kill(reply->pid, SIGKILL);
    waitpid(reply->pid, NULL, WNOHANG);
}

/* Waits for the reply to the order, and passes over replies that came too late. Returns 0 or an
 * errno. */
static int receive_reply(int socket, uint32_t number, struct reply *ret_reply, int *ret_process)
{
    struct reply reply = {0};
    int descriptors[LAUNCHER_DESCRIPTORS_MAX];
    size_t count;
    ssize_t length;

    for (;;) {
        length = receive_message(socket, &reply, sizeof(reply), descriptors, &count, 0);
        if (length < 0)
            return errno == EAGAIN ? ETIMEDOUT : errno;
        if (length != (ssize_t)sizeof(reply))
            return EPIPE;
        if (reply.number == number)
            break;
        close_descriptors(descriptors, count);
        end_child(&reply);
    }
    if (reply.failure == 0 && reply.pid > 0 && count == 0) {
        end_child(&reply);
        return EMFILE;
    }
    *ret_reply = reply;
    *ret_process = count > 0 ? descriptors[0] : -1;
    return reply.failure;
}

static void set_timeout(const struct launcher *launcher, int64_t timeout)
{
    const struct timeval value = {.tv_sec = timeout / DURATION_SECOND};

    setsockopt(launcher->socket, SOL_SOCKET, SO_RCVTIMEO, &value, sizeof(value));
}

static int await_launcher(struct launcher *launcher, struct berth_error *error)
{
    struct reply ready;
    int process;
    int number;

    set_timeout(launcher, START_TIMEOUT);
    number = receive_reply(launcher->socket, 0, &ready, &process);
    set_timeout(launcher, LAUNCHER_TIMEOUT);
    return number == 0 ? 0 : error_set_errno(error, number, "cannot start berth-launcher");
}

int launcher_begin(struct launcher *launcher, int (*prepare)(void *context), void *context,
                   struct berth_error *error)
{
    pid_t daemon = getpid();
    int ends[2];
    int code;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_set_errno(error, errno, "cannot create a socket pair");
    launcher->pid = fork();
    if (launcher->pid == 0)
        be_launcher(launcher, ends[1], daemon, prepare, context);
    code = launcher->pid < 0 ? error_set_errno(error, errno, "cannot start berth-launcher") : 0;
    close(ends[1]);
    launcher->socket = ends[0];
    if (code == 0)
        code = await_launcher(launcher, error);
    if (code < 0)
        launcher_finish(launcher);
    return code;
}

void launcher_finish(struct launcher *launcher)
{
    if (launcher->socket < 0)
        return;
    /* A child that was forked meanwhile may have a copy of the descriptor. */
    shutdown(launcher->socket, SHUT_RDWR);
    close(launcher->socket);
    launcher->socket = -1;
}

bool launcher_has_ended(const struct launcher *launcher)
{
    struct reply reply = {0};
    int descriptors[LAUNCHER_DESCRIPTORS_MAX];
    size_t count;
    ssize_t length;

    /* Replies that came too late. */
    do {
        length = receive_message(launcher->socket, &reply, sizeof(reply), descriptors, &count,
                                 MSG_DONTWAIT);
        close_descriptors(descriptors, length > 0 ? count : 0);
        if (length == (ssize_t)sizeof(reply))
            end_child(&reply);
    } while (length > 0);
    return length == 0 || errno != EAGAIN;
}

/* Returns 0 or an errno. */
static int send_order(const struct launcher *launcher, const struct order_header *header,
                      const struct text *bytes, const int *descriptors, size_t count)
{
    struct iovec parts[] = {
        {.iov_base = (void *)header, .iov_len = sizeof(*header)},
        {.iov_base = bytes == NULL ? NULL : bytes->bytes,
         .iov_len = bytes == NULL ? 0 : bytes->length},
    };

    if (parts[1].iov_len > LAUNCHER_BYTES_MAX)
        return E2BIG;
    return send_parts(launcher->socket, parts, 2, descriptors, count, MSG_DONTWAIT);
}

/* Forks here, without a separate launcher. Returns 0 or an errno. */
static int fork_here(const struct launcher_entry *entry, const struct text *bytes,
                     const int *descriptors, size_t count, pid_t *ret_pid, int *ret_process)
{
    struct launcher_work work = {
        .bytes = bytes->bytes,
        .length = bytes->length,
        .descriptor_count = count,
        .daemon = getpid(),
    };
    pid_t pid;
    int process;
    int number;

    memcpy(work.descriptors, descriptors, count * sizeof(*descriptors));
    pid = fork();
    if (pid == 0)
        run_entry(entry, &work);
    if (pid < 0)
        return errno;
    process = (int)syscall(SYS_pidfd_open, pid, 0);
    if (process < 0) {
        number = errno;
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        return number;
    }
    *ret_pid = pid;
    *ret_process = process;
    return 0;
}

int launcher_fork(struct launcher *launcher, enum launcher_program program,
                  const struct text *bytes, const int *descriptors, size_t count, pid_t *ret_pid,
                  int *ret_process)
{
    struct order_header header = {.program = program};
    struct reply reply = {0};
    int number;

    if (text_failed(bytes))
        return ENOMEM;
    if (!launcher_is_separate(launcher))
        return fork_here(&launcher->entries[program], bytes, descriptors, count, ret_pid,
                         ret_process);
    if (++launcher->last_number == 0)
        launcher->last_number = 1;
    header.number = launcher->last_number;
    number = send_order(launcher, &header, bytes, descriptors, count);
    if (number == 0)
        number = receive_reply(launcher->socket, header.number, &reply, ret_process);
    if (number == 0)
        *ret_pid = reply.pid;
    return number;
}

int launcher_start(struct launcher *launcher, enum launcher_program program, const int *descriptors,
                   size_t count)
{
    struct order_header header = {.program = program};

    return send_order(launcher, &header, NULL, descriptors, count);
}

/* ---- Words ---- */

void launcher_append_word(struct text *bytes, const char *word)
{
    text_append_bytes(bytes, word, strlen(word) + 1);
}

void launcher_append_number(struct text *bytes, uint64_t number)
{
    text_append_number(bytes, number);
    text_append_bytes(bytes, "", 1);
}

int launcher_read_words(const struct launcher_work *work, struct string_list *words)
{
    size_t at = 0;

    if (work->length > 0 && work->bytes[work->length - 1] != '\0')
        return EINVAL;
    while (at < work->length) {
        if (string_list_append(words, work->bytes + at) < 0)
            return ENOMEM;
        at += strlen(work->bytes + at) + 1;
    }
    return 0;
}
