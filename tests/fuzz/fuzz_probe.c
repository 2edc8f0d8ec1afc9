/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes any bytes as a report and as a request of a probe. An accepted one is the same after
 * encoding and decoding it. A refused one gets a message.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probe/probe_messages.h"
#include "support/require_output.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_answer(const uint8_t *data, size_t size)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct probe_answer answer;
    struct probe_answer again;
    struct text first = {0};
    struct text second = {0};
    const struct link *link;
    int code = probe_answer_decode(data, size, &answer, &error);

    if (code < 0) {
        require_message(&error, code);
        return;
    }
    vector_for_each (link, &answer.report.machine.links)
        require(link->between[1] < answer.report.machine.devices.count);
    require(probe_answer_encode(&answer, &first) == 0 && first.length <= size);
    require(probe_answer_decode((const unsigned char *)first.bytes, first.length, &again, NULL) ==
            0);
    require(probe_answer_encode(&again, &second) == 0 && first.length == second.length);
    require(first.length == 0 || memcmp(first.bytes, second.bytes, first.length) == 0);
    machine_report_finish(&answer.report);
    machine_report_finish(&again.report);
    text_finish(&first);
    text_finish(&second);
}

static void try_request(const uint8_t *data, size_t size)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct probe_request request;
    struct text bytes = {0};
    int code = probe_request_decode(data, size, &request, &error);

    if (code < 0) {
        require_message(&error, code);
        return;
    }
    require(probe_request_encode(&request, &bytes) == 0 && bytes.length <= size);
    vector_finish(&request.only);
    text_finish(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_answer(data, size);
    try_request(data, size);
    return 0;
}
