/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs of berth: one table, one file per verb.
 */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include <stdbool.h>

#include "cli/options.h"

struct verb {
    const char *name;
    const char *usage;                    /* what follows the name: "[options]" */
    const char *summary;                  /* a line in the list of verbs */
    const char *description;              /* a paragraph in the verb's own help */
    const struct option_set *const *sets; /* ended by NULL */

    /* Runs the verb; argv[0] is its name. Returns the exit code. */
    int (*run)(int argc, char **argv);
};

extern const struct verb verb_adopt;
extern const struct verb verb_cancel;
extern const struct verb verb_cdi;
extern const struct verb verb_daemon;
extern const struct verb verb_devices;
extern const struct verb verb_drain;
extern const struct verb verb_extend;
extern const struct verb verb_help;
extern const struct verb verb_logs;
extern const struct verb verb_plan;
extern const struct verb verb_release;
extern const struct verb verb_reserve;
extern const struct verb verb_run;
extern const struct verb verb_sim;
extern const struct verb verb_spec;
extern const struct verb verb_status;
extern const struct verb verb_submit;
extern const struct verb verb_undrain;
extern const struct verb verb_wait;

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

/* Becomes the program of this name, one of ours, with the verb's words. Returns only when that
 * fails: the exit code, after saying why. */
int verb_become(const struct verb *verb, const char *program, char **argv);

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
