/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/user_names.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quantity.h"

enum { BUFFER_MIN = 1024, BUFFER_MAX = 1024 * 1024, DIGITS_MAX = 10 };

/* Returns an allocated copy of the name in the user database, or NULL when there is no name or no
 * memory. */
static char *look_up_name(uint32_t uid)
{
    char *name = NULL;

    for (size_t size = BUFFER_MIN; size <= BUFFER_MAX; size *= 2) {
        struct passwd entry;
        struct passwd *found = NULL;
        char *buffer = malloc(size);
        int number = buffer == NULL ? ENOMEM : getpwuid_r(uid, &entry, buffer, size, &found);

        if (number == 0 && found != NULL && found->pw_name[0] != '\0')
            name = strdup(found->pw_name);
        free(buffer);
        if (number != ERANGE)
            break;
    }
    return name;
}

static char *name_or_number(uint32_t uid)
{
    char digits[16];
    char *name = look_up_name(uid);

    if (name != NULL)
        return name;
    snprintf(digits, sizeof(digits), "%u", uid);
    return strdup(digits);
}

const char *user_names_find(struct user_names *names, uint32_t uid)
{
    static const char nobody[] = "?";
    struct user_name *item;

    vector_for_each (item, names) {
        if (item->uid == uid)
            return item->name;
    }
    free(names->last.name);
    names->last = (struct user_name){.uid = uid, .name = name_or_number(uid)};
    if (names->last.name == NULL)
        return nobody;
    item = vector_append(names);
    if (item == NULL)
        return names->last.name;
    *item = names->last;
    names->last = (struct user_name){0};
    return item->name;
}

const char *user_names_find_optional(struct user_names *names, struct optional_number uid)
{
    return uid.known && uid.value < UINT32_MAX ? user_names_find(names, (uint32_t)uid.value) : NULL;
}

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

size_t user_names_append_mention(struct user_names *names, const char *words, struct text *out)
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
    name = user_names_find(names, uid);
    if (name[strspn(name, "0123456789?")] == '\0')
        return 0;
    text_append(out, name);
    return strlen(lead) + length;
}

int user_names_explain(struct berth_error *error, int code)
{
    struct user_names names = {0};
    struct text named = {0};
    bool starts_word = true;

    for (const char *at = error == NULL ? "" : error->message; *at != '\0';) {
        size_t length = starts_word ? user_names_append_mention(&names, at, &named) : 0;

        if (length == 0) {
            text_append_char(&named, *at);
            length = 1;
        }
        at += length;
        starts_word = isalnum((unsigned char)at[-1]) == 0;
    }
    if (named.length > 0 && !text_failed(&named))
        error_set(error, code, "%s", named.bytes);
    text_finish(&named);
    user_names_finish(&names);
    return code;
}

void user_names_finish(struct user_names *names)
{
    struct user_name *item;

    vector_for_each (item, names)
        free(item->name);
    free(names->last.name);
    vector_finish(names);
    *names = (struct user_names){0};
}
