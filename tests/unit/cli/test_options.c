/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "cli/options.h"

#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "spec/option_types.h"
#include "support/assert_error.h"
#include "support/failing_allocator.h"

/* The target of the options of two invented sets. */
struct kitchen {
    const char *oven;
    const char *spoon;
    unsigned stirs;
    bool hot;
};

struct cellar {
    const char *wine;
};

static int take_spoon(const struct option *option, void *member, const char *value,
                      struct berth_error *error)
{
    if (strcmp(value, "fork") == 0)
        return error_set(error, BERTH_ERROR_SYNTAX, "expected a spoon, got 'fork'");
    return option_type_string(option, member, value, error);
}

static int take_stir(const struct option *option, void *member, const char *value,
                     struct berth_error *error)
{
    (void)option;
    (void)error;
    assert_null(value);
    ++*(unsigned *)member;
    return 0;
}

static int take_hot(const struct option *option, void *member, const char *value,
                    struct berth_error *error)
{
    struct kitchen *kitchen = member;

    assert_null(value);
    if (kitchen->stirs > 5)
        return error_set(error, BERTH_ERROR_RANGE, "too late");
    return option_type_flag(option, &kitchen->hot, value, error);
}

#define KITCHEN(member) .offset = offsetof(struct kitchen, member)

static const struct option kitchen_rows[] = {
    {.name = "oven",
     .letter = 'o',
     .argument = "KIND",
     .help = "which oven",
     KITCHEN(oven),
     .parse = option_type_string},
    {.name = "spoon",
     .argument = "SIZE",
     .help = "which spoon",
     KITCHEN(spoon),
     .parse = take_spoon},
    {.name = "stir", .letter = 's', .help = "stir once more", KITCHEN(stirs), .parse = take_stir},
    {.name = "hot", .letter = 't', .help = "serve hot", .parse = take_hot},
};

static const struct option cellar_rows[] = {
    {.name = "wine",
     .letter = 'w',
     .argument = "YEAR",
     .help = "which wine",
     .parse = option_type_string},
};

static const struct option_set kitchen_set = {
    .heading = "Kitchen", .options = kitchen_rows, .count = COUNT(kitchen_rows)};
static const struct option_set cellar_set = {
    .heading = "Cellar", .options = cellar_rows, .count = COUNT(cellar_rows)};

enum { WORDS_MAX = 8 };

/* One command line, ended by NULL, and its result. */
struct line {
    const char *words[WORDS_MAX];
    int result;
    int operand; /* the first operand's index in argv */
    struct kitchen kitchen;
    const char *wine;
    const char *message;
};

/* Parses `words` after adding argv[0]. */
static int parse(const char *const *words, struct kitchen *kitchen, struct cellar *cellar,
                 int *ret_operand, struct berth_error *error)
{
    const struct option_binding bindings[] = {{&kitchen_set, kitchen}, {&cellar_set, cellar}};
    char *argv[WORDS_MAX + 2] = {(char *)"cook"};
    int argc = 1;

    for (int i = 0; i < WORDS_MAX && words[i] != NULL; i++)
        argv[argc++] = (char *)words[i];
    return options_parse(bindings, COUNT(bindings), argc, argv, ret_operand, error);
}

static void check_text(const char *found, const char *wanted)
{
    if (wanted == NULL)
        assert_null(found);
    else
        assert_string_equal(found, wanted);
}

static void check_lines(const struct line *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct kitchen kitchen = {0};
        struct cellar cellar = {0};
        int operand = -1;
        int result = parse(lines[i].words, &kitchen, &cellar, &operand, &error);

        assert_string_equal(error.message, lines[i].message == NULL ? "" : lines[i].message);
        assert_int_equal(result, lines[i].result);
        if (result < 0) {
            assert_int_equal(error.code, result);
            continue;
        }
        if (result == OPTIONS_CONTINUE)
            assert_int_equal(operand, lines[i].operand);
        check_text(kitchen.oven, lines[i].kitchen.oven);
        check_text(kitchen.spoon, lines[i].kitchen.spoon);
        assert_int_equal(kitchen.stirs, lines[i].kitchen.stirs);
        assert_int_equal(kitchen.hot, lines[i].kitchen.hot);
        check_text(cellar.wine, lines[i].wine);
    }
}

