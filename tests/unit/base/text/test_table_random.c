/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties of every table at every width.
 */
#include "support/unit.h"

#include "base/text/table.h"

#include <string.h>

#include "base/count.h"
#include "base/text/utf8.h"
#include "support/random.h"
#include "support/steps.h"

/* Each column has its own sign, by which the test finds it in the output. The heading and the known
 * cells begin with the sign, or end with it if they are aligned to the right. Only columns aligned
 * to the left are cut, so the sign is never cut off. */

enum { COLUMNS = 6, ROWS = 4, WIDEST = 200, CELL_BYTES = 128, LINE_WIDTH = 1024 };

static const char signs[COLUMNS + 1] = "<{[(/|";

struct world {
    struct test_random random;
    struct table_column columns[COLUMNS];
    char headings[COLUMNS][CELL_BYTES];
    char cells[ROWS][COLUMNS][CELL_BYTES];
    bool unknown[ROWS][COLUMNS];
};

static void make_text(struct world *world, const struct table_column *column, char sign,
                      uint64_t pieces, char *ret_text)
{
    static const char *const choice[] = {
        "a",      "B",        "  ",       "\t",           "\n",     "\033",   "\x7F", "\x80",
        "\xFF",   "é",        "e\u0301",  "漢",           "😀",      "\u200D", "한",   "\u202E",
        "\u2028", "\xC2\x9B", "\xE2\x82", "\xF0\x9F\x98", "\u0301", "…",      "~",
    };
    struct text text = {0};

    if (!column->right)
        text_append_char(&text, sign);
    for (uint64_t i = 0; i < pieces; i++)
        text_append(&text, choice[test_random_below(&world->random, COUNT(choice))]);
    if (column->right)
        text_append_char(&text, sign);
    assert_true(text.length < CELL_BYTES);
    memcpy(ret_text, text_string(&text), text.length + 1);
    text_finish(&text);
}

/* Removes blanks at the end, as the table does with cells, but not with headings. */
static void drop_blanks(char *string)
{
    for (size_t end = strlen(string); end > 0 && string[end - 1] == ' '; end--)
        string[end - 1] = '\0';
}

static void make_column(struct world *world, size_t column)
{
    static const unsigned char priorities[] = {0, 3, 3, 9, TABLE_ALWAYS};
    struct table_column *made = &world->columns[column];

    *made = (struct table_column){
        .heading = world->headings[column],
        .right = test_random_below(&world->random, 3) == 0,
        .hide_unknown = test_random_below(&world->random, 2) == 0,
        .priority = priorities[test_random_below(&world->random, COUNT(priorities))],
    };
    if (!made->right && test_random_below(&world->random, 3) > 0)
        made->min = 2 + (unsigned)test_random_below(&world->random, 8);
    make_text(world, made, signs[column], test_random_below(&world->random, 6),
              world->headings[column]);
    drop_blanks(world->headings[column]);
    for (size_t row = 0; row < ROWS; row++) {
        char *cell = world->cells[row][column];

        world->unknown[row][column] = test_random_below(&world->random, 3) == 0;
        cell[0] = '\0';
        if (test_random_below(&world->random, 8) > 0)
            make_text(world, made, signs[column], test_random_below(&world->random, 24), cell);
    }
}

/* A printed line by terminal columns. The second column of a wide character is 0. */
struct line {
    uint32_t at[LINE_WIDTH];
    size_t width;
};

static uint32_t line_at(const struct line *line, size_t position)
{
    return position < line->width ? line->at[position] : ' ';
}

/* Returns the position of the sign, or LINE_WIDTH if it is missing. */
static size_t find_sign(const struct line *line, char sign)
{
    for (size_t i = 0; i < line->width; i++) {
        if (line->at[i] == (unsigned char)sign)
            return i;
    }
    return LINE_WIDTH;
}

/* Reads the next line and returns the text after it. */
static const char *read_line(const char *from, struct line *ret_line)
{
    const char *end = strchr(from, '\n');
    size_t length;

    assert_non_null(end);
    length = (size_t)(end - from);
    assert_true(utf8_is_valid(from, length));
    if (length > 0)
        assert_int_not_equal(end[-1], ' ');
    ret_line->width = 0;
    for (size_t i = 0; i < length;) {
        uint32_t character;
        unsigned width;

        i += utf8_decode(from + i, length - i, &character);
        assert_false(utf8_is_control(character));
        width = utf8_character_width(character);
        assert_true(ret_line->width + width <= LINE_WIDTH);
        if (width > 0)
            ret_line->at[ret_line->width] = character;
        if (width > 1)
            ret_line->at[ret_line->width + 1] = 0;
        ret_line->width += width;
    }
    return end + 1;
}

static bool is_hidden(const struct world *world, size_t column)
{
    for (size_t row = 0; row < ROWS; row++) {
        if (!world->unknown[row][column])
            return false;
    }
    return world->columns[column].hide_unknown;
}

