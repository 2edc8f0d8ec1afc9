/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/reader_messages.h"

#include "base/error.h"
#include "codec/tagged.h"

enum { TEXT_MAX = 4096 };

#define NUMBERS(type, member) \
    TAGGED_MEMBER(type, member.items, list), TAGGED_COUNTED_BY(type, member.count)
#define PID(type, member) TAGGED_NUMBER(type, member, INT32_MAX)

enum reader_lease_tag { LEASE_ID = 1 };

static const struct tagged_field lease_fields[] = {
    [LEASE_ID] = {TAGGED_NUMBER(reader_lease, id, UINT64_MAX), .required = true},
};

static const struct tagged_table lease_tagged = TAGGED_TABLE(reader_lease, lease_fields);

enum reader_range_tag { RANGE_FIRST = 1, RANGE_COUNT = 2 };

static const struct tagged_field range_fields[] = {
    [RANGE_FIRST] = {TAGGED_NUMBER(reader_range, first, UINT32_MAX)},
    [RANGE_COUNT] = {TAGGED_NUMBER(reader_range, count, UINT32_MAX)},
};

static const struct tagged_table range_tagged = TAGGED_TABLE(reader_range, range_fields);

enum reader_request_tag {
    REQUEST_NUMBER = 1,
    REQUEST_QUESTION = 2,
    REQUEST_STALLED = 3,
    REQUEST_SOCKET = 4,
    REQUEST_UID = 5,
    REQUEST_RANGES = 6,
    REQUEST_LEASES = 7,
    REQUEST_HOLDER_PID = 8,
    REQUEST_HOLDER_STARTED = 9,
    REQUEST_WANTS_EXIT_CODE = 10,
    REQUEST_ROOT_PID = 11,
    REQUEST_SINCE = 12,
    REQUEST_CONTAINERS_MATTER = 13,
    REQUEST_SPARED = 14,
    REQUEST_PIDS = 15,
    REQUEST_IDENTITY_ONLY = 16,
    REQUEST_SESSION = 17,
};

static const struct tagged_field request_fields[] = {
    [REQUEST_NUMBER] = {TAGGED_NUMBER(reader_request, number, UINT64_MAX)},
    [REQUEST_QUESTION] = {TAGGED_NUMBER(reader_request, question, READER_MARKED), .required = true},
    [REQUEST_STALLED] = {NUMBERS(reader_request, stalled), .max = READER_NUMBERS_MAX},
    [REQUEST_SOCKET] = {TAGGED_MEMBER(reader_request, socket, text), .max = TEXT_MAX},
    [REQUEST_UID] = {TAGGED_NUMBER(reader_request, uid, UINT32_MAX)},
    [REQUEST_RANGES] = {TAGGED_MEMBER(reader_request, ranges, items), .max = READER_NUMBERS_MAX,
                        .inner = &range_tagged},
    [REQUEST_LEASES] = {TAGGED_MEMBER(reader_request, leases, items), .max = READER_NUMBERS_MAX,
                        .inner = &lease_tagged},
    [REQUEST_HOLDER_PID] = {PID(reader_request, holder_pid)},
    [REQUEST_HOLDER_STARTED] = {TAGGED_NUMBER(reader_request, holder_started, UINT64_MAX)},
    [REQUEST_WANTS_EXIT_CODE] = {TAGGED_NUMBER(reader_request, wants_exit_code, true)},
    [REQUEST_ROOT_PID] = {PID(reader_request, root_pid)},
    [REQUEST_SINCE] = {TAGGED_NUMBER(reader_request, since, UINT64_MAX)},
    [REQUEST_CONTAINERS_MATTER] = {TAGGED_NUMBER(reader_request, containers_matter, true)},
    [REQUEST_SPARED] = {NUMBERS(reader_request, spared), .max = READER_NUMBERS_MAX},
    [REQUEST_PIDS] = {NUMBERS(reader_request, pids), .max = READER_PROCESSES_MAX},
    [REQUEST_IDENTITY_ONLY] = {TAGGED_NUMBER(reader_request, identity_only, true)},
    [REQUEST_SESSION] = {PID(reader_request, session)},
};

static const struct tagged_table request_tagged = TAGGED_TABLE(reader_request, request_fields);

enum reader_process_tag {
    PROCESS_PID = 1,
    PROCESS_STATE = 2,
    PROCESS_HAS_DESCRIPTOR = 3,
    PROCESS_UID = 4,
    PROCESS_PARENT = 5,
    PROCESS_STARTED = 6,
    PROCESS_GID = 7,
    PROCESS_GROUPS = 8,
    PROCESS_OWNER = 9,
    PROCESS_ANCESTORS = 10,
    PROCESS_CONTAINER = 11,
    PROCESS_LEASE = 12,
    PROCESS_SOCKET = 13,
    PROCESS_DEVICES = 14,
};

