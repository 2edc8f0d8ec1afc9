/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/waiting_line.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "base/text/terminal.h"
#include "base/text/utf8.h"
#include "view/reason_text.h"

#define CLEAR_LINE "\r\033[K"

static void write_stderr(const char *bytes, size_t length)
{
    /* Ignore a failure to write: the claim keeps waiting. */
    if (write(STDERR_FILENO, bytes, length) < 0)
        return;
}

void waiting_line_init(struct waiting_line *line, bool verbose)
{
    *line = (struct waiting_line){0};
    if (verbose)
        line->style = WAITING_LINES;
    else if (isatty(STDERR_FILENO) == 1)
        line->style = *terminal_clear_line(STDERR_FILENO) != '\0' ? WAITING_LINE : WAITING_LINES;
}

void waiting_line_finish(struct waiting_line *line)
{
    if (line->drawn)
        write_stderr(CLEAR_LINE, strlen(CLEAR_LINE));
    text_finish(&line->last);
    user_names_finish(&line->users);
    *line = (struct waiting_line){0};
}

static void append_ordinal(uint32_t number, struct text *out)
{
    static const char *const endings[] = {"th", "st", "nd", "rd"};
    bool teen = number / 10 % 10 == 1;
    uint32_t digit = number % 10;

    text_append_format(out, "%u%s", number, teen || digit > 3 ? "th" : endings[digit]);
}

static void append_times(const struct waiting_line_parts *parts, struct text *out)
{
    struct optional_number estimate = parts->waiting->estimate;

    if (estimate.known && estimate.value <= INT64_MAX)
        text_append_format(out, ", starts in about %s",
                           quantity_format_duration((int64_t)estimate.value).text);
    if (parts->so_far >= DURATION_SECOND)
        text_append_format(out, " (%s so far)", quantity_format_duration(parts->so_far).text);
}

/* Appends the most important parts first, because the end may be cut. */
void waiting_line_describe(const struct waiting_line_parts *parts, struct text *out)
{
    const struct wire_message *waiting = parts->waiting;
    struct text why = {0};

    text_append(out, "berth: waiting");
    if (waiting->position > 0) {
        text_append(out, ", ");
        append_ordinal(waiting->position, out);
    }
    if (waiting->position > 0 && waiting->snapshot.pending >= waiting->position)
        text_append_format(out, " of %u", waiting->snapshot.pending);
    if (parts->times)
        append_times(parts, out);
    if (waiting->text != NULL && waiting->text[0] != '\0') {
        text_append(out, ": ");
        reason_text_append(&why, waiting->text, parts->users);
        utf8_append_inert(out, text_string(&why));
        out->failed |= why.failed;
        text_finish(&why);
    }
}

void waiting_line_append_cut(const char *string, size_t columns, struct text *out)
{
    size_t length = strlen(string);
    size_t used = 0;
    size_t at = 0;

    while (at < length) {
        uint32_t character;
        size_t size = utf8_decode_inert(string + at, length - at, &character);
        unsigned width = utf8_character_width(character);

        if (columns > 0 && used + width > columns)
            break;
        used += width;
        at += size;
    }
    text_append_bytes(out, string, at);
}

/* Returns true if this process group has the terminal. A background process draws nothing. */
static bool is_in_the_foreground(void)
{
    pid_t group = tcgetpgrp(STDERR_FILENO);

    return group < 0 || group == getpgrp();
}

static void draw_line(struct waiting_line *line, const char *parts)
{
    size_t width = terminal_detect(STDERR_FILENO).width;
    struct text out = {0};

    if (!is_in_the_foreground())
        return;
    text_append(&out, CLEAR_LINE);
    /* Leave the last column empty: some terminals wrap after writing to it. */
    waiting_line_append_cut(parts, width > 1 ? width - 1 : width, &out);
    if (!text_failed(&out)) {
        write_stderr(out.bytes, out.length);
        line->drawn = true;
    }
    text_finish(&out);
}

/* Prints a line, unless only its times have changed. */
static void print_line(struct waiting_line *line, const struct waiting_line_parts *parts,
                       const char *line_text)
{
    struct waiting_line_parts lasting = *parts;
    struct text now = {0};
    struct text out = {0};

    lasting.times = false;
    waiting_line_describe(&lasting, &now);
    text_append_format(&out, "%s\n", line_text);
    if (!text_failed(&out) && strcmp(text_string(&now), text_string(&line->last)) != 0)
        write_stderr(out.bytes, out.length);
    text_finish(&out);
    text_finish(&line->last);
    line->last = now;
}

static int update_line(void *context, const struct wire_message *waiting, struct berth_error *error)
{
    struct waiting_line *line = context;
    bool first = line->since == 0;
    struct waiting_line_parts parts = {
        .waiting = waiting,
        .users = &line->users,
        .times = true,
    };
    struct text out = {0};

    (void)error;
    if (first)
        line->since = clock_now();
    parts.so_far = clock_now() - line->since;
    /* The first message has no reason yet; claim_wait() requests it. */
    if (first && waiting->text == NULL)
        return 0;
    waiting_line_describe(&parts, &out);
    if (line->style == WAITING_LINE)
        draw_line(line, text_string(&out));
    else
        print_line(line, &parts, text_string(&out));
    text_finish(&out);
    return 0;
}

struct claim_listener waiting_line_listener(struct waiting_line *line)
{
    if (line->style == WAITING_SILENT)
        return (struct claim_listener){0};
    return (struct claim_listener){
        .context = line,
        .pause = DURATION_SECOND,
        .waiting = update_line,
    };
}
