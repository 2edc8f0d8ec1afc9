/* SPDX-License-Identifier: Apache-2.0
 *
 * What the verbs that run a command share: run, submit, and the copies of a run.
 */
#ifndef CLI_RUN_RUN_H
#define CLI_RUN_RUN_H

#include "cli/run/notify.h"
#include "cli/verbs.h"
#include "spec/request_options.h"

/* A command line [options] [request] [--] CMD... */
struct run_line {
    struct request_options request;
    struct notify_options notify;
    bool verbose;
    bool warns;  /* say what the pool warns of: verbose, or standard error is a terminal */
    char **argv; /* CMD..., ended by NULL; argv's, or of the spec file */
};

/* -v, --verbose; fills in a struct run_line. */
extern const struct option_set run_option_set;
/* Parses it by the verb's sets: of run_option_set, notify_option_set and request_option_set those
 * that it has. Returns true when
 * the verb is to go on, with the request complete; else *ret_exit is the exit code. The caller
 * finishes the line either way. */
bool run_line_parse(const struct verb *verb, struct run_line *line, int argc, char **argv,
                    int *ret_exit);
void run_line_finish(struct run_line *line);

/* Refuses what is about a command and cannot be asked for without one, but for what a spec file
 * says, which may be meant for run. Fails with
 * BERTH_ERROR_INVALID. */
int run_refuse_commands(const struct request_options *options, struct berth_error *error);

/* Whether each replica is a claim of its own. */
bool run_line_is_best_effort(const struct run_line *line);

/* Says that something of the verb's failed: exit_code_of_refusal. */
int run_fail(const struct verb *verb, struct berth_error *error);

/* Runs replicas that are claims of their own. Returns the exit code. */
int run_replicas(struct run_line *line);

/* One of them, in a process of its own: claims and becomes the command. Returns the exit code, if
 * at all. */
int run_replica(struct run_line *line, uint32_t number);

#endif
