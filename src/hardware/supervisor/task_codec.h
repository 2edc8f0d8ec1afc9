/* SPDX-License-Identifier: Apache-2.0
 *
 * The packets between the supervisor and a worker: a step, and its result.
 */
#ifndef HARDWARE_SUPERVISOR_TASK_CODEC_H
#define HARDWARE_SUPERVISOR_TASK_CODEC_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text/text.h"
#include "hardware/findings.h"
#include "hardware/proc/proc_watch.h"
#include "model/machine/vendor.h"

enum step_kind {
    STEP_LIST_CANDIDATES = 1, /* list a vendor's candidates */
    STEP_READ_CANDIDATE,      /* read one candidate */
    STEP_LIST,                /* list a vendor's devices; `about`: all its candidates */
    STEP_READ,                /* read one device */
    STEP_LINKS,               /* find the links between devices; `about`: these devices */
    STEP_SCAN,                /* find the processes that use a device */
    STEP_DESCRIBE, /* describe a process; `about`: a device with only this process, undecided if
                    * only the kernel's own figures of it may be read */
};

struct step {
    enum step_kind kind;
    enum vendor vendor;
    struct finding_list about;
    struct avoided avoided; /* STEP_SCAN */
};

struct step_result {
    int code; /* 0, or a negative code; the message has the reason */
    char *message;
    bool lost; /* there is no answer, because the worker hung or died; not in the packet */
    uint64_t stalled_at; /* the process that the worker hung at; 0: none; not in the packet */
    struct findings findings;
};

void task_codec_finish_step(struct step *step);
void task_codec_finish_result(struct step_result *result);

/* Append the packet to `out`. Return 0, BERTH_ERROR_INVALID or _MEMORY. */
int task_codec_encode_step(const struct step *step, struct text *out);
int task_codec_encode_result(const struct step_result *result, struct text *out);

/* Read a packet. Fail with BERTH_ERROR_SYNTAX or _MEMORY; the result is unchanged then, otherwise
 * the caller finishes it. Every finding has a device (not NULL). The positions in links are below
 * `about`, the number of devices that the step was about. */
int task_codec_decode_step(const unsigned char *bytes, size_t length, struct step *ret_step,
                           struct berth_error *error);
int task_codec_decode_result(const unsigned char *bytes, size_t length, size_t about,
                             struct step_result *ret_result, struct berth_error *error);

#endif
