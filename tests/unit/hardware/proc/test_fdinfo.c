/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "hardware/proc/fdinfo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/text/text.h"
#include "support/exact_copy.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

static struct fdinfo parse_bytes(const char *bytes, size_t length)
{
    char *copy = exact_copy(bytes, length);
    struct fdinfo fdinfo;

    memset(&fdinfo, 0xAA, sizeof(fdinfo));
    fdinfo_parse(copy, length, &fdinfo);
    free(copy);
    return fdinfo;
}

static struct fdinfo parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

static const struct fdinfo_engine *engine_of(const struct fdinfo *fdinfo, const char *name)
{
    for (size_t i = 0; i < fdinfo->engine_count; i++) {
        if (strcmp(fdinfo->engines[i].name, name) == 0)
            return &fdinfo->engines[i];
    }
    fail_msg("no engine %s", name);
    return NULL;
}

static void i915_tells_time_and_local_memory(void **state)
{
    struct fdinfo fdinfo = parse("pos:\t0\n"
                                 "flags:\t02100002\n"
                                 "mnt_id:\t27\n"
                                 "ino:\t889\n"
                                 "drm-driver:\ti915\n"
                                 "drm-client-id:\t59\n"
                                 "drm-pdev:\t0000:03:00.0\n"
                                 "drm-total-system0:\t900 KiB\n"
                                 "drm-resident-system0:\t800 KiB\n"
                                 "drm-total-local0:\t3 MiB\n"
                                 "drm-shared-local0:\t1 MiB\n"
                                 "drm-active-local0:\t0\n"
                                 "drm-resident-local0:\t2 MiB\n"
                                 "drm-purgeable-local0:\t0\n"
                                 "drm-resident-stolen-local0:\t4 KiB\n"
                                 "drm-resident-stolen-system0:\t8 KiB\n"
                                 "drm-engine-render:\t25662044495 ns\n"
                                 "drm-engine-copy:\t0 ns\n"
                                 "drm-engine-video:\t42 ns\n"
                                 "drm-engine-capacity-video:\t2\n");

    (void)state;
    assert_true(fdinfo.is_drm);
    assert_true(fdinfo.client.known);
    assert_int_equal(fdinfo.client.value, 59);
    assert_string_equal(pci_format(fdinfo.pci).text, "0000:03:00.0");
    assert_true(fdinfo.memory.known);
    assert_int_equal(fdinfo.memory.value, 2 * MIB + 4 * KIB);
    assert_int_equal(fdinfo.engine_count, 3);
    assert_int_equal(engine_of(&fdinfo, "render")->busy.value, 25662044495);
    assert_int_equal(engine_of(&fdinfo, "render")->capacity, 1);
    assert_true(engine_of(&fdinfo, "copy")->busy.known);
    assert_int_equal(engine_of(&fdinfo, "copy")->busy.value, 0);
    assert_int_equal(engine_of(&fdinfo, "video")->capacity, 2);
    assert_false(engine_of(&fdinfo, "video")->cycles.known);
}

static void xe_tells_cycles_and_several_memories(void **state)
{
    struct fdinfo fdinfo = parse("drm-driver:\txe\n"
                                 "drm-client-id:\t7\n"
                                 "drm-pdev:\t0000:4d:00.0\n"
                                 "drm-total-system:\t0\n"
                                 "drm-total-gtt:\t192 KiB\n"
                                 "drm-resident-gtt:\t192 KiB\n"
                                 "drm-total-vram0:\t23992 KiB\n"
                                 "drm-resident-vram0:\t23990 KiB\n"
                                 "drm-resident-vram1:\t10 KiB\n"
                                 "drm-resident-stolen:\t1 KiB\n"
                                 "drm-cycles-rcs:\t28257900\n"
                                 "drm-total-cycles-rcs:\t7655183225\n"
                                 "drm-cycles-vcs:\t0\n"
                                 "drm-total-cycles-vcs:\t7655183225\n"
                                 "drm-engine-capacity-vcs:\t2\n");

    (void)state;
    assert_int_equal(fdinfo.memory.value, 24000 * KIB);
    assert_int_equal(fdinfo.engine_count, 2);
    assert_false(engine_of(&fdinfo, "rcs")->busy.known);
    assert_int_equal(engine_of(&fdinfo, "rcs")->cycles.value, 28257900);
    assert_int_equal(engine_of(&fdinfo, "rcs")->total_cycles.value, 7655183225);
    assert_int_equal(engine_of(&fdinfo, "vcs")->capacity, 2);
}

