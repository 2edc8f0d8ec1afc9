/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "spec/request_options.h"

#include <string.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "support/failing_allocator.h"
#include "support/spec/request_lines.h"
#include "support/units.h"

/* A command line and what it must do to the options. */
struct sample {
    struct request_words line;
    void (*check)(const struct request_options *options);
};

static void check_samples(const struct sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct request_options options;
        int code = request_words_read(&samples[i].line, &options, &error);

        assert_string_equal(error.message, "");
        assert_int_equal(code, 0);
        samples[i].check(&options);
        request_options_finish(&options);
    }
}

/* A command line and the error. */
struct refusal {
    struct request_words line;
    int code;
    const char *message;
};

static void check_refusals(const struct refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct request_options options;
        int code = request_words_read(&refusals[i].line, &options, &error);

        request_options_finish(&options);
        assert_string_equal(error.message, refusals[i].message);
        assert_int_equal(code, refusals[i].code);
        assert_int_equal(request_words_read(&refusals[i].line, &options, NULL), code);
        request_options_finish(&options);
    }
}

static void check_count(const struct device_count *count, uint32_t min, uint32_t max, bool all)
{
    assert_int_equal(count->all, all);
    if (!all) {
        assert_int_equal(count->min, min);
        assert_int_equal(count->max, max);
    }
}

static void check_number(struct optional_number number, uint64_t value)
{
    assert_true(number.known);
    assert_true(number.value == value);
}

/* Checks of the options, one for each sample. */
#define CHECK(name) static void name(const struct request_options *options)

CHECK(nothing)
{
    const struct request *request = &options->request;

    check_count(&request->gpus, 1, 1, false);
    assert_int_equal(request->replicas, 1);
    assert_int_equal(request->wanted.count, 0);
    assert_int_equal(request->avoided.count, 0);
    assert_int_equal(request->vendor_rule, VENDOR_RULE_ONE);
    assert_null(request->model);
    assert_false(request->min_free.known || request->min_memory.known || request->min_cap.known);
    assert_int_equal(request->sharing, SHARING_EXCLUSIVE);
    assert_false(request->share.known || request->memory.known);
    assert_int_equal(request->scheduling, SCHEDULING_UNSAID);
    assert_int_equal(request->priority, PRIORITY_UNSAID);
    assert_null(request->policy);
    assert_null(request->affinity);
    assert_null(request->name);
    assert_false(request->opportunistic || request->ranks || request->or_cpu || request->nonblock);
    assert_false(request->wait.known || request->time.known);
    assert_null(options->count_model);
    assert_null(options->inventory);
    assert_false(options->uuid || options->label);
    assert_int_equal(options->rank_mask, RANK_MASK_ALL);
}

CHECK(four)
{
    check_count(&options->request.gpus, 4, 4, false);
    assert_null(options->request.model);
}

CHECK(two_to_four)
{
    check_count(&options->request.gpus, 2, 4, false);
}

CHECK(all)
{
    check_count(&options->request.gpus, 0, 0, true);
}

CHECK(two_a100)
{
    check_count(&options->request.gpus, 2, 2, false);
    assert_string_equal(options->request.model, "A100");
    assert_null(options->count_model);
}

CHECK(two_a100_said_twice)
{
    check_count(&options->request.gpus, 2, 2, false);
    assert_int_equal(strcasecmp(options->request.model, "A100"), 0);
}

CHECK(all_of_a_model_with_colons)
{
    check_count(&options->request.gpus, 0, 0, true);
    assert_string_equal(options->request.model, "a:b 1");
}

CHECK(a_range_of_h100)
{
    check_count(&options->request.gpus, 2, 4, false);
    assert_string_equal(options->request.model, "H100");
}

static void counts_have_several_forms(void **state)
{
    static const struct sample samples[] = {
        {{{NULL}}, nothing},
        {{{"-n", "4"}}, four},
        {{{"-n4"}}, four},
        {{{"--gpus", "4"}}, four},
        {{{"--gpus=4"}}, four},
        {{{"-n", "2-4"}}, two_to_four},
        {{{"-n", "all"}}, all},
        {{{"-n", "A100:2"}}, two_a100},
        {{{"-nA100:2"}}, two_a100},
        {{{"--model", "A100", "-n", "2"}}, two_a100},
        {{{"--model", "A100", "-n", "A100:2"}}, two_a100_said_twice},
        {{{"--model", "a100", "-n", "A100:2"}}, two_a100_said_twice},
        {{{"-n", "a:b 1:all"}}, all_of_a_model_with_colons},
        {{{"-n", "H100:2-4"}}, a_range_of_h100},
        {{{"-n", "A100:2", "-n", "4"}}, four},
        {{{"-n", "4", "-n", "A100:2"}}, two_a100},
        {{{"-n", "H100:1", "-n", "A100:2"}}, two_a100},
    };

    (void)state;
    check_samples(samples, COUNT(samples));
}

