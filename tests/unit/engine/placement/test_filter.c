/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "engine/placement/filter.h"

#include "base/count.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"
#include "support/random.h"
#include "support/spec/request_fixture.h"
#include "support/steps.h"

/* Returns a healthy device with all facts known. The device does not own its name. */
static struct device good_device(void)
{
    static char name[] = "NVIDIA A100-SXM4-80GB";

    return (struct device){
        .id = {VENDOR_NVIDIA, 0, DEVICE_NO_MIG},
        .name = name,
        .memory_total = optional_number_of(80 * GIB),
        .cap = {true, 8, 0},
        .health = HEALTH_OK,
        .load.memory_free = load_figure_declared(40 * GIB),
    };
}

static void a_plain_request_takes_any_device(void **state)
{
    struct device device = good_device();
    struct device unknown = {.id = {VENDOR_DRI, 3, DEVICE_NO_MIG}};

    assert_int_equal(filter_device(*state, &device, &filter_default_terms), FILTER_PASSES);
    assert_int_equal(filter_device(*state, &unknown, &filter_default_terms), FILTER_PASSES);
}

static void a_partitioned_device_is_never_taken(void **state)
{
    struct request *request = *state;
    struct device device = good_device();

    device.partitioned = true;
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PARTITIONED);
    assert_int_equal(device_id_list_parse(&request->wanted, "nvidia0", NULL), 0);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PARTITIONED);
}

static void only_the_wanted_are_taken(void **state)
{
    struct request *request = *state;
    struct device device = good_device();

    assert_int_equal(device_id_list_parse(&request->wanted, "nvidia1,nvidia0.3", NULL), 0);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_NOT_WANTED);
    device.id.mig = 3;
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PASSES);
    device.id = id_of("nvidia1");
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PASSES);
    device.id = id_of("amd1");
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_NOT_WANTED);
}

static void avoiding_is_no_filter(void **state)
{
    struct request *request = *state;
    struct device device = good_device();

    assert_int_equal(device_id_list_parse(&request->avoided, "nvidia0", NULL), 0);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PASSES);
}

static void the_vendor_counts_where_it_is_exact(void **state)
{
    struct request *request = *state;
    struct device device = good_device();

    request->vendor = VENDOR_AMD;
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PASSES);
    request->vendor_rule = VENDOR_RULE_MIXED;
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PASSES);
    request->vendor_rule = VENDOR_RULE_EXACT;
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_VENDOR);
    request->vendor = VENDOR_NVIDIA;
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PASSES);
}

static void the_model_is_a_part_of_the_name_in_any_case(void **state)
{
    static const struct {
        const char *model;
        enum filter_verdict verdict;
    } cases[] = {
        {"NVIDIA A100-SXM4-80GB", FILTER_PASSES},
        {"a100", FILTER_PASSES},
        {"80gb", FILTER_PASSES},
        {"nvidia", FILTER_PASSES},
        {"A100-SXM4-80GBs", FILTER_MODEL},
        {"H100", FILTER_MODEL},
        {"A100 SXM4", FILTER_MODEL},
        {"A.00", FILTER_MODEL},
        {"h100|a100", FILTER_PASSES},
        {"A100|H100", FILTER_PASSES},
        {"H100|L40|80GB", FILTER_PASSES},
        {"H100|V100", FILTER_MODEL},
        {"A100-SXM4|H", FILTER_PASSES},
        {"A100|", FILTER_PASSES},
    };
    struct request *request = *state;
    struct device device = good_device();

    for (size_t i = 0; i < COUNT(cases); i++) {
        request->model = copy_of(cases[i].model);
        assert_int_equal(filter_device(request, &device, &filter_default_terms), cases[i].verdict);
        request_finish(request);
    }
    request->model = copy_of("A100");
    device.name = NULL;
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_MODEL);
}

static void total_memory_is_a_fixed_fact(void **state)
{
    struct request *request = *state;
    struct device device = good_device();

    request->min_memory = optional_number_of(80 * GIB);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PASSES);
    request->min_memory = optional_number_of(80 * GIB + 1);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_MEMORY);
    /* Unknown is not 0: it does not pass even for 0 bytes. */
    device.memory_total.known = false;
    request->min_memory = optional_number_of(0);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_MEMORY);
    device.memory_total = optional_number_of(0);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PASSES);
}

