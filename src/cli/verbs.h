/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs of berth: one table, one file per verb.
 */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include <stdbool.h>

#include "cli/options.h"
#include "spec/request_options.h"

/* The kind of a verb's operands, for completion. */
enum operand {
    OPERAND_NONE,
    OPERAND_CLAIM,
    OPERAND_COMMAND, /* a command line: the options after it are not berth's */
    OPERAND_DEVICE,
    OPERAND_FILE,
    OPERAND_JOB, /* a lease or a claim */
    OPERAND_LEASE,
    OPERAND_PROCESS,
    OPERAND_VERB,
};

struct verb {
    const char *name;
    const char *usage;                    /* the text after the name: "[options]" */
    const char *summary;                  /* for the list of verbs */
    const char *description;              /* for the verb's own help */
    const char *examples;                 /* command lines, each ended by '\n'; NULL: none */
    const struct option_set *const *sets; /* ended by NULL */
    enum operand operand;

    /* The subcommands, ended by NULL; NULL: none. Each is a verb whose name has both words:
     * "spec check". */
    const struct verb *const *subcommands;

    /* Runs the verb; argv[0] is its name. Returns the exit code. NULL: `program` runs it, or for a
     * subcommand the program of its verb. */
    int (*run)(int argc, char **argv);

    /* Instead of `run`: the program that berth executes to run the verb. */
    const char *program;
    /* argv[0] of that program, if it runs several verbs; NULL: `program`. */
    const char *program_name;
};

extern const struct verb verb_adopt;
extern const struct verb verb_cancel;
extern const struct verb verb_cdi;
extern const struct verb verb_daemon;
extern const struct verb verb_devices;
extern const struct verb verb_doctor;
extern const struct verb verb_drain;
extern const struct verb verb_extend;
extern const struct verb verb_help;
extern const struct verb verb_history;
extern const struct verb verb_logs;
extern const struct verb verb_plan;
extern const struct verb verb_release;
extern const struct verb verb_report;
extern const struct verb verb_reserve;
extern const struct verb verb_run;
extern const struct verb verb_sim;
extern const struct verb verb_spec;
extern const struct verb verb_status;
extern const struct verb verb_submit;
extern const struct verb verb_top;
extern const struct verb verb_undrain;
extern const struct verb verb_wait;
extern const struct verb verb_web;

/* A subcommand in a file of its own. */
extern const struct verb verb_spec_check;

/* All verbs in the order of the help, ended by NULL. */
extern const struct verb *const verbs[];

/* Returns the verb with this name; NULL: there is none. */
const struct verb *verb_find(const char *name);

/* Prints to stderr that there is no such verb, and suggests the nearest. Returns EXIT_USAGE. */
int verb_fail_unknown(const char *name);

/* Finds the verb in argv[1] and runs it. Returns the exit code. */
int cli_main(int argc, char **argv);

/* Prints the help of all of berth, or of one verb, to stdout. Returns the exit code. */
int help_print_all(void);
int help_print_verb(const struct verb *verb);

/* Binds the sets of a verb that has a request: the first `count` bindings are given, and all other
 * sets of the verb are bound to the request. Returns the number of bindings. */
size_t verb_bind_request(const struct verb *verb, struct option_binding bindings[OPTION_SETS_MAX],
                         size_t count, struct request_options *request);

/* Starts a verb: parses its options into the bindings, answers --help, and refuses operands.
 * Returns true if the verb must run; otherwise *ret_exit is the exit code. */
bool verb_begin(const struct verb *verb, const struct option_binding *bindings, size_t count,
                int argc, char **argv, int *ret_exit);

/* Starts a verb that takes operands. They begin at argv[*ret_operand]; there may be none. */
bool verb_begin_operands(const struct verb *verb, const struct option_binding *bindings,
                         size_t count, int argc, char **argv, int *ret_operand, int *ret_exit);

/* Starts a verb whose options may stand before, between and after its operands, as
 * options_parse_mixed() says. */
bool verb_begin_mixed(const struct verb *verb, const struct option_binding *bindings, size_t count,
                      int argc, char **argv, int *ret_operand, int *ret_exit);

#endif