static const struct tagged_field process_fields[] = {
    [PROCESS_PID] = {PID(reader_process, pid), .required = true},
    [PROCESS_STATE] = {TAGGED_NUMBER(reader_process, state, READER_CONTAINER), .required = true},
    [PROCESS_HAS_DESCRIPTOR] = {TAGGED_NUMBER(reader_process, has_descriptor, true)},
    [PROCESS_UID] = {TAGGED_MEMBER(reader_process, uid, maybe), .max = UINT32_MAX},
    [PROCESS_PARENT] = {PID(reader_process, parent)},
    [PROCESS_STARTED] = {TAGGED_NUMBER(reader_process, started, UINT64_MAX)},
    [PROCESS_GID] = {TAGGED_MEMBER(reader_process, gid, maybe), .max = UINT32_MAX},
    [PROCESS_GROUPS] = {NUMBERS(reader_process, groups), .max = READER_NUMBERS_MAX},
    [PROCESS_OWNER] = {TAGGED_MEMBER(reader_process, owner, maybe), .max = UINT32_MAX},
    [PROCESS_ANCESTORS] = {NUMBERS(reader_process, ancestors), .max = READER_NUMBERS_MAX},
    [PROCESS_CONTAINER] = {TAGGED_MEMBER(reader_process, container, text), .max = TEXT_MAX},
    [PROCESS_LEASE] = {TAGGED_NUMBER(reader_process, lease, UINT64_MAX)},
    [PROCESS_SOCKET] = {TAGGED_MEMBER(reader_process, socket, text), .max = TEXT_MAX},
    [PROCESS_DEVICES] = {TAGGED_MEMBER(reader_process, devices, text), .max = TEXT_MAX},
};

static const struct tagged_table process_tagged = TAGGED_TABLE(reader_process, process_fields);

enum reader_answer_tag {
    ANSWER_NUMBER = 1,
    ANSWER_MORE = 2,
    ANSWER_PARTIAL = 3,
    ANSWER_EXIT_CODE = 4,
    ANSWER_PROCESSES = 5,
};

static const struct tagged_field answer_fields[] = {
    [ANSWER_NUMBER] = {TAGGED_NUMBER(reader_answer, number, UINT64_MAX)},
    [ANSWER_MORE] = {TAGGED_NUMBER(reader_answer, more, true)},
    [ANSWER_PARTIAL] = {TAGGED_NUMBER(reader_answer, partial, true)},
    [ANSWER_EXIT_CODE] = {TAGGED_MEMBER(reader_answer, exit_code, maybe), .max = UINT8_MAX},
    [ANSWER_PROCESSES] = {TAGGED_MEMBER(reader_answer, processes, items), .max = READER_PAGE_MAX,
                          .inner = &process_tagged},
};

static const struct tagged_table answer_tagged = TAGGED_TABLE(reader_answer, answer_fields);

int reader_request_encode(const struct reader_request *request, struct text *out)
{
    return tagged_pack(&request_tagged, request, out);
}

int reader_answer_encode(const struct reader_answer *answer, struct text *out)
{
    return tagged_pack(&answer_tagged, answer, out);
}

int reader_request_decode(const unsigned char *bytes, size_t length,
                          struct reader_request *ret_request, struct berth_error *error)
{
    struct reader_request request = {0};
    int code = tagged_unpack(&request_tagged, bytes, length, &request, error);

    if (code == 0)
        *ret_request = request;
    return code;
}

int reader_answer_decode(const unsigned char *bytes, size_t length,
                         struct reader_answer *ret_answer, struct berth_error *error)
{
    struct reader_answer answer = {0};
    int code = tagged_unpack(&answer_tagged, bytes, length, &answer, error);
    struct reader_process *process;

    if (code < 0)
        return code;
    vector_for_each (process, &answer.processes)
        process->descriptor = -1;
    *ret_answer = answer;
    return 0;
}

void reader_request_finish(struct reader_request *request)
{
    tagged_finish(&request_tagged, request);
    *request = (struct reader_request){0};
}

void reader_process_free(struct reader_process *process)
{
    tagged_finish(&process_tagged, process);
    *process = (struct reader_process){.descriptor = -1};
}

void reader_answer_free(struct reader_answer *answer)
{
    tagged_finish(&answer_tagged, answer);
    *answer = (struct reader_answer){0};
}
