/* SPDX-License-Identifier: Apache-2.0
 *
 * The client of berth-reader. This helper program reads /proc, because a process that is inside
 * execve(), for as long as it likes, can suspend every process that opens a file below its
 * /proc/PID. Then the reader is suspended, not the caller: the caller sees which process the reader
 * touches, kills the reader and asks another one, with that process in `stalled`.
 *
 * A reader has one request at a time. Only reader_start() and reader_query() block. Only one thread
 * may use a reader at a time.
 *
 *     reader_start(&reader, &error);
 *     // watch reader.descriptor for input
 *     reader_send(&reader, &request, &error);
 *     // input:    reader_receive(&reader, &answer, &error) == 1
 *     // deadline: touch = reader_touch(&reader); if it is the same for too long:
 *     //           open a pidfd of touch.pid, reader_finish(&reader), ask another reader
 */
#ifndef READER_READER_H
#define READER_READER_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text/text.h"
#include "reader/reader_messages.h"

struct reader {
    int descriptor; /* the socket; -1: not started */
    int process;    /* pidfd of the program; -1: it has not said hello yet */
    pid_t pid;      /* of the program; 0: it has not said hello yet */
    int state_file; /* the program's own /proc/self/stat; -1: unknown */
    bool has_hello;
    bool is_busy; /* a request was sent, and its answer has not arrived */

    uint64_t last_number;         /* of the requests */
    struct reader_answer partial; /* the pages that have arrived */
    struct text packet;
    _Atomic uint64_t *progress; /* shared with the program */
};

#define READER_INIT                                       \
    {                                                     \
        .descriptor = -1, .process = -1, .state_file = -1 \
    }

/* The access below /proc/PID that the program makes at this moment. */
struct reader_touch {
    pid_t pid;      /* 0: it touches none */
    uint32_t count; /* of accesses so far, modulo 2^32: two accesses to one process differ */
};

/* Starts the program: BERTH_READER if it is set, otherwise berth-reader where program_find() finds
 * it. It is not a child of this process. Its only rights are to read other users' /proc files
 * (CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH), if this process has them, and it changes nothing
 * (sandbox/sandbox.h). It exits when the reader is finished or this process ends, or 10 s after a
 * request that it has not answered. Before its first request, it looks at all process ids. Blocks
 * until the program is executed. Fails like spawn_detached(), or with BERTH_ERROR_IO. */
int reader_start(struct reader *reader, struct berth_error *error);

/* Executes the program with its end of the socket and the file of its progress, which stay the
 * caller's. */
typedef int reader_spawn_function(void *context, int socket, int progress_file,
                                  struct berth_error *error);

/* Does the same with another way to execute the program. If that does not wait for the program, a
 * failure shows as the end of the connection. */
int reader_start_with(struct reader *reader, reader_spawn_function *spawn, void *context,
                      struct berth_error *error);
/* Executes the program as reader_start() does. */
int reader_spawn_program(int socket, int progress_file, struct berth_error *error);

/* Uses a program that runs already: its socket (SOCK_SEQPACKET), and the file that it shares its
 * progress by. Takes the socket; the caller closes the file. Fails with BERTH_ERROR_IO; the caller
 * keeps the socket then. */
int reader_open(struct reader *reader, int socket, int progress_file, struct berth_error *error);

/* Kills the program if it has said hello, closes the connection, and frees everything. Allowed if
 * the reader was never started. A program that has not said hello exits as soon as it reads. */
void reader_finish(struct reader *reader);

/* Numbers the request and sends it. The previous one must be answered. Fails with BERTH_ERROR_IO,
 * _INVALID (a list is too long) or _MEMORY; after _IO, the caller must start the reader again. */
int reader_send(struct reader *reader, struct reader_request *request, struct berth_error *error);

/* Receives the answer. Returns 1 with *ret_answer, which the caller finishes; 0 if it is not there
 * yet; or BERTH_ERROR_IO, _SYNTAX or _MEMORY, and the caller must start the reader again. Call it
 * when the descriptor is readable, also without a request: the program says hello then. If this
 * process has no free descriptors, processes lack theirs, and the answer is partial. */
int reader_receive(struct reader *reader, struct reader_answer *ret_answer,
                   struct berth_error *error);

/* Returns the access that the program makes at this moment. */
struct reader_touch reader_touch(const struct reader *reader);

/* The state of the program, as the kernel reports it. */
enum reader_activity {
    READER_RUNS,      /* or waits for a CPU */
    READER_STOPPED,   /* by a signal */
    READER_SUSPENDED, /* it sleeps; or its state is unknown */
};

/* Returns the state of the program. A short suspension in an access is normal. So a process should
 * count as stalling only if a second reader stays in an access to it, too. */
enum reader_activity reader_activity(const struct reader *reader);

/* Returns the processor time that the program has used, in nanoseconds; 0: unknown, it has not said
 * hello yet. */
int64_t reader_processor_time(const struct reader *reader);

/* Sends the request and waits for its answer, at most until clock_now() is `deadline`. Fails with
 * BERTH_ERROR_TIMED_OUT or like the functions above. For tests and small programs. */
int reader_query(struct reader *reader, struct reader_request *request, int64_t deadline,
                 struct reader_answer *ret_answer, struct berth_error *error);

/* Frees an answer and closes the descriptors of its processes. To keep a descriptor, set it to -1
 * in the answer. */
void reader_answer_finish(struct reader_answer *answer);

#endif
