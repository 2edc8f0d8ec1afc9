/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of devices: facts that an inventory cannot have, and the fit to the terminal.
 */
#include "support/unit.h"

#include "cli/devices/devices_output.h"
#include "cli/machine_source.h"

#include <string.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "support/failing_allocator.h"
#include "support/views/check_lines.h"

/* 2026-11-16T12:00:00Z */
#define NOW (INT64_C(1794830400) * DURATION_SECOND)
#define GIB (UINT64_C(1) << 30)

static const struct terminal narrow = {.width = 80, .unicode = true};
static const struct terminal endless = {.unicode = true};

/* Returns the text of a report; the caller finishes it. */
static struct text words_of(const struct machine_report *report, struct terminal terminal)
{
    struct user_names users = {0};
    const struct devices_picture picture = {
        .report = report, .users = &users, .terminal = terminal, .now = NOW};
    struct text out = {0};

    devices_write_table(&picture, &out);
    assert_false(text_failed(&out));
    user_names_finish(&users);
    return out;
}

static void check_words(const struct machine_report *report, struct terminal terminal,
                        const char *wanted)
{
    struct text out = words_of(report, terminal);

    assert_string_equal(text_string(&out), wanted);
    text_finish(&out);
}

static void check_width(const struct machine_report *report, size_t width)
{
    struct text out = words_of(report, (struct terminal){.width = width, .unicode = true});

    check_lines(&out, width);
    text_finish(&out);
}

static void check_json(const struct machine_report *report, const struct optional_number *slots,
                       const char *wanted)
{
    struct user_names users = {0};
    const struct devices_picture picture = {.report = report, .slots = slots, .users = &users};
    struct text out = {0};

    devices_write_json(&picture, JSON_COMPACT, &out);
    assert_false(text_failed(&out));
    if (strstr(text_string(&out), wanted) == NULL)
        fail_msg("no %s in %s", wanted, text_string(&out));
    text_finish(&out);
    user_names_finish(&users);
}

/* ---- Figures ---- */

static struct device single[] = {
    {.id = {.vendor = VENDOR_AMD, .mig = DEVICE_NO_MIG}},
};

static const struct machine_report of_single = {
    .machine = {.devices = {.items = single, .count = COUNT(single)}}};

static void sampled_figures_carry_their_time(void **state)
{
    (void)state;
    single[0].load = (struct load){
        .utilization = load_figure_sampled(0, INT64_C(1700000000123456789)),
        .power = load_figure_sampled(12345, INT64_C(1700000001000000000)),
        .frequency = load_figure_sampled(INT64_C(2100000000), INT64_C(1700000001000000000)),
        .memory_free = load_figure_declared(1),
    };
    check_json(&of_single, NULL, "\"utilization\":0,");
    check_json(&of_single, NULL, "\"power_w\":12.345,\"frequency_hz\":2100000000,");
    check_json(&of_single, NULL, "\"sampled_at\":\"2023-11-14T22:13:20.123Z\",");
}

static void declared_figures_carry_none(void **state)
{
    (void)state;
    single[0].load = (struct load){.memory_free = load_figure_declared(1)};
    check_json(&of_single, NULL, "\"memory_free\":1,");
    check_json(&of_single, NULL, "\"utilization\":null,");
    check_json(&of_single, NULL, "\"sampled_at\":null,");
}

static void slots_are_the_pools(void **state)
{
    const struct optional_number there = optional_number_of(7);
    const struct optional_number nowhere = {0};

    (void)state;
    check_json(&of_single, NULL, "\"id\":\"amd0\",\"slot\":0,");
    check_json(&of_single, &there, "\"id\":\"amd0\",\"slot\":7,");
    check_json(&of_single, &nowhere, "\"id\":\"amd0\",\"slot\":null,");
}

/* ---- A machine with some of everything ---- */

