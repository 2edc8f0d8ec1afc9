/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/progress.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/file.h"
#include "base/text/quantity.h"
#include "base/text/terminal.h"
#include "base/text/text.h"
#include "base/text/utf8.h"

#define CLEAR_LINE "\r\033[K"
#define PAUSE      (DURATION_SECOND / 10)

enum { BAR_WIDTH = 30, OTHER_WIDTH = 12 };

void progress_begin(struct progress *progress)
{
    const char *kind = getenv("TERM");

    *progress = (struct progress){
        .shown = isatty(STDERR_FILENO) == 1 && kind != NULL && strcmp(kind, "dumb") != 0,
    };
}

static void append_bar(uint64_t done, uint64_t of, const struct terminal *terminal,
                       struct text *line)
{
    uint64_t filled = of == 0 ? 0 : done * BAR_WIDTH / of;

    text_append_char(line, '[');
    for (uint64_t i = 0; i < BAR_WIDTH; i++) {
        if (terminal->unicode)
            text_append(line, i < filled ? "\u2588" : "\u2591");
        else
            text_append_char(line, i < filled ? '#' : '.');
    }
    text_append_format(line, "] %3u %%", of == 0 ? 0 : (unsigned)(done * 100 / of));
}

void progress_show(struct progress *progress, const char *what, uint64_t done, uint64_t of)
{
    struct terminal terminal;
    struct text line = {0};
    int64_t now;

    if (!progress->shown)
        return;
    now = clock_now();
    if (progress->drawn && now < progress->drawn_at + PAUSE)
        return;
    terminal = terminal_detect(STDERR_FILENO);
    text_append(&line, CLEAR_LINE);
    append_bar(done, of, &terminal, &line);
    if (terminal.width == 0 || utf8_width(what) + BAR_WIDTH + OTHER_WIDTH < terminal.width) {
        text_append(&line, "  ");
        utf8_append_inert(&line, what);
    }
    /* A failed write to the terminal does not stop the simulation. */
    if (!text_failed(&line) && file_write(STDERR_FILENO, line.bytes, line.length) != 0)
        progress->shown = false;
    text_finish(&line);
    progress->drawn = true;
    progress->drawn_at = now;
}

void progress_end(struct progress *progress)
{
    if (progress->drawn && file_write(STDERR_FILENO, CLEAR_LINE, strlen(CLEAR_LINE)) != 0)
        progress->shown = false;
    progress->drawn = false;
}
