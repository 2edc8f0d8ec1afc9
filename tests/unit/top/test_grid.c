/* SPDX-License-Identifier: Apache-2.0
 *
 * The cells of a screen: any text stays in its columns.
 */
#include "support/unit.h"

#include <berth/error.h>
#include <string.h>

#include "support/failing_allocator.h"
#include "top/grid.h"

static void check_row(const struct grid *grid, size_t y, const char *wanted)
{
    struct text row = {0};

    grid_append_row(grid, y, &row);
    assert_string_equal(text_string(&row), wanted);
    text_finish(&row);
}

static struct grid grid_of(size_t width, size_t height, bool unicode)
{
    struct grid grid = {0};

    assert_int_equal(grid_start(&grid, width, height, unicode), 0);
    return grid;
}

static void text_is_cut_with_a_mark(void **state)
{
    struct grid grid = grid_of(12, 4, true);

    (void)state;
    assert_int_equal(grid_put(&grid, 0, 0, 5, STYLE_PLAIN, "hello"), 5);
    assert_int_equal(grid_put(&grid, 6, 0, 5, STYLE_PLAIN, "hello!"), 5);
    check_row(&grid, 0, "hello hell…");
    assert_int_equal(grid_put(&grid, 0, 1, 4, STYLE_PLAIN, "漢字漢"), 3);
    check_row(&grid, 1, "漢…");
    assert_int_equal(grid_put(&grid, 0, 2, 3, STYLE_PLAIN, "漢字"), 3);
    check_row(&grid, 2, "漢…");
    assert_int_equal(grid_put(&grid, 0, 3, 1, STYLE_PLAIN, "ab"), 1);
    check_row(&grid, 3, "…");
    assert_int_equal(grid_put(&grid, 12, 0, 5, STYLE_PLAIN, "beside"), 0);
    assert_int_equal(grid_put(&grid, 0, 4, 5, STYLE_PLAIN, "below"), 0);
    assert_int_equal(grid_put(&grid, 0, 0, 0, STYLE_PLAIN, "nowhere"), 0);
    check_row(&grid, 0, "hello hell…");
    grid_finish(&grid);
}

static void text_at_the_end_of_its_room(void **state)
{
    struct grid grid = grid_of(10, 1, true);

    (void)state;
    grid_put_right(&grid, 2, 0, 8, STYLE_PLAIN, "abc");
    check_row(&grid, 0, "       abc");
    grid_put_right(&grid, 2, 0, 4, STYLE_PLAIN, "abcdef");
    check_row(&grid, 0, "  abc… abc");
    grid_finish(&grid);
}

static void half_a_wide_character_is_none(void **state)
{
    struct grid grid = grid_of(4, 1, true);

    (void)state;
    grid_put(&grid, 0, 0, 4, STYLE_PLAIN, "漢字");
    grid_put(&grid, 1, 0, 1, STYLE_PLAIN, "x");
    check_row(&grid, 0, " x字");
    grid_put(&grid, 2, 0, 1, STYLE_PLAIN, "y");
    check_row(&grid, 0, " xy");
    grid_finish(&grid);
}

static void marks_stay_with_their_character(void **state)
{
    struct grid grid = grid_of(6, 2, true);

    (void)state;
    /* A combining mark without a character before it, then more marks than are kept. */
    grid_put(&grid, 0, 0, 6, STYLE_PLAIN,
             "\xcc\x81"
             "a\xcc\x81\xcc\x82\xcc\x83\xcc\x84\xcc\x85"
             "b");
    check_row(&grid, 0,
              "a\xcc\x81\xcc\x82\xcc\x83"
              "b");
    grid_put(&grid, 0, 1, 6, STYLE_PLAIN, "\033[31m\xff");
    check_row(&grid, 1, "\xef\xbf\xbd[31m\xef\xbf\xbd");
    grid_finish(&grid);
}

static void without_unicode_columns_stay(void **state)
{
    struct grid grid = grid_of(8, 1, false);

    (void)state;
    assert_int_equal(grid_put(&grid, 0, 0, 7, STYLE_PLAIN, "é漢x\xcc\x81long"), 7);
    check_row(&grid, 0, "???xlo~");
    grid_finish(&grid);
}

static void lines_of_a_table_keep_their_styles(void **state)
{
    struct grid grid = grid_of(8, 1, true);
    const char *line = "a\033[33mbc\033[0m\033[31;1md";

    (void)state;
    grid_put_styled(&grid, 0, 0, 8, line, strlen(line));
    assert_int_equal(grid.cells[0].style, STYLE_PLAIN);
    assert_int_equal(grid.cells[1].style, STYLE_WARNING);
    assert_int_equal(grid.cells[2].style, STYLE_WARNING);
    assert_int_equal(grid.cells[3].style, STYLE_PLAIN);
    check_row(&grid, 0, "abc\xef\xbf\xbd[31;");
    grid_finish(&grid);
}

static void sizes_are_bounded(void **state)
{
    struct grid grid = grid_of(100000, 3, true);

    (void)state;
    assert_int_equal(grid.width, GRID_SIDE_MAX);
    failing_allocator_start(1);
    assert_int_equal(grid_start(&grid, 5, 5, true), BERTH_ERROR_MEMORY);
    assert_true(failing_allocator_stop());
    assert_int_equal(grid.width, GRID_SIDE_MAX);
    grid_fill(&grid, GRID_SIDE_MAX - 1, 2, 10, STYLE_GOOD, '#');
    grid_reverse(&grid, GRID_SIDE_MAX - 1, 2, 10);
    grid_restyle(&grid, 5, 7, 10, STYLE_BAD);
    grid_finish(&grid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_cut_with_a_mark),
        cmocka_unit_test(text_at_the_end_of_its_room),
        cmocka_unit_test(half_a_wide_character_is_none),
        cmocka_unit_test(marks_stay_with_their_character),
        cmocka_unit_test(without_unicode_columns_stay),
        cmocka_unit_test(lines_of_a_table_keep_their_styles),
        cmocka_unit_test(sizes_are_bounded),
    };

    return cmocka_run_group_tests_name("top_grid", tests, NULL, NULL);
}