static struct device_process processes[] = {
    {.pid = 4711,
     .uid = {.known = true, .value = 4000000000},
     .memory = {.known = true, .value = 60 * GIB},
     .command = (char *)"python train.py --epochs 90 --data /srv/imagenet --batch-size 256",
     .container = (char *)"0123456789abcdef0123456789abcdef",
     .lease = 12},
    {.pid = 88, .command = (char *)"Xorg\033[31m"},
};

static char *nodes[] = {(char *)"/dev/nvidia0", (char *)"/dev/nvidiactl"};

static struct device various[] = {
    {.id = {VENDOR_INTEL, 0, DEVICE_NO_MIG},
     .name = (char *)"Intel UHD Graphics 770",
     .kind = DEVICE_KIND_INTEGRATED,
     .health = HEALTH_OK,
     .load = {.frequency = {true, 300000000, NOW}}},
    {.id = {VENDOR_NVIDIA, 0, DEVICE_NO_MIG},
     .name = (char *)"NVIDIA A100-SXM4-80GB",
     .kind = DEVICE_KIND_DISCRETE,
     .health = HEALTH_OK,
     .memory_total = {.known = true, .value = 80 * GIB},
     .nodes = {.items = nodes, .count = COUNT(nodes)},
     .load = {.memory_free = {true, 19 * (int64_t)GIB, NOW},
              .utilization = {true, 970, NOW},
              .temperature = {true, 64500, NOW},
              .power = {true, 341200, NOW},
              .frequency = {true, 1410000000, NOW}},
     .processes = {.items = processes, .count = COUNT(processes)}},
    {.id = {VENDOR_NVIDIA, 1, DEVICE_NO_MIG},
     .name = (char *)"NVIDIA A100-SXM4-80GB",
     .health = HEALTH_SICK,
     .health_reason = (char *)"fell off the bus (XID 79)",
     .old = true,
     .memory_total = {.known = true, .value = 80 * GIB},
     .load = {.memory_free = {true, 80 * (int64_t)GIB, NOW - 12 * DURATION_SECOND}}},
    {.id = {VENDOR_NVIDIA, 2, DEVICE_NO_MIG},
     .name = (char *)"NVIDIA A100-SXM4-80GB",
     .health = HEALTH_OK,
     .asleep = true,
     .memory_total = {.known = true, .value = 80 * GIB}},
    {.id = {VENDOR_NVIDIA, 3, DEVICE_NO_MIG}, .partitioned = true, .old = true},
};

static struct link various_links[] = {
    {.between = {1, 2}, .kind = LINK_NVLINK, .lanes = 12},
    {.between = {1, 2}, .kind = LINK_PIX},
    {.between = {1, 3}, .kind = LINK_SYS},
};

static struct problem problems[] = {
    {(char *)"nvidia", (char *)"nvidia1: no answer within 1s"},
    {(char *)"amd\n", (char *)"a\033message"},
};

static const struct machine_report of_various = {
    .machine = {.devices = {.items = various, .count = COUNT(various)},
                .links = {.items = various_links, .count = COUNT(various_links)}},
    .problems = {.items = problems, .count = COUNT(problems)},
};

static void everything_in_a_pipe(void **state)
{
    (void)state;
    check_words(&of_various, endless,
                "ID       MODEL                MEMORY  UTIL  TEMP  POWER    CLOCK  HEALTH  NOTE\n"
                "intel0   UHD Graphics 770          -     -     -      -   300MHz  ok      "
                "integrated\n"
                "nvidia0  A100-SXM4-80GB    61/80 GiB   97%   65C   341W  1410MHz  ok\n"
                "nvidia1  A100-SXM4-80GB     0/80 GiB     -     -      -        -  sick    "
                "fell off the bus (XID 79), values from 12s ago\n"
                "nvidia2  A100-SXM4-80GB     -/80 GiB     -     -      -        -  ok      asleep\n"
                "nvidia3  -                         -     -     -      -        -  -       "
                "old values, partitioned\n"
                "\n"
                "DEVICE    PID  USER        MEMORY  LEASE  CONTAINER     COMMAND\n"
                "nvidia0  4711  4000000000  60 GiB     12  0123456789ab  python train.py --epochs "
                "90 --data /srv/imagenet --batch-size 256\n"
                "nvidia0    88  -                -                       Xorg\xef\xbf\xbd[31m\n"
                "\n"
                "LINKS    intel0  nvidia0  nvidia1  nvidia2  nvidia3\n"
                "intel0   .       -        -        -        -\n"
                "nvidia0  -       .        nv12     sys      -\n"
                "nvidia1  -       nv12     .        -        -\n"
                "nvidia2  -       sys      -        .        -\n"
                "nvidia3  -       -        -        -        .\n"
                "nvN: NVLink, N lanes; sys: across NUMA nodes\n");
}

