/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/text/terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/count.h"

static const char *const variables[] = {"COLUMNS", "NO_COLOR", "TERM",
                                        "LC_ALL",  "LC_CTYPE", "LANG"};

/* A pseudo-terminal, a pipe, and the values of the variables before the test, which starts without
 * them. */
struct fixture {
    int master;
    int terminal;
    int pipe[2];
    char *saved[COUNT(variables)];
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    char name[128];

    assert_non_null(fixture);
    fixture->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(fixture->master >= 0);
    assert_int_equal(grantpt(fixture->master), 0);
    assert_int_equal(unlockpt(fixture->master), 0);
    assert_int_equal(ptsname_r(fixture->master, name, sizeof(name)), 0);
    fixture->terminal = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(fixture->terminal >= 0);
    assert_int_equal(pipe2(fixture->pipe, O_CLOEXEC), 0);
    for (size_t i = 0; i < COUNT(variables); i++) {
        const char *value = getenv(variables[i]);

        fixture->saved[i] = value == NULL ? NULL : strdup(value);
        unsetenv(variables[i]);
    }
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT(variables); i++) {
        if (fixture->saved[i] == NULL)
            unsetenv(variables[i]);
        else
            setenv(variables[i], fixture->saved[i], 1);
        free(fixture->saved[i]);
    }
    close(fixture->pipe[0]);
    close(fixture->pipe[1]);
    close(fixture->terminal);
    close(fixture->master);
    free(fixture);
    return 0;
}

static void resize(const struct fixture *fixture, unsigned short columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = columns};

    assert_int_equal(ioctl(fixture->terminal, TIOCSWINSZ, &size), 0);
}

static void asks_the_terminal_for_its_width(void **state)
{
    const struct fixture *fixture = *state;
    static const unsigned short widths[] = {1, 79, 132, 10000};

    for (size_t i = 0; i < COUNT(widths); i++) {
        resize(fixture, widths[i]);
        assert_int_equal(terminal_detect(fixture->terminal).width, widths[i]);
    }
}

static void assumes_eighty_where_the_terminal_does_not_know(void **state)
{
    const struct fixture *fixture = *state;

    resize(fixture, 0);
    assert_int_equal(terminal_detect(fixture->terminal).width, 80);
    resize(fixture, 10001);
    assert_int_equal(terminal_detect(fixture->terminal).width, 80);
}

static void nothing_but_a_terminal_has_a_width(void **state)
{
    const struct fixture *fixture = *state;

    assert_int_equal(terminal_detect(fixture->pipe[1]).width, 0);
    assert_int_equal(terminal_detect(-1).width, 0);
}

static void columns_come_first(void **state)
{
    const struct fixture *fixture = *state;

    resize(fixture, 132);
    setenv("COLUMNS", "50", 1);
    assert_int_equal(terminal_detect(fixture->terminal).width, 50);
    assert_int_equal(terminal_detect(fixture->pipe[1]).width, 50);
    setenv("COLUMNS", "1", 1);
    assert_int_equal(terminal_detect(fixture->pipe[1]).width, 1);
    setenv("COLUMNS", "10000", 1);
    assert_int_equal(terminal_detect(fixture->pipe[1]).width, 10000);
}

static void columns_must_be_a_sensible_number(void **state)
{
    static const char *const values[] = {
        "", "0", "-1", "+80", " 80", "80 ", "8o", "80.5", "10001", "18446744073709551696",
    };
    const struct fixture *fixture = *state;

    resize(fixture, 132);
    for (size_t i = 0; i < COUNT(values); i++) {
        setenv("COLUMNS", values[i], 1);
        assert_int_equal(terminal_detect(fixture->terminal).width, 132);
        assert_int_equal(terminal_detect(fixture->pipe[1]).width, 0);
    }
}

