/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to berth-reader and its answers, as tagged fields (codec/tagged.h). Both ends come from
 * the same build, but packets are checked nevertheless.
 *
 * An answer may need several packets: each has the same number, and all but the last one have
 * `more`. The pidfds of a packet's processes travel beside it, in the order of the processes.
 */
#ifndef READER_READER_MESSAGES_H
#define READER_READER_MESSAGES_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/optional.h"
#include "base/text/text.h"
#include "base/vector.h"

enum {
    READER_PACKET_MAX = 128 * 1024,
    READER_NUMBERS_MAX = 4096,   /* of each list of a request, and of a process's groups */
    READER_PROCESSES_MAX = 1024, /* of an answer */
    READER_PAGE_MAX = 200,       /* processes of a packet */
    READER_REQUEST_SECONDS = 10, /* the program ends if a request takes longer */
};

/* User or process ids. */
struct reader_numbers {
    VECTOR_OF(uint32_t);
};

struct reader_lease {
    uint64_t id;
};

struct reader_leases {
    VECTOR_OF(struct reader_lease);
};

/* User ids from `first` on. */
struct reader_range {
    uint32_t first;
    uint32_t count;
};

struct reader_ranges {
    VECTOR_OF(struct reader_range);
};

enum reader_question {
    READER_LEFTOVERS = 1, /* the processes that are left of some leases of one user */
    READER_DESCRIBE = 2,  /* facts of the given processes */
    READER_MARKED = 3,    /* all processes that carry a mark of the pool */
};

/* The fields that a question does not use are ignored. */
struct reader_request {
    uint64_t number; /* repeated in the answer; reader_send() sets it */
    enum reader_question question;

    /* Processes that are not touched, because they stalled a reader once: their state is
     * READER_STALLED. The caller checks by pidfd that they still run. For all questions. */
    struct reader_numbers stalled;

    char *socket; /* LEFTOVERS, MARKED: the pool's socket, as BERTH_SOCKET names it */

    /* LEFTOVERS. The user rule: a process counts only if its real uid is `uid` or lies in one of
     * the ranges. For uid 0, descendants of the holder and of leftovers count too. No other
     * process is opened, except those of root in `session`. */
    uint32_t uid;                /* the lease's user */
    struct reader_ranges ranges; /* the user's subordinate uids (/etc/subuid); none for uid 0 */
    struct reader_leases leases;
    uint32_t holder_pid;     /* of the lease; 0: there is none */
    uint64_t holder_started; /* as reader_process.started; 0: unknown. Then the caller must hold a
                              * pidfd, and see by it that the holder was not reaped meanwhile */
    bool wants_exit_code;    /* of the holder, which has ended */
    uint32_t root_pid;       /* an adopted process, a leftover even without a mark; 0: none */
    uint64_t since;          /* the start (ns of CLOCK_BOOTTIME) of the oldest process that matters,
                              * the grant as a rule; older processes are skipped, but for the holder
                              * and root_pid. 0: unknown */
    bool containers_matter;  /* a container that is just starting may join the lease */
    uint32_t session; /* of the holder, as getsid() has it. Marked processes of root in it are
                       * reported as READER_FOREIGN; other processes of root are not opened.
                       * 0: unknown */
    struct reader_numbers
        spared; /* processes to leave out, such as the client that ends the lease */

    /* DESCRIBE. */
    struct reader_numbers pids; /* an answer has one process for each, in this order */
    bool identity_only;         /* only uid, parent and `started` */
};

enum reader_state {
    READER_FOUND = 1,   /* DESCRIBE, MARKED: it runs */
    READER_GONE = 2,    /* DESCRIBE: there is no such process, or it is a zombie */
    READER_OURS = 3,    /* LEFTOVERS: it belongs to one of the leases */
    READER_LATER = 4,   /* LEFTOVERS: it may belong to one: it is inside execve(). Ask again in a
                         * few milliseconds */
    READER_STALLED = 5, /* it stalled a reader: only its uid is known */
    READER_FOREIGN = 6, /* LEFTOVERS: it carries the mark of one of the leases, but belongs to root,
                         * for example after sudo: the lease's user may not end it */
    READER_CONTAINER = 7, /* LEFTOVERS: as READER_LATER, but a container starts with it */
};

/* A process. Facts that the question does not ask for, or that are unknown, are 0, NULL or empty.
 */
struct reader_process {
    uint32_t pid;
    enum reader_state state;
    bool has_descriptor;
    int descriptor; /* pidfd, close-on-exec, -1: none. Not encoded. It was opened before the facts
                     * were read and had not ended afterwards, so they are this process's */

    struct optional_number uid; /* the real one */
    uint32_t parent;
    uint64_t started; /* ns since boot (CLOCK_BOOTTIME), in clock ticks of 10 ms as a rule */

    /* DESCRIBE, unless identity_only. */
    struct optional_number gid;      /* the real one */
    struct reader_numbers groups;    /* supplementary groups */
    struct optional_number owner;    /* of its user namespace, if that is another than the reader's;
                                      * see namespace_user_owner() */
    struct reader_numbers ancestors; /* its parent first, at most 64 */
    char *container; /* the id of the container that began with it (process_container_begun()) */

    /* DESCRIBE, unless identity_only, and MARKED: from its environment. LEFTOVERS: only the lease
     * of a process that carries a mark. */
    uint64_t lease; /* BERTH_LEASE */
    char *socket;   /* BERTH_SOCKET */
    char *devices;  /* BERTH_DEVICES */
};

struct reader_processes {
    VECTOR_OF(struct reader_process);
};

struct reader_answer {
    uint64_t number;
    bool more;    /* another packet follows */
    bool partial; /* LEFTOVERS, MARKED: there are more processes than fit, or some could not be
                   * opened. Ask again after the ones that are known have ended */
    struct optional_number exit_code; /* as a shell has it: 128 + N for a death by signal N */
    struct reader_processes processes;
};

/* Appends the packet. Returns 0, BERTH_ERROR_INVALID (it could not be decoded) or _MEMORY. */
int reader_request_encode(const struct reader_request *request, struct text *out);
int reader_answer_encode(const struct reader_answer *answer, struct text *out);

/* Reads a packet. Fails with BERTH_ERROR_SYNTAX or _MEMORY; the result is unchanged then, otherwise
 * the caller finishes it. Decoded processes have no descriptors: they are -1. */
int reader_request_decode(const unsigned char *bytes, size_t length,
                          struct reader_request *ret_request, struct berth_error *error);
int reader_answer_decode(const unsigned char *bytes, size_t length,
                         struct reader_answer *ret_answer, struct berth_error *error);

/* Free the memory, but close no descriptors: reader_answer_finish() in reader/reader.h does. */
void reader_request_finish(struct reader_request *request);
void reader_process_free(struct reader_process *process);
void reader_answer_free(struct reader_answer *answer);

#endif
