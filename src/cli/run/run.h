/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that the verbs with a request share: the command line, errors, and best-effort replicas.
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
    bool warns; /* print the pool's warnings: verbose, or standard error is a terminal */
    /* CMD..., ended by NULL. Points into main's argv or into the spec file's command. */
    char **argv;
};

/* The option -v, --verbose. The target is a struct run_line. */
extern const struct option_set run_option_set;

/* Parses the command line with the verb's sets: run_option_set, notify_option_set and the sets of a
 * request. Returns true with a complete request, or false with the exit code in
 * *ret_exit. The caller finishes the line in both cases. */
bool run_line_parse(const struct verb *verb, struct run_line *line, int argc, char **argv,
                    int *ret_exit);
void run_line_finish(struct run_line *line);

/* Refuses best-effort replicas, for verbs without a command. The fields of a spec file that are
 * about its command are accepted, because the file may also serve 'berth run'. Fails with
 * BERTH_ERROR_INVALID. */
int run_refuse_commands(const struct request_options *options, struct berth_error *error);

/* Returns true if each replica is a claim of its own. */
bool run_line_is_best_effort(const struct run_line *line);

/* Prints the verb's error. Returns the exit code (exit_code_of_refusal). */
int run_fail(const struct verb *verb, struct berth_error *error);

/* Runs best-effort replicas, each as a claim of its own. Returns the exit code. */
int run_replicas(struct run_line *line);

/* Runs one best-effort replica in its own process: claims devices and becomes the command. Returns
 * only on failure or after supervising the command: the exit code. */
int run_replica(struct run_line *line, uint32_t number);

#endif