static void free_memory_may_change(void **state)
{
    struct request *request = *state;
    struct device device = good_device();

    request->min_free = optional_number_of(40 * GIB);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PASSES);
    request->min_free = optional_number_of(40 * GIB + 1);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_LOW_ON_MEMORY);
    device.load.memory_free.known = false;
    request->min_free = optional_number_of(0);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_LOW_ON_MEMORY);
    device.load.memory_free = load_figure_sampled(0, 1);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PASSES);
    device.load.memory_free = load_figure_sampled(-1, 1);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_LOW_ON_MEMORY);
}

/* More memory than the device has can never be free. */
static void more_free_than_there_is_is_a_fixed_fact(void **state)
{
    struct request *request = *state;
    struct device device = good_device();

    device.load.memory_free.known = false;
    request->min_free = optional_number_of(80 * GIB);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_LOW_ON_MEMORY);
    request->min_free = optional_number_of(80 * GIB + 1);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_MEMORY);
    device.memory_total.known = false;
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_LOW_ON_MEMORY);
    request->min_free = optional_number_of(UINT64_MAX);
    device.load.memory_free = load_figure_sampled(INT64_MAX, 1);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_LOW_ON_MEMORY);
}

static void capability_is_a_fixed_fact(void **state)
{
    struct request *request = *state;
    struct device device = good_device();

    request->min_cap = (struct capability){true, 8, 0};
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PASSES);
    request->min_cap = (struct capability){true, 8, 1};
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_CAPABILITY);
    request->min_cap = (struct capability){true, 0, 0};
    device.cap.known = false;
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_CAPABILITY);
    request->min_cap = (struct capability){false, 9, 0};
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PASSES);
}

static void only_nvidia_is_shared_by_mps(void **state)
{
    struct request *request = *state;
    struct device device = good_device();

    request->sharing = SHARING_MPS;
    for (enum vendor vendor = VENDOR_NVIDIA; vendor <= VENDOR_DRI; vendor++) {
        device.id.vendor = vendor;
        assert_int_equal(filter_device(request, &device, &filter_default_terms),
                         vendor == VENDOR_NVIDIA ? FILTER_PASSES : FILTER_NO_MPS);
    }
    request->sharing = SHARING_TIME_SLICE;
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PASSES);
}

static void memory_to_reserve_must_be_there(void **state)
{
    struct request *request = *state;
    struct device device = good_device();

    request->sharing = SHARING_TIME_SLICE;
    request->memory = optional_number_of(80 * GIB);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PASSES);
    request->memory = optional_number_of(80 * GIB + 1);
    assert_int_equal(filter_device(request, &device, &filter_default_terms),
                     FILTER_TOO_SMALL_TO_SHARE);
    request->memory = optional_number_of(1);
    device.memory_total.known = false;
    assert_int_equal(filter_device(request, &device, &filter_default_terms),
                     FILTER_TOO_SMALL_TO_SHARE);
}

static void who_comes_later_finds_what_is_left(void **state)
{
    static const struct {
        uint64_t left, min_free, memory, fitting; /* 0: not set */
    } cases[] = {
        {80, 0, 0, UINT64_MAX}, {80, 0, 30, 2},        {80, 30, 0, 2},
        {80, 80, 0, 1},         {80, 81, 0, 0},        {80, 0, 81, 0},
        {80, 60, 20, 2},        {80, 61, 20, 1},       {80, 20, 60, 1},
        {0, 1, 0, 0},           {0, 0, 0, UINT64_MAX}, {UINT64_MAX, 1, 1, UINT64_MAX},
    };
    struct request *request = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        request->sharing = SHARING_TIME_SLICE;
        request->min_free = (struct optional_number){cases[i].min_free > 0, cases[i].min_free};
        request->memory = (struct optional_number){cases[i].memory > 0, cases[i].memory};
        assert_true(filter_fitting(request, cases[i].left) == cases[i].fitting);
    }
    request->min_free = optional_number_of(0);
    request->memory = (struct optional_number){0};
    assert_true(filter_fitting(request, 0) == UINT64_MAX);
    request->min_free = optional_number_of(50);
    assert_int_equal(filter_memory(request), 50);
    request->sharing = SHARING_EXCLUSIVE;
    assert_int_equal(filter_memory(request), 0);
}