CHECK(kinds)
{
    const struct request *request = &options->request;

    assert_int_equal(request->wanted.count, 3);
    assert_string_equal(device_id_format(request->wanted.items[0]).text, "nvidia0");
    assert_string_equal(device_id_format(request->wanted.items[1]).text, "nvidia2");
    assert_string_equal(device_id_format(request->wanted.items[2]).text, "nvidia0.1");
    assert_int_equal(request->avoided.count, 1);
    assert_string_equal(device_id_format(request->avoided.items[0]).text, "amd3");
}

CHECK(vendor_amd)
{
    assert_int_equal(options->request.vendor_rule, VENDOR_RULE_EXACT);
    assert_int_equal(options->request.vendor, VENDOR_AMD);
}

CHECK(vendor_any)
{
    assert_int_equal(options->request.vendor_rule, VENDOR_RULE_MIXED);
}

CHECK(model)
{
    assert_string_equal(options->request.model, "H100 PCIe");
}

CHECK(figures)
{
    check_number(options->request.min_free, 20 * GIB);
    check_number(options->request.min_memory, UINT64_C(40000000000));
    assert_true(options->request.min_cap.known);
    assert_string_equal(capability_format(options->request.min_cap).text, "8.6");
}

CHECK(shared)
{
    assert_int_equal(options->request.sharing, SHARING_TIME_SLICE);
    check_number(options->request.share, 250000);
    check_number(options->request.memory, 8 * GIB);
}

CHECK(mps)
{
    assert_int_equal(options->request.sharing, SHARING_MPS);
}

CHECK(order)
{
    assert_int_equal(options->request.replicas, 3);
    assert_int_equal(options->request.scheduling, SCHEDULING_SPREAD);
    assert_int_equal(options->request.priority, PRIORITY_LOW);
    assert_string_equal(options->request.policy, "pack");
    assert_string_equal(options->request.affinity, "warm");
}

CHECK(helper)
{
    assert_true(options->request.opportunistic);
}

CHECK(times)
{
    check_number(options->request.wait, 90 * (uint64_t)DURATION_SECOND);
    check_number(options->request.time, 90 * (uint64_t)DURATION_MINUTE);
}

CHECK(flags)
{
    assert_true(options->request.nonblock);
    assert_true(options->request.or_cpu);
    assert_true(options->uuid);
    assert_string_equal(options->request.name, "a name");
    assert_string_equal(options->inventory, "file.yaml");
}

CHECK(ranks)
{
    assert_true(options->request.ranks);
    assert_true(options->label);
    assert_int_equal(options->rank_mask, RANK_MASK_ONE);
}

static void every_option_has_its_member(void **state)
{
    static const struct sample samples[] = {
        {{{"--device", "nvidia0,nvidia2", "--avoid", "amd3", "--device", "nvidia0.1,nvidia0"}},
         kinds},
        {{{"--vendor", "amd"}}, vendor_amd},
        {{{"--vendor", "any"}}, vendor_any},
        {{{"--vendor", "any", "--vendor", "amd"}}, vendor_amd},
        {{{"--vendor", "amd", "--vendor", "any"}}, vendor_any},
        {{{"--model", "H100 PCIe"}}, model},
        {{{"--model", "A100", "--model", "H100 PCIe"}}, model},
        {{{"--min-free", "20GiB", "--min-memory", "40GB", "--min-cap", "8.6"}}, figures},
        {{{"--sharing", "time-slice", "--share", "0.25", "--memory", "8G"}}, shared},
        {{{"--sharing=mps"}}, mps},
        {{{"--replicas", "3", "--scheduling", "spread", "--priority", "low", "--policy", "pack",
           "--affinity", "warm"}},
         order},
        {{{"--opportunistic"}}, helper},
        {{{"--wait", "90", "--time", "1h30m"}}, times},
        {{{"--wait", "5m", "--time", "1", "--wait", "90s", "--time", "90m"}}, times},
        {{{"--nonblock", "--or-cpu", "--uuid", "--name", "a name", "--inventory", "file.yaml"}},
         flags},
        {{{"--ranks", "--label", "--rank-mask", "one"}}, ranks},
        {{{"--rank-mask", "all"}}, nothing},
    };

    (void)state;
    check_samples(samples, COUNT(samples));
}