static void everything_on_a_narrow_terminal(void **state)
{
    (void)state;
    check_words(&of_various, narrow,
                "ID       MODEL                MEMORY  UTIL  HEALTH  NOTE\n"
                "intel0   UHD Graphics 770          -     -  ok      integrated\n"
                "nvidia0  A100-SXM4-80GB    61/80 GiB   97%  ok\n"
                "nvidia1  A100-SXM4-80GB     0/80 GiB     -  sick    fell off the bus (XID 79), "
                "\xe2\x80\xa6\n"
                "nvidia2  A100-SXM4-80GB     -/80 GiB     -  ok      asleep\n"
                "nvidia3  -                         -     -  -       old values, partitioned\n"
                "\n"
                "DEVICE    PID  USER        MEMORY  LEASE  CONTAINER     COMMAND\n"
                "nvidia0  4711  4000000000  60 GiB     12  0123456789ab  python train.py "
                "--epoch\xe2\x80\xa6\n"
                "nvidia0    88  -                -                       Xorg\xef\xbf\xbd[31m\n"
                "\n"
                "LINKS    intel0  nvidia0  nvidia1  nvidia2  nvidia3\n"
                "intel0   .       -        -        -        -\n"
                "nvidia0  -       .        nv12     sys      -\n"
                "nvidia1  -       nv12     .        -        -\n"
                "nvidia2  -       sys      -        .        -\n"
                "nvidia3  -       -        -        -        .\n"
                "nvN: NVLink, N lanes; sys: across NUMA nodes\n");
}

static void nothing_is_wider_than_the_terminal(void **state)
{
    (void)state;
    for (size_t width = 48; width < 160; width++)
        check_width(&of_various, width);
}

static void everything_as_json(void **state)
{
    (void)state;
    check_json(&of_various, NULL,
               "{\"id\":\"nvidia1\",\"slot\":2,\"vendor\":\"nvidia\",\"index\":1,"
               "\"name\":\"NVIDIA A100-SXM4-80GB\",\"kind\":null,");
    check_json(&of_various, NULL, "\"kind\":\"integrated\",");
    check_json(&of_various, NULL, "\"kind\":\"discrete\",");
    check_json(&of_various, NULL,
               "\"health\":\"sick\",\"health_reason\":\"fell off the bus (XID 79)\","
               "\"asleep\":false,\"old\":true,");
    check_json(&of_various, NULL,
               "\"health\":\"ok\",\"health_reason\":null,\"asleep\":true,\"old\":false,");
    check_json(&of_various, NULL,
               "\"nodes\":[\"/dev/nvidia0\",\"/dev/nvidiactl\"],\"processes\":[{\"pid\":4711,"
               "\"user\":\"4000000000\",\"command\":\"python train.py --epochs 90 --data "
               "/srv/imagenet --batch-size 256\",\"memory\":64424509440,\"lease\":12,"
               "\"container\":\"0123456789abcdef0123456789abcdef\",\"uid\":4000000000,"
               "\"since\":null,\"squats\":null},"
               "{\"pid\":88,\"user\":null,\"command\":\"Xorg\\u001b[31m\",\"memory\":null,"
               "\"lease\":null,\"container\":null,\"uid\":null,\"since\":null,"
               "\"squats\":null}]}");
    check_json(&of_various, NULL,
               "\"problems\":[{\"backend\":\"nvidia\",\"message\":\"nvidia1: no answer within "
               "1s\"},{\"backend\":\"amd\\n\",\"message\":\"a\\u001bmessage\"}]}\n");
}

