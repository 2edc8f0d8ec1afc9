/* SPDX-License-Identifier: Apache-2.0
 *
 * The subcommands of berth sim and their options. Help and completion need them in berth; the code
 * that runs them is in the program berth-sim.
 */
#ifndef CLI_PROGRAMS_SIM_OPTIONS_H
#define CLI_PROGRAMS_SIM_OPTIONS_H

#include "base/optional.h"
#include "base/string_list.h"
#include "cli/verbs.h"
#include "sim/queue_replay.h"

extern const struct verb verb_sim_place;
extern const struct verb verb_sim_queue;

enum ties { TIES_NAME, TIES_SEED };

struct seed_range {
    bool known;
    uint64_t first;
    uint64_t last;
};

struct sim_place_options {
    const char *nodes;
    const char *pods;
    struct string_list policies;
    struct optional_number seed;
    struct seed_range seeds;
    struct optional_number tune;
    struct optional_number scale;
    enum ties ties;
    const char *chart;
    bool json;
};

extern const struct option_set sim_place_option_set;

/* Parses a list with commas into a struct string_list. berth-sim checks the names. */
int sim_options_add_policies(const struct option *option, void *member, const char *value,
                             struct berth_error *error);

struct sim_queue_options {
    const char *jobs;
    const char *nodes;
    const char *gpus;
    enum queue_order order;
    enum queue_estimate estimate;
    const char *policy;
    bool json;
};

/* Run the subcommand in berth-sim. argv[0] is its name. Return the exit code. */
int sim_place_run(int argc, char **argv);
int sim_queue_run(int argc, char **argv);

extern const struct choice queue_order_names[];
extern const struct choice queue_estimate_names[];
extern const struct option_set sim_queue_option_set;

#endif
