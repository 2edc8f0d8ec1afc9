/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of berth sim place. sim_place.c runs it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"
#include "cli/programs/sim_options.h"
#include "sim/place_replay.h"
#include "spec/option_types.h"

#define SEEDS_MAX 10000

static const struct choice ties_names[] = {
    {"name", TIES_NAME},
    {"seed", TIES_SEED},
    {0},
};

int sim_options_add_policies(const struct option *option, void *member, const char *value,
                             struct berth_error *error)
{
    struct string_list *list = member;
    const char *at = value;

    (void)option;
    for (;;) {
        size_t length = strcspn(at, ",");
        char *name = strndup(at, length);
        int code = name == NULL ? BERTH_ERROR_MEMORY : string_list_append(list, name);

        free(name);
        if (code < 0)
            return error_set_memory(error);
        if (at[length] == '\0')
            return 0;
        at += length + 1;
    }
}

static int parse_seed(const struct option *option, void *member, const char *value,
                      struct berth_error *error)
{
    uint64_t seed;
    int code = quantity_parse_number(value, 0, UINT64_MAX, &seed, error);

    (void)option;
    if (code == 0)
        *(struct optional_number *)member = optional_number_of(seed);
    return code;
}

static int parse_seeds(const struct option *option, void *member, const char *value,
                       struct berth_error *error)
{
    const char *dash = strchr(value, '-');
    char *first = dash == NULL ? NULL : strndup(value, (size_t)(dash - value));
    struct seed_range range = {.known = true};
    int code;

    (void)option;
    if (dash == NULL)
        return error_set(error, BERTH_ERROR_INVALID, "expected a range such as 42-51, got %s",
                         quote(value).text);
    if (first == NULL)
        return error_set_memory(error);
    code = quantity_parse_number(first, 0, UINT64_MAX - SEEDS_MAX, &range.first, error);
    free(first);
    if (code == 0)
        code = quantity_parse_number(dash + 1, range.first, range.first + SEEDS_MAX - 1,
                                     &range.last, error);
    if (code == 0)
        *(struct seed_range *)member = range;
    return code;
}

static int parse_tune(const struct option *option, void *member, const char *value,
                      struct berth_error *error)
{
    uint64_t tune;
    int code = quantity_parse_decimal(value, PLACE_TUNE_DECIMALS, PLACE_TUNE_MAX, &tune, error);

    (void)option;
    if (code == 0 && tune == 0)
        code =
            error_set(error, BERTH_ERROR_RANGE, "expected more than 0, got %s", quote(value).text);
    if (code == 0)
        *(struct optional_number *)member = optional_number_of(tune);
    return code;
}

static int parse_scale(const struct option *option, void *member, const char *value,
                       struct berth_error *error)
{
    uint64_t scale;
    int code = quantity_parse_number(value, 1, TRACE_SCALE_MAX, &scale, error);

    (void)option;
    if (code == 0)
        *(struct optional_number *)member = optional_number_of(scale);
    return code;
}

#define OPTION(member) .offset = offsetof(struct sim_place_options, member)

static const struct option place_rows[] = {
    {.name = "nodes",
     .argument = "FILE",
     .help = "CSV with columns sn, cpu_milli, memory_mib, gpu, [model]",
     OPTION(nodes),
     .parse = option_type_string},
    {.name = "pods",
     .argument = "FILE",
     .help = "CSV with columns cpu_milli, memory_mib, num_gpu, gpu_milli, [gpu_spec]",
     OPTION(pods),
     .parse = option_type_string},
    {.name = "policy",
     .argument = "NAME,...",
     .help = "the placement policies to compare (default frag)",
     OPTION(policies),
     .parse = sim_options_add_policies},
    {.name = "seed",
     .argument = "N",
     .help = "seed of the order of arrivals (default 42)",
     OPTION(seed),
     .parse = parse_seed},
    {.name = "seeds",
     .argument = "A-B",
     .help = "one replay for each seed, and the mean",
     OPTION(seeds),
     .parse = parse_seeds},
    {.name = "tune",
     .argument = "X",
     .help = "stop at a demand of X clusters (default 1.3)",
     OPTION(tune),
     .parse = parse_tune},
    {.name = "ties",
     .argument = "name|seed",
     .choices = ties_names,
     .help = "order of equal nodes: by name (default) or by seed",
     OPTION(ties),
     .parse = option_type_choice},
    {.name = "scale",
     .argument = "K",
     .help = "use K copies of every node",
     OPTION(scale),
     .parse = parse_scale},
    {.name = "json",
     .help = "print JSON (berth.sim-place/1)",
     OPTION(json),
     .parse = option_type_flag},
    {.name = "plot",
     .argument = "FILE.svg",
     .help = "also write a chart of allocation against demand",
     OPTION(chart),
     .parse = option_type_string},
};

const struct option_set sim_place_option_set = {
    .heading = "Options",
    .options = place_rows,
    .count = COUNT(place_rows),
};

static const struct option_set *const place_sets[] = {&sim_place_option_set, NULL};

const struct verb verb_sim_place = {
    .name = "sim place",
    .usage = "--nodes FILE --pods FILE [options]",
    .summary = "measure how well policies fill a cluster",
    .description =
        "Replays a trace of pods with the engine that allocates devices. The pods arrive one by "
        "one in a random order, then more pods drawn from the trace, until the demand exceeds the "
        "cluster. Pods never leave. A pod that does not fit is dropped. Prints how much of the "
        "GPUs is allocated when 60 to 130 % of them are requested, how many pods were dropped, how "
        "much of the GPUs is free but unusable for typical pods, and how long one decision takes.",
    .examples = "berth sim place --nodes nodes.csv --pods pods.csv --policy first,frag\n"
                "berth sim place --nodes nodes.csv --pods pods.csv --seeds 42-51 --json\n",
    .sets = place_sets,
};