/* Returns the minimum width of a column. */
static size_t min_width(const struct world *world, size_t column)
{
    size_t width = utf8_width(world->headings[column]);

    for (size_t row = 0; row < ROWS; row++) {
        char cell[CELL_BYTES] = "-";
        size_t cell_width;

        if (!world->unknown[row][column])
            memcpy(cell, world->cells[row][column], sizeof(cell));
        drop_blanks(cell);
        cell_width = utf8_width(cell);
        if (cell_width > width)
            width = cell_width;
    }
    if (world->columns[column].min > 0 && world->columns[column].min < width)
        return world->columns[column].min;
    return width;
}

static void check_cell(const struct world *world, size_t row, size_t column, size_t position,
                       const struct line *line)
{
    const char *cell = world->cells[row][column];
    uint32_t wanted = world->unknown[row][column] ? '-'
                      : cell[0] == '\0'           ? ' '
                                                  : (unsigned char)signs[column];

    assert_int_equal(line_at(line, position), wanted);
}

/* Checks the gap: after a column aligned to the right, before one aligned to the left. */
static void check_gap(const struct table_column *column, size_t position, const struct line *line)
{
    for (size_t i = 1; i <= 2 && (column->right || position > 0); i++) {
        assert_true(column->right || position >= 2);
        assert_int_equal(line_at(line, column->right ? position + i : position - i), ' ');
    }
}

/* Returns whether column `first` must be left out before `second`. */
static bool goes_before(const struct world *world, size_t first, size_t second)
{
    unsigned char priority = world->columns[first].priority;

    if (priority != world->columns[second].priority)
        return priority < world->columns[second].priority;
    return first > second;
}

/* Checks, by the positions in the heading, that the correct columns are left out, and none without
 * need. Returns the minimum width of the remaining table. */
static size_t check_choice(const struct world *world, const size_t *positions, size_t limit)
{
    size_t last_left_out = COLUMNS;
    size_t min = 0;

    for (size_t i = 0; i < COLUMNS; i++) {
        if (is_hidden(world, i)) {
            assert_int_equal(positions[i], LINE_WIDTH);
        } else if (positions[i] < LINE_WIDTH) {
            min += min_width(world, i) + (min > 0 ? 2 : 0);
        } else {
            assert_int_not_equal(world->columns[i].priority, TABLE_ALWAYS);
            if (last_left_out == COLUMNS || goes_before(world, last_left_out, i))
                last_left_out = i;
        }
    }
    if (last_left_out < COLUMNS) {
        size_t with_it = min + min_width(world, last_left_out) + (min > 0 ? 2 : 0);

        assert_true(limit > 0 && with_it > limit);
        for (size_t i = 0; i < COLUMNS; i++)
            assert_true(positions[i] == LINE_WIDTH || goes_before(world, last_left_out, i));
    }
    return min;
}

/* Checks that a line is too long only if nothing more can be cut or left out. */
static void check_width(const struct world *world, const size_t *positions, size_t limit,
                        size_t min, const struct line *line)
{
    if (limit == 0 || line->width <= limit)
        return;
    assert_true(line->width <= min);
    for (size_t i = 0; i < COLUMNS; i++)
        assert_true(positions[i] == LINE_WIDTH || world->columns[i].priority == TABLE_ALWAYS);
}

static void check_printed(const struct world *world, size_t limit, const char *printed)
{
    static struct line line;
    size_t positions[COLUMNS];
    size_t min;

    line.width = 0;
    if (printed[0] != '\0')
        printed = read_line(printed, &line);
    for (size_t i = 0; i < COLUMNS; i++)
        positions[i] = find_sign(&line, signs[i]);
    min = check_choice(world, positions, limit);
    check_width(world, positions, limit, min, &line);
    for (size_t row = 0; row < ROWS && min > 0; row++) {
        printed = read_line(printed, &line);
        check_width(world, positions, limit, min, &line);
        for (size_t i = 0; i < COLUMNS; i++) {
            if (positions[i] == LINE_WIDTH) {
                assert_int_equal(find_sign(&line, signs[i]), LINE_WIDTH);
                continue;
            }
            check_cell(world, row, i, positions[i], &line);
            check_gap(&world->columns[i], positions[i], &line);
        }
    }
    assert_int_equal(printed[0], '\0');
}

static void holds_together_at_any_width(void **state)
{
    static struct world world;
    unsigned long steps = test_steps(60);

    (void)state;
    world.random = (struct test_random){20260102};
    for (unsigned long step = 0; step < steps; step++) {
        struct table table;
        struct text text = {0};

        for (size_t i = 0; i < COLUMNS; i++)
            make_column(&world, i);
        table_init(&table, world.columns, COLUMNS);
        for (size_t row = 0; row < ROWS; row++) {
            for (size_t i = 0; i < COLUMNS; i++)
                table_cell(&table, world.unknown[row][i] ? NULL : world.cells[row][i]);
        }
        for (size_t width = 0; width <= WIDEST; width++) {
            struct terminal terminal = {.width = width, .unicode = step % 2 == 0};

            text_clear(&text);
            assert_int_equal(table_print(&table, &terminal, &text), 0);
            check_printed(&world, width, text_string(&text));
        }
        text_finish(&text);
        table_finish(&table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_together_at_any_width),
    };

    return cmocka_run_group_tests_name("table_random", tests, NULL, NULL);
}
