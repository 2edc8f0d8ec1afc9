/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/probe_messages.h"

#include <string.h>

#include "base/error.h"
#include "codec/device_tags.h"

enum { DEVICES_MAX = 65536, LINKS_MAX = 1 << 20 };

enum probe_request_tag {
    REQUEST_NUMBER = 1,
    REQUEST_DEADLINE = 2,
    REQUEST_ONLY = 3,
    REQUEST_WITHOUT_PROCESSES = 4,
};

static const struct tagged_field request_fields[] = {
    [REQUEST_NUMBER] = {TAGGED_NUMBER(probe_request, number, UINT64_MAX)},
    [REQUEST_DEADLINE] = {TAGGED_NUMBER(probe_request, deadline, INT64_MAX)},
    [REQUEST_ONLY] = {TAGGED_MEMBER(probe_request, only, ids), .max = DEVICE_ID_LIST_MAX},
    [REQUEST_WITHOUT_PROCESSES] = {TAGGED_NUMBER(probe_request, without_processes, true)},
};

static const struct tagged_table request_tagged = TAGGED_TABLE(probe_request, request_fields);

enum answer_tag {
    ANSWER_NUMBER = 1,
    ANSWER_LISTED = 2,
    ANSWER_DEVICES = 3,
    ANSWER_LINKS = 4,
    ANSWER_PROBLEMS = 5,
};

static const struct tagged_field answer_fields[] = {
    [ANSWER_NUMBER] = {TAGGED_NUMBER(probe_answer, number, UINT64_MAX)},
    [ANSWER_LISTED] = {TAGGED_NUMBER(probe_answer, report.listed, UINT32_MAX)},
    [ANSWER_DEVICES] = {TAGGED_MEMBER(probe_answer, report.machine.devices, items),
                        .max = DEVICES_MAX, .inner = &device_tagged},
    [ANSWER_LINKS] = {TAGGED_MEMBER(probe_answer, report.machine.links, items), .max = LINKS_MAX,
                      .inner = &link_tagged},
    [ANSWER_PROBLEMS] = {TAGGED_MEMBER(probe_answer, report.problems, items), .max = PROBLEMS_MAX,
                         .inner = &problem_tagged},
};

static const struct tagged_table answer_tagged = TAGGED_TABLE(probe_answer, answer_fields);

int probe_request_encode(const struct probe_request *request, struct text *out)
{
    return tagged_pack(&request_tagged, request, out);
}

int probe_answer_encode(const struct probe_answer *answer, struct text *out)
{
    return tagged_pack(&answer_tagged, answer, out);
}

int probe_request_decode(const unsigned char *bytes, size_t length,
                         struct probe_request *ret_request, struct berth_error *error)
{
    struct probe_request request = {0};
    int code = tagged_unpack(&request_tagged, bytes, length, &request, error);

    if (code == 0)
        *ret_request = request;
    return code;
}

/* Returns whether the link is between two devices of the machine. */
static bool link_fits(const struct machine *machine, const struct link *link)
{
    return link->between[0] < link->between[1] && link->between[1] < machine->devices.count;
}

int probe_answer_decode(const unsigned char *bytes, size_t length, struct probe_answer *ret_answer,
                        struct berth_error *error)
{
    struct probe_answer answer = {0};
    const struct machine *machine = &answer.report.machine;
    const struct link *link;
    int code = tagged_unpack(&answer_tagged, bytes, length, &answer, error);

    if (code < 0)
        return code;
    vector_for_each (link, &machine->links) {
        if (link_fits(machine, link))
            continue;
        code = error_set(error, BERTH_ERROR_SYNTAX,
                         "expected links between two of %zu devices, got one between %zu and %zu",
                         machine->devices.count, link->between[0], link->between[1]);
        machine_report_finish(&answer.report);
        return code;
    }
    *ret_answer = answer;
    return 0;
}
