/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "model/request.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/engine/machines.h"
#include "support/random.h"
#include "support/spec/request_fixture.h"
#include "support/steps.h"

static void check_good(const struct request *request)
{
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(request_validate(request, &error), 0);
    assert_string_equal(error.message, "");
    assert_int_equal(request_validate(request, NULL), 0);
}

static void check_bad(const struct request *request, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;

    assert_fails(request_validate(request, &error), BERTH_ERROR_INVALID, &error, message);
    assert_int_equal(request_validate(request, NULL), BERTH_ERROR_INVALID);
}

static void check_plain(const struct request *request)
{
    assert_int_equal(request->gpus.min, 1);
    assert_int_equal(request->gpus.max, 1);
    assert_int_equal(request->replicas, 1);
    assert_false(request->gpus.all);
    assert_int_equal(request->wanted.count + request->avoided.count, 0);
    assert_int_equal(request->vendor_rule, VENDOR_RULE_ONE);
    assert_int_equal(request->sharing, SHARING_EXCLUSIVE);
    assert_int_equal(request->scheduling, SCHEDULING_UNSAID);
    assert_int_equal(request->priority, PRIORITY_UNSAID);
    assert_false(request->min_free.known || request->min_memory.known || request->min_cap.known);
    assert_false(request->share.known || request->memory.known);
    assert_false(request->wait.known || request->time.known);
    assert_false(request->opportunistic || request->ranks || request->or_cpu || request->nonblock);
    assert_null(request->model);
    assert_null(request->policy);
    assert_null(request->affinity);
    assert_null(request->name);
}

static void a_request_starts_plain_and_ends_so(void **state)
{
    struct request *request = *state;

    check_plain(request);
    check_good(request);
    assert_int_equal(device_id_list_parse(&request->wanted, "nvidia0,nvidia1", NULL), 0);
    assert_int_equal(device_id_list_parse(&request->avoided, "nvidia2", NULL), 0);
    request->model = copy_of("A100");
    request->policy = copy_of("first");
    request->affinity = copy_of("me");
    request->name = copy_of("train");
    request->gpus.all = true;
    request->ranks = true;
    check_good(request);
    request_finish(request);
    check_plain(request);
}

static void names_belong_to_values(void **state)
{
    (void)state;
    assert_string_equal(choice_name(sharing_names, SHARING_EXCLUSIVE), "exclusive");
    assert_string_equal(choice_name(sharing_names, SHARING_MPS), "mps");
    assert_string_equal(choice_name(sharing_names, SHARING_TIME_SLICE), "time-slice");
    assert_null(choice_name(scheduling_names, SCHEDULING_UNSAID));
    assert_string_equal(choice_name(scheduling_names, SCHEDULING_BEST_EFFORT), "best-effort");
    assert_string_equal(choice_name(scheduling_names, SCHEDULING_GANG), "gang");
    assert_string_equal(choice_name(scheduling_names, SCHEDULING_SPREAD), "spread");
    assert_null(choice_name(priority_names, PRIORITY_UNSAID));
    assert_string_equal(choice_name(priority_names, PRIORITY_LOW), "low");
    assert_string_equal(choice_name(priority_names, PRIORITY_NORMAL), "normal");
    assert_string_equal(choice_name(priority_names, PRIORITY_HIGH), "high");
}

static void replicas_are_bounded(void **state)
{
    struct request *request = *state;

    request->replicas = REQUEST_COUNT_MAX;
    check_good(request);
    request->replicas = 0;
    check_bad(request, "replicas: expected 1 to 1000000, got 0");
    request->replicas = REQUEST_COUNT_MAX + 1;
    check_bad(request, "replicas: expected 1 to 1000000, got 1000001");
    request->replicas = UINT32_MAX;
    check_bad(request, "replicas: expected 1 to 1000000, got 4294967295");
}

