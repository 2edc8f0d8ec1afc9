/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/text/table.h"

#include <berth/error.h>
#include <string.h>

#include "base/count.h"
#include "support/aborts.h"
#include "support/failing_allocator.h"

static const struct terminal unlimited = {.unicode = true};

/* Prints a table of `cells`, row by row, and compares the output. */
static void check(const struct table_column *columns, size_t column_count, const char *const *cells,
                  size_t cell_count, const struct terminal *terminal, const char *wanted)
{
    struct table table;
    struct text text = {0};

    table_init(&table, columns, column_count);
    for (size_t i = 0; i < cell_count; i++)
        table_cell(&table, cells[i]);
    assert_int_equal(table_print(&table, terminal, &text), 0);
    assert_string_equal(text_string(&text), wanted);
    text_finish(&text);
    table_finish(&table);
}

#define CHECK(columns, cells, terminal, wanted) \
    check(columns, COUNT(columns), cells, COUNT(cells), terminal, wanted)

static const struct table_column devices[] = {
    {.heading = "DEVICE", .priority = TABLE_ALWAYS},
    {.heading = "MEMORY", .right = true, .priority = 20},
    {.heading = "HOLDER", .min = 4, .priority = 30},
    {.heading = "NOTE", .hide_unknown = true, .priority = 10},
};

static void lines_up(void **state)
{
    static const char *const cells[] = {
        "nvidia0", "80 GiB", "anna", "", "amd0", "512 MiB", "", "slow", "漢字", NULL, NULL, NULL,
    };

    (void)state;
    CHECK(devices, cells, &unlimited,
          "DEVICE    MEMORY  HOLDER  NOTE\n"
          "nvidia0   80 GiB  anna\n"
          "amd0     512 MiB          slow\n"
          "漢字           -  -       -\n");
}

static void shows_headings_alone(void **state)
{
    (void)state;
    check(devices, COUNT(devices), NULL, 0, &unlimited, "DEVICE  MEMORY  HOLDER  NOTE\n");
}

static void hides_what_nobody_knows(void **state)
{
    static const char *const cells[] = {"a", NULL, "x", NULL, "b", NULL, "y", NULL};
    static const struct table_column only_unknown[] = {{.heading = "A", .hide_unknown = true}};
    static const char *const nothing[] = {NULL, NULL};

    (void)state;
    CHECK(devices, cells, &unlimited,
          "DEVICE  MEMORY  HOLDER\n"
          "a            -  x\n"
          "b            -  y\n");
    CHECK(only_unknown, nothing, &unlimited, "");
}

static void ends_no_line_with_spaces(void **state)
{
    static const char *const cells[] = {"a", "1  ", "  x  ", "   ", "   ", "", "", "  "};

    (void)state;
    CHECK(devices, cells, &unlimited,
          "DEVICE  MEMORY  HOLDER  NOTE\n"
          "a            1    x\n"
          "\n");
}

static const struct table_column cut_left[] = {{.heading = "H", .min = 1, .priority = 1}};
static const struct table_column cut_right[] = {
    {.heading = "H", .right = true, .min = 1, .priority = 1},
    {.heading = "I", .priority = TABLE_ALWAYS},
};

static void cuts_with_a_mark(void **state)
{
    static const char *const cells[] = {"abcdef"};

    (void)state;
    CHECK(cut_left, cells, (&(struct terminal){.width = 6}), "H\nabcdef\n");
    CHECK(cut_left, cells, (&(struct terminal){.width = 5}), "H\nabcd~\n");
    CHECK(cut_left, cells, (&(struct terminal){.width = 5, .unicode = true}), "H\nabcd…\n");
    CHECK(cut_left, cells, (&(struct terminal){.width = 1, .unicode = true}), "H\n…\n");
}