#define NO_ID "expected a device id such as nvidia0, amd3 or nvidia0.1, got "

static void wrong_values_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {{{"-n", "0"}},
         BERTH_ERROR_RANGE,
         "--gpus: expected a whole number from 1 to 1000000, got 0"},
        {{{"-n", "4-2"}},
         BERTH_ERROR_RANGE,
         "--gpus: expected a range from the smaller number to the larger, got '4-2'"},
        {{{"-n", "A100:"}},
         BERTH_ERROR_SYNTAX,
         "--gpus: expected a number of devices, a range such as 2-4, or all, got ''"},
        {{{"-n", "4x"}},
         BERTH_ERROR_SYNTAX,
         "--gpus: expected a number of devices, a range such as 2-4, or all, got '4x'"},
        {{{"-n", ":2"}}, BERTH_ERROR_INVALID, "--model: expected some text, got none"},
        {{{"--replicas", "0"}},
         BERTH_ERROR_RANGE,
         "--replicas: expected a whole number from 1 to 1000000, got 0"},
        {{{"--device", ""}}, BERTH_ERROR_SYNTAX, "--device: " NO_ID "''"},
        {{{"--device", "nvidia0,"}}, BERTH_ERROR_SYNTAX, "--device: " NO_ID "''"},
        {{{"--avoid", "gpu0"}}, BERTH_ERROR_SYNTAX, "--avoid: " NO_ID "'gpu0'"},
        {{{"--vendor", "nvida"}},
         BERTH_ERROR_INVALID,
         "--vendor: expected one of nvidia, amd, intel, apple, dri, any, got 'nvida' (did you mean "
         "nvidia?)"},
        {{{"--min-free", "lots"}},
         BERTH_ERROR_SYNTAX,
         "--min-free: expected a size such as 8GiB or 512M, got 'lots'"},
        {{{"--min-cap", "eight"}},
         BERTH_ERROR_SYNTAX,
         "--min-cap: expected a compute capability such as 8.0, got 'eight'"},
        {{{"--share", "1.5"}},
         BERTH_ERROR_RANGE,
         "--share: expected a number from 0 to 1, got '1.5'"},
        {{{"--wait", "soon"}},
         BERTH_ERROR_SYNTAX,
         "--wait: expected a duration such as 90s, 1h30m or 2-00:00:00, got 'soon'"},
        {{{"--name"}}, BERTH_ERROR_INVALID, "--name: expected TEXT, got nothing"},
        {{{"--name="}}, BERTH_ERROR_INVALID, "--name: expected some text, got none"},
        {{{"--uuid=yes"}}, BERTH_ERROR_INVALID, "--uuid: takes no value, got 'yes'"},
        {{{"--gpu", "2"}}, BERTH_ERROR_INVALID, "no option '--gpu' here, did you mean --gpus?"},
    };

    (void)state;
    check_refusals(refusals, COUNT(refusals));
}

static void contradictions_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {{{"-n", "A100:2", "--model", "H100"}},
         BERTH_ERROR_INVALID,
         "--model: expected the model of --gpus, 'A100', got 'H100'"},
        {{{"--rank-mask", "one"}}, BERTH_ERROR_INVALID, "--rank-mask: needs --ranks"},
        {{{"--backend", "gloo"}}, BERTH_ERROR_INVALID, "--backend: needs --ranks"},
        {{{"--master-port", "1"}}, BERTH_ERROR_INVALID, "--master-port: needs --ranks"},
        {{{"--interface", "lo"}}, BERTH_ERROR_INVALID, "--interface: needs --ranks"},
        {{{"--label"}}, BERTH_ERROR_INVALID, "--label: needs --ranks or several replicas"},
        {{{"--share", "0.5"}}, BERTH_ERROR_INVALID, "--share: needs --sharing mps or time-slice"},
        {{{"--sharing", "mps", "--vendor", "amd"}},
         BERTH_ERROR_INVALID,
         "--sharing: mps works on nvidia devices only, got another vendor"},
        {{{"--ranks", "--scheduling", "best-effort"}},
         BERTH_ERROR_INVALID,
         "--scheduling: expected gang or spread with --ranks, got best-effort"},
        {{{"--opportunistic", "--priority", "low"}},
         BERTH_ERROR_INVALID,
         "--priority: cannot be combined with --opportunistic"},
        {{{"--nonblock", "--wait", "5s"}},
         BERTH_ERROR_INVALID,
         "--wait: cannot be combined with --nonblock"},
        {{{"--model", "\xff"}}, BERTH_ERROR_INVALID, "--model: expected UTF-8 text, got '?'"},
    };

    (void)state;
    check_refusals(refusals, COUNT(refusals));
}

