/* SPDX-License-Identifier: Apache-2.0 */
#include "view/reason_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/text/quantity.h"

static const char lead[] = "user ";

enum { DIGITS_MAX = 10 };

/* Reads the number of a user at the start of `word`. Returns its length in bytes; 0: there is
 * none. */
static size_t read_uid(const char *word, uint32_t *ret_uid)
{
    size_t length = strspn(word, "0123456789");
    char digits[DIGITS_MAX + 1];
    uint64_t uid;

    if (length == 0 || length > DIGITS_MAX || isalnum((unsigned char)word[length]) != 0)
        return 0;
    memcpy(digits, word, length);
    digits[length] = '\0';
    if (quantity_parse_number(digits, 0, UINT32_MAX - 1, &uid, NULL) < 0)
        return 0;
    *ret_uid = (uint32_t)uid;
    return length;
}

void reason_text_append(struct text *out, const char *reason, struct user_names *users)
{
    const char *next = reason;

    while ((next = strstr(next, lead)) != NULL) {
        bool is_word = next == reason || isalnum((unsigned char)next[-1]) == 0;
        const char *digits = next + strlen(lead);
        uint32_t uid;
        size_t length = is_word ? read_uid(digits, &uid) : 0;
        const char *name = length > 0 ? user_names_find(users, uid) : NULL;

        next = digits + length;
        if (name == NULL || name[strspn(name, "0123456789?")] == '\0')
            continue;
        text_append_bytes(out, reason, (size_t)(digits - strlen(lead) - reason));
        text_append(out, name);
        reason = next;
    }
    text_append(out, reason);
}
