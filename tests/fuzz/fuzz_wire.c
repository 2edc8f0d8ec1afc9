/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes any bytes as a packet: first unchanged, then with a right header, because hardly any
 * other input passes its checks. An accepted message is the same after encoding and decoding it,
 * stays below the memory limit and can be described. A refused one gets a message.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/require_output.h"
#include "support/wire/wire_messages.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Calls every function that returns a text for clients. */
static void try_words(const struct wire_message *message)
{
    const char *type = wire_type_name(message->type);

    require(type == NULL || *type != '\0');
    require(*pool_info_describe_end(message->end) != '\0');
    for (size_t i = 0; i < message->snapshot.slots.count; i++)
        require(message->snapshot.slots.items[i].device != NULL);
    for (size_t i = 0; i < message->snapshot.leases.count; i++)
        require(*pool_info_describe_end(message->snapshot.leases.items[i].end) != '\0');
}

/* Checks that encoding gives the same message, in at most as many bytes. */
static void try_again(const struct wire_message *message, size_t size)
{
    struct wire_message again;
    struct text bytes = {0};

    require(wire_encode(message, &bytes, NULL) == 0 && bytes.length <= size);
    require(wire_decode(bytes.bytes, bytes.length, &again, NULL) == 0);
    require(wire_message_equals(message, &again));
    wire_message_finish(&again);
    text_finish(&bytes);
}

static void try_decode(const uint8_t *data, size_t size)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct wire_message message;
    int code = wire_decode(data, size, &message, &error);

    if (code < 0) {
        require_message(&error, code);
        require(code == (size > WIRE_MESSAGE_MAX ? BERTH_ERROR_LIMIT : BERTH_ERROR_SYNTAX));
        return;
    }
    require(error.message[0] == '\0');
    require(wire_message_memory(&message) <= WIRE_MEMORY_MAX);
    try_words(&message);
    try_again(&message, size);
    wire_message_finish(&message);
}

static void try_repaired(const uint8_t *data, size_t size)
{
    uint8_t *copy;

    if (size < WIRE_HEADER_SIZE)
        return;
    copy = malloc(size);
    require(copy != NULL);
    memcpy(copy, data, size);
    copy[0] = WIRE_VERSION;
    copy[1] |= copy[1] == 0;
    for (size_t i = 0; i < 4; i++)
        copy[4 + i] = (uint8_t)((size - WIRE_HEADER_SIZE) >> 8 * i);
    try_decode(copy, size);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_decode(data, size);
    try_repaired(data, size);
    return 0;
}
