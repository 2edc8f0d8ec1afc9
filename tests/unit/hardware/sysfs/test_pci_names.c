/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/sysfs/pci_names.h"

#include "base/count.h"
#include "support/failing_allocator.h"
#include "support/hardware/made_up_machine.h"

static const char sample[] = "# a comment\n"
                             "\n"
                             "0e11  Compaq Computer Corporation\n"
                             "\t0001  PCI to EISA Bridge\n"
                             "1002  Advanced Micro Devices, Inc. [AMD/ATI]\n"
                             "# a comment within\n"
                             "\t687f  Vega 10 XL/XT [Radeon RX Vega 56/64]\n"
                             "\t\t1043 04c4  ROG STRIX\n"
                             "\t\t8086 5912  Not a device\n"
                             "\t73bf  AMD Navi 21\n"
                             "10de  NVIDIA Corporation\n"
                             "\t20b0  GA100 [A100 SXM4 40GB]\n"
                             "8086  Intel Corporation\n"
                             "\t5912  HD Graphics 630\n"
                             "\t56a0  DG2 [Arc A770]\n"
                             "\t0001  Odd ] [brackets\n"
                             "\t0002  Empty []\n"
                             "\t0003  Two [of] them [here]  \r\n"
                             "abcd  Some Vendor [Short]\n"
                             "\t0001  Thing\n"
                             "beef  Meat Ltd.\n"
                             "\t0001  Steak [Meat Ltd. Steak]\n"
                             "C 03  Display controller\n"
                             "\t0001  Not a device of anybody\n";

static void check_name(uint32_t vendor, uint32_t device, const char *wanted)
{
    struct text content = {0};
    struct pci_name_table ids;
    char *name;

    text_append_bytes(&content, sample, sizeof(sample) - 1);
    assert_int_equal(pci_name_table_init(&ids, &content), 0);
    name = pci_name_table_find(&ids, vendor, device);
    assert_string_equal(name, wanted);
    free(name);
    pci_name_table_finish(&ids);
}

static void names_are_those_on_the_box(void **state)
{
    (void)state;
    check_name(0x1002, 0x687f, "AMD Radeon RX Vega 56/64");
    check_name(0x1002, 0x73bf, "AMD Navi 21");
    check_name(0x10de, 0x20b0, "NVIDIA A100 SXM4 40GB");
    check_name(0x8086, 0x5912, "Intel HD Graphics 630");
    check_name(0x8086, 0x56a0, "Intel Arc A770");
    check_name(0x8086, 0x0001, "Intel Odd ] [brackets");
    check_name(0x8086, 0x0002, "Intel Empty []");
    check_name(0x8086, 0x0003, "Intel here");
    check_name(0xabcd, 0x0001, "Short Thing");
    check_name(0xbeef, 0x0001, "Meat Ltd. Steak");
    check_name(0x0e11, 0x0001, "Compaq Computer Corporation PCI to EISA Bridge");
}

static void what_is_not_listed_is_told_by_number(void **state)
{
    (void)state;
    check_name(0x1002, 0x04c4, "AMD Device 04c4"); /* a board, not a device */
    check_name(0x1002, 0x0001, "AMD Device 0001");
    check_name(0xabcd, 0x0002, "Short Device 0002");
    check_name(0xbeef, 0x0002, "Meat Ltd. Device 0002");
    check_name(0x5555, 0x0001, "Device 5555:0001");
    check_name(0x0003, 0x0001, "Device 0003:0001"); /* a class */
}

static void check_hostile(const char *bytes, size_t length, const char *wanted)
{
    struct text content = {0};
    struct pci_name_table ids;
    char *name;

    text_append_bytes(&content, bytes, length);
    assert_int_equal(pci_name_table_init(&ids, &content), 0);
    name = pci_name_table_find(&ids, 0x1002, 0x687f);
    assert_string_equal(name, wanted);
    free(name);
    pci_name_table_finish(&ids);
}

#define HOSTILE(text, wanted) check_hostile(text, sizeof(text) - 1, wanted)

static void hostile_files_do_no_harm(void **state)
{
    char endless[100000];
    char wanted[200] = "AMD ";

    (void)state;
    HOSTILE("", "AMD Device 687f");
    HOSTILE("1002  ", "AMD Device 687f");
    HOSTILE("1002  \n\t687f  ", "AMD Device 687f");
    HOSTILE("1002  A\n\t687f  no end", "AMD no end");
    HOSTILE("1002  A\n\t687f \n\t687f  second", "AMD second");
    HOSTILE("1002  A\n\t687F  upper\n", "AMD Device 687f");
    HOSTILE("1002  A\n\t687f  \x1b[2Jboo\x01\xff\n",
            "AMD \xef\xbf\xbd[2Jboo\xef\xbf\xbd\xef\xbf\xbd");
    HOSTILE("1002  A\n\t687f  zero\0byte\n", "AMD zero");
    HOSTILE("\t687f  before any vendor\n", "AMD Device 687f");
    HOSTILE("1002  A\nnonsense\n\t687f  after its end\n", "AMD Device 687f");

    memset(endless, 'x', sizeof(endless));
    memcpy(endless, "1002  A\n\t687f  ", 15);
    memset(wanted + 4, 'x', 120);
    check_hostile(endless, sizeof(endless), wanted);
}

