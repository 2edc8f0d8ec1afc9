/* SPDX-License-Identifier: Apache-2.0
 *
 * The reason why a claim waits, with the names of users and in local time.
 */
#include "support/unit.h"

#include <stdlib.h>
#include <time.h>

#include "view/reason_text.h"

static void check_reason(const char *reason, const char *wanted)
{
    struct user_names users = {0};
    struct text out = {0};

    reason_text_append(&out, reason, &users);
    assert_string_equal(text_string(&out), wanted);
    text_finish(&out);
    user_names_finish(&users);
}

static void users_have_their_names(void **state)
{
    (void)state;
    check_reason("needs 2: user 0 holds 4, user 4000000001 holds 1",
                 "needs 2: root holds 4, user 4000000001 holds 1");
    check_reason("user 0", "root");
}

static void other_words_stay(void **state)
{
    (void)state;
    check_reason("", "");
    check_reason("superuser 0, user 0x, user , user 99999999999, until then",
                 "superuser 0, user 0x, user , user 99999999999, until then");
    check_reason("until 2026-01-02", "until 2026-01-02");
}

/* A macro, because the compiler checks formats that are literals only. */
#define check_time_after(seconds, format)                                  \
    do {                                                                   \
        time_t then = time(NULL) + (seconds);                              \
        struct tm parts;                                                   \
        char reason[32];                                                   \
        char wanted[32];                                                   \
                                                                           \
        gmtime_r(&then, &parts);                                           \
        strftime(reason, sizeof(reason), "until %Y-%m-%dT%H:%MZ", &parts); \
        strftime(wanted, sizeof(wanted), "until " format, &parts);         \
        check_reason(reason, wanted);                                      \
    } while (0)

static void times_are_as_short_as_they_can_be(void **state)
{
    (void)state;
    setenv("TZ", "UTC0", 1);
    tzset();
    check_time_after(3600, "%H:%M");
    check_time_after(3 * 86400, "%a %H:%M");
    check_time_after(30 * 86400, "%Y-%m-%d %H:%M");
    check_reason("until 1970-01-01T00:01Z, then", "until 1970-01-01 00:01, then");
}

static void the_time_is_local(void **state)
{
    (void)state;
    setenv("TZ", "XYZ-2", 1);
    tzset();
    check_reason("until 1970-01-01T23:01Z", "until 1970-01-02 01:01");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_have_their_names),
        cmocka_unit_test(other_words_stay),
        cmocka_unit_test(times_are_as_short_as_they_can_be),
        cmocka_unit_test(the_time_is_local),
    };

    return cmocka_run_group_tests_name("reason_text", tests, NULL, NULL);
}
