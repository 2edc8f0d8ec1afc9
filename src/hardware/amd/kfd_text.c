/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/amd/kfd_text.h"

#include <string.h>

struct optional_number kfd_text_number(const char *digits, size_t length)
{
    struct optional_number number = {.known = length > 0};

    for (size_t i = 0; i < length && number.known; i++)
        number.known =
            digits[i] >= '0' && digits[i] <= '9' &&
            !__builtin_mul_overflow(number.value, 10, &number.value) &&
            !__builtin_add_overflow(number.value, (uint64_t)(digits[i] - '0'), &number.value);
    return number.known ? number : (struct optional_number){0};
}

bool kfd_text_name(const char *name, uint32_t *ret_number)
{
    struct optional_number number = kfd_text_number(name, strlen(name));

    if (!number.known || number.value > UINT32_MAX || (name[0] == '0' && name[1] != '\0'))
        return false;
    *ret_number = (uint32_t)number.value;
    return true;
}

size_t kfd_text_length(const struct sysroot_value *value)
{
    size_t length = value->length;

    if (length < sizeof(value->text) - 1)
        return length;
    while (length > 0 && value->text[length - 1] != '\n')
        length--;
    return length;
}

void kfd_text_read(const char *text, size_t length, const struct kfd_property *table, size_t count,
                   void *into)
{
    const char *end = length == 0 ? text : text + length; /* NULL + 0 is undefined */
    uint64_t seen = 0;

    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const char *line_end = stop == NULL ? end : stop;
        const char *blank = memchr(text, ' ', (size_t)(line_end - text));
        size_t name = blank == NULL ? 0 : (size_t)(blank - text);

        for (size_t i = 0; i < count && name > 0; i++)
            if ((seen >> i & 1) == 0 && strlen(table[i].name) == name &&
                memcmp(table[i].name, text, name) == 0) {
                seen |= UINT64_C(1) << i;
                *(struct optional_number *)((char *)into + table[i].offset) =
                    kfd_text_number(blank + 1, (size_t)(line_end - blank - 1));
            }
        text = stop == NULL ? end : stop + 1;
    }
}