static void problems_are_a_line_each(void **state)
{
    struct text out = {0};

    (void)state;
    machine_source_write_problems(&of_various.problems, "berth: ", &out);
    assert_string_equal(text_string(&out), "berth: nvidia: nvidia1: no answer within 1s\n"
                                           "berth: amd\xef\xbf\xbd: a\xef\xbf\xbdmessage\n");
    text_finish(&out);
}

/* ---- Figures that make no sense ---- */

static void figures_from_a_liar(void **state)
{
    (void)state;
    single[0].load = (struct load){
        .memory_free = load_figure_sampled(INT64_MIN, INT64_MIN),
        .utilization = load_figure_sampled(INT64_MAX, INT64_MAX),
        .temperature = load_figure_sampled(-273150, NOW),
        .power = load_figure_sampled(INT64_MIN, NOW),
    };
    single[0].memory_total = optional_number_of(UINT64_MAX);
    single[0].old = true;
    single[0].health = (enum health)77;
    single[0].kind = (enum device_kind)77;
    check_width(&of_single, 200);
    check_json(&of_single, NULL, "\"kind\":null,");
    single[0] = (struct device){.id = single[0].id};
}

/* ---- Many devices ---- */

enum { MANY = 63, PARTITIONS = 8, LINKS_MANY = MANY * MANY };

static struct device many[MANY];
static struct link many_links[LINKS_MANY];

/* Eight GPUs of eight partitions each, except for the last one. Partitions of one GPU are linked
 * over its board, those of two GPUs by the fabric. */
static struct machine_report partitions(void)
{
    size_t count = 0;

    for (size_t i = 0; i < MANY; i++) {
        many[i] = (struct device){
            .id = {VENDOR_AMD, (uint32_t)i, DEVICE_NO_MIG},
            .name = (char *)"AMD Instinct MI300X",
            .memory_total = optional_number_of(24 * GIB),
            .health = HEALTH_OK,
        };
        for (size_t j = 0; j < i; j++)
            many_links[count++] = (struct link){
                .between = {j, i},
                .kind = i / PARTITIONS == j / PARTITIONS ? LINK_PSB : LINK_XGMI,
            };
    }
    return (struct machine_report){.machine = {.devices = {.items = many, .count = MANY},
                                               .links = {.items = many_links, .count = count}}};
}

static const char *after_the_devices(const struct text *out)
{
    const char *matrix = strstr(text_string(out), "\n\n");

    assert_non_null(matrix);
    return matrix + 2;
}

static void devices_that_are_alike_share_a_row(void **state)
{
    struct machine_report report = partitions();
    static const char wanted[] = "LINKS  DEVICES   A     B     C     D     E     F     G     H\n"
                                 "A      amd0-7    psb   xgmi  xgmi  xgmi  xgmi  xgmi  xgmi  xgmi\n"
                                 "B      amd8-15   xgmi  psb   xgmi  xgmi  xgmi  xgmi  xgmi  xgmi\n"
                                 "C      amd16-23  xgmi  xgmi  psb   xgmi  xgmi  xgmi  xgmi  xgmi\n"
                                 "D      amd24-31  xgmi  xgmi  xgmi  psb   xgmi  xgmi  xgmi  xgmi\n"
                                 "E      amd32-39  xgmi  xgmi  xgmi  xgmi  psb   xgmi  xgmi  xgmi\n"
                                 "F      amd40-47  xgmi  xgmi  xgmi  xgmi  xgmi  psb   xgmi  xgmi\n"
                                 "G      amd48-55  xgmi  xgmi  xgmi  xgmi  xgmi  xgmi  psb   xgmi\n"
                                 "H      amd56-62  xgmi  xgmi  xgmi  xgmi  xgmi  xgmi  xgmi  psb\n"
                                 "xgmi: Infinity Fabric; psb: same board\n";
    struct text out = words_of(&report, narrow);

    (void)state;
    assert_string_equal(after_the_devices(&out), wanted);
    text_finish(&out);
    out = words_of(&report, endless);
    assert_string_equal(after_the_devices(&out), wanted);
    text_finish(&out);
    for (size_t width = 60; width < 100; width++)
        check_width(&report, width);
}

