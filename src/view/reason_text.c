/* SPDX-License-Identifier: Apache-2.0 */
#include "view/reason_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "view/view_facts.h"

enum { DAY_SECONDS = 24 * 60 * 60 };

/* Appends the local time if `words` starts with "until 2026-01-02T03:04Z": only the time within a
 * day, also the weekday within six days, otherwise also the date. Returns the length of the
 * replaced text; 0: nothing was replaced. */
static size_t append_time(struct text *out, const char *words)
{
    struct tm parts = {0};
    char local[32];
    const char *end;
    time_t now = time(NULL);
    time_t then;

    end = strptime(words, "until %Y-%m-%dT%H:%MZ", &parts);
    if (end == NULL)
        return 0;
    then = timegm(&parts);
    if (localtime_r(&then, &parts) == NULL ||
        strftime(local, sizeof(local),
                 then < now - DAY_SECONDS || then - now >= 6 * DAY_SECONDS ? "%Y-%m-%d %H:%M"
                 : then - now >= DAY_SECONDS                               ? "%a %H:%M"
                                                                           : "%H:%M",
                 &parts) == 0)
        return 0;
    text_append_format(out, "until %s", local);
    return (size_t)(end - words);
}

void reason_text_append(struct text *out, const char *reason, struct user_names *users)
{
    bool starts_word = true;

    while (*reason != '\0') {
        size_t length = starts_word ? user_names_append_mention(users, reason, out) : 0;

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
