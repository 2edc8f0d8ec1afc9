/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/strangers.h"

static void who_was_added_is_known(void **state)
{
    struct strangers strangers = {0};

    (void)state;
    strangers_begin(&strangers, 5000, 1);
    strangers_add(&strangers, 4990);
    strangers_add(&strangers, 5000);
    assert_true(strangers_has(&strangers, 4990));
    assert_true(strangers_has(&strangers, 5000));
    assert_false(strangers_has(&strangers, 4991));
    assert_false(strangers_has(&strangers, 0));
}

/* Only pids up to the newest one, and not too far below it, are remembered. */
static void only_the_newest_have_a_place(void **state)
{
    struct strangers strangers = {0};

    (void)state;
    strangers_begin(&strangers, 5000, 1);
    strangers_add(&strangers, 5000 - STRANGERS_MAX);
    strangers_add(&strangers, 5001);
    assert_false(strangers_has(&strangers, 5000 - STRANGERS_MAX));
    assert_false(strangers_has(&strangers, 5000));
    assert_false(strangers_has(&strangers, 5001));
}

static void places_are_used_again(void **state)
{
    struct strangers strangers = {0};

    (void)state;
    strangers_begin(&strangers, STRANGERS_MAX + 10, 1);
    for (pid_t pid = 11; pid <= STRANGERS_MAX + 10; pid++)
        strangers_add(&strangers, pid);
    strangers_begin(&strangers, STRANGERS_MAX + 15, 2);
    for (pid_t pid = 11; pid <= 15; pid++)
        assert_false(strangers_has(&strangers, pid));
    assert_true(strangers_has(&strangers, 16));
    assert_true(strangers_has(&strangers, STRANGERS_MAX + 10));
    for (pid_t pid = STRANGERS_MAX + 11; pid <= STRANGERS_MAX + 15; pid++)
        assert_false(strangers_has(&strangers, pid));
}

static void numbers_that_start_anew_are_unknown(void **state)
{
    struct strangers strangers = {0};

    (void)state;
    strangers_begin(&strangers, 5000, 1);
    strangers_add(&strangers, 4999);
    strangers_begin(&strangers, 4999, 2);
    assert_false(strangers_has(&strangers, 4999));
    strangers_add(&strangers, 4998);
    strangers_begin(&strangers, 4999 + STRANGERS_MAX, 3);
    assert_false(strangers_has(&strangers, 4998 + STRANGERS_MAX));
}

static void nobody_is_known_for_long(void **state)
{
    struct strangers strangers = {0};

    (void)state;
    strangers_begin(&strangers, 5000, 7);
    strangers_add(&strangers, 5000);
    strangers_begin(&strangers, 5000, 7 + STRANGERS_KNOWN_FOR);
    assert_true(strangers_has(&strangers, 5000));
    strangers_begin(&strangers, 5000, 8 + STRANGERS_KNOWN_FOR);
    assert_false(strangers_has(&strangers, 5000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_was_added_is_known),
        cmocka_unit_test(only_the_newest_have_a_place),
        cmocka_unit_test(places_are_used_again),
        cmocka_unit_test(numbers_that_start_anew_are_unknown),
        cmocka_unit_test(nobody_is_known_for_long),
    };

    return cmocka_run_group_tests_name("strangers", tests, NULL, NULL);
}
