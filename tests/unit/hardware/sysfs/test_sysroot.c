/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/sysfs/sysroot.h"

#include <errno.h>

#include "support/failing_allocator.h"
#include "support/hardware/made_up_machine.h"

static void the_machine_itself_has_no_prefix(void **state)
{
    struct sysroot root;

    (void)state;
    unsetenv("BERTH_SYSROOT");
    assert_int_equal(sysroot_init(&root, NULL), 0);
    assert_string_equal(root.prefix, "");
    assert_false(root.recorded);
    assert_true(sysroot_has(&root, "/proc/self"));
    sysroot_finish(&root);

    setenv("BERTH_SYSROOT", "", 1);
    assert_int_equal(sysroot_init(&root, NULL), 0);
    assert_false(root.recorded);
    sysroot_finish(&root);
}

static void a_recorded_machine_is_below_its_directory(void **state)
{
    const char *directory = *state;
    char *real = realpath(directory, NULL);
    struct sysroot root;
    char *given;

    assert_string_equal(machine.prefix, real);
    assert_true(machine.recorded);
    assert_true(asprintf(&given, "%s///", directory) > 0);
    setenv("BERTH_SYSROOT", given, 1);
    assert_int_equal(sysroot_init(&root, NULL), 0);
    assert_string_equal(root.prefix, real);
    sysroot_finish(&root);
    free(given);
    free(real);
}

static void a_root_that_is_not_there_is_empty(void **state)
{
    struct string_list names = {0};
    struct sysroot_value value;
    struct sysroot root;

    (void)state;
    setenv("BERTH_SYSROOT", "/nowhere/at/all/", 1);
    assert_int_equal(sysroot_init(&root, NULL), 0);
    assert_string_equal(root.prefix, "/nowhere/at/all");
    assert_true(root.recorded);
    assert_false(sysroot_has(&root, "/"));
    assert_int_equal(sysroot_read(&root, &value, "/proc/stat"), -ENOENT);
    assert_int_equal(sysroot_list(&root, &names, "/"), -ENOENT);
    sysroot_finish(&root);
}

static void the_root_directory_may_be_recorded(void **state)
{
    struct sysroot root;
    char *path;

    (void)state;
    setenv("BERTH_SYSROOT", "/", 1);
    assert_int_equal(sysroot_init(&root, NULL), 0);
    assert_true(root.recorded);
    assert_string_equal(root.prefix, "");
    path = sysroot_resolve(&root, "/proc");
    assert_string_equal(path, "/proc");
    free(path);
    sysroot_finish(&root);
}

static void check_value(const char *bytes, size_t length, const char *wanted, size_t wanted_length)
{
    struct sysroot_value value;

    machine_bytes("/value", bytes, length);
    assert_int_equal(sysroot_read(&machine, &value, "/%s", "value"), 0);
    assert_int_equal(value.length, wanted_length);
    assert_memory_equal(value.text, wanted, wanted_length + 1);
}

static void values_lose_what_is_blank_at_their_end(void **state)
{
    (void)state;
    check_value("i915\n", 5, "i915", 4);
    check_value(" a b \t\r\n\n", 9, " a b", 4);
    check_value("", 0, "", 0);
    check_value("\n\n", 2, "", 0);
    check_value("a\0b\0", 4, "a\0b", 3);
    check_value("one", 3, "one", 3);
}

static void long_values_are_cut(void **state)
{
    char bytes[3 * SYSROOT_VALUE_SIZE];
    struct sysroot_value value;

    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    machine_bytes("/value", bytes, sizeof(bytes));
    assert_int_equal(sysroot_read(&machine, &value, "/value"), 0);
    assert_int_equal(value.length, SYSROOT_VALUE_SIZE - 1);
    assert_int_equal(strlen(value.text), SYSROOT_VALUE_SIZE - 1);
}

static void what_cannot_be_read_says_why(void **state)
{
    char name[8192];
    struct sysroot_value value;

    (void)state;
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    machine_directory("/directory");
    assert_int_equal(sysroot_read(&machine, &value, "/none"), -ENOENT);
    assert_string_equal(value.text, "");
    assert_int_equal(sysroot_read(&machine, &value, "/directory"), -EISDIR);
    assert_int_equal(sysroot_read(&machine, &value, "/%s", name), -ENAMETOOLONG);
    assert_int_equal(value.length, 0);
    assert_false(sysroot_has(&machine, "/%s", name));
    assert_null(sysroot_resolve(&machine, "/%s", name));
    assert_null(sysroot_link_name(&machine, "/%s", name));
    assert_false(sysroot_number(&machine, "/%s", name).known);
}

