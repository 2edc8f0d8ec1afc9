/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/terminal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/count.h"
#include "base/text/quantity.h"

enum {
    DEFAULT_WIDTH = 80,
    WIDTH_MAX = 10000, /* a larger width is ignored */
};

static size_t detect_width(int descriptor, bool is_terminal)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    uint64_t width;

    if (columns != NULL && quantity_parse_number(columns, 1, WIDTH_MAX, &width, NULL) == 0)
        return (size_t)width;
    if (!is_terminal)
        return 0;
    if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_col <= WIDTH_MAX)
        return size.ws_col;
    return DEFAULT_WIDTH;
}

/* Returns the variable's value, or NULL when it is not set or empty. */
static const char *environment_value(const char *name)
{
    const char *value = getenv(name);

    return value == NULL || value[0] == '\0' ? NULL : value;
}

static bool wants_colour(void)
{
    const char *kind = getenv("TERM");

    return environment_value("NO_COLOR") == NULL && (kind == NULL || strcmp(kind, "dumb") != 0);
}

static bool knows_unicode(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < COUNT(variables); i++) {
        const char *locale = environment_value(variables[i]);

        if (locale != NULL)
            return strcasestr(locale, "utf-8") != NULL || strcasestr(locale, "utf8") != NULL;
    }
    return false;
}

const char *terminal_clear_line(int descriptor)
{
    const char *kind = getenv("TERM");

    return isatty(descriptor) == 1 && kind != NULL && strcmp(kind, "dumb") != 0 ? "\r\033[K" : "";
}

struct terminal terminal_detect(int descriptor)
{
    bool is_terminal = isatty(descriptor) == 1;

    return (struct terminal){
        .width = detect_width(descriptor, is_terminal),
        .colour = is_terminal && wants_colour(),
        .unicode = knows_unicode(),
    };
}

const char *terminal_style_start(enum style style)
{
    switch (style) {
    case STYLE_PLAIN:
        return "";
    case STYLE_STRONG:
        return "\033[1m";
    case STYLE_FAINT:
        return "\033[2m";
    case STYLE_GOOD:
        return "\033[32m";
    case STYLE_WARNING:
        return "\033[33m";
    case STYLE_BAD:
        return "\033[31m";
    }
    return "";
}

const char *terminal_style_end(void)
{
    return "\033[0m";
}
