/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/quantity.h"
#include "base/utf8.h"

enum { LINE_MOST = 1024, FLUSH_AT = 32 * 1024 };
#define KEPT_FOR (50 * (DURATION_SECOND / 1000))

static void flush_now(struct timer *timer)
{
    log_flush(container_of(timer, struct log, flush));
}

void log_init(struct log *log, struct loop *loop, int descriptor)
{
    *log = (struct log){.descriptor = descriptor, .loop = loop, .flush.fire = flush_now};
}

void log_finish(struct log *log)
{
    log_flush(log);
    timer_set_at(log->loop, &log->flush, LOOP_NEVER);
    text_finish(&log->lines);
}

void log_flush(struct log *log)
{
    size_t done = 0;

    timer_set_at(log->loop, &log->flush, LOOP_NEVER);
    while (done < log->lines.length) {
        ssize_t written = write(log->descriptor, log->lines.bytes + done, log->lines.length - done);

        if (written <= 0)
            break; /* a log that cannot be written must not stop the pool */
        done += (size_t)written;
    }
    text_clear(&log->lines);
}

struct log_reason log_reason(const char *message)
{
    struct log_reason reason;
    char plain[BERTH_ERROR_MESSAGE_SIZE];

    snprintf(plain, sizeof(plain), "%s", message);
    utf8_make_plain(plain);
    for (char *mark = plain; *mark != '\0'; mark++)
        *mark = *mark == '"' ? '\'' : *mark;
    snprintf(reason.text, sizeof(reason.text), "\"%s\"", plain);
    return reason;
}

void log_line(struct log *log, int64_t now, const char *word, const char *format, ...)
{
    char line[LINE_MOST];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    text_append_format(&log->lines, "%s %s%s%s\n", quantity_format_time(now).text, word,
                       line[0] == '\0' ? "" : " ", line);
    if (log->lines.length >= FLUSH_AT)
        log_flush(log);
    else if (!list_is_linked(&log->flush.in_loop))
        timer_set_at(log->loop, &log->flush, loop_now() + KEPT_FOR);
}
