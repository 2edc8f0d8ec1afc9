/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses to listen on, and the names that requests may use for this server. Pure, except for
 * listen_address_inherit() and listen_address_open().
 */
#ifndef WEB_LISTEN_ADDRESS_H
#define WEB_LISTEN_ADDRESS_H

#include <berth/error.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/string_list.h"
#include "base/text/span.h"

#define LISTEN_DEFAULT "127.0.0.1:7411"

struct listen_address {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    };
    socklen_t length;
};

struct listen_address_text {
    char text[80];
};

/* Parses 127.0.0.1:7411, [::1]:7411 or localhost:7411; port 0 is any free port. Uses no resolver.
 * Fails with BERTH_ERROR_INVALID. */
int listen_address_parse(const char *string, struct listen_address *ret_address,
                         struct berth_error *error);

bool listen_address_is_loopback(const struct listen_address *address);

/* Formats an address as in a URL: 127.0.0.1:7411, [::1]:7411. */
struct listen_address_text listen_address_format(const struct listen_address *address);

/* Returns whether both addresses are the same host, regardless of the port. IPv6 addresses are the
 * same host if their first 64 bits are equal. */
bool listen_address_same_host(const struct sockaddr *one, const struct sockaddr *other);

/* Checks that `string` is a name, or an address such as 10.0.0.7 or [fd00::7]. Fails with
 * BERTH_ERROR_INVALID. */
int listen_address_check_name(const char *string, struct berth_error *error);

/* Takes the socket that a service manager has opened (LISTEN_FDS, LISTEN_PID), and removes these
 * variables from the environment. Sets *ret_listener, which is then non-blocking and close-on-exec,
 * and *ret_address; 0: there is none. Fails with BERTH_ERROR_INVALID for a socket of another kind.
 */
int listen_address_inherit(int *ret_listener, struct listen_address *ret_address,
                           struct berth_error *error);

/* Opens a non-blocking socket that listens. Returns it, or a negative error code. Sets *address to
 * the address that it is bound to. */
int listen_address_open(struct listen_address *address, struct berth_error *error);

/* Returns whether a Host header, with or without a port, names this server: localhost, a loopback
 * address, the address that it listens on (any address if it listens on all), or one of the names,
 * which may be addresses. Other names are refused, so that a foreign DNS name cannot point a
 * browser at this server (DNS rebinding). */
bool listen_address_accepts_host(const struct listen_address *address,
                                 const struct string_list *names, struct span host);

#endif
