/* SPDX-License-Identifier: Apache-2.0
 *
 * berth sim place: measures how well policies fill a cluster.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/string_list.h"
#include "base/system/file.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/programs/sim_options.h"
#include "sim/baselines/baselines.h"
#include "sim/place_report.h"
#include "sim/progress.h"

#define SEED_DEFAULT 42
#define TUNE_DEFAULT 1300

/* All replays, and the progress. */
struct sim_place_work {
    const struct sim_place_options *options;
    struct seed_range seeds;
    struct progress progress;
    const char *policy; /* of the current replay */
    uint64_t seed;
    uint64_t done; /* number of finished replays */
    uint64_t of;   /* number of all replays */
};

static void show_progress(void *context, size_t done, size_t of)
{
    enum { STEPS = 1000 };
    struct sim_place_work *work = context;
    struct text what = {0};

    text_append_format(&what, "%s, seed %" PRIu64, work->policy, work->seed);
    progress_show(&work->progress, text_string(&what), work->done * STEPS + done * STEPS / of,
                  work->of * STEPS);
    text_finish(&what);
}

/* Replays the trace with one policy and all seeds. */
static int replay_seeds(struct sim_place_work *work, const struct typical_pods *typical,
                        const struct place_report *report, struct place_series *series,
                        struct berth_error *error)
{
    const struct sim_place_options *options = work->options;
    struct place_settings settings = {
        .trace = report->trace,
        .typical = typical,
        .policy = series->policy,
        .tune = options->tune.known ? (uint32_t)options->tune.value : TUNE_DEFAULT,
        .shuffled_ties = options->ties == TIES_SEED,
        .progress = work->progress.shown ? show_progress : NULL,
        .context = work,
    };
    int code = 0;

    work->policy = series->policy;
    for (uint64_t i = 0; i <= work->seeds.last - work->seeds.first && code == 0; i++) {
        struct place_run *run = vector_append(series);

        settings.seed = work->seed = work->seeds.first + i;
        code = run == NULL ? error_set_memory(error) : place_replay_run(&settings, run, error);
        work->done++;
    }
    return code;
}

static int replay_policies(struct sim_place_work *work, const struct typical_pods *typical,
                           struct place_report *report, struct berth_error *error)
{
    char **policy;
    int code = 0;

    progress_begin(&work->progress);
    vector_for_each (policy, &work->options->policies) {
        struct place_series *series = vector_append(&report->series);

        if (series == NULL) {
            code = error_set_memory(error);
            break;
        }
        series->policy = *policy;
        code = replay_seeds(work, typical, report, series, error);
        if (code < 0)
            break;
    }
    progress_end(&work->progress);
    return code;
}

/* Replaces the content of an open file with the chart. */
static int write_chart(const struct place_report *report, const char *path, int descriptor,
                       struct berth_error *error)
{
    struct text chart = {0};
    int number = 0;
    int code = 0;

    place_report_write_chart(report, &chart);
    if (text_failed(&chart))
        code = error_set_memory(error);
    else if (ftruncate(descriptor, 0) < 0 && errno != EINVAL)
        number = errno;
    else
        number = file_write(descriptor, chart.bytes, chart.length);
    text_finish(&chart);
    return number != 0 ? error_set_errno(error, number, "cannot write %s", path) : code;
}

static int print_report(const struct place_report *report, bool json)
{
    const struct terminal terminal = terminal_detect(STDOUT_FILENO);
    struct text text = {0};
    int code;

    if (json)
        place_report_write_json(report, &text);
    else if (place_report_write_table(report, &terminal, &text) < 0)
        text.failed = true;
    code = output_write(&text);
    text_finish(&text);
    return code;
}

static void finish_report(struct place_report *report)
{
    struct place_series *series;

    vector_for_each (series, &report->series)
        vector_finish(series);
    vector_finish(&report->series);
}

/* Returns the file's name without directories and ".csv", which the caller frees; NULL: no memory.
 */
