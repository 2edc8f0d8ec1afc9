/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "model/request.h"

#include <berth/error.h>

#include "base/text/quantity.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"
#include "support/spec/request_fixture.h"

static void check_described(const struct request *request, const char *wanted)
{
    struct text text = {0};

    request_describe(request, &text);
    assert_string_equal(text_string(&text), wanted);
    text_finish(&text);
}

static void counts_are_described(void **state)
{
    struct request *request = *state;

    check_described(request, "1 device");
    request->gpus = (struct device_count){2, 2, false};
    check_described(request, "2 devices");
    request->gpus = (struct device_count){1, 4, false};
    check_described(request, "1 to 4 devices");
    request->replicas = 3;
    check_described(request, "1 to 4 devices for each of 3 replicas");
    request->gpus = (struct device_count){1, 1, false};
    check_described(request, "1 device for each of 3 replicas");
    request->replicas = 1;
    request->gpus = (struct device_count){4, 2, true};
    check_described(request, "all devices");
}

static void filters_are_described(void **state)
{
    struct request *request = *state;

    request->vendor = VENDOR_AMD;
    check_described(request, "1 device");
    request->vendor_rule = VENDOR_RULE_EXACT;
    check_described(request, "1 device, vendor amd");
    request->vendor_rule = VENDOR_RULE_MIXED;
    check_described(request, "1 device, vendors may mix");
    request->model = copy_of("A100\033[2J");
    check_described(request, "1 device, vendors may mix, model A100\xef\xbf\xbd[2J");
    request->vendor_rule = VENDOR_RULE_ONE;
    request->min_free = optional_number_of(40 * GIB);
    request->min_memory = optional_number_of(80 * GIB);
    request->min_cap = (struct capability){true, 8, 10};
    check_described(request, "1 device, model A100\xef\xbf\xbd[2J, at least 40 GiB free, at least "
                             "80 GiB of memory, capability 8.10 or higher");
    request_finish(request);
    request->min_free = optional_number_of(0);
    assert_int_equal(device_id_list_parse(&request->wanted, "nvidia2,nvidia0.1", NULL), 0);
    check_described(request, "1 device, at least 0 B free, only nvidia2,nvidia0.1");
    assert_int_equal(device_id_list_parse(&request->avoided, "amd0,dri1", NULL), 0);
    check_described(request,
                    "1 device, at least 0 B free, only nvidia2,nvidia0.1, avoiding amd0,dri1");
}

static void sharing_and_time_are_described(void **state)
{
    struct request *request = *state;

    request->sharing = SHARING_MPS;
    check_described(request, "1 device, shared by mps");
    request->sharing = SHARING_TIME_SLICE;
    request->share = optional_number_of(250000);
    check_described(request, "1 device, shared by time-slice, share 0.25");
    request->memory = optional_number_of(GIB / 2);
    check_described(request, "1 device, shared by time-slice, share 0.25, 512 MiB reserved");
    request->share.known = false;
    request->time = optional_number_of((uint64_t)(90 * DURATION_MINUTE));
    check_described(request, "1 device, shared by time-slice, 512 MiB reserved, for at most 1h30m");
    request->time = optional_number_of(UINT64_MAX);
    request->memory.known = false;
    check_described(request, "1 device, shared by time-slice, for at most 106751d23h");
}

/* Members that do not select devices are not described. */
static void the_rest_is_not_described(void **state)
{
    struct request *request = *state;

    request->scheduling = SCHEDULING_SPREAD;
    request->priority = PRIORITY_HIGH;
    request->policy = copy_of("first");
    request->affinity = copy_of("me");
    request->name = copy_of("train");
    request->ranks = true;
    request->or_cpu = true;
    request->nonblock = true;
    request->wait = optional_number_of(0);
    check_described(request, "1 device");
}

static int describe(void *context)
{
    struct text text = {0};
    int code;

    request_describe(context, &text);
    code = text_failed(&text) ? BERTH_ERROR_MEMORY : 0;
    text_finish(&text);
    return code;
}

static void out_of_memory_is_remembered_by_the_text(void **state)
{
    struct request *request = *state;

    request->model = copy_of("a rather long name of a model that makes the text grow for once");
    assert_true(failing_allocator_try_all(describe, request) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        request_test(counts_are_described),
        request_test(filters_are_described),
        request_test(sharing_and_time_are_described),
        request_test(the_rest_is_not_described),
        request_test(out_of_memory_is_remembered_by_the_text),
    };

    return cmocka_run_group_tests_name("request_describe", tests, NULL, NULL);
}