static void the_sick_may_recover(void **state)
{
    struct device device = good_device();

    device.health = HEALTH_SICK;
    assert_int_equal(filter_device(*state, &device, &filter_default_terms), FILTER_SICK);
    device.health = HEALTH_UNKNOWN;
    assert_int_equal(filter_device(*state, &device, &filter_default_terms), FILTER_PASSES);
}

/* Starts with all reasons at once and removes each when it was reported. Permanent reasons come
 * first, so that a claim never waits for a device that can never fit. */
static void the_first_reason_counts(void **state)
{
    struct request *request = *state;
    struct device device = {.id = id_of("amd0"), .partitioned = true, .health = HEALTH_SICK};

    assert_int_equal(device_id_list_parse(&request->wanted, "nvidia0", NULL), 0);
    request->vendor_rule = VENDOR_RULE_EXACT;
    request->model = copy_of("A100");
    request->min_memory = request->min_free = optional_number_of(1);
    request->min_cap = (struct capability){true, 8, 0};
    request->sharing = SHARING_MPS;
    request->memory = optional_number_of(2);

    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PARTITIONED);
    device.partitioned = false;
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_NOT_WANTED);
    assert_int_equal(device_id_list_parse(&request->wanted, "amd0", NULL), 0);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_VENDOR);
    request->vendor_rule = VENDOR_RULE_ONE;
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_MODEL);
    device.name = copy_of("A100");
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_MEMORY);
    device.memory_total = optional_number_of(1);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_CAPABILITY);
    device.cap = request->min_cap;
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_NO_MPS);
    request->sharing = SHARING_TIME_SLICE;
    assert_int_equal(filter_device(request, &device, &filter_default_terms),
                     FILTER_TOO_SMALL_TO_SHARE);
    device.memory_total = optional_number_of(2);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_SICK);
    device.health = HEALTH_OK;
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_LOW_ON_MEMORY);
    device.load.memory_free = load_figure_sampled(1, 1);
    assert_int_equal(filter_device(request, &device, &filter_default_terms), FILTER_PASSES);
    device_finish(&device);
}

static void what_may_change_is_told_from_facts(void **state)
{
    static const enum filter_verdict for_ever[] = {
        FILTER_PASSES,     FILTER_PARTITIONED, FILTER_NOT_WANTED,
        FILTER_VENDOR,     FILTER_MODEL,       FILTER_MEMORY,
        FILTER_CAPABILITY, FILTER_NO_MPS,      FILTER_TOO_SMALL_TO_SHARE,
        FILTER_MASKED,     FILTER_GONE,        FILTER_OUTSIDE,
        FILTER_RESERVED,
    };
    bool fixed[FILTER_VERDICTS] = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(for_ever); i++)
        fixed[for_ever[i]] = true;
    for (enum filter_verdict verdict = FILTER_PASSES; verdict < FILTER_VERDICTS; verdict++)
        assert_int_equal(filter_may_change(verdict), !fixed[verdict]);
}

static void check_described(const size_t *counts, const char *wanted)
{
    struct text text = {0};

    filter_describe(counts, &text);
    assert_string_equal(text_string(&text), wanted);
    text_finish(&text);
}

