/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs and supervises the copies of a command under a lease, and receives the daemon's messages
 * about the lease. If the daemon goes away, the commands keep running: berth reconnects once a
 * second and then resumes the lease.
 */
#ifndef CLI_RUN_LEASED_COMMAND_H
#define CLI_RUN_LEASED_COMMAND_H

#include "cli/run/command_launch.h"
#include "client/session.h"
#include "launch/labelled_output.h"
#include "launch/supervise.h"

/* Copies to run, and how to start one. */
struct command_copies {
    const char *verb; /* for messages */
    uint32_t count;
    struct labelled_output *labels; /* NULL: none */
    const void *context;

    /* Starts one copy. `streams` contains only the descriptors for its output. Returns 0, or prints
     * the error and returns an exit code. */
    int (*start)(const void *context, struct launch_supervisor *supervisor, uint32_t number,
                 const struct launch_copy *streams);
};

/* Runs the copies without a lease until all have ended. Returns the exit code as leased_command_run
 * does. */
int leased_command_run_copies(const struct command_copies *copies);

/* Runs all copies until they and their descendants have ended. Returns the exit code: that of the
 * first copy that failed, that of the lease's end, or that of an error of berth, which is printed.
 * Without a claim, the session may be NULL. The caller then calls leased_command_finish_labels,
 * which waits for the rest of the output. */
int leased_command_run(const struct command_launch *launch, struct labelled_output *labels,
                       struct session *session);

/* Waits until all labelled output is written, and prints an error if that fails. Returns
 * `exit_code`, or that of the error if `exit_code` is EXIT_GOOD. The verb is for messages. */
int leased_command_finish_labels(const char *verb, struct labelled_output *labels, int exit_code);

/* Releases the lease after all its processes have ended. Waits a short time for the answer: without
 * one, the daemon notices when this process ends. */
void leased_command_release(const struct client_claim *claim, struct session *session,
                            int exit_code);

/* Appends the line to print for a WIRE_WARNING. */
void leased_command_describe_warning(const struct wire_message *warning, struct text *out);

#endif
