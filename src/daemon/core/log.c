/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/quantity.h"
#include "base/text/utf8.h"

enum { LINE_DEFAULT = 1024, FLUSH_AT = 32 * 1024, FILE_MAX = 4 * 1024 * 1024 };
#define KEPT_FOR (50 * (DURATION_SECOND / 1000))

static void flush_now(struct timer *timer)
{
    log_flush(container_of(timer, struct log, flush));
}

void log_init(struct log *log, struct loop *loop, int descriptor, const char *path)
{
    struct stat status;
    struct stat named;

    *log = (struct log){.descriptor = descriptor, .loop = loop, .flush.fire = flush_now};
    if (fstat(descriptor, &status) < 0)
        return;
    log->is_socket = S_ISSOCK(status.st_mode);
    log->is_file = S_ISREG(status.st_mode);
    if (path == NULL || stat(path, &named) < 0 || named.st_ino != status.st_ino ||
        named.st_dev != status.st_dev)
        return;
    log->path = path;
    log->written = (size_t)status.st_size;
}

/* Moves the file to `old` and puts the file `fresh` into its place. */
static bool replace_file(const struct log *log, const char *old, const char *fresh)
{
    if (rename(log->path, old) < 0)
        return false;
    if (rename(fresh, log->path) == 0)
        return true;
    (void)!rename(old, log->path);
    return false;
}

/* Moves the file aside and continues with a new one. The new file is made first, because no line
 * may be written to the file that was moved. Empties the file if this fails: the daemon's user may
 * not write to the directory, or the disk is full. */
static void turn_over(struct log *log)
{
    struct text old = {0};
    struct text fresh = {0};
    int descriptor = -1;

    log->written = 0;
    text_append_format(&old, "%s.1", log->path);
    text_append_format(&fresh, "%s.new", log->path);
    if (!text_failed(&old) && !text_failed(&fresh))
        descriptor = open(fresh.bytes,
                          O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor >= 0 && replace_file(log, old.bytes, fresh.bytes)) {
        dup2(descriptor, log->descriptor);
    } else {
        if (descriptor >= 0)
            unlink(fresh.bytes);
        (void)!ftruncate(log->descriptor, 0);
    }
    if (descriptor >= 0)
        close(descriptor);
    text_finish(&old);
    text_finish(&fresh);
}

void log_finish(struct log *log)
{
    log_flush(log);
    loop_set_timer(log->loop, &log->flush, LOOP_NEVER);
    text_finish(&log->lines);
}

/* Writes a part of the bytes, without waiting for a reader of the log. A pipe that is ready takes
 * PIPE_BUF bytes at once. */
static ssize_t write_part(const struct log *log, const char *bytes, size_t length)
{
    struct pollfd ready = {.fd = log->descriptor, .events = POLLOUT};

    if (log->is_socket)
        return send(log->descriptor, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (log->is_file)
        return write(log->descriptor, bytes, length);
    if (poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0)
        return -1;
    return write(log->descriptor, bytes, length < PIPE_BUF ? length : PIPE_BUF);
}

/* Writes as much as is possible now. Returns the number of bytes. */
static size_t write_bytes(struct log *log, const char *bytes, size_t length)
{
    size_t done = 0;

    while (done < length) {
        ssize_t written = write_part(log, bytes + done, length - done);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            break;
        done += (size_t)written;
    }
    if (done > 0)
        log->is_cut = bytes[done - 1] != '\n';
    log->written += done;
    return done;
}

/* Says how many lines are missing, and ends a line that was written in part. Returns false if
 * nothing can be written yet. */
static bool write_missing(struct log *log)
{
    char line[sizeof(log->stamp.text) + 64];
    int length;

    if (log->is_cut && write_bytes(log, "\n", 1) == 0)
        return false;
    if (log->left_out == 0)
        return true;
    length = snprintf(line, sizeof(line), "%s log left_out=%zu\n", log->stamp.text, log->left_out);
    if (write_bytes(log, line, (size_t)length) < (size_t)length)
        return false;
    log->left_out = 0;
    return true;
}

static size_t count_lines(const char *bytes, size_t length)
{
    const char *end = bytes + length;
    size_t count = 0;

    while (bytes < end && (bytes = memchr(bytes, '\n', (size_t)(end - bytes))) != NULL) {
        bytes++;
        count++;
    }
    return count;
}

void log_flush(struct log *log)
{
    size_t done = 0;

    loop_set_timer(log->loop, &log->flush, LOOP_NEVER);
    if (log->lines.length == 0)
        return;
    if (write_missing(log))
        done = write_bytes(log, log->lines.bytes, log->lines.length);
    log->left_out += count_lines(log->lines.bytes + done, log->lines.length - done);
    text_clear(&log->lines);
    if (log->path != NULL && log->written > FILE_MAX)
        turn_over(log);
}

struct log_words log_quote(const char *string)
{
    struct log_words words;
    size_t length = 0;

    words.text[length++] = '"';
    for (; *string != '\0' && length < sizeof(words.text) - 3; string++) {
        if (*string == '"' || *string == '\\')
            words.text[length++] = '\\';
        words.text[length++] = *string;
    }
    words.text[length++] = '"';
    words.text[length] = '\0';
    utf8_make_plain(words.text);
    return words;
}

/* Formats the time only once a second; otherwise only its thousandths change. */
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
    log->begin = log->lines.length;
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

void log_text(struct log *log, const char *key, const char *words)
{
    text_append_char(log_value(log, key), '"');
    text_append(&log->lines, words);
    text_append_char(&log->lines, '"');
}

size_t log_end(struct log *log)
{
    size_t length;

    text_append_char(&log->lines, '\n');
    length = log->lines.length - log->begin;
    if (log->lines.length >= FLUSH_AT)
        log_flush(log);
    else if (!list_is_linked(&log->flush.in_loop))
        loop_set_timer(log->loop, &log->flush, loop_now(log->loop) + KEPT_FOR);
    return length;
}

void log_line(struct log *log, int64_t now, const char *word, const char *format, ...)
{
    char line[LINE_DEFAULT];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    log_begin(log, now, word);
    text_append(&log->lines, length > 0 ? " " : "");
    if (length < LINE_DEFAULT) {
        text_append(&log->lines, line);
    } else {
        va_start(arguments, format);
        text_append_list(&log->lines, format, arguments);
        va_end(arguments);
    }
    log_end(log);
}
