/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/utf8.h"

static const char cut_mark[] = "...";

const char *berth_error_describe(int code)
{
    switch (code) {
    case 0:
        return "no error";
#define DESCRIBE(name, number, description) \
    case BERTH_ERROR_##name:                \
        return description;
        BERTH_ERROR_LIST(DESCRIBE)
#undef DESCRIBE
    default:
        return "unknown error";
    }
}

/* Cuts `message` to the error's size at a character boundary and marks the cut. */
static void store_message(struct berth_error *error, int code, const char *message)
{
    size_t room = sizeof(error->message) - 1;
    size_t length = strlen(message);

    error->code = code;
    if (length > room) {
        length = utf8_boundary(message, room - strlen(cut_mark));
        memcpy(error->message, message, length);
        memcpy(error->message + length, cut_mark, sizeof(cut_mark));
    } else {
        memcpy(error->message, message, length + 1);
    }
    utf8_make_plain(error->message);
}

/* Room for two full messages, so that a long prefix never cuts off the start of the message. */
enum { SCRATCH = 2 * BERTH_ERROR_MESSAGE_SIZE };

/* Formats into `scratch` and returns the length, which is below SCRATCH. When formatting fails, the
 * format itself becomes the message. */
__attribute__((format(printf, 2, 0))) static size_t
format_message(char *scratch, const char *format, va_list arguments)
{
    if (vsnprintf(scratch, SCRATCH, format, arguments) < 0)
        snprintf(scratch, SCRATCH, "%s", format);
    return strlen(scratch);
}

int error_set(struct berth_error *error, int code, const char *format, ...)
{
    char scratch[SCRATCH];
    va_list arguments;

    if (error == NULL)
        return code;
    va_start(arguments, format);
    format_message(scratch, format, arguments);
    va_end(arguments);
    store_message(error, code, scratch);
    return code;
}

int error_wrap(struct berth_error *error, int code, const char *format, ...)
{
    char scratch[SCRATCH];
    va_list arguments;
    size_t length;

    if (error == NULL)
        return code;
    va_start(arguments, format);
    length = format_message(scratch, format, arguments);
    va_end(arguments);
    if (error->message[0] != '\0')
        snprintf(scratch + length, sizeof(scratch) - length, ": %s", error->message);
    store_message(error, code, scratch);
    return code;
}

static int code_of_errno(int number)
{
    switch (number) {
    case EACCES:
    case EPERM:
        return BERTH_ERROR_PERMISSION;
    case ENOENT:
    case ENOTDIR:
        return BERTH_ERROR_NOT_FOUND;
    case ENOMEM:
        return BERTH_ERROR_MEMORY;
    default:
        return BERTH_ERROR_IO;
    }
}

int error_set_errno(struct berth_error *error, int number, const char *format, ...)
{
    char scratch[SCRATCH];
    char reason[128];
    va_list arguments;
    int code = code_of_errno(number);

    if (error == NULL)
        return code;
    va_start(arguments, format);
    format_message(scratch, format, arguments);
    va_end(arguments);
    store_message(error, 0, strerror_r(number, reason, sizeof(reason)));
    return error_wrap(error, code, "%s", scratch);
}

int error_set_memory(struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_MEMORY, "out of memory");
}
