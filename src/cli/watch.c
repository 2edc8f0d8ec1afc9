/* SPDX-License-Identifier: Apache-2.0
 *
 * The screen is the terminal's alternate screen without a cursor. The terminal is restored whenever
 * the program ends or stops. For the main thread only.
 */
#include "cli/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "base/text/terminal.h"
#include "base/text/utf8.h"
#include "cli/exit_codes.h"
#include "cli/output.h"

/* Times are shown in seconds, so a screen is drawn at least this often. */
#define REDRAW_INTERVAL DURATION_SECOND

/* Switches to the alternate screen without a cursor and without line wrap, and back. */
static const char enter[] = "\033[?1049h\033[?25l\033[?7l\033[H\033[2J";
static const char leave[] = "\033[0m\033[?7h\033[?25h\033[?1049l";

enum { DEFAULT_ROWS = 24 };

static volatile sig_atomic_t is_dirty; /* the size changed, or the program was stopped */
static struct text shown;              /* the frame on the screen */

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

/* Returns whether standard output is a terminal that can be drawn in place. */
static bool is_screen_supported(void)
{
    const char *kind = getenv("TERM");

    return isatty(STDOUT_FILENO) == 1 && kind != NULL && strcmp(kind, "dumb") != 0;
}

/* Switches to the alternate screen. From then on, SIGINT, SIGTERM, SIGHUP and SIGQUIT restore the
 * terminal before they end the program, and SIGTSTP before it stops the program. */
static void enter_screen(void)
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

static void leave_screen(void)
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

/* Draws the picture, which has whole lines, in place of the last one. The last row counts the lines
 * that do not fit. Does nothing if the screen shows the picture already. Returns an exit code. */
static int draw_screen(const struct text *picture)
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

/* Waits for `time` nanoseconds, until a signal was handled, or until the descriptor is readable
 * (-1: none). Also works without a screen. Returns false if the reader of standard output is gone.
 */
static bool pause_watch(int descriptor, int64_t time)
{
    struct pollfd polled[] = {{.fd = STDOUT_FILENO}, {.fd = descriptor, .events = POLLIN}};

    return poll(polled, COUNT(polled), time > 0 ? (int)((time + 999999) / 1000000) : 0) <= 0 ||
           (polled[0].revents & POLLERR) == 0;
}

struct watch_state {
    const struct watch_subject *subject;
    bool on_screen;
    bool has_shown;
    uint64_t fingerprint; /* of the last picture that was printed */
    int64_t drawn_at;     /* when the screen was drawn last; 0: never */
};

/* Returns whether the screen must be drawn although nothing has changed. */
static bool is_redraw_due(const struct watch_state *state)
{
    return is_dirty != 0 || state->drawn_at == 0 ||
           clock_now() - state->drawn_at >= REDRAW_INTERVAL;
}

/* Returns whether the picture differs from the last one that was printed. The screen always gets
 * the newest picture. */
static bool is_changed(struct watch_state *state, const struct text *picture)
{
    const struct watch_subject *subject = state->subject;
    uint64_t fingerprint;

    if (state->on_screen || text_failed(picture))
        return true;
    if (picture->length == 0)
        return false;
    fingerprint = subject->fingerprint == NULL ? hash_bytes(text_string(picture), picture->length)
                                               : subject->fingerprint(subject->context);
    if (state->has_shown && fingerprint == state->fingerprint)
        return false;
    state->fingerprint = fingerprint;
    return true;
}

/* Draws or prints the picture, unless there is none or it was printed already. Returns an exit
 * code. */
static int show_picture(struct watch_state *state)
{
    const struct watch_subject *subject = state->subject;
    struct text picture = {0};
    struct text out = {0};
    int code = EXIT_GOOD;

    subject->write(subject->context, state->on_screen, &picture);
    if (is_changed(state, &picture) && (picture.length > 0 || text_failed(&picture))) {
        if (!state->on_screen && !subject->json && state->has_shown)
            text_append_char(&out, '\n');
        if (subject->has_time && !subject->json)
            text_append_format(&out, "%s\n\n",
                               quantity_format_time(clock_read(CLOCK_REALTIME)).text);
        text_append(&out, text_string(&picture));
        out.failed |= picture.failed;
        code = state->on_screen ? draw_screen(&out) : output_write(&out);
        state->has_shown = true;
        state->drawn_at = clock_now();
    }
    text_finish(&picture);
    text_finish(&out);
    return code;
}

/* Waits for the next update or redraw. Returns false when standard output is closed. */
static bool wait_for_update(const struct watch_state *state)
{
    int descriptor = -1;
    int64_t time = state->subject->wait(state->subject->context, &descriptor);
    int64_t left = state->drawn_at + REDRAW_INTERVAL - clock_now();

    if (state->on_screen && state->drawn_at != 0 && left < time)
        time = left;
    return pause_watch(descriptor, time);
}

/* Runs the loop. Returns an exit code, which counts only if `error` is not set. */
static int run_loop(struct watch_state *state, struct berth_error *error)
{
    const struct watch_subject *subject = state->subject;
    int code = EXIT_GOOD;

    do {
        int changed = subject->update(subject->context, state->on_screen, error);

        if (changed < 0)
            return EXIT_GOOD;
        if (changed > 0 || (state->on_screen && is_redraw_due(state)))
            code = show_picture(state);
    } while (code == EXIT_GOOD && wait_for_update(state));
    return code;
}

int watch_run(const struct watch_subject *subject, const char *verb)
{
    struct watch_state state = {
        .subject = subject,
        .on_screen = !subject->json && is_screen_supported(),
    };
    struct berth_error error = BERTH_ERROR_INIT;
    int code;

    if (state.on_screen)
        enter_screen();
    code = run_loop(&state, &error);
    if (state.on_screen)
        leave_screen();
    if (error.code == 0)
        return code;
    error_wrap(&error, error.code, "%s", verb);
    return output_refusal(&error);
}
