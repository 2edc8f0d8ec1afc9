/* SPDX-License-Identifier: Apache-2.0
 *
 * The cells of a screen: any text stays in its columns. And the history of loads.
 */
#include "support/unit.h"

#include <string.h>

#include "support/failing_allocator.h"
#include "support/pool_views.h"
#include "top/grid.h"
#include "top/top_history.h"

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

/* ---- History ---- */

static int value_of(const struct load_history *history, uint32_t index, size_t back)
{
    struct device_id id = {VENDOR_NVIDIA, index, DEVICE_NO_MIG};

    return top_history_value(history, top_history_find(history, id, 99), back);
}

static void note(struct load_history *history, int64_t step, struct pool_view *view, int64_t load)
{
    for (size_t i = 0; i < view->snapshot.slots.count; i++)
        view->snapshot.slots.items[i].device->load.utilization =
            load_figure_sampled(load, VIEW_NOW);
    assert_int_equal(top_history_add(history, step, view), 0);
}

static void steps_that_were_left_out(void **state)
{
    struct pool_view view = view_of(2);
    struct load_history history = {0};

    (void)state;
    assert_int_equal(value_of(&history, 0, 0), LOAD_HISTORY_UNKNOWN);
    note(&history, 3, &view, 100);
    note(&history, 3, &view, 200); /* the same step again */
    note(&history, 5, &view, 300); /* one step is missing */
    note(&history, 9, &view, 400); /* three are missing */
    assert_int_equal(value_of(&history, 1, 0), 400);
    assert_int_equal(value_of(&history, 1, 1), LOAD_HISTORY_UNKNOWN);
    assert_int_equal(value_of(&history, 1, 3), LOAD_HISTORY_UNKNOWN);
    assert_int_equal(value_of(&history, 1, 4), 300);
    assert_int_equal(value_of(&history, 1, 5), 200);
    assert_int_equal(value_of(&history, 1, 6), 200);
    assert_int_equal(value_of(&history, 1, 7), LOAD_HISTORY_UNKNOWN);
    assert_int_equal(value_of(&history, 1, SIZE_MAX), LOAD_HISTORY_UNKNOWN);
    assert_int_equal(value_of(&history, 7, 0), LOAD_HISTORY_UNKNOWN);
    top_history_finish(&history);
    pool_view_finish(&view);
}

static void what_was_not_sampled_is_unknown(void **state)
{
    struct pool_view view = view_of(1);
    struct device *device = view.snapshot.slots.items[0].device;
    struct load_history history = {0};

    (void)state;
    note(&history, 1, &view, -5);
    assert_int_equal(value_of(&history, 0, 0), LOAD_HISTORY_UNKNOWN);
    note(&history, 2, &view, INT64_MAX);
    assert_int_equal(value_of(&history, 0, 0), 1000);
    device->old = true;
    note(&history, 3, &view, 500);
    assert_int_equal(value_of(&history, 0, 0), LOAD_HISTORY_UNKNOWN);
    top_history_finish(&history);
    pool_view_finish(&view);
}

static void it_is_bounded(void **state)
{
    struct pool_view many = view_of(5);
    struct pool_view few = view_of(1);
    struct load_history history = {0};

    (void)state;
    note(&history, 1, &many, 10);
    for (int64_t step = 2; step < 3 * LOAD_HISTORY_LENGTH; step++)
        note(&history, step, &few, step % 1000);
    assert_int_equal(history.count, 1);
    assert_int_equal(value_of(&history, 0, LOAD_HISTORY_LENGTH - 1),
                     (2 * LOAD_HISTORY_LENGTH) % 1000);
    assert_int_equal(value_of(&history, 0, LOAD_HISTORY_LENGTH), LOAD_HISTORY_UNKNOWN);
    /* A long time without samples. */
    note(&history, INT64_MAX - 1, &few, 7);
    assert_int_equal(value_of(&history, 0, 0), 7);
    for (size_t back = 1; back < LOAD_HISTORY_LENGTH; back++)
        assert_int_equal(value_of(&history, 0, back), LOAD_HISTORY_UNKNOWN);
    top_history_finish(&history);
    pool_view_finish(&many);
    pool_view_finish(&few);
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
        cmocka_unit_test(steps_that_were_left_out),
        cmocka_unit_test(what_was_not_sampled_is_unknown),
        cmocka_unit_test(it_is_bounded),
    };

    return cmocka_run_group_tests_name("top_grid", tests, NULL, NULL);
}
