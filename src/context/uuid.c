/* SPDX-License-Identifier: Apache-2.0 */
#include "context/uuid.h"

#include <string.h>

static bool hex_digit(char character, uint8_t *ret_value)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *found = character == '\0' ? NULL : strchr(digits, character);

    if (found == NULL)
        return false;
    *ret_value = (uint8_t)(found - digits < 16 ? found - digits : found - digits - 6);
    return true;
}

struct uuid uuid_parse(const char *text, bool is_partition)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    const char *prefix = is_partition ? "MIG-" : "GPU-";
    struct uuid uuid = {.known = true};
    size_t digits = 0;
    uint8_t value;

    if (text == NULL || strncmp(text, prefix, strlen(prefix)) != 0)
        return (struct uuid){0};
    text += strlen(prefix);
    for (size_t i = 0; form[i] != '\0'; i++) {
        if (form[i] == 'x' ? !hex_digit(text[i], &value) : text[i] != form[i])
            return (struct uuid){0};
        if (form[i] == 'x') {
            uuid.bytes[digits / 2] = (uint8_t)(uuid.bytes[digits / 2] << 4 | value);
            digits++;
        }
    }
    return text[sizeof(form) - 1] == '\0' ? uuid : (struct uuid){0};
}

struct uuid uuid_of(const uint8_t *bytes)
{
    static const uint8_t none[UUID_SIZE];
    struct uuid uuid = {.known = memcmp(bytes, none, UUID_SIZE) != 0};

    memcpy(uuid.bytes, bytes, UUID_SIZE);
    return uuid;
}

bool uuid_equals(const struct uuid *one, const struct uuid *other)
{
    return memcmp(one->bytes, other->bytes, UUID_SIZE) == 0;
}
