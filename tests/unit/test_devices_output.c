/* SPDX-License-Identifier: Apache-2.0
 *
 * What no inventory can say, and so no end-to-end test shows yet: figures that were sampled.
 */
#include "support/unit.h"

#include "cli/devices_output.h"

#include <string.h>

static struct device devices[] = {
    {.id = {.vendor = VENDOR_AMD, .mig = DEVICE_NO_MIG}},
};

static const struct machine machine = {.devices = {.items = devices, .count = 1}};

/* That the JSON document holds this text. */
static void check_json(const char *wanted)
{
    struct text out = {0};

    devices_write_json(&machine, &out);
    assert_false(text_failed(&out));
    if (strstr(text_string(&out), wanted) == NULL)
        fail_msg("no %s in %s", wanted, text_string(&out));
    text_finish(&out);
}

static void sampled_figures_carry_their_time(void **state)
{
    (void)state;
    devices[0].load = (struct load){
        .utilization = figure_sampled(0, INT64_C(1700000000123456789)),
        .power = figure_sampled(12345, INT64_C(1700000001000000000)),
        .memory_free = figure_declared(1),
    };
    check_json("\"utilization\": 0,");
    check_json("\"power_w\": 12.345,");
    check_json("\"sampled_at\": \"2023-11-14T22:13:20.123Z\",");
}

static void declared_figures_carry_none(void **state)
{
    (void)state;
    devices[0].load = (struct load){.memory_free = figure_declared(1)};
    check_json("\"memory_free\": 1,");
    check_json("\"utilization\": null,");
    check_json("\"sampled_at\": null,");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sampled_figures_carry_their_time),
        cmocka_unit_test(declared_figures_carry_none),
    };

    return cmocka_run_group_tests_name("devices_output", tests, NULL, NULL);
}
