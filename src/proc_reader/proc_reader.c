/* SPDX-License-Identifier: Apache-2.0 */
#include "proc_reader/proc_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/pidfd_info.h"
#include "proc_reader/answer_pages.h"
#include "proc_reader/proc_index.h"
#include "proc_reader/proc_question.h"

enum {
    TRIES = 250, /* to read environments of processes that are becoming programs, for 20 us each */
};

struct proc_reader {
    int socket;
    struct proc_index index;
    const struct proc_files *files;
    uint64_t questions;
    struct text packet;
    struct text environment;
};

bool proc_reader_is_old_kernel(void)
{
    struct pidfd_facts facts;
    int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    bool is_old = self < 0 || !pidfd_info_read(self, &facts);

    if (self >= 0)
        close(self);
    return is_old;
}

static int set_error(struct berth_error *error, int code)
{
    return code == BERTH_ERROR_MEMORY ? error_set_memory(error)
                                      : error_set_errno(error, errno, "cannot answer a request");
}

/* Sends a pidfd of this process, by which the parent can kill it, and the file with its state, by
 * which the parent sees whether it is suspended. */
static int say_hello(const struct proc_reader *reader, struct berth_error *error)
{
    struct answer_pages pages = {.socket = reader->socket};
    struct reader_process self = {
        .pid = (uint32_t)getpid(),
        .state = READER_FOUND,
        .descriptor = (int)syscall(SYS_pidfd_open, getpid(), 0),
    };
    struct reader_process state = {
        .pid = self.pid,
        .state = READER_FOUND,
        .descriptor = open("/proc/self/stat", O_RDONLY | O_CLOEXEC),
    };
    int code = answer_pages_add(&pages, &self);

    if (code == 0)
        code = answer_pages_add(&pages, &state);
    if (code == 0)
        code = answer_pages_end(&pages);
    return code < 0 ? set_error(error, code) : 0;
}

/* ---- Requests ---- */

static int compare_numbers(const void *one, const void *other)
{
    uint32_t left = *(const uint32_t *)one;
    uint32_t right = *(const uint32_t *)other;

    return left < right ? -1 : left > right;
}

static void sort_numbers(struct reader_numbers *list)
{
    if (list->count > 0)
        qsort(list->items, list->count, sizeof(*list->items), compare_numbers);
}

static int answer_question(struct proc_question *question)
{
    int code = question->request->question == READER_DESCRIBE ? 0 : proc_question_refresh(question);

    if (code < 0)
        return code;
    switch (question->request->question) {
    case READER_LEFTOVERS:
        return proc_question_find_leftovers(question);
    case READER_DESCRIBE:
        return proc_question_describe(question);
    case READER_MARKED:
        return proc_question_find_marked(question);
    }
    return 0;
}

static void set_alarm(int seconds)
{
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_sec = seconds}, NULL);
}

static int handle_request(struct proc_reader *reader, struct reader_request *request,
                          struct berth_error *error)
{
    struct proc_question question = {
        .files = reader->files,
        .index = &reader->index,
        .request = request,
        .number = ++reader->questions,
        .pages = {.socket = reader->socket, .page.number = request->number},
        .tries = TRIES,
        .environment = reader->environment,
    };
    int code;

    sort_numbers(&request->stalled);
    sort_numbers(&request->spared);
    set_alarm(READER_REQUEST_SECONDS);
    code = answer_question(&question);
    if (code == 0)
        code = answer_pages_end(&question.pages);
    set_alarm(0);
    reader->environment = question.environment;
    return code < 0 ? set_error(error, code) : 0;
}

/* Returns the length of a packet, 0 at the end, or BERTH_ERROR_MEMORY or _IO. */
static ssize_t receive_packet(struct proc_reader *reader)
{
    void *place;
    ssize_t length;

    text_clear(&reader->packet);
    place = text_reserve(&reader->packet, READER_PACKET_MAX);
    if (place == NULL)
        return BERTH_ERROR_MEMORY;
    do
        length = recv(reader->socket, place, READER_PACKET_MAX, 0);
    while (length < 0 && errno == EINTR);
    return length < 0 && errno == ECONNRESET ? 0 : length < 0 ? BERTH_ERROR_IO : length;
}

/* Returns 1 after a request, 0 at the end, or a code. */
static int receive_request(struct proc_reader *reader, struct berth_error *error)
{
    ssize_t length = receive_packet(reader);
    struct reader_request request;
    int code;

    if (length <= 0)
        return length == 0 ? 0 : set_error(error, (int)length);
    code = reader_request_decode((const unsigned char *)reader->packet.bytes, (size_t)length,
                                 &request, error);
    if (code < 0)
        return error_wrap(error, code, "request");
    code = handle_request(reader, &request, error);
    reader_request_finish(&request);
    return code < 0 ? code : 1;
}

/* Works on the index while there is no request. */
static int serve_requests(struct proc_reader *reader, struct berth_error *error)
{
    int code;

    do {
        struct pollfd waiting = {.fd = reader->socket, .events = POLLIN};

        while (poll(&waiting, 1, 0) <= 0) {
            int timeout = proc_index_work(&reader->index);

            if (timeout != 0 && poll(&waiting, 1, timeout) > 0)
                break;
        }
        code = receive_request(reader, error);
    } while (code == 1);
    return code;
}

int proc_reader_run(int socket, const struct proc_files *files, struct berth_error *error)
{
    struct proc_reader reader = {.socket = socket, .files = files};
    int code = say_hello(&reader, error);

    if (code < 0)
        return code;
    code = proc_index_init(&reader.index, files);
    if (code < 0)
        return error_set_memory(error);
    code = proc_index_refresh(&reader.index, true);
    code = code < 0 ? set_error(error, code) : serve_requests(&reader, error);
    proc_index_finish(&reader.index);
    text_finish(&reader.packet);
    text_finish(&reader.environment);
    return code;
}
