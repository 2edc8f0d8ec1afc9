/* SPDX-License-Identifier: Apache-2.0
 *
 * filter_is_alike() for every pair of a few hundred kinds of devices.
 */
#include "support/spec/request_fixture.h"

#include "engine/placement/filter.h"
#include "support/engine/machines.h"

/* Builds one kind of device from the bits of a number. */
static struct device device_of(unsigned bits)
{
    static char names[][12] = {"NVIDIA A100", "NVIDIA H100", "NVIDIA A100"};
    unsigned name = bits >> 1 & 3;

    return (struct device){
        .id = {.vendor = bits & 1 ? VENDOR_AMD : VENDOR_NVIDIA,
               .mig = DEVICE_NO_MIG,
               .index = bits},
        .name = name == 0 ? NULL : names[name - 1],
        .partitioned = (bits >> 3 & 1) != 0,
        .memory_total = {.known = (bits >> 4 & 1) != 0, .value = (bits >> 5 & 1) * GIB},
        .cap = {.known = (bits >> 6 & 1) != 0, .major = (bits >> 7 & 1) * 8},
    };
}

static void check_alike(const struct request *request)
{
    size_t alike = 0;

    for (unsigned one = 0; one < 256; one++) {
        for (unsigned other = 0; other < 256; other++) {
            struct device first = device_of(one);
            struct device second = device_of(other);

            if (!filter_is_alike(request, &first, &second))
                continue;
            alike++;
            assert_int_equal(filter_facts(request, &first, &filter_default_terms),
                             filter_facts(request, &second, &filter_default_terms));
            assert_int_equal(filter_tenants(request, &first, &filter_default_terms),
                             filter_tenants(request, &second, &filter_default_terms));
        }
    }
    /* A device is like itself, except if the request names devices. */
    if (request->wanted.count > 0)
        assert_int_equal(alike, 0);
    else
        assert_true(alike >= 256);
}

static void what_is_alike_is_judged_alike(void **state)
{
    struct request *request = *state;

    check_alike(request);
    request->min_cap = (struct capability){.known = true, .major = 7};
    check_alike(request);
    request->min_memory = optional_number_of(GIB);
    request->vendor_rule = VENDOR_RULE_EXACT;
    check_alike(request);
    request->model = copy_of("A100");
    check_alike(request);
    request->sharing = SHARING_TIME_SLICE;
    request->memory = optional_number_of(GIB / 2);
    check_alike(request);
    *(struct device_id *)vector_append(&request->wanted) = id_of("nvidia0");
    check_alike(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        request_test(what_is_alike_is_judged_alike),
    };

    return cmocka_run_group_tests_name("filter_alike", tests, NULL, NULL);
}
