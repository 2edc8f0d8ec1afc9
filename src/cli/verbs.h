/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs of berth: one table, one file per verb.
 */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include <stdbool.h>

#include "cli/options.h"

/* What stands behind the options of a verb, for completion. */
enum operand {
    OPERAND_NONE,
    OPERAND_CLAIM,
    OPERAND_COMMAND, /* with its own words: whatever follows is no option of ours */
    OPERAND_DEVICE,
    OPERAND_FILE,
    OPERAND_JOB, /* a lease or a claim */
    OPERAND_LEASE,
    OPERAND_PROCESS,
    OPERAND_VERB,
};

struct verb {
    const char *name;
    const char *usage;                    /* what follows the name: "[options]" */
    const char *summary;                  /* a line in the list of verbs */
    const char *description;              /* a paragraph in the verb's own help */
    const char *examples;                 /* command lines, each ended by '\n'; NULL: none */
    const struct option_set *const *sets; /* ended by NULL */
    enum operand operand;

    /* The words that may follow, each like a verb of its own whose name holds both: "spec check".
     * Ended by NULL; NULL: none. */
    const struct verb *const *subcommands;

    /* Runs the verb; argv[0] is its name. Returns the exit code. NULL: a program of its own does,
     * the verb's or that of the verb that it follows. */
    int (*run)(int argc, char **argv);

    /* Instead of `run`: the program of ours that berth becomes, which runs the verb. */
    const char *program;
    /* What that is called with as its own name, where it runs several verbs; NULL: `program`. */
    const char *program_name;
};

extern const struct verb verb_adopt;
extern const struct verb verb_cancel;
extern const struct verb verb_cdi;
extern const struct verb verb_daemon;
extern const struct verb verb_devices;
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

/* All verbs in the order in which help lists them, ended by NULL. */
extern const struct verb *const verbs[];

/* The verb of this name; NULL when there is none. */
const struct verb *verb_find(const char *name);

/* Says on stderr that there is no such verb, suggesting the nearest. Returns EXIT_USAGE. */
int verb_fail_unknown(const char *name);

/* Runs berth as main does: finds the verb in argv[1] and runs it. Returns the exit code. */
int cli_main(int argc, char **argv);

/* Prints the help of all of berth, or of one verb, to stdout. Returns the exit code. */
int help_print_all(void);
int help_print_verb(const struct verb *verb);

/* Starts a verb: parses its options into the bindings, answers --help, and refuses operands.
 * Returns true when the verb is to go on; else *ret_exit is the exit code. */
bool verb_begin(const struct verb *verb, const struct option_binding *bindings, size_t count,
                int argc, char **argv, int *ret_exit);

/* The same for a verb that takes operands, which begin at argv[*ret_operand]; there may be none. */
bool verb_begin_operands(const struct verb *verb, const struct option_binding *bindings,
                         size_t count, int argc, char **argv, int *ret_operand, int *ret_exit);

/* The same with options before, between and behind the operands: options_parse_mixed. */
bool verb_begin_mixed(const struct verb *verb, const struct option_binding *bindings, size_t count,
                      int argc, char **argv, int *ret_operand, int *ret_exit);

#endif