static void only_a_terminal_has_colour(void **state)
{
    const struct fixture *fixture = *state;

    setenv("TERM", "xterm-256color", 1);
    assert_true(terminal_detect(fixture->terminal).colour);
    assert_true(terminal_detect(fixture->master).colour);
    assert_false(terminal_detect(fixture->pipe[1]).colour);
    assert_false(terminal_detect(-1).colour);
    /* COLUMNS gives a pipe a width, but no colour. */
    setenv("COLUMNS", "80", 1);
    assert_false(terminal_detect(fixture->pipe[1]).colour);
}

static void colour_can_be_refused(void **state)
{
    const struct fixture *fixture = *state;

    assert_true(terminal_detect(fixture->terminal).colour);
    setenv("TERM", "dumb", 1);
    assert_false(terminal_detect(fixture->terminal).colour);
    setenv("TERM", "dumber", 1);
    assert_true(terminal_detect(fixture->terminal).colour);
    setenv("NO_COLOR", "", 1);
    assert_true(terminal_detect(fixture->terminal).colour);
    setenv("NO_COLOR", "0", 1);
    assert_false(terminal_detect(fixture->terminal).colour);
}

static void unicode_is_what_the_locale_names(void **state)
{
    static const struct {
        const char *locale;
        bool unicode;
    } cases[] = {
        {"en_US.UTF-8", true}, {"de_DE.utf8", true},
        {"C.UTF-8", true},     {"fr_FR.Utf-8@euro", true},
        {"UTF-8", true},       {"C", false},
        {"POSIX", false},      {"de_DE.ISO-8859-1", false},
        {"de_DE.UTF", false},  {"ja_JP.UTF-16", false},
    };
    const struct fixture *fixture = *state;

    assert_false(terminal_detect(fixture->pipe[1]).unicode);
    for (size_t i = 0; i < COUNT(cases); i++) {
        setenv("LANG", cases[i].locale, 1);
        assert_int_equal(terminal_detect(fixture->pipe[1]).unicode, cases[i].unicode);
        assert_int_equal(terminal_detect(fixture->terminal).unicode, cases[i].unicode);
    }
}

static void the_first_given_locale_counts(void **state)
{
    const struct fixture *fixture = *state;

    setenv("LANG", "C.UTF-8", 1);
    setenv("LC_CTYPE", "C", 1);
    assert_false(terminal_detect(fixture->pipe[1]).unicode);
    setenv("LC_ALL", "C.UTF-8", 1);
    assert_true(terminal_detect(fixture->pipe[1]).unicode);
    setenv("LC_ALL", "", 1);
    assert_false(terminal_detect(fixture->pipe[1]).unicode);
    setenv("LC_CTYPE", "", 1);
    assert_true(terminal_detect(fixture->pipe[1]).unicode);
}

static void styles_are_escape_sequences(void **state)
{
    static const enum style styles[] = {STYLE_STRONG, STYLE_FAINT, STYLE_GOOD, STYLE_WARNING,
                                        STYLE_BAD};

    (void)state;
    assert_string_equal(terminal_style_start(STYLE_PLAIN), "");
    assert_string_equal(terminal_style_end(), "\033[0m");
    for (size_t i = 0; i < COUNT(styles); i++) {
        const char *start = terminal_style_start(styles[i]);

        assert_memory_equal(start, "\033[", 2);
        assert_int_equal(start[strlen(start) - 1], 'm');
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(start, terminal_style_start(styles[j]));
    }
}

#define TERMINAL_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TERMINAL_TEST(asks_the_terminal_for_its_width),
        TERMINAL_TEST(assumes_eighty_where_the_terminal_does_not_know),
        TERMINAL_TEST(nothing_but_a_terminal_has_a_width),
        TERMINAL_TEST(columns_come_first),
        TERMINAL_TEST(columns_must_be_a_sensible_number),
        TERMINAL_TEST(only_a_terminal_has_colour),
        TERMINAL_TEST(colour_can_be_refused),
        TERMINAL_TEST(unicode_is_what_the_locale_names),
        TERMINAL_TEST(the_first_given_locale_counts),
        cmocka_unit_test(styles_are_escape_sequences),
    };

    return cmocka_run_group_tests_name("terminal", tests, NULL, NULL);
}