static void counts_are_bounded(void **state)
{
    struct request *request = *state;

    request->gpus = (struct device_count){1, REQUEST_COUNT_MAX, false};
    check_good(request);
    request->gpus = (struct device_count){2, 2, false};
    check_good(request);
    request->gpus = (struct device_count){0, 0, false};
    check_bad(request, "gpus: expected 1 to 1000000 devices, got 0-0");
    request->gpus = (struct device_count){0, 4, false};
    check_bad(request, "gpus: expected 1 to 1000000 devices, got 0-4");
    request->gpus = (struct device_count){1, REQUEST_COUNT_MAX + 1, false};
    check_bad(request, "gpus: expected 1 to 1000000 devices, got 1-1000001");
    request->gpus = (struct device_count){3, 2, false};
    check_bad(request, "gpus: expected a range from the smaller number to the larger, got 3-2");
}

static void all_devices_go_to_one_replica(void **state)
{
    struct request *request = *state;

    request->gpus = (struct device_count){.all = true};
    check_good(request);
    /* The numbers do not count then. */
    request->gpus = (struct device_count){9, 3, true};
    check_good(request);
    request->replicas = 2;
    check_bad(request, "replicas: expected 1 when gpus is all, got 2");
}

static void shares_go_with_sharing(void **state)
{
    static const char message[] = "share: needs sharing mps or time-slice";
    struct request *request = *state;

    request->share = optional_number_of(250000);
    check_bad(request, message);
    request->share.value = SHARE_WHOLE;
    check_bad(request, message);
    request->share.known = false;
    check_good(request);
    request->share.known = true;
    request->sharing = SHARING_MPS;
    check_good(request);
    request->sharing = SHARING_TIME_SLICE;
    check_good(request);
}

static void shares_are_parts_of_a_device(void **state)
{
    struct request *request = *state;

    request->sharing = SHARING_TIME_SLICE;
    request->share = optional_number_of(1);
    check_good(request);
    request->share = optional_number_of(SHARE_WHOLE);
    check_good(request);
    request->share = optional_number_of(0);
    check_bad(request, "share: expected more than 0 and at most 1, got 0");
    request->share = optional_number_of(SHARE_WHOLE + 1);
    check_bad(request, "share: expected more than 0 and at most 1, got 1.000001");
    request->share = optional_number_of(INT64_MAX);
    check_bad(request, "share: expected more than 0 and at most 1, got 9223372036854.775807");
    request->share = optional_number_of(UINT64_MAX);
    check_bad(request, "share: expected more than 0 and at most 1, got 9223372036854.775807");
    /* The value of an unknown share is ignored. */
    request->share.known = false;
    check_good(request);
}

static void reserved_memory_goes_with_sharing(void **state)
{
    struct request *request = *state;

    request->memory = optional_number_of(GIB);
    check_bad(request, "memory: needs sharing mps or time-slice "
                       "(min-free and min-memory choose devices by memory)");
    request->min_free = optional_number_of(GIB);
    request->min_memory = optional_number_of(GIB);
    request->memory.known = false;
    check_good(request);
    request->memory.known = true;
    request->sharing = SHARING_TIME_SLICE;
    check_good(request);
    request->sharing = SHARING_MPS;
    check_good(request);
    request->memory = optional_number_of(1);
    check_good(request);
    request->memory = optional_number_of(UINT64_MAX);
    request->share = optional_number_of(1);
    check_good(request);
    request->memory = optional_number_of(0);
    check_bad(request, "memory: expected more than 0 bytes, got 0");
}

static void mps_is_for_nvidia(void **state)
{
    struct request *request = *state;

    request->sharing = SHARING_MPS;
    for (enum vendor vendor = VENDOR_NVIDIA; vendor <= VENDOR_DRI; vendor++) {
        request->vendor = vendor;
        request->vendor_rule = VENDOR_RULE_EXACT;
        if (vendor == VENDOR_NVIDIA)
            check_good(request);
        else
            check_bad(request, "sharing: mps works on nvidia devices only, got another vendor");
        /* The vendor counts only where the rule is exact. */
        request->vendor_rule = VENDOR_RULE_ONE;
        check_good(request);
        request->vendor_rule = VENDOR_RULE_MIXED;
        check_good(request);
        request->vendor_rule = VENDOR_RULE_EXACT;
        request->sharing = SHARING_TIME_SLICE;
        check_good(request);
        request->sharing = SHARING_MPS;
    }
}