static void amdgpu_of_old_and_new_tells_vram(void **state)
{
    struct fdinfo old = parse("drm-driver:\tamdgpu\n"
                              "drm-client-id:\t3\n"
                              "drm-pdev:\t0000:03:00.0\n"
                              "pasid:\t32770\n"
                              "drm-memory-vram:\t1024 KiB\n"
                              "drm-memory-gtt: \t5120 KiB\n"
                              "drm-memory-cpu: \t64 KiB\n"
                              "amd-memory-visible-vram:\t512 KiB\n"
                              "drm-engine-gfx:\t100 ns\n");
    struct fdinfo both = parse("drm-memory-vram:\t1 KiB\n"
                               "drm-total-vram:\t3 KiB\n"
                               "drm-resident-vram:\t2 KiB\n");
    struct fdinfo total = parse("drm-total-vram:\t3 KiB\n");

    (void)state;
    assert_int_equal(old.memory.value, 1024 * KIB);
    assert_int_equal(both.memory.value, 2 * KIB);
    assert_int_equal(total.memory.value, 3 * KIB);
}

static void an_integrated_one_has_what_is_resident_anywhere(void **state)
{
    struct fdinfo i915 = parse("drm-resident-system0:\t800 KiB\n"
                               "drm-resident-stolen-system0:\t8 KiB\n");
    struct fdinfo panfrost = parse("drm-total-memory:\t9 KiB\ndrm-resident-memory:\t7 KiB\n");

    (void)state;
    assert_int_equal(i915.memory.value, 808 * KIB);
    assert_int_equal(panfrost.memory.value, 7 * KIB);
}

static void memory_of_its_own_that_is_not_told_is_unknown(void **state)
{
    struct fdinfo fdinfo = parse("drm-resident-gtt:\t8 KiB\ndrm-resident-vram:\tmuch\n");

    (void)state;
    assert_false(fdinfo.memory.known);
}

static void any_other_file_says_nothing(void **state)
{
    static const char *const texts[] = {
        "",
        "\n",
        "pos:\t0\nflags:\t02\nmnt_id:\t9\n",
        "eventfd-count: 0\n",
        ":\n",
        "drm-driver:\n",
        "drm-driver\n",
        "xdrm-driver: i915\n",
        " drm-driver: i915\n",
        "drm-drivers: i915\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct fdinfo fdinfo = parse(texts[i]);

        assert_false(fdinfo.is_drm);
        assert_false(fdinfo.client.known);
        assert_false(fdinfo.memory.known);
        assert_false(fdinfo.pci.known);
        assert_int_equal(fdinfo.engine_count, 0);
    }
}

static void numbers_that_are_none_are_unknown(void **state)
{
    static const char *const values[] = {
        "",
        "-1",
        "+1",
        "0x10",
        "1.5",
        "18446744073709551616",
        "99999999999999999999999",
        "1 2",
        "1e3",
        "nan",
        "one",
        "1\x01",
        "1 ms",
        "1 KiB",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(values); i++) {
        char text[256];
        struct fdinfo fdinfo;

        snprintf(text, sizeof(text), "drm-client-id: %s\ndrm-engine-a: %s\ndrm-cycles-a: %s\n",
                 values[i], values[i], values[i]);
        fdinfo = parse(text);
        assert_false(fdinfo.client.known);
        assert_int_equal(fdinfo.engine_count, 1);
        assert_false(fdinfo.engines[0].busy.known);
        assert_false(fdinfo.engines[0].cycles.known);
    }
    assert_int_equal(parse("drm-client-id: 18446744073709551615\n").client.value, UINT64_MAX);
}

static void sizes_that_do_not_fit_are_unknown(void **state)
{
    (void)state;
    assert_false(parse("drm-resident-vram: 18446744073709551615 KiB\n").memory.known);
    assert_false(parse("drm-resident-vram: 17592186044416 MiB\n").memory.known);
    assert_false(parse("drm-resident-vram: 1 GiB\n").memory.known);
    assert_false(parse("drm-resident-vram: 1 kib\n").memory.known);
    assert_false(parse("drm-resident-vram0: 18446744073709551615\n"
                       "drm-resident-vram1: 1\n")
                     .memory.known);
    assert_int_equal(parse("drm-resident-vram: 17592186044415 MiB\n").memory.value,
                     17592186044415 * MIB);
    assert_int_equal(parse("drm-resident-vram:5KiB \t\n").memory.value, 5 * KIB);
}

