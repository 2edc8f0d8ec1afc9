/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/count.h"
#include "base/text/terminal.h"
#include "base/text/utf8.h"
#include "cli/exit_codes.h"
#include "cli/output.h"

/* Switches to the alternate screen without a cursor and without line wrap, and back. */
static const char enter[] = "\033[?1049h\033[?25l\033[?7l\033[H\033[2J";
static const char leave[] = "\033[0m\033[?7h\033[?25h\033[?1049l";

enum { DEFAULT_ROWS = 24 };

static volatile sig_atomic_t is_dirty;
static struct text shown;

/* Writes to the terminal; safe in signal handlers. Ignores errors. */
static void write_terminal(const char *sequence, size_t length)
{
    ssize_t written = write(STDOUT_FILENO, sequence, length);

    (void)written;
}

static void handle_end_signal(int number)
{
    write_terminal(leave, sizeof(leave) - 1);
    raise(number); /* SA_RESETHAND: now the default action runs */
}

static void handle_stop_signal(int number)
{
    int saved = errno;

    (void)number;
    write_terminal(leave, sizeof(leave) - 1);
    raise(SIGSTOP);
    write_terminal(enter, sizeof(enter) - 1);
    is_dirty = 1;
    errno = saved;
}

static void handle_resize(int number)
{
    (void)number;
    is_dirty = 1;
}

bool screen_is_supported(void)
{
    const char *kind = getenv("TERM");

    return isatty(STDOUT_FILENO) == 1 && kind != NULL && strcmp(kind, "dumb") != 0;
}

void screen_enter(void)
{
    static const struct {
        int number;
        void (*handler)(int number);
        int flags;
    } rows[] = {
        {SIGINT, handle_end_signal, SA_RESETHAND | SA_NODEFER},
        {SIGTERM, handle_end_signal, SA_RESETHAND | SA_NODEFER},
        {SIGHUP, handle_end_signal, SA_RESETHAND | SA_NODEFER},
        {SIGQUIT, handle_end_signal, SA_RESETHAND | SA_NODEFER},
        {SIGTSTP, handle_stop_signal, 0},
        {SIGWINCH, handle_resize, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct sigaction action = {.sa_handler = rows[i].handler, .sa_flags = rows[i].flags};
        struct sigaction before;

        /* A signal that the parent ignored (nohup) stays ignored. */
        if (sigaction(rows[i].number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(rows[i].number, &action, NULL);
    }
    write_terminal(enter, sizeof(enter) - 1);
    is_dirty = 1;
}

void screen_leave(void)
{
    write_terminal(leave, sizeof(leave) - 1);
    text_finish(&shown);
}

static size_t count_rows(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0)
        return size.ws_row;
    return DEFAULT_ROWS;
}

static size_t count_lines(const char *picture)
{
    size_t lines = 0;

    for (; *picture != '\0'; picture++)
        lines += *picture == '\n';
    return lines;
}

/* Returns the length in bytes of the next character, or of the next style sequence, which has no
 * width. */
static size_t measure_next(const char *line, size_t length, size_t *ret_width)
{
    uint32_t character;
    size_t taken = 1;

    if (line[0] == '\033') {
        while (taken < length && line[taken - 1] != 'm')
            taken++;
        *ret_width = 0;
        return taken;
    }
    taken = utf8_decode_inert(line, length, &character);
    *ret_width = utf8_character_width(character);
    return taken;
}

/* Appends one line, cut with a mark in the last column if it is too long, and clears the rest of
 * its row. Not after a line as wide as the screen: the cursor stays on its last character, which
 * would be cleared. */
static void append_line(const char *line, size_t length, const struct terminal *terminal,
                        struct text *out)
{
    size_t used = 0;
    size_t kept = 0; /* bytes before the mark */
    size_t width;

    for (size_t i = 0; i < length && used <= terminal->width;) {
        i += measure_next(line + i, length - i, &width);
        used += width;
        if (used < terminal->width)
            kept = i;
    }
    text_append_bytes(out, line, used > terminal->width ? kept : length);
    if (used > terminal->width) {
        text_append(out, terminal->unicode ? "…" : "~");
        text_append(out, terminal->colour ? terminal_style_end() : "");
    }
    if (used < terminal->width)
        text_append(out, "\033[K");
}

/* Appends the picture from the terminal's first row on. The last row counts the lines that do not
 * fit, unless it is the only row. */
static void compose_frame(const char *picture, size_t rows, const struct terminal *terminal,
                          struct text *out)
{
    size_t lines = count_lines(picture);
    size_t max = lines <= rows ? lines : rows > 1 ? rows - 1 : 1;
    char more[40];

    text_append(out, "\033[H");
    for (size_t i = 0; i < max; i++) {
        size_t length = strcspn(picture, "\n");

        append_line(picture, length, terminal, out);
        text_append(out, i + 1 < rows ? "\r\n" : "");
        picture += length + 1;
    }
    if (max < lines && rows > 1) {
        snprintf(more, sizeof(more), "(%zu more lines)", lines - max);
        append_line(more, strlen(more), terminal, out);
    } else if (max < rows) {
        text_append(out, "\033[J");
    }
}

int screen_draw(const struct text *picture)
{
    struct terminal terminal = terminal_detect(STDOUT_FILENO);
    struct text frame = {0};
    int code = EXIT_GOOD;

    compose_frame(text_string(picture), count_rows(), &terminal, &frame);
    frame.failed |= picture->failed;
    if (is_dirty || text_failed(&frame) || strcmp(text_string(&frame), text_string(&shown)) != 0) {
        is_dirty = 0;
        code = output_write(&frame);
    }
    text_finish(&shown);
    shown = frame;
    return code;
}

bool screen_is_dirty(void)
{
    return is_dirty != 0;
}

bool screen_pause(int descriptor, int64_t time)
{
    struct pollfd polled[] = {{.fd = STDOUT_FILENO}, {.fd = descriptor, .events = POLLIN}};

    return poll(polled, COUNT(polled), time > 0 ? (int)((time + 999999) / 1000000) : 0) <= 0 ||
           (polled[0].revents & POLLERR) == 0;
}