static void every_reason_has_words(void **state)
{
    static const struct {
        enum filter_verdict verdict;
        const char *one;
        const char *many;
    } cases[] = {
        {FILTER_PASSES, "", ""},
        {FILTER_PARTITIONED, "1 is split into partitions", "2 are split into partitions"},
        {FILTER_NOT_WANTED, "1 is not named in the request", "2 are not named in the request"},
        {FILTER_VENDOR, "1 has another vendor", "2 have another vendor"},
        {FILTER_MODEL, "1 is another model", "2 are other models"},
        {FILTER_MEMORY, "1 has too little or unknown memory",
         "2 have too little or unknown memory"},
        {FILTER_CAPABILITY, "1 has a lower or unknown compute capability",
         "2 have a lower or unknown compute capability"},
        {FILTER_NO_MPS, "1 does not support MPS", "2 do not support MPS"},
        {FILTER_TOO_SMALL_TO_SHARE, "1 has less memory than requested, or an unknown amount",
         "2 have less memory than requested, or an unknown amount"},
        {FILTER_SICK, "1 is sick", "2 are sick"},
        {FILTER_LOW_ON_MEMORY, "1 has too little or unknown free memory",
         "2 have too little or unknown free memory"},
        {FILTER_BUSY, "1 is busy", "2 are busy"},
        {FILTER_SHARED_OUT, "1 has too small a share left", "2 have too small a share left"},
        {FILTER_TENANTS, "1 is at its tenant limit", "2 are at their tenant limit"},
        {FILTER_MEMORY_TAKEN, "1 has too little unreserved memory",
         "2 have too little unreserved memory"},
        {FILTER_OTHER_USER, "1 runs MPS for another user", "2 run MPS for other users"},
        {FILTER_OTHER_MPS, "1 runs MPS in another directory", "2 run MPS in other directories"},
        {FILTER_MASKED, "1 is hidden by the inherited mask", "2 are hidden by the inherited mask"},
        {FILTER_GONE, "1 is gone", "2 are gone"},
        {FILTER_OUTSIDE, "1 is outside the lease", "2 are outside the lease"},
        {FILTER_RESERVED, "1 is reserved for others", "2 are reserved for others"},
        {FILTER_SQUATTED, "1 is used without a lease", "2 are used without a lease"},
        {FILTER_DIRTY, "1 is not cleaned up yet", "2 are not cleaned up yet"},
        {FILTER_DRAINED, "1 is drained", "2 are drained"},
        {FILTER_ELSEWHERE, "1 is held by another pool", "2 are held by another pool"},
        {FILTER_ASLEEP, "1 is asleep", "2 are asleep"},
        {FILTER_KEPT, "1 is kept for earlier claims", "2 are kept for earlier claims"},
    };

    (void)state;
    assert_int_equal(COUNT(cases), FILTER_VERDICTS);
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t counts[FILTER_VERDICTS] = {0};

        counts[cases[i].verdict] = 1;
        check_described(counts, cases[i].one);
        if (cases[i].verdict == FILTER_PASSES)
            assert_null(filter_reason(cases[i].verdict));
        else
            assert_string_equal(filter_reason(cases[i].verdict), cases[i].one + strlen("1 "));
        counts[cases[i].verdict] = 2;
        check_described(counts, cases[i].many);
    }
}

static void several_reasons_are_listed(void **state)
{
    size_t counts[FILTER_VERDICTS] = {0};

    (void)state;
    check_described(counts, "");
    counts[FILTER_PASSES] = 4;
    counts[FILTER_VENDOR] = 1;
    counts[FILTER_SICK] = 3;
    counts[FILTER_BUSY] = 12;
    check_described(counts, "1 has another vendor, 3 are sick, 12 are busy");
}

static int describe(void *context)
{
    struct text text = {0};
    int code;

    filter_describe(context, &text);
    code = text_failed(&text) ? BERTH_ERROR_MEMORY : 0;
    text_finish(&text);
    return code;
}

static void out_of_memory_is_remembered_by_the_text(void **state)
{
    size_t counts[FILTER_VERDICTS] = {[FILTER_MEMORY] = 3, [FILTER_SICK] = 4, [FILTER_BUSY] = 5};

    (void)state;
    assert_true(failing_allocator_try_all(describe, counts) >= 1);
}

