/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepares and starts the copies of a command under a granted claim, or without devices.
 */
#ifndef CLI_RUN_COMMAND_LAUNCH_H
#define CLI_RUN_COMMAND_LAUNCH_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/string_list.h"
#include "cli/claim.h"
#include "launch/labelled_output.h"
#include "launch/master_port.h"
#include "launch/ranks.h"
#include "model/cdi.h"
#include "spec/request_options.h"

struct command_launch {
    const char *verb;           /* for messages */
    struct client_claim *claim; /* granted; NULL: runs on the CPU, with all GPUs hidden */
    char *const *argv;          /* the command, ended by NULL */
    const struct request_options *options; /* the request */
    bool verbose;                          /* print decisions on standard error */
    bool warns;                            /* print warnings on standard error */

    /* For best-effort replicas: the number of this replica, and how many there are. */
    bool is_replica;
    uint32_t replica;
    uint32_t replica_count;

    /* Set by command_launch_init. */
    struct rank_plan plan;
    struct master_port port;
    struct cdi_registry cdi; /* the vendors' CDI devices, for containers */
};

/* Plans the copies, chooses the master port for ranks, and reads the vendors' CDI files. Fails with
 * BERTH_ERROR_LIMIT or _MEMORY. The caller finishes the launch after the last copy has ended, also
 * on failure. */
int command_launch_init(struct command_launch *launch, struct berth_error *error);
void command_launch_finish(struct command_launch *launch);

/* Returns the number of copies. */
uint32_t command_launch_copies(const struct command_launch *launch);

/* Makes the labels of the copies, or NULL without --label. Fails with BERTH_ERROR_MEMORY. */
int command_launch_make_labels(const struct command_launch *launch,
                               struct labelled_output **ret_labels, struct berth_error *error);
/* Returns the number that the copy's label shows. */
uint32_t command_launch_label(const struct command_launch *launch, uint32_t number);

/* The environment and CPUs of one copy. The caller finishes it with command_launch_finish_copy. */
struct prepared_copy {
    struct string_list environment;
    bool is_pinned;
    struct bitset cpus;
};

/* Prepares the copy with this number. Fails as launch_environment, or with BERTH_ERROR_SYNTAX. A
 * copy that cannot be pinned runs unpinned; a verbose launch prints the reason. */
int command_launch_prepare(const struct command_launch *launch, uint32_t number,
                           struct prepared_copy *ret_prepared, struct berth_error *error);
void command_launch_finish_copy(struct prepared_copy *prepared);

/* Becomes the command. The launch must have one copy. Returns only on failure: prints the error and
 * returns the exit code. */
int command_launch_exec(const struct command_launch *launch);

/* Prints why the command cannot be started. Returns the exit code. */
int command_launch_fail_start(const struct command_launch *launch, struct berth_error *error);

/* Prints any other error of the launch. Returns the exit code. */
int command_launch_fail(const struct command_launch *launch, struct berth_error *error);

#endif
