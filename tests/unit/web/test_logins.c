/* SPDX-License-Identifier: Apache-2.0
 *
 * Logins: their cookies, their end, and their limits.
 */
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

#include "web/logins.h"

static const struct peer alice = {.kind = PEER_USER, .uid = 1};
static const struct peer mallory = {.kind = PEER_USER, .uid = 2};

struct cookie {
    char text[128];
};

static struct span span_of(const struct cookie *cookie)
{
    return (struct span){cookie->text, strlen(cookie->text)};
}

/* Logs in, and returns the cookie as a browser sends it. */
static struct cookie log_in(struct logins *logins, const struct peer *peer, int64_t now)
{
    struct text header = {0};
    struct cookie cookie;

    assert_true(logins_add(logins, peer, now, &header));
    assert_int_equal(sscanf(text_string(&header), "Set-Cookie: %127[^;]", cookie.text), 1);
    assert_non_null(strstr(text_string(&header), "; Path=/; HttpOnly; SameSite=Strict; Max-Age="));
    text_finish(&header);
    return cookie;
}

static void cookies(void **state)
{
    struct logins logins = {0};
    struct cookie cookie = log_in(&logins, &alice, 0);
    struct cookie other = log_in(&logins, &alice, 0);
    struct cookie among;

    (void)state;
    assert_string_not_equal(cookie.text, other.text);
    assert_true(logins_check(&logins, &alice, 0, span_of(&cookie)));
    assert_true(logins_check(&logins, &alice, 0, span_of(&other)));
    snprintf(among.text, sizeof(among.text), "a=b; %.90s; c=d", cookie.text);
    assert_true(logins_check(&logins, &alice, 0, span_of(&among)));
    for (size_t i = strlen(cookie.text); i > 0; i--) {
        struct cookie wrong = cookie;

        wrong.text[i - 1] ^= 1;
        assert_false(logins_check(&logins, &alice, 0, span_of(&wrong)));
        wrong.text[i - 1] = '\0';
        assert_false(logins_check(&logins, &alice, 0, span_of(&wrong)));
    }
    assert_false(logins_check(&logins, &alice, 0, (struct span){0}));
}

/* Another server on the same host sees the cookie; it is of no use to its user. */
static void stolen_cookies(void **state)
{
    struct logins logins = {0};
    struct logins restarted = {0};
    struct cookie cookie = log_in(&logins, &alice, 0);

    (void)state;
    assert_false(logins_check(&logins, &mallory, 0, span_of(&cookie)));
    assert_false(logins_check(&restarted, &alice, 0, span_of(&cookie)));
    assert_true(logins_check(&logins, &alice, 0, span_of(&cookie)));
}

static void the_end_of_a_login(void **state)
{
    const int64_t lasts = LOGINS_SECONDS * DURATION_SECOND;
    struct logins logins = {0};
    struct cookie first = log_in(&logins, &alice, 0);
    struct cookie second = log_in(&logins, &alice, 10);
    struct text header = {0};

    (void)state;
    assert_true(logins_check(&logins, &alice, lasts - 1, span_of(&first)));
    assert_false(logins_check(&logins, &alice, lasts, span_of(&first)));
    assert_true(logins_check(&logins, &alice, lasts, span_of(&second)));
    logins_end(&logins, span_of(&first), &header);
    assert_int_equal(logins.count, 1);
    logins_end(&logins, span_of(&second), &header);
    assert_non_null(strstr(text_string(&header), "Set-Cookie: berth_login=; Path=/;"));
    assert_non_null(strstr(text_string(&header), "Max-Age=0\r\n"));
    assert_int_equal(logins.count, 0);
    assert_false(logins_check(&logins, &alice, lasts, span_of(&second)));
    text_finish(&header);
}

/* A peer with many logins ends only its own. */
static void too_many_logins(void **state)
{
    struct logins logins = {0};
    struct cookie mine = log_in(&logins, &alice, 0);
    struct cookie first = log_in(&logins, &mallory, 0);
    struct cookie last = first;

    (void)state;
    for (size_t i = 0; i < 2 * (size_t)LOGINS_MAX; i++)
        last = log_in(&logins, &mallory, 0);
    assert_int_equal(logins.count, LOGINS_MAX);
    assert_true(logins_check(&logins, &alice, 0, span_of(&mine)));
    assert_false(logins_check(&logins, &mallory, 0, span_of(&first)));
    assert_true(logins_check(&logins, &mallory, 0, span_of(&last)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cookies),
        cmocka_unit_test(stolen_cookies),
        cmocka_unit_test(the_end_of_a_login),
        cmocka_unit_test(too_many_logins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