static void tenants_are_what_share_memory_and_mode_allow(void **state)
{
    static const struct {
        enum sharing sharing;
        uint64_t share;  /* 0: not set */
        uint64_t memory; /* 0: not set */
        uint32_t tenants;
    } cases[] = {
        {SHARING_EXCLUSIVE, 0, 0, 1},
        {SHARING_TIME_SLICE, 0, 0, 4},
        {SHARING_MPS, 0, 0, 8},
        /* by share */
        {SHARING_TIME_SLICE, SHARE_WHOLE, 0, 1},
        {SHARING_TIME_SLICE, 500001, 0, 1},
        {SHARING_TIME_SLICE, 500000, 0, 2},
        {SHARING_TIME_SLICE, 333334, 0, 2},
        {SHARING_TIME_SLICE, 333333, 0, 3},
        {SHARING_TIME_SLICE, 250000, 0, 4},
        {SHARING_TIME_SLICE, 1, 0, 4},
        {SHARING_MPS, 125001, 0, 7},
        {SHARING_MPS, 125000, 0, 8},
        {SHARING_MPS, 1, 0, 8},
        /* by memory, of 80 GiB */
        {SHARING_TIME_SLICE, 0, 80 * GIB + 1, 0},
        {SHARING_TIME_SLICE, 0, UINT64_MAX, 0},
        {SHARING_TIME_SLICE, 0, 80 * GIB, 1},
        {SHARING_TIME_SLICE, 0, 40 * GIB + 1, 1},
        {SHARING_TIME_SLICE, 0, 40 * GIB, 2},
        {SHARING_TIME_SLICE, 0, 1, 4},
        {SHARING_MPS, 0, 10 * GIB + 1, 7},
        {SHARING_MPS, 0, 10 * GIB, 8},
        {SHARING_MPS, 0, 1, 8},
        /* by both */
        {SHARING_MPS, 200000, 10 * GIB, 5},
        {SHARING_MPS, 125000, 20 * GIB, 4},
        {SHARING_MPS, SHARE_WHOLE, 80 * GIB + 1, 0},
    };
    struct request *request = *state;
    struct device device = good_device();

    for (size_t i = 0; i < COUNT(cases); i++) {
        request->sharing = cases[i].sharing;
        request->share = (struct optional_number){cases[i].share > 0, cases[i].share};
        request->memory = (struct optional_number){cases[i].memory > 0, cases[i].memory};
        assert_int_equal(request_validate(request, NULL), 0);
        assert_int_equal(filter_tenants(request, &device, &filter_default_terms), cases[i].tenants);
    }
}

static void an_unknown_size_holds_no_reservation(void **state)
{
    struct request *request = *state;
    struct device device = good_device();

    device.memory_total.known = false;
    request->sharing = SHARING_MPS;
    request->share = optional_number_of(500000);
    assert_int_equal(filter_tenants(request, &device, &filter_default_terms), 2);
    request->memory = optional_number_of(1);
    assert_int_equal(filter_tenants(request, &device, &filter_default_terms), 0);
}

/* The number of tenants is the largest that fits on the device and within the tenant limit. */
static void random_tenants_fill_the_device(void **state)
{
    struct test_random random = {14};
    struct request *request = *state;
    struct device device = good_device();

    for (unsigned long step = test_steps(20000); step > 0; step--) {
        uint64_t share = 1 + test_random_any_length(&random) % SHARE_WHOLE;
        uint64_t memory = 1 + test_random_any_length(&random) % (100 * GIB);
        uint64_t total = test_random_any_length(&random) % (100 * GIB);
        bool is_mps = test_random_below(&random, 2) == 0;
        uint64_t tenants;

        request->sharing = is_mps ? SHARING_MPS : SHARING_TIME_SLICE;
        request->share = (struct optional_number){test_random_below(&random, 2) == 0, share};
        request->memory = (struct optional_number){test_random_below(&random, 2) == 0, memory};
        share = request->share.known ? share : 0;
        memory = request->memory.known ? memory : 0;
        device.memory_total = optional_number_of(total);
        tenants = filter_tenants(request, &device, &filter_default_terms);
        assert_true(tenants * share <= SHARE_WHOLE && tenants * memory <= total);
        assert_true((tenants + 1) * share > SHARE_WHOLE || (tenants + 1) * memory > total ||
                    tenants == (is_mps ? 8 : 4));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        request_test(a_plain_request_takes_any_device),
        request_test(a_partitioned_device_is_never_taken),
        request_test(only_the_wanted_are_taken),
        request_test(avoiding_is_no_filter),
        request_test(the_vendor_counts_where_it_is_exact),
        request_test(the_model_is_a_part_of_the_name_in_any_case),
        request_test(total_memory_is_a_fixed_fact),
        request_test(free_memory_may_change),
        request_test(more_free_than_there_is_is_a_fixed_fact),
        request_test(capability_is_a_fixed_fact),
        request_test(only_nvidia_is_shared_by_mps),
        request_test(memory_to_reserve_must_be_there),
        request_test(who_comes_later_finds_what_is_left),
        request_test(the_sick_may_recover),
        request_test(the_first_reason_counts),
        cmocka_unit_test(what_may_change_is_told_from_facts),
        cmocka_unit_test(every_reason_has_words),
        cmocka_unit_test(several_reasons_are_listed),
        cmocka_unit_test(out_of_memory_is_remembered_by_the_text),
        request_test(tenants_are_what_share_memory_and_mode_allow),
        request_test(an_unknown_size_holds_no_reservation),
        request_test(random_tenants_fill_the_device),
    };

    return cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