static char *name_below(const char *vendor, const char *device)
{
    machine_value("/device", "vendor", vendor);
    machine_value("/device", "device", device);
    return pci_name(&machine, "/device");
}

static void the_recorded_machine_comes_first(void **state)
{
    char *name;

    (void)state;
    machine_file("/usr/share/hwdata/pci.ids", "1002  A\n\t687f  Recorded\n");
    name = name_below("0x1002", "0x687f");
    assert_string_equal(name, "AMD Recorded");
    free(name);

    /* It is read once. */
    machine_file("/usr/share/hwdata/pci.ids", "1002  A\n\t687f  Changed\n");
    name = name_below("0x1002", "0x687f");
    assert_string_equal(name, "AMD Recorded");
    free(name);

    pci_names_finish();
    machine_file("/usr/share/misc/pci.ids", "1002  A\n\t687f  Preferred\n");
    name = name_below("0x1002", "0x687f");
    assert_string_equal(name, "AMD Preferred");
    free(name);
    pci_names_finish();
}

static void a_uevent_tells_the_ids_where_nothing_else_does(void **state)
{
    static const char *const lies[] = {"PCI_ID=", "PCI_ID=1002", "PCI_ID=x:y", "DRIVER=amdgpu", ""};
    char *name;

    (void)state;
    machine_file("/usr/share/misc/pci.ids", sample);
    machine_value("/device", "uevent", "DRIVER=amdgpu\nPCI_ID=1002:687F\nPCI_SUBSYS_ID=1043:04C4");
    name = pci_name(&machine, "/device");
    assert_string_equal(name, "AMD Radeon RX Vega 56/64");
    free(name);
    for (size_t i = 0; i < COUNT(lies); i++) {
        machine_value("/device", "uevent", lies[i]);
        assert_null(pci_name(&machine, "/device"));
    }
    pci_names_finish();
}

static void many_models_have_their_own_names(void **state)
{
    struct text content = {0};

    (void)state;
    text_append(&content, "1002  A\n");
    for (int i = 0; i < 200; i++)
        text_append_format(&content, "\t%04x  Model %d\n", i, i);
    machine_file("/usr/share/misc/pci.ids", text_string(&content));
    text_finish(&content);
    for (int i = 0; i < 600; i++) {
        char wanted[32];
        char *name = pci_name_by_ids(&machine, 0x1002, (uint32_t)(i % 200));

        snprintf(wanted, sizeof(wanted), "AMD Model %d", i % 200);
        assert_string_equal(name, wanted);
        free(name);
    }
    pci_names_finish();
}

static void devices_without_ids_have_no_name(void **state)
{
    (void)state;
    machine_directory("/device");
    assert_null(pci_name(&machine, "/device"));
    machine_value("/device", "vendor", "0x1002");
    assert_null(pci_name(&machine, "/device"));
    assert_null(name_below("0x1002", "what"));
    assert_null(name_below("0x11002", "0x687f"));
    assert_null(name_below("0x1002", "0x1687f"));
    pci_names_finish();
}

static void failed_allocations_leave_no_name(void **state)
{
    bool refused = true;

    (void)state;
    machine_file("/usr/share/misc/pci.ids", sample);
    for (unsigned long n = 1; refused; n++) {
        char *name;

        pci_names_finish();
        machine_value("/device", "vendor", "0x1002");
        machine_value("/device", "device", "0x687f");
        failing_allocator_start(n);
        name = pci_name(&machine, "/device");
        refused = failing_allocator_stop();
        assert_true(name != NULL || refused);
        if (name != NULL)
            assert_string_equal(name, "AMD Radeon RX Vega 56/64");
        free(name);
    }
    pci_names_finish();
}

#define MACHINE_TEST(function) \
    cmocka_unit_test_setup_teardown(function, machine_enter, machine_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_those_on_the_box),
        cmocka_unit_test(what_is_not_listed_is_told_by_number),
        cmocka_unit_test(hostile_files_do_no_harm),
        MACHINE_TEST(the_recorded_machine_comes_first),
        MACHINE_TEST(a_uevent_tells_the_ids_where_nothing_else_does),
        MACHINE_TEST(many_models_have_their_own_names),
        MACHINE_TEST(devices_without_ids_have_no_name),
        MACHINE_TEST(failed_allocations_leave_no_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
