/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses that are listened on, and names that a request may be for. Pure, but for opening.
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

/* 127.0.0.1:7411, [::1]:7411, localhost:7411; port 0: any that is free. Fails with
 * BERTH_ERROR_INVALID. Asks no resolver. */
int listen_address_parse(const char *string, struct listen_address *ret_address,
                         struct berth_error *error);

bool listen_address_is_loopback(const struct listen_address *address);

/* As it is written in an URL: 127.0.0.1:7411, [::1]:7411. */
struct listen_address_text listen_address_format(const struct listen_address *address);

/* Whether both are the same host, whatever the port. */
bool listen_address_same_host(const struct sockaddr *one, const struct sockaddr *other);

/* Whether `string` can be one of the names below: a name, 10.0.0.7 or [fd00::7]. Fails with
 * BERTH_ERROR_INVALID. */
int listen_address_check_name(const char *string, struct berth_error *error);

/* Opens a socket that listens, without blocking. Returns it, or an error. *address becomes the one
 * that it is bound to. */
int listen_address_open(struct listen_address *address, struct berth_error *error);

/* Whether a Host header, with or without its port, is one of ours: localhost, an address of this
 * machine's loopback, the address that is listened on (any address where that is any), or one of
 * the names, which may be addresses. A name that somebody else's DNS says is ours is none of these.
 */
bool listen_address_accepts_host(const struct listen_address *address,
                                 const struct string_list *names, struct span host);

#endif
