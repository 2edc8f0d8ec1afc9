/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <string.h>

#include "base/error.h"
#include "base/text/quote.h"
#include "base/text/suggest.h"
#include "base/text/utf8.h"
#include "spec/request_options.h"

/* An option that was found, and the struct that it fills in. */
struct found_option {
    const struct option *option;
    void *target;
};

/* argv, and the position of the next argument. */
struct argv_cursor {
    int argc;
    char **argv;
    int next;
};

static const struct option help_option = {
    .name = "help",
    .letter = 'h',
    .help = "show this help",
};

static bool is_named(const struct option *option, const char *name, size_t length)
{
    return strlen(option->name) == length && strncmp(option->name, name, length) == 0;
}

static const struct option *find_letter(const struct option_set *set, char letter)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->options[i].letter == letter)
            return &set->options[i];
    }
    return NULL;
}

/* Finds an option by name, or by letter if the name is NULL. */
static bool find_option(const struct option_binding *bindings, size_t count, const char *name,
                        size_t length, char letter, struct found_option *ret_found)
{
    for (size_t i = 0; i < count; i++) {
        const struct option_set *set = bindings[i].set;
        const struct option *option =
            name != NULL ? option_find(set, name, length) : find_letter(set, letter);

        if (option == NULL)
            continue;
        *ret_found = (struct found_option){.option = option, .target = bindings[i].target};
        return true;
    }
    return false;
}

static int fail_unknown_option(const struct option_binding *bindings, size_t count,
                               const char *word, const char *name, size_t length,
                               struct berth_error *error)
{
    char wanted[64];
    struct suggestion nearest = {.wanted = wanted};
    const struct option_set *set;

    if (request_options_find(request_option_sets, name, length, &set) != NULL && set->verbs != NULL)
        return error_set(error, BERTH_ERROR_INVALID, "--%.*s: an option of %s only", (int)length,
                         name, set->verbs);
    if (length < sizeof(wanted)) {
        memcpy(wanted, name, length);
        wanted[length] = '\0';
        for (size_t i = 0; i < count; i++) {
            for (size_t j = 0; j < bindings[i].set->count; j++) {
                if (!bindings[i].set->options[j].hidden)
                    suggest_compare(&nearest, bindings[i].set->options[j].name);
            }
        }
        suggest_compare(&nearest, help_option.name);
    }
    if (nearest.best == NULL)
        return error_set(error, BERTH_ERROR_INVALID, "no option %s here (--help lists them)",
                         quote(word).text);
    return error_set(error, BERTH_ERROR_INVALID, "no option %s here, did you mean --%s?",
                     quote(word).text, nearest.best);
}

/* Sets the option to the attached value, or else to the next argument. */
static int set_value(const struct found_option *found, const char *attached,
                     struct argv_cursor *cursor, struct berth_error *error)
{
    const struct option *option = found->option;
    const char *value = attached;
    int code;

    if (option->argument != NULL && value == NULL && cursor->next < cursor->argc)
        value = cursor->argv[cursor->next++];
    if (found->target == NULL && option != &help_option)
        return OPTIONS_CONTINUE;
    code = option_apply(option, found->target, value, error);
    return code < 0 ? error_wrap(error, code, "--%s", option->name) : OPTIONS_CONTINUE;
}

static int parse_long_option(const struct option_binding *bindings, size_t count, const char *word,
                             struct argv_cursor *cursor, struct berth_error *error)
{
    const char *name = word + 2;
    size_t length = strcspn(name, "=");
    struct found_option found = {.option = &help_option};

    if (is_named(&help_option, name, length) && name[length] == '\0')
        return OPTIONS_HELP;
    if (!is_named(&help_option, name, length) &&
        !find_option(bindings, count, name, length, 0, &found))
        return fail_unknown_option(bindings, count, word, name, length, error);
    return set_value(&found, name[length] == '=' ? name + length + 1 : NULL, cursor, error);
}

static int parse_letters(const struct option_binding *bindings, size_t count, const char *word,
                         struct argv_cursor *cursor, struct berth_error *error)
{
    for (const char *letter = word + 1; *letter != '\0'; letter++) {
        struct found_option found;
        int code;

        if (*letter == help_option.letter)
            return OPTIONS_HELP;
        if (!find_option(bindings, count, NULL, 0, *letter, &found))
            return fail_unknown_option(bindings, count, word, word + 1, strlen(word + 1), error);
        if (found.option->argument != NULL)
            return set_value(&found, letter[1] == '\0' ? NULL : letter + 1, cursor, error);
        code = set_value(&found, NULL, cursor, error);
        if (code < 0)
            return code;
    }
    return OPTIONS_CONTINUE;
}