static void cuts_between_characters(void **state)
{
    static const char *const wide[] = {"漢字漢字", "x"};
    static const char *const marked[] = {"e\u0301e\u0301e\u0301e\u0301", "x"};
    static const char *const steering[] = {"\033\033\033\033", "x"};

    (void)state;
    /* A wide character that does not fit leaves a blank on the padded side. */
    CHECK(cut_left, wide, (&(struct terminal){.width = 7}), "H\n漢字漢~\nx\n");
    CHECK(cut_left, wide, (&(struct terminal){.width = 6}), "H\n漢字~\nx\n");
    CHECK(cut_right, wide, (&(struct terminal){.width = 10}), "      H  I\n漢字漢~  x\n");
    CHECK(cut_right, wide, (&(struct terminal){.width = 9}), "     H  I\n 漢字~  x\n");
    CHECK(cut_right, wide, (&(struct terminal){.width = 5}), " H  I\n ~  x\n");
    CHECK(cut_right, wide, (&(struct terminal){.width = 4}), "H  I\n~  x\n");
    CHECK(cut_right, marked, (&(struct terminal){.width = 6}), "  H  I\ne\u0301e\u0301~  x\n");
    CHECK(cut_right, steering, (&(struct terminal){.width = 6}), "  H  I\n\uFFFD\uFFFD~  x\n");
}

static void cuts_the_widest_first(void **state)
{
    static const struct table_column columns[] = {
        {.heading = "A", .min = 3, .priority = TABLE_ALWAYS},
        {.heading = "B", .priority = TABLE_ALWAYS},
        {.heading = "HEADING", .min = 5, .priority = TABLE_ALWAYS},
    };
    static const char *const cells[] = {"aaaaaaaa", "bbbb", "ccccccc"};

    (void)state;
    CHECK(columns, cells, (&(struct terminal){.width = 23}),
          "A         B     HEADING\n"
          "aaaaaaaa  bbbb  ccccccc\n");
    CHECK(columns, cells, (&(struct terminal){.width = 22}),
          "A        B     HEADING\n"
          "aaaaaa~  bbbb  ccccccc\n");
    CHECK(columns, cells, (&(struct terminal){.width = 21}),
          "A        B     HEADI~\n"
          "aaaaaa~  bbbb  ccccc~\n");
    CHECK(columns, cells, (&(struct terminal){.width = 18}),
          "A      B     HEAD~\n"
          "aaaa~  bbbb  cccc~\n");
    CHECK(columns, cells, (&(struct terminal){.width = 16}),
          "A    B     HEAD~\n"
          "aa~  bbbb  cccc~\n");
    /* All columns have their minimum width, so the line is too long. */
    CHECK(columns, cells, (&(struct terminal){.width = 1}),
          "A    B     HEAD~\n"
          "aa~  bbbb  cccc~\n");
}

static void a_large_least_is_no_padding(void **state)
{
    static const struct table_column columns[] = {{.heading = "A", .right = true, .min = 9}};
    static const char *const cells[] = {"bb"};

    (void)state;
    CHECK(columns, cells, (&(struct terminal){.width = 2}), " A\nbb\n");
}

static void leaves_out_what_matters_least(void **state)
{
    static const char *const cells[] = {"nvidia0", "80 GiB", "anna-maria", "cool"};

    (void)state;
    CHECK(devices, cells, (&(struct terminal){.width = 33}),
          "DEVICE   MEMORY  HOLDER      NOTE\n"
          "nvidia0  80 GiB  anna-maria  cool\n");
    CHECK(devices, cells, (&(struct terminal){.width = 27}),
          "DEVICE   MEMORY  HOL~  NOTE\n"
          "nvidia0  80 GiB  ann~  cool\n");
    /* The other columns use the room of a column that is left out. */
    CHECK(devices, cells, (&(struct terminal){.width = 26}),
          "DEVICE   MEMORY  HOLDER\n"
          "nvidia0  80 GiB  anna-mar~\n");
    CHECK(devices, cells, (&(struct terminal){.width = 20}),
          "DEVICE   HOLDER\n"
          "nvidia0  anna-maria\n");
    CHECK(devices, cells, (&(struct terminal){.width = 12}),
          "DEVICE\n"
          "nvidia0\n");
    CHECK(devices, cells, (&(struct terminal){.width = 3}),
          "DEVICE\n"
          "nvidia0\n");
}

static void of_equals_the_rightmost_goes(void **state)
{
    static const struct table_column columns[] = {
        {.heading = "A", .priority = 7},
        {.heading = "B", .priority = 7},
        {.heading = "C", .priority = 7},
        {.heading = "D", .priority = 8},
    };
    static const char *const cells[] = {"a", "b", "c", "d"};

    (void)state;
    CHECK(columns, cells, (&(struct terminal){.width = 10}), "A  B  C  D\na  b  c  d\n");
    CHECK(columns, cells, (&(struct terminal){.width = 9}), "A  B  D\na  b  d\n");
    CHECK(columns, cells, (&(struct terminal){.width = 6}), "A  D\na  d\n");
    CHECK(columns, cells, (&(struct terminal){.width = 3}), "D\nd\n");
}