static void the_first_of_two_lines_holds(void **state)
{
    struct fdinfo fdinfo = parse("drm-client-id: 1\ndrm-client-id: 2\n"
                                 "drm-pdev: 0000:01:00.0\ndrm-pdev: 0000:02:00.0\n"
                                 "drm-engine-a: 1 ns\ndrm-engine-a: 2 ns\n"
                                 "drm-engine-capacity-a: 3\ndrm-engine-capacity-a: 4\n"
                                 "drm-resident-vram: 1\ndrm-resident-vram: 2\n");

    (void)state;
    assert_int_equal(fdinfo.client.value, 1);
    assert_int_equal(fdinfo.pci.bus, 1);
    assert_int_equal(fdinfo.engine_count, 1);
    assert_int_equal(fdinfo.engines[0].busy.value, 1);
    assert_int_equal(fdinfo.engines[0].capacity, 3);
    assert_int_equal(fdinfo.memory.value, 1);
}

static void a_line_that_was_cut_is_left_out(void **state)
{
    struct fdinfo fdinfo = parse("drm-client-id: 1\ndrm-resident-vram: 12");

    (void)state;
    assert_int_equal(fdinfo.client.value, 1);
    assert_false(fdinfo.memory.known);
}

static void capacities_are_within_reason(void **state)
{
    (void)state;
    assert_int_equal(parse("drm-engine-capacity-a: 0\n").engines[0].capacity, 1);
    assert_int_equal(parse("drm-engine-capacity-a: 1025\n").engines[0].capacity, 1);
    assert_int_equal(parse("drm-engine-capacity-a: 1024\n").engines[0].capacity, 1024);
    assert_int_equal(parse("drm-engine-capacity-a: 2 ns\n").engines[0].capacity, 1);
}

static void names_are_short_and_visible(void **state)
{
    static const char zero[] = "drm-engine-a\0b: 1 ns\n";
    static const char *const texts[] = {
        "drm-engine-: 1 ns\n",
        "drm-engine-a b: 1 ns\n",
        "drm-engine-\x1b[0m: 1 ns\n",
        "drm-engine-\xc3\xbc: 1 ns\n",
        "drm-engine-12345678901234567890123456789012: 1 ns\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++)
        assert_int_equal(parse(texts[i]).engine_count, 0);
    assert_int_equal(parse_bytes(zero, sizeof(zero) - 1).engine_count, 0);
    assert_int_equal(parse("drm-engine-1234567890123456789012345678901: 1 ns\n").engine_count, 1);
}

static void there_is_a_bound_to_engines_and_regions(void **state)
{
    struct text text = {0};
    struct fdinfo fdinfo;

    (void)state;
    for (int i = 0; i < 1000; i++)
        text_append_format(&text, "drm-engine-e%d: 1 ns\ndrm-resident-vram%d: 1\n", i, i);
    fdinfo = parse_bytes(text.bytes, text.length);
    assert_int_equal(fdinfo.engine_count, FDINFO_ENGINES_MAX);
    assert_int_equal(fdinfo.memory.value, 32);
    text_finish(&text);
}

static void addresses_that_are_none_are_unknown(void **state)
{
    (void)state;
    assert_false(parse("drm-pdev: 0000:03:00\n").pci.known);
    assert_false(parse("drm-pdev: 0000:03:00.0 x\n").pci.known);
    assert_false(parse("drm-pdev:\n").pci.known);
    assert_int_equal(parse("drm-pdev: 10000:03:1f.7\n").pci.domain, 0x10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(i915_tells_time_and_local_memory),
        cmocka_unit_test(xe_tells_cycles_and_several_memories),
        cmocka_unit_test(amdgpu_of_old_and_new_tells_vram),
        cmocka_unit_test(an_integrated_one_has_what_is_resident_anywhere),
        cmocka_unit_test(memory_of_its_own_that_is_not_told_is_unknown),
        cmocka_unit_test(any_other_file_says_nothing),
        cmocka_unit_test(numbers_that_are_none_are_unknown),
        cmocka_unit_test(sizes_that_do_not_fit_are_unknown),
        cmocka_unit_test(the_first_of_two_lines_holds),
        cmocka_unit_test(a_line_that_was_cut_is_left_out),
        cmocka_unit_test(capacities_are_within_reason),
        cmocka_unit_test(names_are_short_and_visible),
        cmocka_unit_test(there_is_a_bound_to_engines_and_regions),
        cmocka_unit_test(addresses_that_are_none_are_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
