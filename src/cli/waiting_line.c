/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/waiting_line.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/terminal.h"
#include "base/utf8.h"

#define CLEAR_LINE "\r\033[K"

static void print(const char *bytes, size_t length)
{
    /* A terminal that takes nothing is no reason to give up waiting. */
    if (write(STDERR_FILENO, bytes, length) < 0)
        return;
}

/* Whether the cursor of stderr's terminal may be moved about. */
static bool knows_the_cursor(void)
{
    const char *kind = getenv("TERM");

    return kind != NULL && strcmp(kind, "dumb") != 0;
}

void waiting_line_init(struct waiting_line *line, bool verbose)
{
    *line = (struct waiting_line){0};
    if (verbose)
        line->style = WAITING_LINES;
    else if (isatty(STDERR_FILENO) == 1)
        line->style = knows_the_cursor() ? WAITING_LINE : WAITING_LINES;
}

void waiting_line_finish(struct waiting_line *line)
{
    if (line->drawn)
        print(CLEAR_LINE, strlen(CLEAR_LINE));
    text_finish(&line->content);
    *line = (struct waiting_line){0};
}

static void append_ordinal(uint32_t number, struct text *out)
{
    static const char *const endings[] = {"th", "st", "nd", "rd"};
    bool teen = number / 10 % 10 == 1;
    uint32_t digit = number % 10;

    text_append_format(out, "%u%s", number, teen || digit > 3 ? "th" : endings[digit]);
}

void waiting_describe(const struct wire_message *waiting, struct text *out)
{
    text_append(out, "waiting");
    if (waiting->position > 0) {
        text_append(out, ", ");
        append_ordinal(waiting->position, out);
    }
    if (waiting->position > 0 && waiting->pending >= waiting->position)
        text_append_format(out, " of %u", waiting->pending);
    if (waiting->text != NULL && waiting->text[0] != '\0') {
        text_append(out, ": ");
        utf8_append_inert(out, waiting->text);
    }
    if (waiting->estimate.known && waiting->estimate.value <= INT64_MAX)
        text_append_format(out, "; starts in about %s",
                           quantity_format_duration((int64_t)waiting->estimate.value).text);
}

/* Appends as much of the text as fits into so many columns. */
static void append_cut(const char *string, size_t columns, struct text *out)
{
    size_t length = strlen(string);
    size_t used = 0;
    size_t at = 0;

    while (at < length) {
        uint32_t character;
        size_t size = utf8_decode_inert(string + at, length - at, &character);
        unsigned width = utf8_character_width(character);

        if (used + width > columns)
            break;
        used += width;
        at += size;
    }
    text_append_bytes(out, string, at);
}

void waiting_fit(const char *head, int64_t so_far, size_t columns, struct text *out)
{
    static const char name[] = "berth: ";
    struct text tail = {0};
    size_t room;

    if (so_far >= DURATION_SECOND)
        text_append_format(&tail, " (%s so far)", quantity_format_duration(so_far).text);
    /* The last column stays empty: some terminals go on to the next line there. */
    room = columns == 0 ? SIZE_MAX : columns - 1;
    if (room < strlen(name) + tail.length + 20)
        text_clear(&tail);
    room -= room == SIZE_MAX ? 0 : tail.length;
    if (room <= strlen(name)) {
        append_cut(name, room, out);
    } else {
        text_append(out, name);
        append_cut(head, room - strlen(name), out);
    }
    text_append(out, text_string(&tail));
    out->failed |= text_failed(&tail);
    text_finish(&tail);
}

/* Whether our process group has the terminal: from the background nothing is drawn. */
static bool is_in_the_foreground(void)
{
    pid_t group = tcgetpgrp(STDERR_FILENO);

    return group < 0 || group == getpgrp();
}

static void draw(struct waiting_line *line, const char *head)
{
    struct text out = {0};

    if (!is_in_the_foreground())
        return;
    text_append(&out, CLEAR_LINE);
    waiting_fit(head, clock_now() - line->since, terminal_of(STDERR_FILENO).width, &out);
    if (!text_failed(&out)) {
        print(out.bytes, out.length);
        line->drawn = true;
    }
    text_finish(&out);
}

/* Prints a line, unless it says what the last one said. */
static void print_line(struct waiting_line *line, const char *head)
{
    struct text out = {0};

    text_append_format(&out, "berth: %s\n", head);
    if (!text_failed(&out) && strcmp(text_string(&out), text_string(&line->content)) != 0)
        print(out.bytes, out.length);
    text_finish(&line->content);
    line->content = out;
}

static int tell(void *context, const struct wire_message *waiting, struct berth_error *error)
{
    struct waiting_line *line = context;
    struct text head = {0};

    (void)error;
    if (line->since == 0)
        line->since = clock_now();
    waiting_describe(waiting, &head);
    if (line->style == WAITING_LINE)
        draw(line, text_string(&head));
    else if (line->style == WAITING_LINES)
        print_line(line, text_string(&head));
    text_finish(&head);
    return 0;
}

struct claim_listener waiting_line_listener(struct waiting_line *line)
{
    return (struct claim_listener){
        .context = line,
        .pause = line->style == WAITING_SILENT ? 0 : DURATION_SECOND,
        .waiting = line->style == WAITING_SILENT ? NULL : tell,
    };
}
