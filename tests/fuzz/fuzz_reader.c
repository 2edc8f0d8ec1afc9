/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes any bytes as a request to a reader and as its answer. An accepted one is the same after
 * encoding and decoding it. A refused one gets a message.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "reader/reader_messages.h"
#include "support/require_output.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_answer(const uint8_t *data, size_t size)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct reader_answer answer;
    struct reader_answer again;
    struct text first = {0};
    struct text second = {0};
    const struct reader_process *process;
    int code = reader_answer_decode(data, size, &answer, &error);

    if (code < 0) {
        require_message(&error, code);
        return;
    }
    require(answer.processes.count <= READER_PAGE_MAX);
    vector_for_each (process, &answer.processes)
        require(process->pid > 0 && process->pid <= INT32_MAX && process->descriptor == -1);
    require(reader_answer_encode(&answer, &first) == 0 && first.length <= size);
    require(reader_answer_decode((const unsigned char *)first.bytes, first.length, &again, NULL) ==
            0);
    require(reader_answer_encode(&again, &second) == 0 && first.length == second.length);
    require(first.length == 0 || memcmp(first.bytes, second.bytes, first.length) == 0);
    reader_answer_free(&answer);
    reader_answer_free(&again);
    text_finish(&first);
    text_finish(&second);
}

static void try_request(const uint8_t *data, size_t size)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct reader_request request;
    struct text bytes = {0};
    int code = reader_request_decode(data, size, &request, &error);

    if (code < 0) {
        require_message(&error, code);
        return;
    }
    require(request.pids.count <= READER_PROCESSES_MAX && request.holder_pid <= INT32_MAX);
    require(reader_request_encode(&request, &bytes) == 0 && bytes.length <= size);
    reader_request_finish(&request);
    text_finish(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_answer(data, size);
    try_request(data, size);
    return 0;
}