static void long_files_are_read_up_to_a_bound(void **state)
{
    struct text text = {0};

    (void)state;
    machine_file("/long", "0123456789");
    text_append(&text, "before ");
    assert_int_equal(sysroot_read_text(&machine, 4, &text, "/long"), 0);
    assert_string_equal(text_string(&text), "before 0123");
    assert_int_equal(sysroot_read_text(&machine, 100, &text, "/long"), 0);
    assert_string_equal(text_string(&text), "before 01230123456789");
    assert_int_equal(sysroot_read_text(&machine, 100, &text, "/none"), -ENOENT);
    assert_string_equal(text_string(&text), "before 01230123456789");
    failing_allocator_start(1);
    assert_int_equal(sysroot_read_text(&machine, 1000000, &text, "/long"), -ENOMEM);
    assert_true(failing_allocator_stop());
    text_finish(&text);
}

struct number_case {
    const char *content;
    bool known;
    uint64_t value;
};

static void numbers_are_digits_and_nothing_else(void **state)
{
    static const struct number_case cases[] = {
        {"0\n", true, 0},
        {"42\n", true, 42},
        {"0x8086\n", true, 0x8086},
        {"0xABcd", true, 0xabcd},
        {"18446744073709551615", true, UINT64_MAX},
        {"0xffffffffffffffff", true, UINT64_MAX},
        {"007", true, 7},
        {"18446744073709551616", false, 0},
        {"0x10000000000000000", false, 0},
        {"", false, 0},
        {"\n", false, 0},
        {"0x", false, 0},
        {"0x0x1", false, 0},
        {"0x-1", false, 0},
        {"-1", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 2", false, 0},
        {"1,2,3", false, 0},
        {"12ab", false, 0},
        {"nan", false, 0},
        {"1e3", false, 0},
        {"1.5", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct optional_number number;

        machine_file("/number", cases[i].content);
        number = sysroot_number(&machine, "/number");
        assert_int_equal(number.known, cases[i].known);
        if (cases[i].known)
            assert_int_equal(number.value, cases[i].value);
    }
    machine_bytes("/number",
                  "1\0"
                  "2",
                  3);
    assert_false(sysroot_number(&machine, "/number").known);
    assert_false(sysroot_number(&machine, "/none").known);
    assert_false(sysroot_number(&machine, "/").known);
}

static void hexadecimal_numbers_need_no_prefix_and_take_none(void **state)
{
    (void)state;
    machine_file("/number", "0213f5b6a2f6ab5c\n");
    assert_true(sysroot_hexadecimal(&machine, "/number").known);
    assert_int_equal(sysroot_hexadecimal(&machine, "/number").value, 0x0213f5b6a2f6ab5c);
    machine_file("/number", "0x12\n");
    assert_false(sysroot_hexadecimal(&machine, "/number").known);
    machine_file("/number", "12g\n");
    assert_false(sysroot_hexadecimal(&machine, "/number").known);
}

static void signed_numbers_may_be_negative(void **state)
{
    int64_t number = 5;

    (void)state;
    machine_file("/number", "-1\n");
    assert_true(sysroot_signed(&machine, &number, "/number"));
    assert_int_equal(number, -1);
    machine_file("/number", "9223372036854775807");
    assert_true(sysroot_signed(&machine, &number, "/number"));
    assert_int_equal(number, INT64_MAX);
    machine_file("/number", "9223372036854775808");
    assert_false(sysroot_signed(&machine, &number, "/number"));
    machine_file("/number", "--1");
    assert_false(sysroot_signed(&machine, &number, "/number"));
    machine_file("/number", "-");
    assert_false(sysroot_signed(&machine, &number, "/number"));
    machine_file("/number", "-0x1");
    assert_false(sysroot_signed(&machine, &number, "/number"));
    assert_int_equal(number, INT64_MAX);
}

static void names_come_in_the_order_of_their_numbers(void **state)
{
    struct string_list names = {0};

    (void)state;
    machine_directory("/list/card10");
    machine_directory("/list/card2");
    machine_directory("/list/.hidden");
    machine_file("/list/version", "");
    assert_int_equal(string_list_append(&names, "zzz"), 0);
    assert_int_equal(sysroot_list(&machine, &names, "/%s", "list"), 0);
    assert_int_equal(names.count, 4);
    assert_string_equal(names.items[0], "zzz");
    assert_string_equal(names.items[1], "card2");
    assert_string_equal(names.items[2], "card10");
    assert_string_equal(names.items[3], "version");
    assert_int_equal(sysroot_list(&machine, &names, "/list/version"), -ENOTDIR);
    string_list_finish(&names);
}

static void links_have_names_even_where_they_lead_nowhere(void **state)
{
    char *name;

    (void)state;
    machine_link("/device/driver", "/sys/bus/pci/drivers/amdgpu");
    machine_link("/device/slashes", "/sys/bus/pci/drivers/xe///");
    machine_file("/device/file", "amdgpu");
    assert_int_equal(symlink("bare", "device/bare"), 0);
    name = sysroot_link_name(&machine, "/device/driver");
    assert_string_equal(name, "amdgpu");
    free(name);
    name = sysroot_link_name(&machine, "/device/slashes");
    assert_string_equal(name, "xe");
    free(name);
    name = sysroot_link_name(&machine, "/device/bare");
    assert_string_equal(name, "bare");
    free(name);
    assert_null(sysroot_link_name(&machine, "/device/file"));
    assert_null(sysroot_link_name(&machine, "/device/none"));
}

static void paths_resolve_to_the_machines_own(void **state)
{
    char *path;

    (void)state;
    machine_directory("/sys/devices/pci0000:00/0000:00:02.0");
    machine_link("/sys/class/drm/card0", "/sys/devices/pci0000:00/0000:00:02.0");
    path = sysroot_resolve(&machine, "/sys/class/drm/card%d", 0);
    assert_string_equal(path, "/sys/devices/pci0000:00/0000:00:02.0");
    free(path);
    assert_null(sysroot_resolve(&machine, "/sys/class/drm/card1"));
}

static void links_out_of_the_machine_lead_nowhere(void **state)
{
    char *sibling;

    assert_int_equal(symlink("/proc", "absolute"), 0);
    assert_int_equal(symlink("../../../../../../../../proc", "upward"), 0);
    assert_int_equal(symlink("loop", "loop"), 0);
    assert_null(sysroot_resolve(&machine, "/absolute"));
    assert_null(sysroot_resolve(&machine, "/upward"));
    assert_null(sysroot_resolve(&machine, "/loop"));
    assert_null(sysroot_resolve(&machine, "/..")); /* its own parent */

    /* A directory beside the root whose name begins with the root's. */
    assert_true(asprintf(&sibling, "%s-neighbour", (const char *)*state) > 0);
    assert_int_equal(mkdir(sibling, 0755), 0);
    assert_int_equal(symlink(sibling, "sideways"), 0);
    assert_null(sysroot_resolve(&machine, "/sideways"));
    assert_int_equal(rmdir(sibling), 0);
    free(sibling);
}

static void looking_opens_nothing(void **state)
{
    (void)state;
    assert_int_equal(mkfifo("fifo", 0600), 0); /* opening it would block */
    assert_true(sysroot_has(&machine, "/fifo"));
    assert_false(sysroot_has(&machine, "/none"));
    assert_int_equal(symlink("none", "dangling"), 0);
    assert_false(sysroot_has(&machine, "/dangling"));
}

#define MACHINE_TEST(function) \
    cmocka_unit_test_setup_teardown(function, machine_enter, machine_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MACHINE_TEST(the_machine_itself_has_no_prefix),
        MACHINE_TEST(a_recorded_machine_is_below_its_directory),
        MACHINE_TEST(a_root_that_is_not_there_is_empty),
        MACHINE_TEST(the_root_directory_may_be_recorded),
        MACHINE_TEST(values_lose_what_is_blank_at_their_end),
        MACHINE_TEST(long_values_are_cut),
        MACHINE_TEST(what_cannot_be_read_says_why),
        MACHINE_TEST(long_files_are_read_up_to_a_bound),
        MACHINE_TEST(numbers_are_digits_and_nothing_else),
        MACHINE_TEST(hexadecimal_numbers_need_no_prefix_and_take_none),
        MACHINE_TEST(signed_numbers_may_be_negative),
        MACHINE_TEST(names_come_in_the_order_of_their_numbers),
        MACHINE_TEST(links_have_names_even_where_they_lead_nowhere),
        MACHINE_TEST(paths_resolve_to_the_machines_own),
        MACHINE_TEST(links_out_of_the_machine_lead_nowhere),
        MACHINE_TEST(looking_opens_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
