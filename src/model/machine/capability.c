/* SPDX-License-Identifier: Apache-2.0 */
#include "model/machine/capability.h"

#include <stdio.h>

#include "base/error.h"
#include "base/text/quote.h"

struct capability_text capability_format(struct capability capability)
{
    struct capability_text text;

    snprintf(text.text, sizeof(text.text), "%u.%u", capability.major, capability.minor);
    return text;
}

/* Reads 1 to 3 digits at *cursor and moves past them. */
static bool read_digits(const char **cursor, uint16_t *ret_value)
{
    uint16_t value = 0;
    unsigned read = 0;

    for (; **cursor >= '0' && **cursor <= '9'; (*cursor)++, read++) {
        if (read == 3)
            return false;
        value = (uint16_t)(value * 10 + (**cursor - '0'));
    }
    *ret_value = value;
    return read > 0;
}

int capability_parse(const char *string, struct capability *ret_capability,
                     struct berth_error *error)
{
    struct capability capability = {.known = true};
    const char *cursor = string;
    bool good = read_digits(&cursor, &capability.major);

    if (good && *cursor == '.') {
        cursor++;
        good = read_digits(&cursor, &capability.minor);
    }
    if (!good || *cursor != '\0')
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "expected a compute capability such as 8.0, got %s", quote(string).text);
    *ret_capability = capability;
    return 0;
}

bool capability_is_at_least(struct capability capability, struct capability min)
{
    if (!capability.known)
        return false;
    if (capability.major != min.major)
        return capability.major > min.major;
    return capability.minor >= min.minor;
}