static void mps_gives_one_device_to_each_process(void **state)
{
    static const char message[] = "sharing: mps gives one device to each process: use gpus 1 "
                                  "or ranks";
    static const struct device_count several[] = {{2, 2, false}, {1, 2, false}, {0, 0, true}};
    struct request *request = *state;

    request->sharing = SHARING_MPS;
    request->replicas = 3;
    check_good(request);
    request->replicas = 1;
    for (size_t i = 0; i < COUNT(several); i++) {
        request->gpus = several[i];
        request->ranks = false;
        check_bad(request, message);
        request->sharing = SHARING_TIME_SLICE;
        check_good(request);
        request->sharing = SHARING_MPS;
        request->ranks = true;
        check_good(request);
    }
}

static void ranks_start_together(void **state)
{
    struct request *request = *state;

    for (enum scheduling scheduling = SCHEDULING_UNSAID; scheduling <= SCHEDULING_SPREAD;
         scheduling++) {
        request->scheduling = scheduling;
        request->ranks = false;
        check_good(request);
        request->ranks = true;
        if (scheduling == SCHEDULING_BEST_EFFORT)
            check_bad(request, "scheduling: expected gang or spread with ranks, "
                               "got best-effort");
        else
            check_good(request);
    }
}

static void an_opportunistic_lease_has_no_priority(void **state)
{
    struct request *request = *state;

    for (enum priority priority = PRIORITY_UNSAID; priority <= PRIORITY_HIGH; priority++) {
        request->priority = priority;
        request->opportunistic = false;
        check_good(request);
        request->opportunistic = true;
        if (priority == PRIORITY_UNSAID)
            check_good(request);
        else
            check_bad(request, "priority: cannot be combined with opportunistic");
    }
}

static void not_waiting_and_waiting_exclude_each_other(void **state)
{
    struct request *request = *state;

    request->nonblock = true;
    check_good(request);
    request->wait = optional_number_of(0);
    check_good(request);
    request->wait = optional_number_of(1);
    check_bad(request, "wait: cannot be combined with nonblock");
    request->wait.known = false;
    check_good(request);
    request->nonblock = false;
    request->wait = optional_number_of(INT64_MAX);
    check_good(request);
}

/* Times are signed nanoseconds everywhere else. */
static void durations_are_bounded(void **state)
{
    struct request *request = *state;

    request->time = optional_number_of(1);
    check_good(request);
    request->time = optional_number_of(INT64_MAX);
    check_good(request);
    request->time = optional_number_of(0);
    check_bad(request, "time: expected more than 0, got 0");
    request->time = optional_number_of((uint64_t)INT64_MAX + 1);
    check_bad(request, "time: expected at most 106751d23h, got more");
    request->time.known = false;
    request->wait = optional_number_of(0);
    check_good(request);
    request->wait = optional_number_of(UINT64_MAX);
    check_bad(request, "wait: expected at most 106751d23h, got more");
}

static void texts_are_checked(void **state)
{
    struct request *request = *state;
    const struct {
        const char *what;
        char **text;
    } fields[] = {
        {"model", &request->model},
        {"policy", &request->policy},
        {"affinity", &request->affinity},
        {"name", &request->name},
    };
    char text[REQUEST_TEXT_MAX + 2];
    char message[100];

    for (size_t i = 0; i < COUNT(fields); i++) {
        *fields[i].text = text;
        strcpy(text, "H\xc3\xb6rst \n 80GB");
        check_good(request);
        text[0] = '\0';
        snprintf(message, sizeof(message), "%s: expected some text, got none", fields[i].what);
        check_bad(request, message);
        memset(text, 'x', sizeof(text));
        text[REQUEST_TEXT_MAX] = '\0';
        check_good(request);
        text[REQUEST_TEXT_MAX] = 'x';
        text[REQUEST_TEXT_MAX + 1] = '\0';
        snprintf(message, sizeof(message), "%s: expected at most 255 bytes, got 256",
                 fields[i].what);
        check_bad(request, message);
        strcpy(text, "A100\xff");
        snprintf(message, sizeof(message), "%s: expected UTF-8 text, got 'A100?'", fields[i].what);
        check_bad(request, message);
        *fields[i].text = NULL;
    }
}

