/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/wire.h"

#include "base/error.h"
#include "base/text/choice.h"
#include "base/text/quantity.h"
#include "wire/wire_tables.h"

/* Offsets in the header. */
enum { TYPE_AT = 1, LENGTH_AT = 4, NUMBER_AT = 8 };

static const struct choice type_names[] = {
    {"hello", WIRE_HELLO},
    {"claim", WIRE_CLAIM},
    {"release", WIRE_RELEASE},
    {"cancel", WIRE_CANCEL},
    {"stop", WIRE_STOP},
    {"extend", WIRE_EXTEND},
    {"explain", WIRE_EXPLAIN},
    {"watch", WIRE_WATCH},
    {"test", WIRE_TEST},
    {"look", WIRE_LOOK},
    {"pool", WIRE_POOL},
    {"waiting", WIRE_WAITING},
    {"granted", WIRE_GRANTED},
    {"refused", WIRE_REFUSED},
    {"done", WIRE_DONE},
    {"page", WIRE_PAGE},
    {"notice", WIRE_NOTICE},
    {"ended", WIRE_ENDED},
    {"closing", WIRE_CLOSING},
    {"drain", WIRE_DRAIN},
    {"undrain", WIRE_UNDRAIN},
    {"warning", WIRE_WARNING},
    {"follow", WIRE_FOLLOW},
    {"news", WIRE_NEWS},
    {0},
};

const char *wire_type_name(enum wire_type type)
{
    return choice_name(type_names, (int)type);
}

void wire_message_finish(struct wire_message *message)
{
    tagged_finish(&wire_tagged, message);
    *message = (struct wire_message){0};
}

static int report_encode_failure(struct text *out, size_t start, int code,
                                 struct berth_error *error)
{
    size_t length = out->length - start;

    out->length = start;
    out->failed = false;
    if (out->bytes != NULL)
        out->bytes[start] = '\0';
    if (code == BERTH_ERROR_MEMORY)
        return error_set_memory(error);
    if (code == BERTH_ERROR_LIMIT)
        return error_set(error, code, "message: expected at most %d bytes, got %zu",
                         WIRE_MESSAGE_MAX, length);
    return error_set(error, code, "message: expected values within their limits, got one above");
}

int wire_encode(const struct wire_message *message, struct text *out, struct berth_error *error)
{
    size_t start = out->length;
    unsigned char *header;
    int code;

    if (text_failed(out))
        return error_set_memory(error);
    if (message->type == 0 || message->type > UINT8_MAX)
        return error_set(error, BERTH_ERROR_INVALID,
                         "message: expected a type from 1 to %d, got %u", UINT8_MAX,
                         (unsigned)message->type);
    text_append_repeated(out, '\0', WIRE_HEADER_SIZE);
    code = tagged_write_set(&wire_tagged, wire_tables_type_tags(message->type), TAGGED_ALL_TYPES,
                            message, out);
    if (code == 0 && text_failed(out))
        code = BERTH_ERROR_MEMORY;
    if (code == 0 && out->length - start > WIRE_MESSAGE_MAX)
        code = BERTH_ERROR_LIMIT;
    if (code < 0)
        return report_encode_failure(out, start, code, error);
    header = (unsigned char *)out->bytes + start;
    header[0] = WIRE_VERSION;
    header[TYPE_AT] = (unsigned char)message->type;
    tagged_put(header + LENGTH_AT, out->length - start - WIRE_HEADER_SIZE, 4);
    tagged_put(header + NUMBER_AT, message->number, 8);
    return 0;
}

static int check_header(const unsigned char *bytes, size_t length, struct berth_error *error)
{
    if (length > WIRE_MESSAGE_MAX)
        return error_set(error, BERTH_ERROR_LIMIT, "message: expected at most %d bytes, got %zu",
                         WIRE_MESSAGE_MAX, length);
    if (length < WIRE_HEADER_SIZE)
        return error_set(error, BERTH_ERROR_SYNTAX, "message: expected at least %d bytes, got %zu",
                         WIRE_HEADER_SIZE, length);
    if (bytes[0] != WIRE_VERSION)
        return error_set(error, BERTH_ERROR_SYNTAX, "message: expected version %d, got %d",
                         WIRE_VERSION, bytes[0]);
    if (bytes[TYPE_AT] == 0)
        return error_set(error, BERTH_ERROR_SYNTAX, "message: expected a type above 0, got 0");
    if (tagged_get(bytes + LENGTH_AT, 4) != length - WIRE_HEADER_SIZE)
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "message: expected %zu bytes after the header, got length %u",
                         length - WIRE_HEADER_SIZE, (unsigned)tagged_get(bytes + LENGTH_AT, 4));
    return 0;
}

int wire_decode(const void *bytes, size_t length, struct wire_message *ret_message,
                struct berth_error *error)
{
    struct tagged_reading reading = {bytes, TAGGED_ALL_TYPES, error};
    struct wire_message message = {0};
    int code = check_header(bytes, length, error);

    if (code < 0)
        return code;
    message.type = (enum wire_type)reading.bytes[TYPE_AT];
    message.number = tagged_get(reading.bytes + NUMBER_AT, 8);
    code = tagged_read_set(&reading, &wire_tagged, wire_tables_type_tags(message.type),
                           (struct tagged_span){WIRE_HEADER_SIZE, length}, &message);
    if (code < 0) {
        wire_message_finish(&message);
        return code == BERTH_ERROR_SYNTAX ? error_wrap(error, code, "message") : code;
    }
    *ret_message = message;
    return 0;
}
