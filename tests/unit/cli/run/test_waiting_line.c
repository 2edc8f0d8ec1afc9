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
    const struct wire_message waiting = {
        .position = 3,
        .pending = 5,
        .text = (char *)"needs 2, 1 free",
        .estimate = optional_number_of(12 * DURATION_MINUTE),
    };
    struct waiting_line_parts words = {
        .waiting = &waiting,
        .holders = "ann holds 6, bob 2",
        .so_far = 80 * DURATION_SECOND,
        .times = true,
    };

    (void)state;
    check(&words, "berth: waiting, 3rd of 5, starts in about 12m (1m20s so far): "
                  "ann holds 6, bob 2; needs 2, 1 free");
    words.times = false;
    check(&words, "berth: waiting, 3rd of 5: ann holds 6, bob 2; needs 2, 1 free");
}

static void what_is_not_known_is_left_out(void **state)
{
    struct wire_message waiting = {0};
    struct waiting_line_parts words = {.waiting = &waiting, .holders = "", .times = true};

    (void)state;
    check(&words, "berth: waiting");
    waiting.position = 2;
    check(&words, "berth: waiting, 2nd");
    waiting.pending = 1; /* it has changed meanwhile */
    words.holders = "ann holds 1";
    check(&words, "berth: waiting, 2nd: ann holds 1");
    words.holders = "";
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
        const struct waiting_line_parts words = {.waiting = &waiting, .holders = ""};
        struct text out = {0};

        waiting_line_describe(&words, &out);
        assert_string_equal(text_string(&out) + strlen("berth: waiting, "), rows[i].wanted);
        text_finish(&out);
    }
}

static void hostile_words_are_inert(void **state)
{
    const struct wire_message waiting = {.text = (char *)"a\x1b[2J\nb"};
    const struct waiting_line_parts words = {.waiting = &waiting, .holders = ""};

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
        {3, "a\u00e4"}, /* the next takes two columns */
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

/* Users that nobody has a name for. */
enum { FIRST = 4000000000U };

static void check_holders(struct lease_info *leases, size_t count, uint64_t parent,
                          const char *wanted)
{
    const struct wire_message page = {.leases = {.items = leases, .count = count}};
    struct user_names users = {0};
    struct text out = {0};

    waiting_line_describe_holders(&page, parent, &users, &out);
    assert_string_equal(text_string(&out), wanted);
    user_names_finish(&users);
    text_finish(&out);
}

static void holders_by_how_much_they_have(void **state)
{
    struct lease_info leases[] = {
        {.uid = FIRST, .devices = {.count = 1}},     {.uid = FIRST + 1, .devices = {.count = 2}},
        {.uid = FIRST, .devices = {.count = 3}},     {.uid = FIRST + 2, .devices = {.count = 2}},
        {.uid = FIRST + 3, .devices = {.count = 1}}, {.uid = FIRST, .parent = 9},
    };

    (void)state;
    check_holders(leases, 0, 0, "");
    check_holders(leases, 1, 0, "4000000000 holds 1");
    check_holders(leases, 4, 0, "4000000000 holds 4, 4000000001 2, 4000000002 2");
    check_holders(leases, 5, 0, "4000000000 holds 4, 4000000001 2, 4000000002 2 and others");
    leases[5].devices.count = 7;
    check_holders(leases, 6, 9, "4000000000 holds 7"); /* only those beside us count */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_is_known), cmocka_unit_test(what_is_not_known_is_left_out),
        cmocka_unit_test(ordinals),          cmocka_unit_test(hostile_words_are_inert),
        cmocka_unit_test(cut_to_columns),    cmocka_unit_test(holders_by_how_much_they_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
