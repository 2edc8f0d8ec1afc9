/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/system/program.h"
#include "base/system/spawn_detached.h"
#include "model/helper_variables.h"

enum { PROGRESS_SIZE = sizeof(uint64_t) };

/* ---- Starting ---- */

/* Creates the file of the progress. It is sealed, because the program could make this process fail
 * with SIGBUS otherwise. */
static int create_progress_file(struct berth_error *error)
{
    int file = memfd_create("berth-reader", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (file >= 0 && ftruncate(file, PROGRESS_SIZE) == 0 &&
        fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return file;
    error_set_errno(error, errno, "cannot create a file for the progress of berth-reader");
    if (file >= 0)
        close(file);
    return -1;
}

int reader_spawn_program(int socket, int progress_file, struct berth_error *error)
{
    static char *arguments[] = {(char *)"berth-reader", NULL};
    const char *named = getenv("BERTH_READER");
    char found[PATH_MAX];
    struct detached_program detached = {
        .program = named,
        .arguments = arguments,
        .input = socket,
        .output = progress_file,
        .log = -1,
        .listening = -1,
        .dropped = helper_variables_dropped,
        .paths = helper_variables_paths,
    };

    if (named == NULL || *named == '\0') {
        program_find("berth-reader", found, sizeof(found));
        detached.program = found;
    } else if (*named != '/' && realpath(named, found) != NULL) {
        detached.program = found; /* the program starts in another directory */
    }
    return spawn_detached(&detached, error);
}

int reader_open(struct reader *reader, int socket, int progress_file, struct berth_error *error)
{
    void *progress = mmap(NULL, PROGRESS_SIZE, PROT_READ, MAP_SHARED, progress_file, 0);

    if (progress == MAP_FAILED)
        return error_set_errno(error, errno, "cannot read the progress of berth-reader");
    *reader = (struct reader)READER_INIT;
    reader->descriptor = socket;
    reader->progress = progress;
    return 0;
}

static int spawn_here(void *context, int socket, int progress_file, struct berth_error *error)
{
    (void)context;
    return reader_spawn_program(socket, progress_file, error);
}

int reader_start(struct reader *reader, struct berth_error *error)
{
    return reader_start_with(reader, spawn_here, NULL, error);
}

int reader_start_with(struct reader *reader, reader_spawn_function *spawn, void *context,
                      struct berth_error *error)
{
    int file = create_progress_file(error);
    int ends[2];
    int code;

    if (file < 0)
        return BERTH_ERROR_IO;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        code = error_set_errno(error, errno, "cannot create a socket pair");
        close(file);
        return code;
    }
    code = spawn(context, ends[1], file, error);
    if (code == 0)
        code = reader_open(reader, ends[0], file, error);
    close(ends[1]);
    close(file);
    if (code < 0)
        close(ends[0]);
    return code;
}

void reader_finish(struct reader *reader)
{
    if (reader->process >= 0) {
        syscall(SYS_pidfd_send_signal, reader->process, SIGKILL, NULL, 0);
        close(reader->process);
    }
    if (reader->state_file >= 0)
        close(reader->state_file);
    if (reader->descriptor >= 0) {
        /* Closing is not enough, because a child that was forked meanwhile may have a copy. */
        shutdown(reader->descriptor, SHUT_RDWR);
        close(reader->descriptor);
    }
    if (reader->progress != NULL)
        munmap(reader->progress, PROGRESS_SIZE);
    reader_answer_finish(&reader->partial);
    text_finish(&reader->packet);
    *reader = (struct reader)READER_INIT;
}

struct reader_touch reader_touch(const struct reader *reader)
{
    uint64_t progress =
        reader->progress == NULL
            ? 0
            : atomic_load_explicit((_Atomic uint64_t *)reader->progress, memory_order_relaxed);
    uint32_t pid = (uint32_t)progress;

    return (struct reader_touch){
        .pid = pid > INT32_MAX ? 0 : (pid_t)pid,
        .count = (uint32_t)(progress >> 32),
    };
}

enum reader_activity reader_activity(const struct reader *reader)
{
    char text[64];
    ssize_t length =
        reader->state_file < 0 ? -1 : pread(reader->state_file, text, sizeof(text) - 1, 0);
    const char *name_end;

    if (length <= 0)
        return READER_SUSPENDED;
    text[length] = '\0';
    /* "123 (berth-reader) R 1 ..." */
    name_end = strrchr(text, ')');
    if (name_end == NULL || name_end[1] != ' ')
        return READER_SUSPENDED;
    switch (name_end[2]) {
    case 'R':
        return READER_RUNS;
    case 'T':
    case 't':
        return READER_STOPPED;
    default:
        return READER_SUSPENDED;
    }
}

int64_t reader_processor_time(const struct reader *reader)
{
    clockid_t clock;
    struct timespec time;

    if (reader->pid <= 0 || clock_getcpuclockid(reader->pid, &clock) != 0 ||
        clock_gettime(clock, &time) < 0)
        return 0;
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* ---- Messages ---- */

static int set_ended_error(struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_IO, "cannot read /proc: berth-reader has ended");
}

int reader_send(struct reader *reader, struct reader_request *request, struct berth_error *error)
{
    struct text packet = {0};
    ssize_t sent;
    int code;

    request->number = ++reader->last_number;
    code = reader_request_encode(request, &packet);
    if (code == 0 && packet.length > READER_PACKET_MAX)
        code = BERTH_ERROR_INVALID;
    if (code < 0) {
        text_finish(&packet);
        return code == BERTH_ERROR_MEMORY
                   ? error_set_memory(error)
                   : error_set(error, code, "cannot ask berth-reader: the request is too long");
    }
    do
        sent = send(reader->descriptor, packet.bytes, packet.length, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    text_finish(&packet);
    if (sent < 0)
        return set_ended_error(error);
    reader->is_busy = true;
    return 0;
}

void reader_answer_finish(struct reader_answer *answer)
{
    const struct reader_process *process;

    vector_for_each (process, &answer->processes) {
        if (process->descriptor >= 0)
            close(process->descriptor);
    }
    reader_answer_free(answer);
}

/* Gives the processes of a page their descriptors, and closes descriptors that belong to none.
 * Returns whether each process that has one got it. */
static bool assign_descriptors(struct reader_answer *page, const int *descriptors, size_t count)
{
    struct reader_process *process;
    bool is_complete = true;
    size_t used = 0;

    vector_for_each (process, &page->processes) {
        if (!process->has_descriptor)
            continue;
        if (used < count)
            process->descriptor = descriptors[used++];
        else
            is_complete = false;
    }
    while (used < count)
        close(descriptors[used++]);
    return is_complete;
}

/* Receives one packet. Returns its length, 0 if there is none, or a code. */
static ssize_t receive_packet(struct reader *reader, int *descriptors, size_t *ret_count)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(READER_PAGE_MAX * sizeof(int))];
    } control;
    struct iovec part = {.iov_len = READER_PACKET_MAX};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
    ssize_t length;

    text_clear(&reader->packet);
    part.iov_base = text_reserve(&reader->packet, READER_PACKET_MAX);
    if (part.iov_base == NULL)
        return BERTH_ERROR_MEMORY;
    do
        length = recvmsg(reader->descriptor, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    if (length < 0 && errno == EAGAIN)
        return 0;
    if (length <= 0)
        return BERTH_ERROR_IO;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header != NULL;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
            *ret_count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(descriptors, CMSG_DATA(header), *ret_count * sizeof(int));
        }
    }
    return length;
}

