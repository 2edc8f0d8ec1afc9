/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text/quantity.h"

enum { CHUNK = 16 * 1024 };

static int open_to_read(const char *path)
{
    int descriptor;

    do {
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    } while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

static ssize_t read_some(int descriptor, char *buffer, size_t size)
{
    ssize_t got;

    do {
        got = read(descriptor, buffer, size);
    } while (got < 0 && errno == EINTR);
    return got;
}

/* Appends everything up to the end of the file. The size from fstat does not help: pipes have none,
 * and that of files in /proc and /sys is wrong. */
static int read_content(int descriptor, const char *path, size_t limit, struct text *content,
                        struct berth_error *error)
{
    char chunk[CHUNK];
    ssize_t got;

    while ((got = read_some(descriptor, chunk, sizeof(chunk))) > 0) {
        if ((size_t)got > limit - content->length)
            return error_set(error, BERTH_ERROR_LIMIT, "cannot read %s: larger than %s", path,
                             quantity_format_size(limit).text);
        text_append_bytes(content, chunk, (size_t)got);
        if (text_failed(content))
            return error_wrap(error, error_set_memory(error), "cannot read %s", path);
    }
    return got < 0 ? error_set_errno(error, errno, "cannot read %s", path) : 0;
}

int file_read_open(int descriptor, const char *name, size_t limit, struct text *ret_content,
                   struct berth_error *error)
{
    struct text content = {0};
    struct stat status;
    int code;

    if (fstat(descriptor, &status) < 0)
        code = error_set_errno(error, errno, "cannot read %s", name);
    else if (S_ISDIR(status.st_mode))
        code = error_set(error, BERTH_ERROR_IO, "cannot read %s: it is a directory", name);
    else
        code = read_content(descriptor, name, limit, &content, error);
    if (code < 0) {
        text_finish(&content);
        return code;
    }
    text_finish(ret_content);
    *ret_content = content;
    return 0;
}

int file_read(const char *path, size_t limit, struct text *ret_content, struct berth_error *error)
{
    int descriptor = open_to_read(path);
    int code;

    if (descriptor < 0)
        return error_set_errno(error, errno, "cannot read %s", path);
    code = file_read_open(descriptor, path, limit, ret_content, error);
    close(descriptor);
    return code;
}

int file_write(int descriptor, const void *bytes, size_t length)
{
    const char *next = bytes;

    while (length > 0) {
        ssize_t written = write(descriptor, next, length);

        if (written < 0 && errno != EINTR)
            return errno;
        if (written > 0) {
            next += written;
            length -= (size_t)written;
        }
    }
    return 0;
}
