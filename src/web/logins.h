/* SPDX-License-Identifier: Apache-2.0
 *
 * Logins: the cookies of browsers whose users have typed the token. A cookie is a random number. It
 * says nothing about the token, and it is good only in this process, for some days, until logout,
 * and for the user or machine that logged in: browsers send cookies to all ports of a host, so a
 * server of another user may see them.
 *
 * A table of random numbers needs no cryptography. Unlike a signed cookie, a login can be ended.
 */
#ifndef WEB_LOGINS_H
#define WEB_LOGINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/quantity.h"
#include "base/text/span.h"
#include "base/text/text.h"
#include "web/peer_groups.h"

#define LOGINS_COOKIE  "berth_login"
#define LOGINS_SECONDS (7 * 24 * 3600)
#define LOGINS_MAX     256

/* The number in hexadecimal digits. */
enum { LOGIN_DIGITS = 64 };

struct login {
    char digits[LOGIN_DIGITS];
    struct peer peer;
    int64_t ends;
};

/* Zeroed memory: no logins. Times are nanoseconds of CLOCK_BOOTTIME. */
struct logins {
    struct login items[LOGINS_MAX]; /* the oldest first */
    size_t count;
};

/* Adds a login of this peer, and appends the header that sets its cookie. If there are too many,
 * the oldest of the peer with the most ends. Returns false, and appends nothing, if there are no
 * random numbers. */
bool logins_add(struct logins *logins, const struct peer *peer, int64_t now, struct text *out);

/* Returns whether a Cookie header has a login of this peer. */
bool logins_check(struct logins *logins, const struct peer *peer, int64_t now, struct span cookie);

/* Ends the login of a Cookie header, if there is one, and appends the header that deletes its
 * cookie. */
void logins_end(struct logins *logins, struct span cookie, struct text *out);

#endif