static void every_form_is_read(void **state)
{
    static const struct line lines[] = {
        {.words = {NULL}, .operand = 1},
        {.words = {"--oven", "gas"}, .operand = 3, .kitchen = {.oven = "gas"}},
        {.words = {"--oven=gas"}, .operand = 2, .kitchen = {.oven = "gas"}},
        {.words = {"-o", "gas"}, .operand = 3, .kitchen = {.oven = "gas"}},
        {.words = {"-ogas"}, .operand = 2, .kitchen = {.oven = "gas"}},
        {.words = {"-o=gas"}, .operand = 2, .kitchen = {.oven = "=gas"}},
        {.words = {"--oven="}, .operand = 2, .kitchen = {.oven = ""}},
        {.words = {"--oven", ""}, .operand = 3, .kitchen = {.oven = ""}},
        {.words = {"--oven=a=b"}, .operand = 2, .kitchen = {.oven = "a=b"}},
        {.words = {"--hot"}, .operand = 2, .kitchen = {.hot = true}},
        {.words = {"-t"}, .operand = 2, .kitchen = {.hot = true}},
        {.words = {"-sst"}, .operand = 2, .kitchen = {.stirs = 2, .hot = true}},
        {.words = {"-stogas", "x"}, .operand = 2, .kitchen = {"gas", NULL, 1, true}},
        {.words = {"-sto", "gas"}, .operand = 3, .kitchen = {"gas", NULL, 1, true}},
        {.words = {"-w", "1990", "--spoon", "big"},
         .operand = 5,
         .kitchen = {.spoon = "big"},
         .wine = "1990"},
        {.words = {"--oven", "gas", "-o", "wood"}, .operand = 5, .kitchen = {.oven = "wood"}},
    };

    (void)state;
    check_lines(lines, COUNT(lines));
}

static void values_may_look_like_options(void **state)
{
    static const struct line lines[] = {
        {.words = {"--oven", "--hot"}, .operand = 3, .kitchen = {.oven = "--hot"}},
        {.words = {"-o", "-t"}, .operand = 3, .kitchen = {.oven = "-t"}},
        {.words = {"-o", "--"}, .operand = 3, .kitchen = {.oven = "--"}},
        {.words = {"--oven", "--help"}, .operand = 3, .kitchen = {.oven = "--help"}},
        {.words = {"-oh"}, .operand = 2, .kitchen = {.oven = "h"}},
    };

    (void)state;
    check_lines(lines, COUNT(lines));
}

static void operands_end_the_options(void **state)
{
    static const struct line lines[] = {
        {.words = {"bread", "--hot"}, .operand = 1},
        {.words = {"--hot", "bread", "--nonsense"}, .operand = 2, .kitchen = {.hot = true}},
        {.words = {"--", "--hot"}, .operand = 2},
        {.words = {"-t", "--", "--nonsense"}, .operand = 3, .kitchen = {.hot = true}},
        {.words = {"-t", "--"}, .operand = 3, .kitchen = {.hot = true}},
        {.words = {"-", "-t"}, .operand = 1},
        {.words = {"", "-t"}, .operand = 1},
    };

    (void)state;
    check_lines(lines, COUNT(lines));
}

static void help_is_always_there(void **state)
{
    static const struct line lines[] = {
        {.words = {"--help"}, .result = OPTIONS_HELP},
        {.words = {"-h"}, .result = OPTIONS_HELP},
        {.words = {"-th"}, .result = OPTIONS_HELP, .kitchen = {.hot = true}},
        {.words = {"--hot", "--help", "--nonsense"},
         .result = OPTIONS_HELP,
         .kitchen = {.hot = true}},
        {.words = {"bread", "--help"}, .operand = 1},
        {.words = {"--", "--help"}, .operand = 2},
        {.words = {"--help=me"},
         .result = BERTH_ERROR_INVALID,
         .message = "--help: takes no value, got 'me'"},
    };

    (void)state;
    check_lines(lines, COUNT(lines));
}