static void all_alike_are_one_row(void **state)
{
    struct machine_report report = partitions();
    struct text out;

    (void)state;
    for (size_t i = 0; i < report.machine.links.count; i++)
        many_links[i].kind = LINK_XGMI;
    out = words_of(&report, narrow);
    assert_string_equal(after_the_devices(&out), "LINKS  DEVICES  A\n"
                                                 "A      amd0-62  xgmi\n"
                                                 "xgmi: Infinity Fabric\n");
    text_finish(&out);
}

static void ranges_end_where_numbers_do(void **state)
{
    static const struct device_id ids[] = {
        {VENDOR_NVIDIA, 0, 0},
        {VENDOR_NVIDIA, 0, 1},
        {VENDOR_NVIDIA, 0, 3},
        {VENDOR_NVIDIA, 1, 4},
        {VENDOR_NVIDIA, 2, DEVICE_NO_MIG},
        {VENDOR_AMD, 3, DEVICE_NO_MIG},
    };
    struct machine_report report = partitions();
    struct text out;

    (void)state;
    for (size_t i = 0; i < COUNT(ids); i++)
        many[10 + i].id = ids[i];
    for (size_t i = 0; i < report.machine.links.count; i++)
        many_links[i].kind = LINK_SYS;
    out = words_of(&report, endless);
    assert_string_equal(after_the_devices(&out),
                        "LINKS  DEVICES"
                        "                                                       A\n"
                        "A      amd0-9,nvidia0.0-1,nvidia0.3,nvidia1.4,nvidia2,amd3,amd16-62  sys\n"
                        "sys: across NUMA nodes\n");
    text_finish(&out);
}

/* ---- Memory ---- */

static void without_memory_the_text_says_so(void **state)
{
    struct machine_report report = partitions();
    const struct machine_report *const reports[] = {&of_various, &report};

    (void)state;
    for (size_t i = 0; i < COUNT(reports); i++) {
        bool refused = true;

        for (unsigned long n = 1; refused; n++) {
            struct user_names users = {0};
            const struct devices_picture picture = {
                .report = reports[i], .users = &users, .terminal = narrow, .now = NOW};
            struct text out = {0};

            failing_allocator_start(n);
            devices_write_table(&picture, &out);
            machine_source_write_problems(&reports[i]->problems, "", &out);
            refused = failing_allocator_stop();
            user_names_finish(&users);
            /* A user's name that cannot be looked up is a question mark. */
            if (refused && !text_failed(&out))
                assert_non_null(strstr(text_string(&out), "\nnvidia0  4711  ?"));
            text_finish(&out);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sampled_figures_carry_their_time),
        cmocka_unit_test(declared_figures_carry_none),
        cmocka_unit_test(slots_are_the_pools),
        cmocka_unit_test(everything_in_a_pipe),
        cmocka_unit_test(everything_on_a_narrow_terminal),
        cmocka_unit_test(nothing_is_wider_than_the_terminal),
        cmocka_unit_test(everything_as_json),
        cmocka_unit_test(problems_are_a_line_each),
        cmocka_unit_test(figures_from_a_liar),
        cmocka_unit_test(devices_that_are_alike_share_a_row),
        cmocka_unit_test(all_alike_are_one_row),
        cmocka_unit_test(ranges_end_where_numbers_do),
        cmocka_unit_test(without_memory_the_text_says_so),
    };

    return cmocka_run_group_tests_name("devices_output", tests, NULL, NULL);
}