/* Receives one page of an answer. Returns 1, 0 if there is none, or a code. */
static int receive_page(struct reader *reader, struct reader_answer *ret_page,
                        struct berth_error *error)
{
    int descriptors[READER_PAGE_MAX];
    size_t count = 0;
    ssize_t length = receive_packet(reader, descriptors, &count);
    int code;

    if (length == 0)
        return 0;
    if (length < 0)
        return length == BERTH_ERROR_MEMORY ? error_set_memory(error) : set_ended_error(error);
    code = reader_answer_decode((const unsigned char *)reader->packet.bytes, (size_t)length,
                                ret_page, error);
    if (code < 0) {
        for (size_t i = 0; i < count; i++)
            close(descriptors[i]);
        return error_wrap(error, code, "berth-reader");
    }
    if (!assign_descriptors(ret_page, descriptors, count))
        ret_page->partial = true;
    return 1;
}

static int take_descriptor(struct reader_process *process)
{
    int descriptor = process->descriptor;

    process->descriptor = -1;
    return descriptor;
}

static int fail_message(const char *what, struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_SYNTAX, "berth-reader: %s", what);
}

/* Keeps the program's pidfd and state file, which it sends first, and only once. */
static int take_hello(struct reader *reader, struct reader_answer *hello, struct berth_error *error)
{
    struct reader_process *self = hello->processes.items;
    bool is_first = !reader->has_hello;

    reader->has_hello = true;
    if (is_first && hello->processes.count > 0) {
        reader->pid = (pid_t)self->pid;
        reader->process = take_descriptor(self);
        if (hello->processes.count > 1)
            reader->state_file = take_descriptor(self + 1);
    }
    reader_answer_finish(hello);
    return is_first ? 0 : fail_message("expected an answer, got a second hello", error);
}