/* Returns the number of words of a help text. */
static size_t count_words(const char *help)
{
    size_t words = 1;

    for (; *help != '\0'; help++)
        words += *help == ' ';
    return words;
}

static void rows_are_whole_and_unlike_each_other(void **state)
{
    (void)state;
    for (const struct option_set *const *set = request_option_sets; *set != NULL; set++) {
        assert_non_null((*set)->heading);
        for (size_t i = 0; i < (*set)->count; i++) {
            const struct option *row = &(*set)->options[i];
            const struct option_set *found;

            assert_true(strlen(row->name) > 1);
            assert_string_not_equal(row->name, "help");
            assert_true(row->letter == 0 || row->letter == 'n');
            assert_true(row->help != NULL && strlen(row->help) > 5);
            assert_in_range(count_words(row->help), 2, 10);
            assert_non_null(row->parse);
            assert_true(row->choices == NULL || row->argument != NULL);
            assert_ptr_equal(
                request_options_find(request_option_sets, row->name, strlen(row->name), &found),
                row);
            assert_ptr_equal(found, *set);
        }
    }
}

/* Options that users rely on, none of which may disappear. */
static void no_option_disappears(void **state)
{
    static const char *const names[] = {
        "gpus",       "replicas", "device",  "avoid",         "vendor", "model",     "min-free",
        "min-memory", "min-cap",  "sharing", "share",         "memory", "policy",    "scheduling",
        "affinity",   "priority", "wait",    "opportunistic", "time",   "nonblock",  "or-cpu",
        "name",       "uuid",     "ranks",   "rank-mask",     "label",  "inventory",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        const struct option_set *set;

        if (request_options_find(request_option_sets, names[i], strlen(names[i]), &set) == NULL)
            fail_msg("no option --%s", names[i]);
    }
}

/* Help and completion offer exactly what the parser accepts. */
static void check_choices(const struct option *row)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct request_options options;
    struct text wanted = {0};

    request_options_init(&options);
    for (const struct choice *choice = row->choices; choice->name != NULL; choice++)
        assert_int_equal(row->parse(row, (char *)&options + row->offset, choice->name, &error), 0);
    assert_true(row->parse(row, (char *)&options + row->offset, "?", &error) < 0);
    text_append(&wanted, "expected one of ");
    choice_list(&wanted, row->choices, ", ");
    text_append(&wanted, ", got '?'");
    assert_string_equal(error.message, text_string(&wanted));
    for (const struct choice *choice = row->choices; choice->name != NULL; choice++)
        assert_non_null(strstr(row->help, choice->name));
    text_finish(&wanted);
    request_options_finish(&options);
}

static void choices_agree_with_the_parser(void **state)
{
    size_t checked = 0;

    (void)state;
    for (const struct option_set *const *set = request_option_sets; *set != NULL; set++) {
        for (size_t i = 0; i < (*set)->count; i++) {
            if ((*set)->options[i].choices != NULL) {
                check_choices(&(*set)->options[i]);
                checked++;
            }
        }
    }
    assert_int_equal(checked, 6);
}

static int attempt(void *context)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct request_options options;
    int code = request_words_read(context, &options, &error);

    request_options_finish(&options);
    return code;
}

static void out_of_memory_is_reported_at_every_allocation(void **state)
{
    static struct request_words lines[] = {
        {{"-n", "A100:2", "--device", "nvidia0,nvidia1", "--avoid", "amd3", "--policy", "pack"}},
        {{"-n", "A100:2", "-n", "H100:1", "--affinity", "x", "--affinity", "y", "--name", "z"}},
        {{"--model", "A100", "-n", "A100:2", "--vendor", "nvidia"}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++)
        assert_true(failing_allocator_try_all(attempt, &lines[i]) > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_have_several_forms),
        cmocka_unit_test(every_option_has_its_member),
        cmocka_unit_test(wrong_values_are_refused),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(rows_are_whole_and_unlike_each_other),
        cmocka_unit_test(no_option_disappears),
        cmocka_unit_test(choices_agree_with_the_parser),
        cmocka_unit_test(out_of_memory_is_reported_at_every_allocation),
    };

    return cmocka_run_group_tests_name("request_options", tests, NULL, NULL);
}
