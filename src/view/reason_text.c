/* SPDX-License-Identifier: Apache-2.0 */
#include "view/reason_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text/quantity.h"
#include "view/view_facts.h"

enum { DIGITS_MAX = 10, DAY_SECONDS = 24 * 60 * 60 };

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

/* Appends the name of the user if `words` starts with "user 1000". Returns the length of the
 * replaced text; 0: nothing was replaced. */
static size_t append_user(struct text *out, const char *words, struct user_names *users)
{
    static const char lead[] = "user ";
    const char *name;
    uint32_t uid = 0;
    size_t length;

    if (strncmp(words, lead, strlen(lead)) != 0)
        return 0;
    length = read_uid(words + strlen(lead), &uid);
    if (length == 0)
        return 0;
    name = user_names_find(users, uid);
    if (name[strspn(name, "0123456789?")] == '\0')
        return 0;
    text_append(out, name);
    return strlen(lead) + length;
}

/* Appends the local time if `words` starts with "until 2026-01-02T03:04Z": only the time within a
 * day, also the weekday within six days, otherwise also the date. Returns the length of the
 * replaced text; 0: nothing was replaced. */
static size_t append_time(struct text *out, const char *words)
{
    struct tm parts = {0};
    char local[32];
    int length = 0;
    time_t now = time(NULL);
    time_t then;

    if (sscanf(words, "until %4d-%2d-%2dT%2d:%2dZ%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
               &parts.tm_hour, &parts.tm_min, &length) != 5 ||
        length == 0)
        return 0;
    parts.tm_year -= 1900;
    parts.tm_mon--;
    then = timegm(&parts);
    if (localtime_r(&then, &parts) == NULL ||
        strftime(local, sizeof(local),
                 then < now - DAY_SECONDS || then - now >= 6 * DAY_SECONDS ? "%Y-%m-%d %H:%M"
                 : then - now >= DAY_SECONDS                               ? "%a %H:%M"
                                                                           : "%H:%M",
                 &parts) == 0)
        return 0;
    text_append_format(out, "until %s", local);
    return (size_t)length;
}

void reason_text_append(struct text *out, const char *reason, struct user_names *users)
{
    bool starts_word = true;

    while (*reason != '\0') {
        size_t length = starts_word ? append_user(out, reason, users) : 0;

        if (length == 0 && starts_word)
            length = append_time(out, reason);
        if (length == 0) {
            text_append_char(out, *reason);
            length = 1;
        }
        reason += length;
        starts_word = isalnum((unsigned char)reason[-1]) == 0;
    }
}

void reason_text_append_claim(struct text *out, const struct claim_info *claim,
                              struct user_names *users)
{
    const char *reason = view_claim_reason(claim);

    if (reason != NULL)
        reason_text_append(out, reason, users);
}