/* Adds a page to the answer. */
static int add_page(struct reader_answer *answer, struct reader_answer *page)
{
    size_t count = answer->processes.count + page->processes.count;

    if (count > READER_PROCESSES_MAX || vector_reserve(&answer->processes, count) < 0) {
        reader_answer_finish(page);
        return count > READER_PROCESSES_MAX ? BERTH_ERROR_SYNTAX : BERTH_ERROR_MEMORY;
    }
    if (page->processes.count > 0)
        memcpy(answer->processes.items + answer->processes.count, page->processes.items,
               page->processes.count * sizeof(*page->processes.items));
    answer->processes.count = count;
    answer->number = page->number;
    answer->partial = answer->partial || page->partial;
    if (page->exit_code.known)
        answer->exit_code = page->exit_code;
    /* The processes have moved. */
    vector_finish(&page->processes);
    return 0;
}

int reader_receive(struct reader *reader, struct reader_answer *ret_answer,
                   struct berth_error *error)
{
    struct reader_answer page = {0};
    int code;

    while ((code = receive_page(reader, &page, error)) == 1) {
        bool more = page.more;

        if (page.number == 0) {
            code = take_hello(reader, &page, error);
            if (code < 0)
                return code;
            continue;
        }
        if (!reader->is_busy || page.number != reader->last_number) {
            reader_answer_finish(&page);
            return error_set(error, BERTH_ERROR_SYNTAX,
                             "berth-reader: expected answer %llu, got another one",
                             (unsigned long long)reader->last_number);
        }
        if (more && page.processes.count == 0) {
            reader_answer_finish(&page);
            return fail_message("expected processes on a page before the last, got none", error);
        }
        code = add_page(&reader->partial, &page);
        if (code < 0)
            return code == BERTH_ERROR_MEMORY
                       ? error_set_memory(error)
                       : error_set(error, code,
                                   "berth-reader: expected at most %d processes, got more",
                                   READER_PROCESSES_MAX);
        if (more)
            continue;
        *ret_answer = reader->partial;
        reader->partial = (struct reader_answer){0};
        reader->is_busy = false;
        return 1;
    }
    return code;
}

int reader_query(struct reader *reader, struct reader_request *request, int64_t deadline,
                 struct reader_answer *ret_answer, struct berth_error *error)
{
    int code = reader_send(reader, request, error);

    if (code < 0)
        return code;
    while ((code = reader_receive(reader, ret_answer, error)) == 0) {
        struct pollfd waiting = {.fd = reader->descriptor, .events = POLLIN};
        int64_t left = deadline - clock_now();

        if (left <= 0)
            return error_set(error, BERTH_ERROR_TIMED_OUT,
                             "cannot read /proc: berth-reader does not answer in time");
        poll(&waiting, 1, (int)((left + 999999) / 1000000));
    }
    return code < 0 ? code : 0;
}