static void unknown_options_are_refused(void **state)
{
    static const struct line lines[] = {
        {.words = {"--ovne", "gas"}, .message = "no option '--ovne' here, did you mean --oven?"},
        {.words = {"--ovne=gas"}, .message = "no option '--ovne=gas' here, did you mean --oven?"},
        {.words = {"--vine=1990"}, .message = "no option '--vine=1990' here, did you mean --wine?"},
        {.words = {"--halp"}, .message = "no option '--halp' here, did you mean --help?"},
        {.words = {"--Oven"}, .message = "no option '--Oven' here, did you mean --oven?"},
        {.words = {"--window"}, .message = "no option '--window' here (--help lists them)"},
        {.words = {"--=x"}, .message = "no option '--=x' here (--help lists them)"},
        {.words = {"---"}, .message = "no option '---' here (--help lists them)"},
        {.words = {"-x"}, .message = "no option '-x' here (--help lists them)"},
        {.words = {"-sx"}, .message = "no option '-sx' here (--help lists them)"},
        {.words = {"-oven"}, .kitchen = {.oven = "ven"}, .operand = 2},
        {.words = {"-stirr"}, .message = "no option '-stirr' here, did you mean --stir?"},
        {.words = {"-\xff"}, .message = "no option '-?' here (--help lists them)"},
        {.words = {"--\x1b[2J"}, .message = "no option '--?[2J' here (--help lists them)"},
        {.words = {"--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
         .message = "no option '--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...' "
                    "here (--help lists them)"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++) {
        struct line line = lines[i];

        line.result = line.message == NULL ? OPTIONS_CONTINUE : BERTH_ERROR_INVALID;
        check_lines(&line, 1);
    }
}

static void values_go_where_they_are_taken(void **state)
{
    static const struct line lines[] = {
        {.words = {"--oven"},
         .result = BERTH_ERROR_INVALID,
         .message = "--oven: expected KIND, got nothing"},
        {.words = {"--hot", "-o"},
         .result = BERTH_ERROR_INVALID,
         .message = "--oven: expected KIND, got nothing"},
        {.words = {"--hot=very"},
         .result = BERTH_ERROR_INVALID,
         .message = "--hot: takes no value, got 'very'"},
        {.words = {"--hot="},
         .result = BERTH_ERROR_INVALID,
         .message = "--hot: takes no value, got ''"},
        {.words = {"--spoon", "fork"},
         .result = BERTH_ERROR_SYNTAX,
         .message = "--spoon: expected a spoon, got 'fork'"},
        {.words = {"-sssssst"}, .result = BERTH_ERROR_RANGE, .message = "--hot: too late"},
    };
    struct kitchen kitchen = {0};
    struct cellar cellar = {0};
    int operand;

    (void)state;
    check_lines(lines, COUNT(lines));
    for (size_t i = 0; i < COUNT(lines); i++)
        assert_int_equal(parse(lines[i].words, &kitchen, &cellar, &operand, NULL), lines[i].result);
}

static void words_are_wrapped(void **state)
{
    static const struct {
        const char *words;
        size_t indent;
        size_t width;
        const char *wanted;
    } cases[] = {
        {"", 0, 10, "\n"},
        {"one", 0, 10, "one\n"},
        {"one two three", 0, 13, "one two three\n"},
        {"one two three", 0, 12, "one two\nthree\n"},
        {"one two three", 0, 7, "one two\nthree\n"},
        {"one two three", 0, 6, "one\ntwo\nthree\n"},
        {"one two three", 0, 1, "one\ntwo\nthree\n"},
        {"one two three", 2, 9, "one two\n  three\n"},
        {"one two three", 2, 8, "one\n  two\n  three\n"},
        {"one two three", 20, 10, "one\n                    two\n                    three\n"},
        {"größe größe", 0, 11, "größe größe\n"},
        {"größe größe", 0, 10, "größe\ngröße\n"},
        {"漢字 漢字", 0, 9, "漢字 漢字\n"},
        {"漢字 漢字", 0, 8, "漢字\n漢字\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct text out = {0};

        options_wrap(cases[i].words, cases[i].indent, cases[i].width, &out);
        assert_string_equal(text_string(&out), cases[i].wanted);
        text_finish(&out);
    }
}

static void a_very_long_word_is_kept(void **state)
{
    char word[301];
    struct text out = {0};

    (void)state;
    memset(word, 'x', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    options_wrap(word, 0, 40, &out);
    assert_int_equal(out.length, 301);
    assert_int_equal(strspn(text_string(&out), "x"), 300);
    text_finish(&out);
}

static const struct option layout_rows[] = {
    {.name = "all", .letter = 'a', .help = "everything"},
    {.name = "no-letter", .help = "only by its name"},
    {.name = "kind", .letter = 'k', .argument = "KIND", .help = "one of several kinds, explained"},
    {.name = "a-name-that-is-long", .argument = "VALUE", .help = "below"},
    {.name = "a-name-that-just", .argument = "IN", .help = "beside"},
    {.name = "a-name-that-may", .argument = "MISS", .help = "below"},
};

static const struct option_set layout_set = {
    .heading = "Options", .options = layout_rows, .count = COUNT(layout_rows)};

static void check_layout(size_t width, const char *wanted)
{
    struct text out = {0};

    options_describe(&layout_set, width, &out);
    assert_string_equal(text_string(&out), wanted);
    text_finish(&out);
}

static void sets_are_described(void **state)
{
    (void)state;
    check_layout(80, "  -a, --all                  everything\n"
                     "      --no-letter            only by its name\n"
                     "  -k, --kind KIND            one of several kinds, explained\n"
                     "      --a-name-that-is-long VALUE\n"
                     "                             below\n"
                     "      --a-name-that-just IN  beside\n"
                     "      --a-name-that-may MISS\n"
                     "                             below\n");
    check_layout(45, "  -a, --all                  everything\n"
                     "      --no-letter            only by its name\n"
                     "  -k, --kind KIND            one of several\n"
                     "                             kinds, explained\n"
                     "      --a-name-that-is-long VALUE\n"
                     "                             below\n"
                     "      --a-name-that-just IN  beside\n"
                     "      --a-name-that-may MISS\n"
                     "                             below\n");
}

static int describe(void *context)
{
    struct text out = {0};
    bool failed;

    (void)context;
    options_describe(&layout_set, 45, &out);
    failed = text_failed(&out);
    text_finish(&out);
    return failed ? BERTH_ERROR_MEMORY : 0;
}

static void out_of_memory_is_remembered_by_the_text(void **state)
{
    (void)state;
    assert_true(failing_allocator_try_all(describe, NULL) > 0);
}

/* A line with options anywhere, and its operands in order. */
struct mixed_line {
    const char *words[WORDS_MAX];
    const char *operands[WORDS_MAX];
    struct kitchen kitchen;
};

static void check_mixed(const struct mixed_line *line)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct kitchen kitchen = {0};
    const struct option_binding binding = {&kitchen_set, &kitchen};
    char *argv[WORDS_MAX + 2] = {(char *)"cook"};
    int argc = 1;
    int operand;

    while (line->words[argc - 1] != NULL) {
        argv[argc] = (char *)line->words[argc - 1];
        argc++;
    }
    assert_int_equal(options_parse_mixed(&binding, 1, argc, argv, &operand, &error),
                     OPTIONS_CONTINUE);
    for (int i = 0; line->operands[i] != NULL; i++, operand++) {
        assert_true(operand < argc);
        assert_string_equal(argv[operand], line->operands[i]);
    }
    assert_int_equal(operand, argc);
    check_text(kitchen.oven, line->kitchen.oven);
    assert_int_equal(kitchen.stirs, line->kitchen.stirs);
    assert_int_equal(kitchen.hot, line->kitchen.hot);
}

static void options_may_stand_among_operands(void **state)
{
    static const struct mixed_line lines[] = {
        {.words = {NULL}},
        {.words = {"bread"}, .operands = {"bread"}},
        {.words = {"bread", "--hot"}, .operands = {"bread"}, .kitchen = {.hot = true}},
        {.words = {"bread", "--oven", "gas", "wine", "-s", "cheese", "-ss"},
         .operands = {"bread", "wine", "cheese"},
         .kitchen = {.oven = "gas", .stirs = 3}},
        {.words = {"-t", "bread", "-", "--oven=gas"},
         .operands = {"bread", "-"},
         .kitchen = {.oven = "gas", .hot = true}},
        {.words = {"bread", "-s", "--", "--hot", "wine", "--"},
         .operands = {"bread", "--hot", "wine", "--"},
         .kitchen = {.stirs = 1}},
        {.words = {"bread", "-o", "--", "-t"},
         .operands = {"bread"},
         .kitchen = {.oven = "--", .hot = true}},
        {.words = {"--", "-t"}, .operands = {"-t"}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++)
        check_mixed(&lines[i]);
}

static void what_is_wrong_among_operands_is_said(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct kitchen kitchen = {0};
    const struct option_binding binding = {&kitchen_set, &kitchen};
    char *unknown[] = {(char *)"cook", (char *)"bread", (char *)"--ovem", NULL};
    char *missing[] = {(char *)"cook", (char *)"bread", (char *)"--oven", NULL};
    char *help[] = {(char *)"cook", (char *)"bread", (char *)"-h", NULL};
    int operand;

    (void)state;
    assert_fails(options_parse_mixed(&binding, 1, 3, unknown, &operand, &error),
                 BERTH_ERROR_INVALID, &error, "no option '--ovem' here, did you mean --oven?");
    assert_int_equal(options_parse_mixed(&binding, 1, 3, missing, &operand, &error),
                     BERTH_ERROR_INVALID);
    assert_int_equal(options_parse_mixed(&binding, 1, 3, help, &operand, &error), OPTIONS_HELP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_read),
        cmocka_unit_test(values_may_look_like_options),
        cmocka_unit_test(operands_end_the_options),
        cmocka_unit_test(options_may_stand_among_operands),
        cmocka_unit_test(what_is_wrong_among_operands_is_said),
        cmocka_unit_test(help_is_always_there),
        cmocka_unit_test(unknown_options_are_refused),
        cmocka_unit_test(values_go_where_they_are_taken),
        cmocka_unit_test(words_are_wrapped),
        cmocka_unit_test(a_very_long_word_is_kept),
        cmocka_unit_test(sets_are_described),
        cmocka_unit_test(out_of_memory_is_remembered_by_the_text),
    };

    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
