/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* The time and the word. Within one second, only its thousandths are new. */
void log_begin(struct log *log, int64_t now, const char *word)
{
    int64_t second = now / DURATION_SECOND;
    size_t length;
    char *digits;

    if (second != log->second || log->stamp.text[0] == '\0') {
        log->stamp = quantity_format_time(now);
        log->second = second;
    }
    length = strlen(log->stamp.text);
    digits = log->stamp.text + length - strlen("000Z");
    for (int64_t i = 3, rest = now % DURATION_SECOND / (DURATION_SECOND / 1000); i > 0; rest /= 10)
        digits[--i] = (char)('0' + rest % 10);
    text_append_bytes(&log->lines, log->stamp.text, length);
    text_append_char(&log->lines, ' ');
    text_append(&log->lines, word);
}

struct text *log_value(struct log *log, const char *key)
{
    text_append_char(&log->lines, ' ');
    text_append(&log->lines, key);
    text_append_char(&log->lines, '=');
    return &log->lines;
}

void log_number(struct log *log, const char *key, uint64_t number)
{
    text_append_number(log_value(log, key), number);
}

void log_words(struct log *log, const char *key, const char *words)
{
    text_append_char(log_value(log, key), '"');
    text_append(&log->lines, words);
    text_append_char(&log->lines, '"');
}

void log_end(struct log *log)
{
    text_append_char(&log->lines, '\n');
    if (log->lines.length >= FLUSH_AT)
        log_flush(log);
    else if (!list_is_linked(&log->flush.in_loop))
        timer_set_at(log->loop, &log->flush, loop_now(log->loop) + KEPT_FOR);
}

void log_line(struct log *log, int64_t now, const char *word, const char *format, ...)
{
    char line[LINE_MOST];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    log_begin(log, now, word);
    text_append(&log->lines, line[0] == '\0' ? "" : " ");
    text_append(&log->lines, line);
    log_end(log);
}
