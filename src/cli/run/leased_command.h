/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that run under a lease which may be taken back, with the pool's daemon listened to all
 * the while. A daemon that goes away does not disturb them: it is dialled again once a second, and
 * told of the lease when it is back.
 */
#ifndef CLI_RUN_LEASED_COMMAND_H
#define CLI_RUN_LEASED_COMMAND_H

#include "cli/run/command_launch.h"
#include "client/session.h"
#include "launch/labelled_output.h"
#include "launch/supervise.h"

/* Copies that run under no lease of ours. */
struct command_copies {
    const char *verb; /* for messages */
    uint32_t count;
    struct labelled_output *labels; /* NULL: none */
    const void *context;

    /* Starts one copy, of which only the streams are given. Returns 0, or an exit code having said
     * what failed. */
    int (*start)(const void *context, struct launch_supervisor *supervisor, uint32_t number,
                 const struct launch_copy *streams);
};

/* Runs them to their end. Returns the exit code, as leased_command_run. */
int leased_command_run_copies(const struct command_copies *copies);

/* Runs all copies to their end, and that of everything that they started. Returns the exit code:
 * that of the first that failed, what the end of the lease stands for, or what berth failed with,
 * having said so. Without a claim nobody is listened to, and the session may be NULL. What labels
 * have not written yet is the caller's to wait for, with leased_command_finish_labels. */
int leased_command_run(const struct command_launch *launch, struct labelled_output *labels,
                       struct session *session);

/* Waits until all is written, and says so where that fails. Returns the exit code of the whole:
 * that of the commands, unless it is good and output was lost. The verb is for messages. */
int leased_command_finish_labels(const char *verb, struct labelled_output *labels, int exit_code);

/* Gives the lease back; nobody of it is left. A daemon that does not answer finds out by our end.
 */
void leased_command_release(const struct client_claim *claim, struct session *session,
                            int exit_code);

/* Appends what a WIRE_WARNING says, as a line for people. */
void leased_command_describe_warning(const struct wire_message *warning, struct text *out);

#endif
