/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to berth-probe and its answers, as tagged fields (codec/tagged.h). Both ends come from
 * the same build, but packets are checked nevertheless.
 */
#ifndef PROBE_PROBE_MESSAGES_H
#define PROBE_PROBE_MESSAGES_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"
#include "model/machine/machine_report.h"

struct probe_request {
    uint64_t number;            /* repeated in the answer */
    uint64_t deadline;          /* in nanoseconds; the answer arrives by then, with the facts known
                                 * by then */
    struct device_id_list only; /* the only devices to read; the others keep their last facts.
                                 * Empty: list and read all devices */
    bool without_processes;     /* do not list the processes on the devices */
};

struct probe_answer {
    uint64_t number;
    struct machine_report report;
};

/* Appends the packet. Returns 0, BERTH_ERROR_INVALID (it could not be decoded) or _MEMORY. */
int probe_request_encode(const struct probe_request *request, struct text *out);
int probe_answer_encode(const struct probe_answer *answer, struct text *out);

/* Reads a packet. Links are between devices of the report. Fails with BERTH_ERROR_SYNTAX or
 * _MEMORY; the result is unchanged then, otherwise the caller finishes it (`only` with
 * vector_finish(), the report with machine_report_finish()). */
int probe_request_decode(const unsigned char *bytes, size_t length,
                         struct probe_request *ret_request, struct berth_error *error);
int probe_answer_decode(const unsigned char *bytes, size_t length, struct probe_answer *ret_answer,
                        struct berth_error *error);

#endif