static bool is_operand(const char *word)
{
    return word[0] != '-' || word[1] == '\0';
}

/* Parses the option at the cursor with its value, or the "--" there. */
static int parse_option(const struct option_binding *bindings, size_t count,
                        struct argv_cursor *cursor, struct berth_error *error)
{
    const char *word = cursor->argv[cursor->next++];

    if (strcmp(word, "--") == 0)
        return OPTIONS_CONTINUE;
    return word[1] == '-' ? parse_long_option(bindings, count, word, cursor, error)
                          : parse_letters(bindings, count, word, cursor, error);
}

int options_parse(const struct option_binding *bindings, size_t count, int argc, char **argv,
                  int *ret_operand, struct berth_error *error)
{
    struct argv_cursor cursor = {.argc = argc, .argv = argv, .next = 1};
    int code = OPTIONS_CONTINUE;
    bool ended = false;

    while (code == OPTIONS_CONTINUE && !ended && cursor.next < argc &&
           !is_operand(argv[cursor.next])) {
        ended = strcmp(argv[cursor.next], "--") == 0;
        code = parse_option(bindings, count, &cursor, error);
    }
    *ret_operand = cursor.next;
    return code;
}

/* Moves argv[from..to), one or two arguments, in front of the `count` arguments before them. */
static void move_arguments_before(char **argv, int count, int from, int to)
{
    char **place = argv + from - count;
    size_t moved = (size_t)(to - from);
    char *moving[2];

    memcpy(moving, argv + from, moved * sizeof(*moving));
    memmove(place + moved, place, (size_t)count * sizeof(*place));
    memcpy(place, moving, moved * sizeof(*moving));
}

int options_parse_mixed(const struct option_binding *bindings, size_t count, int argc, char **argv,
                        int *ret_operand, struct berth_error *error)
{
    struct argv_cursor cursor = {.argc = argc, .argv = argv, .next = 1};
    int code = OPTIONS_CONTINUE;
    int operands = 0; /* number of operands just before the cursor */
    bool ended = false;

    while (code == OPTIONS_CONTINUE && !ended && cursor.next < argc) {
        int from = cursor.next;

        if (is_operand(argv[from])) {
            operands++;
            cursor.next++;
            continue;
        }
        ended = strcmp(argv[from], "--") == 0;
        code = parse_option(bindings, count, &cursor, error);
        move_arguments_before(argv, operands, from, cursor.next);
    }
    *ret_operand = cursor.next - operands;
    return code;
}

/* Returns the width of one word in terminal columns. */
static size_t count_columns(const char *word, size_t length)
{
    size_t columns = 0;

    for (size_t i = 0; i < length;) {
        uint32_t character;

        i += utf8_decode_inert(word + i, length - i, &character);
        columns += utf8_character_width(character);
    }
    return columns;
}

void options_wrap(const char *words, size_t indent, size_t width, struct text *out)
{
    size_t column = indent;

    while (*words != '\0') {
        size_t length = strcspn(words, " ");
        size_t columns = count_columns(words, length);

        if (column > indent && column + 1 + columns > width) {
            text_append_char(out, '\n');
            text_append_repeated(out, ' ', indent);
            column = indent;
        }
        if (column > indent) {
            text_append_char(out, ' ');
            column++;
        }
        text_append_bytes(out, words, length);
        column += columns;
        words += length;
        words += *words == ' ';
    }
    text_append_char(out, '\n');
}

static void describe_option(const struct option *option, size_t width, struct text *out)
{
    enum { HELP_COLUMN = 29 };
    size_t start = out->length;
    size_t used;

    if (option->letter != 0)
        text_append_format(out, "  -%c, --%s", option->letter, option->name);
    else
        text_append_format(out, "      --%s", option->name);
    if (option->argument != NULL)
        text_append_format(out, " %s", option->argument);
    used = out->length - start;
    if (used + 2 > HELP_COLUMN) {
        text_append_char(out, '\n');
        used = 0;
    }
    text_append_repeated(out, ' ', HELP_COLUMN - used);
    options_wrap(option->help, HELP_COLUMN, width, out);
}

void options_describe(const struct option_set *set, size_t width, struct text *out)
{
    for (size_t i = 0; i < set->count; i++) {
        if (!set->options[i].hidden)
            describe_option(&set->options[i], width, out);
    }
}
