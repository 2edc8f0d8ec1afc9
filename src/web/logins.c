/* SPDX-License-Identifier: Apache-2.0 */
#include "web/logins.h"

#include <string.h>
#include <sys/random.h>

#include "web/http.h"

#define COOKIE_RULES "; Path=/; HttpOnly; SameSite=Strict; Max-Age="

static void remove_login(struct logins *logins, size_t index)
{
    logins->count--;
    memmove(&logins->items[index], &logins->items[index + 1],
            (logins->count - index) * sizeof(logins->items[0]));
    explicit_bzero(&logins->items[logins->count], sizeof(logins->items[0]));
}

static void remove_expired(struct logins *logins, int64_t now)
{
    while (logins->count > 0 && logins->items[0].ends <= now)
        remove_login(logins, 0);
}

static size_t count_logins(const struct logins *logins, const struct peer *peer)
{
    size_t count = 0;

    for (size_t i = 0; i < logins->count; i++)
        count += peer_groups_same(&logins->items[i].peer, peer);
    return count;
}

/* Returns the oldest login of the peer with the most. */
static size_t choose_victim(const struct logins *logins)
{
    size_t victim = 0;
    size_t most = 0;

    for (size_t i = 0; i < logins->count; i++) {
        size_t count = count_logins(logins, &logins->items[i].peer);

        if (count > most) {
            most = count;
            victim = i;
        }
    }
    return victim;
}

static bool make_digits(char *digits)
{
    static const char hexadecimal[] = "0123456789abcdef";
    unsigned char bytes[LOGIN_DIGITS / 2];

    if (getrandom(bytes, sizeof(bytes), GRND_NONBLOCK) != (ssize_t)sizeof(bytes))
        return false;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        digits[2 * i] = hexadecimal[bytes[i] >> 4];
        digits[2 * i + 1] = hexadecimal[bytes[i] & 15];
    }
    explicit_bzero(bytes, sizeof(bytes));
    return true;
}

bool logins_add(struct logins *logins, const struct peer *peer, int64_t now, struct text *out)
{
    struct login login = {.peer = *peer, .ends = now + LOGINS_SECONDS * DURATION_SECOND};

    if (!make_digits(login.digits))
        return false;
    remove_expired(logins, now);
    if (logins->count == LOGINS_MAX)
        remove_login(logins, choose_victim(logins));
    logins->items[logins->count++] = login;
    text_append_format(out, "Set-Cookie: " LOGINS_COOKIE "=%.*s" COOKIE_RULES "%d\r\n",
                       LOGIN_DIGITS, login.digits, LOGINS_SECONDS);
    explicit_bzero(login.digits, sizeof(login.digits));
    return true;
}

/* Compares in constant time. */
static bool same_digits(const char *one, const char *other)
{
    volatile unsigned char difference = 0;

    for (size_t i = 0; i < LOGIN_DIGITS; i++)
        difference |= (unsigned char)(one[i] ^ other[i]);
    return difference == 0;
}

/* Returns the login of a Cookie header; NULL: there is none. */
static struct login *find_login(struct logins *logins, struct span cookie)
{
    struct span value;

    if (!http_cookie_find(cookie, LOGINS_COOKIE, &value) || value.length != LOGIN_DIGITS)
        return NULL;
    for (size_t i = 0; i < logins->count; i++) {
        if (same_digits(logins->items[i].digits, value.bytes))
            return &logins->items[i];
    }
    return NULL;
}

bool logins_check(struct logins *logins, const struct peer *peer, int64_t now, struct span cookie)
{
    const struct login *login;

    remove_expired(logins, now);
    login = find_login(logins, cookie);
    return login != NULL && peer_groups_same(&login->peer, peer);
}

void logins_end(struct logins *logins, struct span cookie, struct text *out)
{
    const struct login *login = find_login(logins, cookie);

    if (login != NULL)
        remove_login(logins, (size_t)(login - logins->items));
    text_append(out, "Set-Cookie: " LOGINS_COOKIE "=" COOKIE_RULES "0\r\n");
}
