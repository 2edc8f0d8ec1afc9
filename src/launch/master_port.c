/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/master_port.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"

/* The default port and the ports after it are tried first. Ephemeral ports, which the kernel
 * chooses, are the second choice: the kernel may give such a port to a connection before a rank
 * listens there, and a rank that connects to it may even connect to itself. */
enum { NEIGHBOURS = 100, TRIES = NEIGHBOURS + 20 };

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Fills in the wildcard address of the family. Returns its length. */
static socklen_t fill_wildcard(int family, uint16_t port, union address *ret_address)
{
    memset(ret_address, 0, sizeof(*ret_address));
    ret_address->any.sa_family = (sa_family_t)family;
    if (family == AF_INET6) {
        ret_address->v6.sin6_port = htons(port);
        return sizeof(ret_address->v6);
    }
    ret_address->v4.sin_port = htons(port);
    return sizeof(ret_address->v4);
}

/* Binds the port and closes the socket again. If *port is 0, sets it to a free port. Returns 0 or
 * an errno. */
static int try_family(int family, uint16_t *port)
{
    const int on = 1;
    union address address;
    socklen_t length = fill_wildcard(family, *port, &address);
    int number = 0;
    int probe = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (probe < 0)
        return errno;
    /* Ignore closed connections in TIME_WAIT. */
    setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (family == AF_INET6)
        setsockopt(probe, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(probe, &address.any, length) < 0 || getsockname(probe, &address.any, &length) < 0)
        number = errno;
    else
        *port = ntohs(family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
    close(probe);
    return number;
}

/* Tries the port with IPv4 and, if the host has it, IPv6. Returns 0 or an errno. */
static int try_port(uint16_t *port)
{
    int number = try_family(AF_INET, port);

    if (number == 0)
        number = try_family(AF_INET6, port);
    return number == EAFNOSUPPORT || number == EADDRNOTAVAIL ? 0 : number;
}

/* Binds the abstract socket. Returns 0 or an errno. */
static int bind_name(struct master_port *port)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "berth/port/%u",
                          (unsigned)port->number);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    int number = 0;

    port->name = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (port->name < 0)
        return errno;
    port->has_name = bind(port->name, (const struct sockaddr *)&address, size) == 0;
    if (!port->has_name) {
        number = errno;
        close(port->name);
    }
    return number;
}

/* Reserves the port and tests that it is free. The abstract socket comes first, so that a port that
 * another run has reserved is never bound, not even for a moment. Returns 0 or an errno. */
static int reserve_port(struct master_port *port)
{
    int number = bind_name(port);

    return number == 0 ? try_port(&port->number) : number;
}

static int find_free(struct master_port *ret_port, struct berth_error *error)
{
    int failure = EADDRINUSE;

    for (int i = 0; i < TRIES && failure == EADDRINUSE; i++) {
        struct master_port port = {0};

        failure = 0;
        if (i < NEIGHBOURS)
            port.number = (uint16_t)(MASTER_PORT_DEFAULT + i);
        else
            failure = try_port(&port.number);
        if (failure == 0)
            failure = reserve_port(&port);
        if (failure == 0)
            *ret_port = port;
        else
            master_port_finish(&port);
    }
    return failure == 0
               ? 0
               : error_set(error, BERTH_ERROR_LIMIT,
                           "cannot find a free TCP port for the ranks: %s", strerror(failure));
}

int master_port_choose(uint16_t wanted, struct master_port *ret_port, struct berth_error *error)
{
    struct master_port port = {.number = wanted};

    if (wanted == 0)
        return find_free(ret_port, error);
    port.is_taken = reserve_port(&port) == EADDRINUSE;
    *ret_port = port;
    return 0;
}

void master_port_finish(struct master_port *port)
{
    if (port->has_name)
        close(port->name);
    *port = (struct master_port){0};
}
