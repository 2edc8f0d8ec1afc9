/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include <string.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "cli/run/waiting_line.h"

static void check(const struct waiting_line_parts *words, const char *wanted)
{
    struct text out = {0};

    waiting_line_describe(words, &out);
    assert_string_equal(text_string(&out), wanted);
    text_finish(&out);
}

static void all_that_is_known(void **state)
{
    struct user_names users = {0};
    const struct wire_message waiting = {
        .position = 3,
        .snapshot.pending = 5,
        .text = (char *)"needs 2, 1 free: user 0 holds 6",
        .estimate = optional_number_of(12 * DURATION_MINUTE),
    };
    struct waiting_line_parts words = {
        .waiting = &waiting,
        .users = &users,
        .so_far = 80 * DURATION_SECOND,
        .times = true,
    };

    (void)state;
    check(&words, "berth: waiting, 3rd of 5, starts in about 12m (1m20s so far): "
                  "needs 2, 1 free: root holds 6");
    words.times = false;
    check(&words, "berth: waiting, 3rd of 5: needs 2, 1 free: root holds 6");
    user_names_finish(&users);
}

static void what_is_not_known_is_left_out(void **state)
{
    struct wire_message waiting = {0};
    struct user_names users = {0};
    struct waiting_line_parts words = {.waiting = &waiting, .users = &users, .times = true};

    (void)state;
    check(&words, "berth: waiting");
    waiting.position = 2;
    check(&words, "berth: waiting, 2nd");
    waiting.snapshot.pending = 1; /* too few for the position, because the queue has changed */
    check(&words, "berth: waiting, 2nd");
    waiting.text = (char *)"why";
    waiting.estimate = optional_number_of(UINT64_MAX);
    check(&words, "berth: waiting, 2nd: why");
}

static void ordinals(void **state)
{
    static const struct {
        uint32_t number;
        const char *wanted;
    } rows[] = {
        {1, "1st"},     {2, "2nd"},     {3, "3rd"},     {4, "4th"},     {10, "10th"},
        {11, "11th"},   {12, "12th"},   {13, "13th"},   {21, "21st"},   {100, "100th"},
        {101, "101st"}, {111, "111th"}, {113, "113th"}, {122, "122nd"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct wire_message waiting = {.position = rows[i].number};
        const struct waiting_line_parts words = {.waiting = &waiting};
        struct text out = {0};

        waiting_line_describe(&words, &out);
        assert_string_equal(text_string(&out) + strlen("berth: waiting, "), rows[i].wanted);
        text_finish(&out);
    }
}

static void hostile_words_are_inert(void **state)
{
    const struct wire_message waiting = {.text = (char *)"a\x1b[2J\nb"};
    struct user_names users = {0};
    const struct waiting_line_parts words = {.waiting = &waiting, .users = &users};

    (void)state;
    check(&words, "berth: waiting: a\uFFFD[2J\uFFFDb");
}

static void cut_to_columns(void **state)
{
    static const struct {
        size_t columns;
        const char *wanted;
    } rows[] = {
        {0, "a\u00e4\u4e16\u754cz"},
        {1, "a"},
        {2, "a\u00e4"},
        {3, "a\u00e4"}, /* the next character takes two columns */
        {4, "a\u00e4\u4e16"},
        {6, "a\u00e4\u4e16\u754c"},
        {7, "a\u00e4\u4e16\u754cz"},
        {99, "a\u00e4\u4e16\u754cz"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct text out = {0};

        waiting_line_append_cut("a\u00e4\u4e16\u754cz", rows[i].columns, &out);
        assert_string_equal(text_string(&out), rows[i].wanted);
        text_finish(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_is_known), cmocka_unit_test(what_is_not_known_is_left_out),
        cmocka_unit_test(ordinals),          cmocka_unit_test(hostile_words_are_inert),
        cmocka_unit_test(cut_to_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
