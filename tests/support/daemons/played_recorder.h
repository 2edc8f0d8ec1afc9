/* SPDX-License-Identifier: Apache-2.0
 *
 * Lets a test play berth-recorder's keeper: these functions take the place of
 * src/daemon/stream/recorder_process.c in the test program that includes this header, so that
 * nothing is started. The test sees what it is told, and calls its events.
 */
#ifndef TESTS_PLAYED_RECORDER_H
#define TESTS_PLAYED_RECORDER_H

#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/stream/recorder_process.h"
#include "model/machine/machine_report.h"

struct recorder_process {
    struct recorder_process_settings settings; /* its texts are in the fields below */
    char program[4096];
    char pool_name[64];
    struct recorder_order order; /* its file is `file` */
    char file[4096];
    struct problem_list problems; /* freed with it */

    /* How often it was told something. */
    int ordered;
    int wanted;
    int asked;
    int answered;
    int hung_up;
};

static inline void played_recorder_take_order(struct recorder_process *recorder,
                                              const struct recorder_order *order)
{
    recorder->order = *order;
    recorder->ordered++;
    recorder->file[0] = '\0';
    if (order->file != NULL)
        strncpy(recorder->file, order->file, sizeof(recorder->file) - 1);
    recorder->order.file = order->file == NULL ? NULL : recorder->file;
}

int64_t recorder_process_restart_after(unsigned failures)
{
    (void)failures;
    return RECORDER_RESTART_FIRST;
}

int recorder_process_create(struct recorder_process **ret_recorder,
                            const struct recorder_process_settings *settings,
                            const struct recorder_order *order, struct berth_error *error)
{
    struct recorder_process *recorder = calloc(1, sizeof(*recorder));

    (void)error;
    if (recorder == NULL)
        return BERTH_ERROR_MEMORY;
    recorder->settings = *settings;
    strncpy(recorder->program, settings->program, sizeof(recorder->program) - 1);
    strncpy(recorder->pool_name, settings->pool_name, sizeof(recorder->pool_name) - 1);
    played_recorder_take_order(recorder, order);
    *ret_recorder = recorder;
    return 0;
}

void recorder_process_destroy(struct recorder_process *recorder)
{
    if (recorder == NULL)
        return;
    machine_report_finish_problems(&recorder->problems);
    free(recorder);
}

void recorder_process_set_order(struct recorder_process *recorder,
                                const struct recorder_order *order)
{
    played_recorder_take_order(recorder, order);
}

const char *recorder_process_file(const struct recorder_process *recorder)
{
    return recorder->order.file;
}

void recorder_process_want(struct recorder_process *recorder)
{
    recorder->wanted++;
}

void recorder_process_asked(struct recorder_process *recorder)
{
    recorder->asked++;
}

void recorder_process_answered(struct recorder_process *recorder)
{
    recorder->answered++;
}

void recorder_process_hung_up(struct recorder_process *recorder)
{
    recorder->hung_up++;
}

const struct problem_list *recorder_process_problems(const struct recorder_process *recorder)
{
    return &recorder->problems;
}

#endif