static void models_are_names_with_bars_between_them(void **state)
{
    static char good[] = "A100|H100|L4";
    static char bad[][12] = {"|", "|A100", "A100|", "A100||H100"};
    struct request *request = *state;
    char message[100];

    request->model = good;
    check_good(request);
    for (size_t i = 0; i < COUNT(bad); i++) {
        request->model = bad[i];
        snprintf(message, sizeof(message), "model: expected names with | between them, got '%s'",
                 bad[i]);
        check_bad(request, message);
    }
    request->model = NULL;
}

/* Work on a host takes its CPUs or memory, and no device. */
static void no_devices_are_wanted_for_work_on_a_host_only(void **state)
{
    struct request *request = *state;

    request->gpus = (struct device_count){0};
    check_bad(request, "gpus: expected 1 to 1000000 devices, got 0-0");
    request->cpus = optional_number_of(1000);
    check_good(request);
    request->cpus = (struct optional_number){0};
    request->host_memory = optional_number_of(1);
    check_good(request);
    request->gpus.max = 1;
    check_bad(request, "gpus: expected 1 to 1000000 devices, got 0-1");
}

/* Random numbers: a valid request is within all limits, and a refusal has a message. */
static void random_requests_are_judged(void **state)
{
    struct test_random random = {13};
    struct request *request = *state;

    for (unsigned long step = test_steps(20000); step > 0; step--) {
        struct berth_error error = BERTH_ERROR_INIT;
        int code;

        request->gpus.min = (uint32_t)test_random_any_length(&random);
        request->gpus.max = (uint32_t)test_random_any_length(&random);
        request->gpus.all = test_random_below(&random, 4) == 0;
        request->replicas = (uint32_t)test_random_any_length(&random);
        request->sharing = (enum sharing)test_random_below(&random, 3);
        request->share.known = test_random_below(&random, 2) == 0;
        request->share.value = test_random_any_length(&random);
        request->time.known = test_random_below(&random, 2) == 0;
        request->time.value = test_random_any_length(&random);
        code = request_validate(request, &error);
        assert_int_equal(error.code, code);
        assert_true(code == 0 || (code == BERTH_ERROR_INVALID && error.message[0] != '\0'));
        if (code == 0) {
            assert_in_range(request->replicas, 1, request->gpus.all ? 1 : REQUEST_COUNT_MAX);
            assert_true(request->gpus.all ||
                        (request->gpus.min >= 1 && request->gpus.min <= request->gpus.max &&
                         request->gpus.max <= REQUEST_COUNT_MAX));
            assert_true(!request->share.known || request->sharing != SHARING_EXCLUSIVE);
            assert_true(!request->share.known ||
                        (request->share.value >= 1 && request->share.value <= SHARE_WHOLE));
            assert_true(!request->time.known ||
                        (request->time.value >= 1 && request->time.value <= INT64_MAX));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        request_test(a_request_starts_plain_and_ends_so),
        request_test(names_belong_to_values),
        request_test(replicas_are_bounded),
        request_test(counts_are_bounded),
        request_test(all_devices_go_to_one_replica),
        request_test(shares_go_with_sharing),
        request_test(shares_are_parts_of_a_device),
        request_test(reserved_memory_goes_with_sharing),
        request_test(mps_is_for_nvidia),
        request_test(mps_gives_one_device_to_each_process),
        request_test(ranks_start_together),
        request_test(an_opportunistic_lease_has_no_priority),
        request_test(not_waiting_and_waiting_exclude_each_other),
        request_test(durations_are_bounded),
        request_test(texts_are_checked),
        request_test(models_are_names_with_bars_between_them),
        request_test(no_devices_are_wanted_for_work_on_a_host_only),
        request_test(random_requests_are_judged),
    };

    return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