static char *name_trace(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t length = strlen(name);

    if (length > 4 && strcmp(name + length - 4, ".csv") == 0)
        length -= 4;
    return strndup(name, length);
}

static struct seed_range choose_seeds(const struct sim_place_options *options)
{
    uint64_t seed = options->seed.known ? options->seed.value : SEED_DEFAULT;

    return options->seeds.known ? options->seeds : (struct seed_range){true, seed, seed};
}

/* Replays the trace and prints the report. `chart` is an open file, or -1 for no chart. */
static int replay_and_print(const struct sim_place_options *options, const struct pod_trace *trace,
                            int chart, struct berth_error *error, int *ret_exit)
{
    struct sim_place_work work = {.options = options, .seeds = choose_seeds(options)};
    struct place_report report = {.trace = trace, .several_seeds = options->seeds.known};
    struct typical_pods typical = {0};
    char *name = name_trace(options->pods);
    int code = name == NULL ? error_set_memory(error) : typical_pods_find(trace, &typical, error);

    report.name = name;
    work.of = options->policies.count * (work.seeds.last - work.seeds.first + 1);
    if (code == 0)
        code = replay_policies(&work, &typical, &report, error);
    if (code == 0 && chart >= 0)
        code = write_chart(&report, options->chart, chart, error);
    if (code == 0)
        *ret_exit = print_report(&report, options->json);
    finish_report(&report);
    typical_pods_finish(&typical);
    free(name);
    return code;
}

static int check_policies(const struct string_list *policies, struct berth_error *error)
{
    const struct policy *policy;
    char **name;

    vector_for_each (name, policies) {
        int code = baseline_find(*name, &policy, error);

        if (code < 0) {
            error_wrap(error, code, "--policy");
            return code;
        }
    }
    return 0;
}

/* Checks that the options are consistent, and fills in defaults. */
static int check_options(struct sim_place_options *options, struct berth_error *error)
{
    int code = check_policies(&options->policies, error);

    if (code < 0)
        return code;
    if (options->nodes == NULL)
        return error_set(error, BERTH_ERROR_INVALID, "expected --nodes FILE, got none");
    if (options->pods == NULL)
        return error_set(error, BERTH_ERROR_INVALID, "expected --pods FILE, got none");
    if (options->seed.known && options->seeds.known)
        return error_set(error, BERTH_ERROR_INVALID, "expected --seed or --seeds, got both");
    if (options->policies.count == 0)
        return sim_options_add_policies(NULL, &options->policies, "frag", error);
    return 0;
}

/* Opens the chart before the replays, so that a file that cannot be written fails at once. */
static int open_chart(const char *path, int *ret_chart, struct berth_error *error)
{
    if (path == NULL)
        return 0;
    *ret_chart = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
    return *ret_chart < 0 ? error_set_errno(error, errno, "cannot write %s", path) : 0;
}

static int simulate_placement(struct sim_place_options *options)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct pod_trace trace = {0};
    uint32_t scale = options->scale.known ? (uint32_t)options->scale.value : 1;
    int chart = -1;
    int exit_code = EXIT_GOOD;
    int code = check_options(options, &error);

    if (code == 0)
        code = pod_trace_read(options->nodes, options->pods, scale, &trace, &error);
    if (code == 0)
        code = open_chart(options->chart, &chart, &error);
    if (code == 0)
        code = replay_and_print(options, &trace, chart, &error, &exit_code);
    if (chart >= 0)
        close(chart);
    pod_trace_finish(&trace);
    if (code == 0)
        return exit_code;
    error_wrap(&error, code, "%s", verb_sim_place.name);
    return output_error(&error);
}

int sim_place_run(int argc, char **argv)
{
    struct sim_place_options options = {0};
    const struct option_binding binding = {&sim_place_option_set, &options};
    int code;

    if (verb_begin(&verb_sim_place, &binding, 1, argc, argv, &code))
        code = simulate_placement(&options);
    string_list_finish(&options.policies);
    return code;
}
