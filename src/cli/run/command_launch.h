/* SPDX-License-Identifier: Apache-2.0
 *
 * From a granted claim, or none, to running copies of a command.
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
    struct client_claim *claim; /* granted; NULL: no device could ever do, every GPU is hidden */
    char *const *argv;          /* the command, ended by NULL */
    const struct request_options *options; /* what was asked for */
    bool verbose;                          /* say on standard error what was decided */
    bool warns;                            /* and what the pool warns of */

    /* Of a run whose replicas are claims of their own: the one that this is, and of how many. */
    bool is_replica;
    uint32_t replica;
    uint32_t replica_count;

    /* By command_launch_init. */
    struct rank_plan plan;
    struct master_port port;
    struct cdi_registry cdi; /* what vendors offer to containers */
};

/* Decides which copies there will be and, for ranks, where they meet, and finds what containers can
 * be given. Fails with BERTH_ERROR_LIMIT or _MEMORY.
 * The caller finishes the launch when the last copy has ended, also on failure. */
int command_launch_init(struct command_launch *launch, struct berth_error *error);
void command_launch_finish(struct command_launch *launch);

/* How many copies there are. */
uint32_t command_launch_copies(const struct command_launch *launch);

/* Labels for the copies, or NULL where none were asked for. Fails with BERTH_ERROR_MEMORY. */
int command_launch_make_labels(const struct command_launch *launch,
                               struct labelled_output **ret_labels, struct berth_error *error);
/* The number of a copy in its label. */
uint32_t command_launch_label(const struct command_launch *launch, uint32_t number);

/* What one copy is started with; the caller's to finish. */
struct prepared_copy {
    struct string_list environment;
    bool is_pinned;
    struct bitset cpus;
};

/* Prepares the copy of this number. As launch_environment; fails also with BERTH_ERROR_SYNTAX. What
 * cannot be pinned is not; that is said where the launch is verbose. */
int command_launch_prepare(const struct command_launch *launch, uint32_t number,
                           struct prepared_copy *ret_prepared, struct berth_error *error);
void command_launch_finish_copy(struct prepared_copy *prepared);

/* Becomes the command, of which there is one copy. Returns only on failure: the exit code, having
 * said what failed. */
int command_launch_exec(const struct command_launch *launch);

/* Says that the command could not be started, with the error of doing so. Returns the exit code. */
int command_launch_fail_start(const struct command_launch *launch, struct berth_error *error);

/* The same for any other error of launching. */
int command_launch_fail(const struct command_launch *launch, struct berth_error *error);

#endif