static void may_leave_out_everything(void **state)
{
    static const struct table_column columns[] = {{.heading = "AB", .priority = 254}};
    static const char *const cells[] = {"ab"};

    (void)state;
    CHECK(columns, cells, (&(struct terminal){.width = 1}), "");
}

static void styles_only_the_text(void **state)
{
    static const struct terminal colourful = {.width = 15, .colour = true, .unicode = true};
    static const struct table_column columns[] = {
        {.heading = "STATE", .priority = TABLE_ALWAYS},
        {.heading = "N", .right = true, .priority = TABLE_ALWAYS},
        {.heading = "NOTE", .min = 3, .priority = TABLE_ALWAYS},
    };
    struct table table;
    struct text text = {0};

    (void)state;
    table_init(&table, columns, COUNT(columns));
    table_cell_styled(&table, STYLE_GOOD, "free");
    table_cell_format(&table, "%d%%", 5);
    table_cell_styled(&table, STYLE_BAD, "too hot");
    table_cell_styled(&table, STYLE_STRONG, NULL);
    table_cell_styled(&table, STYLE_PLAIN, "1");
    table_cell_styled(&table, STYLE_BAD, "");
    assert_int_equal(table_print(&table, &colourful, &text), 0);
    assert_string_equal(text_string(&text),
                        "\033[2mSTATE\033[0m   \033[2mN\033[0m  \033[2mNOTE\033[0m\n"
                        "\033[32mfree\033[0m   5%  \033[31mtoo…\033[0m\n"
                        "\033[1m-\033[0m       1\n");
    text_clear(&text);
    assert_int_equal(table_print(&table, &unlimited, &text), 0);
    assert_string_equal(text_string(&text), "STATE   N  NOTE\n"
                                            "free   5%  too hot\n"
                                            "-       1\n");
    text_finish(&text);
    table_finish(&table);
}

static void appends_to_what_is_there(void **state)
{
    struct table table;
    struct text text = {0};

    (void)state;
    text_append(&text, "before\n");
    table_init(&table, cut_left, COUNT(cut_left));
    assert_int_equal(table_print(&table, &unlimited, &text), 0);
    assert_int_equal(table_print(&table, &unlimited, &text), 0);
    assert_string_equal(text_string(&text), "before\nH\nH\n");
    text_finish(&text);
    table_finish(&table);
}

static int print_without_memory(void *context)
{
    struct table table;
    struct text text = {0};
    int result;

    (void)context;
    table_init(&table, devices, COUNT(devices));
    for (int row = 0; row < 5; row++) {
        table_cell(&table, "nvidia0");
        table_cell_styled(&table, STYLE_GOOD, NULL);
        table_cell_format(&table, "row %d", row);
        table_cell(&table, "");
    }
    result = table_print(&table, &(struct terminal){.width = 20}, &text);
    text_finish(&text);
    table_finish(&table);
    return result;
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    assert_true(failing_allocator_try_all(print_without_memory, NULL) > 10);
}

static void print_half_a_row(void)
{
    struct table table;

    table_init(&table, devices, COUNT(devices));
    table_cell(&table, "a");
    table_print(&table, &unlimited, &(struct text){0});
}

static void have_no_columns(void)
{
    struct table table;

    table_init(&table, devices, 0);
}

static void misuse_aborts(void **state)
{
    (void)state;
    assert_aborts(print_half_a_row);
    assert_aborts(have_no_columns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_up),
        cmocka_unit_test(shows_headings_alone),
        cmocka_unit_test(hides_what_nobody_knows),
        cmocka_unit_test(ends_no_line_with_spaces),
        cmocka_unit_test(cuts_with_a_mark),
        cmocka_unit_test(cuts_between_characters),
        cmocka_unit_test(cuts_the_widest_first),
        cmocka_unit_test(a_large_least_is_no_padding),
        cmocka_unit_test(leaves_out_what_matters_least),
        cmocka_unit_test(of_equals_the_rightmost_goes),
        cmocka_unit_test(may_leave_out_everything),
        cmocka_unit_test(styles_only_the_text),
        cmocka_unit_test(appends_to_what_is_there),
        cmocka_unit_test(survives_lack_of_memory),
        cmocka_unit_test(misuse_aborts),
    };

    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
