/* SPDX-License-Identifier: Apache-2.0
 *
 * What berth-probe is asked and what it answers, as tagged fields (codec/tagged.h). Both ends are
 * of the same build; what is read is checked all the same.
 */
#ifndef PROBE_PROBE_MESSAGES_H
#define PROBE_PROBE_MESSAGES_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"
#include "model/machine_report.h"

struct probe_request {
    uint64_t number;            /* the answer's too */
    uint64_t deadline;          /* nanoseconds: the answer comes by then, with what is known */
    struct device_id_list only; /* only these are looked at anew, the others answer as they were;
                                   empty: all, and devices come and go */
    bool without_processes;     /* nobody wants to know who uses them */
};

struct probe_answer {
    uint64_t number;
    struct machine_report report;
};

/* Appends the packet. Returns 0, BERTH_ERROR_INVALID (it could not be read again) or _MEMORY. */
int probe_request_encode(const struct probe_request *request, struct text *out);
int probe_answer_encode(const struct probe_answer *answer, struct text *out);

/* Reads a packet; links name devices of the report. Fails with BERTH_ERROR_SYNTAX or _MEMORY; the
 * result is untouched then, else the caller finishes it (`only` is a vector, the report a report).
 */
int probe_request_decode(const unsigned char *bytes, size_t length,
                         struct probe_request *ret_request, struct berth_error *error);
int probe_answer_decode(const unsigned char *bytes, size_t length, struct probe_answer *ret_answer,
                        struct berth_error *error);

#endif
