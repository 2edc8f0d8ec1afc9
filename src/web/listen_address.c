/* SPDX-License-Identifier: Apache-2.0 */
#include "web/listen_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text/quote.h"

enum { WAITING_MAX = 4096 };
/* The first descriptor that a service manager passes. */
enum { FIRST_INHERITED = 3 };

/* Parses a numeric address without brackets. */
static bool parse_address(struct span text, struct listen_address *ret_address)
{
    struct listen_address address = {0};
    char string[INET6_ADDRSTRLEN];

    if (text.length == 0 || text.length >= sizeof(string) ||
        memchr(text.bytes, '\0', text.length) != NULL)
        return false;
    memcpy(string, text.bytes, text.length);
    string[text.length] = '\0';
    if (inet_pton(AF_INET, string, &address.four.sin_addr) == 1) {
        address.four.sin_family = AF_INET;
        address.length = sizeof(address.four);
    } else if (inet_pton(AF_INET6, string, &address.six.sin6_addr) == 1) {
        address.six.sin6_family = AF_INET6;
        address.length = sizeof(address.six);
    } else {
        return false;
    }
    *ret_address = address;
    return true;
}

/* Splits "host:port"; without a port *ret_port is empty. */
static bool split_host_port(struct span text, struct span *ret_host, struct span *ret_port,
                            bool *ret_six)
{
    const char *end;

    if (text.length == 0)
        return false;
    *ret_port = (struct span){"", 0};
    *ret_six = span_skip_prefix(&text, "[");
    if (*ret_six) {
        end = memchr(text.bytes, ']', text.length);
        if (end == NULL)
            return false;
        *ret_host = (struct span){text.bytes, (size_t)(end - text.bytes)};
        text.bytes = end + 1;
        text.length -= ret_host->length + 1;
    } else {
        end = memchr(text.bytes, ':', text.length);
        *ret_host =
            (struct span){text.bytes, end == NULL ? text.length : (size_t)(end - text.bytes)};
        text.bytes += ret_host->length;
        text.length -= ret_host->length;
    }
    if (text.length == 0)
        return true;
    if (*text.bytes != ':')
        return false;
    *ret_port = (struct span){text.bytes + 1, text.length - 1};
    return true;
}

static bool parse_port(struct span text, uint16_t *ret_port)
{
    uint64_t number;

    if (!span_read_number(&text, &number) || text.length > 0 || number > UINT16_MAX)
        return false;
    *ret_port = (uint16_t)number;
    return true;
}

int listen_address_parse(const char *string, struct listen_address *ret_address,
                         struct berth_error *error)
{
    struct listen_address address;
    struct span host;
    struct span port;
    uint16_t number;
    bool is_six;

    if (!split_host_port((struct span){string, strlen(string)}, &host, &port, &is_six))
        goto wrong;
    if (span_equals(host, "localhost"))
        host = (struct span){"127.0.0.1", 9};
    if (!parse_address(host, &address) || is_six != (address.any.sa_family == AF_INET6) ||
        !parse_port(port, &number))
        goto wrong;
    if (is_six)
        address.six.sin6_port = htons(number);
    else
        address.four.sin_port = htons(number);
    *ret_address = address;
    return 0;
wrong:
    return error_set(error, BERTH_ERROR_INVALID,
                     "expected ADDRESS:PORT (127.0.0.1:7411, [::1]:7411), got %s",
                     quote(string).text);
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;

        return ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;

        return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) != 0;
    }
    return false;
}

bool listen_address_is_loopback(const struct listen_address *address)
{
    return is_loopback(&address->any);
}

static bool is_any_address(const struct listen_address *address)
{
    if (address->any.sa_family == AF_INET)
        return address->four.sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&address->six.sin6_addr) != 0;
}

struct listen_address_text listen_address_format(const struct listen_address *address)
{
    char digits[INET6_ADDRSTRLEN] = "";
    struct listen_address_text result;

    if (address->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &address->six.sin6_addr, digits, sizeof(digits));
        snprintf(result.text, sizeof(result.text), "[%s]:%u", digits,
                 (unsigned)ntohs(address->six.sin6_port));
    } else {
        inet_ntop(AF_INET, &address->four.sin_addr, digits, sizeof(digits));
        snprintf(result.text, sizeof(result.text), "%s:%u", digits,
                 (unsigned)ntohs(address->four.sin_port));
    }
    return result;
}

bool listen_address_same_host(const struct sockaddr *one, const struct sockaddr *other)
{
    if (one->sa_family != other->sa_family)
        return false;
    if (one->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)one)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)(const void *)other)->sin_addr.s_addr;
    /* A machine can choose the second half of its IPv6 addresses. */
    return memcmp(&((const struct sockaddr_in6 *)(const void *)one)->sin6_addr,
                  &((const struct sockaddr_in6 *)(const void *)other)->sin6_addr, 8) == 0;
}

static int socket_option(int level, int option)
{
    int value = -1;
    socklen_t length = sizeof(value);

    return getsockopt(FIRST_INHERITED, level, option, &value, &length) != 0 ? -1 : value;
}

static bool is_usable(const struct listen_address *address)
{
    int family = socket_option(SOL_SOCKET, SO_DOMAIN);

    /* IPv4 addresses inside of IPv6 addresses would all count as one machine. */
    return (family == AF_INET ||
            (family == AF_INET6 && socket_option(IPPROTO_IPV6, IPV6_V6ONLY) == 1)) &&
           address->any.sa_family == family && socket_option(SOL_SOCKET, SO_TYPE) == SOCK_STREAM &&
           socket_option(SOL_SOCKET, SO_ACCEPTCONN) == 1;
}

int listen_address_inherit(int *ret_listener, struct listen_address *ret_address,
                           struct berth_error *error)
{
    struct listen_address address = {.length = sizeof(address.six)};
    const char *pid = getenv("LISTEN_PID");
    const char *count = getenv("LISTEN_FDS");
    bool has_some = pid != NULL && count != NULL && strtol(pid, NULL, 10) == (long)getpid();
    long descriptors = has_some ? strtol(count, NULL, 10) : 0;

    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    *ret_listener = 0;
    if (descriptors == 0)
        return 0;
    if (descriptors != 1 || getsockname(FIRST_INHERITED, &address.any, &address.length) != 0 ||
        !is_usable(&address))
        return error_set(error, BERTH_ERROR_INVALID,
                         "LISTEN_FDS: expected one listening TCP socket (for IPv6 with "
                         "BindIPv6Only=ipv6-only), got another");
    fcntl(FIRST_INHERITED, F_SETFD, FD_CLOEXEC);
    fcntl(FIRST_INHERITED, F_SETFL, O_NONBLOCK);
    *ret_address = address;
    *ret_listener = FIRST_INHERITED;
    return 0;
}

int listen_address_open(struct listen_address *address, struct berth_error *error)
{
    int family = address->any.sa_family;
    int number = 1;
    int descriptor = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (descriptor < 0)
        return error_set_errno(error, errno, "cannot listen on %s",
                               listen_address_format(address).text);
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &number, sizeof(number));
    if (family == AF_INET6)
        setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &number, sizeof(number));
    if (bind(descriptor, &address->any, address->length) != 0 ||
        listen(descriptor, WAITING_MAX) != 0 ||
        getsockname(descriptor, &address->any, &address->length) != 0) {
        number = errno;
        close(descriptor);
        if (number == EADDRINUSE)
            return error_set(error, BERTH_ERROR_INVALID,
                             "cannot listen on %s: the port is in use (port 0 takes any free port)",
                             listen_address_format(address).text);
        error_set_errno(error, number, "cannot listen on %s", listen_address_format(address).text);
        return error_wrap(error, BERTH_ERROR_INVALID, "--listen");
    }
    return descriptor;
}

static bool is_name(struct span name)
{
    for (size_t i = 0; i < name.length; i++) {
        char character = name.bytes[i];

        if (!(character >= 'a' && character <= 'z') && !(character >= 'A' && character <= 'Z') &&
            !(character >= '0' && character <= '9') && character != '-' && character != '.' &&
            character != '_')
            return false;
    }
    return name.length > 0 && name.length < 256;
}

int listen_address_check_name(const char *string, struct berth_error *error)
{
    struct listen_address address;
    struct span name = {string, strlen(string)};
    struct span inside = name;

    if (span_skip_prefix(&inside, "[") && span_drop_suffix(&inside, "]")
            ? parse_address(inside, &address) && address.any.sa_family == AF_INET6
            : is_name(name))
        return 0;
    return error_set(error, BERTH_ERROR_INVALID,
                     "expected a name or an address without a port ([fd00::7] for IPv6), got %s",
                     quote(string).text);
}

static bool same_address(const struct listen_address *one, const struct listen_address *other)
{
    if (one->any.sa_family != other->any.sa_family)
        return false;
    if (one->any.sa_family == AF_INET)
        return one->four.sin_addr.s_addr == other->four.sin_addr.s_addr;
    return memcmp(&one->six.sin6_addr, &other->six.sin6_addr, sizeof(one->six.sin6_addr)) == 0;
}

/* Parses an address. `is_six`: it had brackets, which an IPv6 address must have. */
static bool read_address(struct span host, bool is_six, struct listen_address *ret_address)
{
    return parse_address(host, ret_address) && is_six == (ret_address->any.sa_family == AF_INET6);
}

static bool is_listed(const struct string_list *names, const struct listen_address *address)
{
    char **name;

    vector_for_each (name, names) {
        struct listen_address other;
        struct span host = {*name, strlen(*name)};
        struct span port;
        bool is_six;

        if (split_host_port(host, &host, &port, &is_six) && read_address(host, is_six, &other) &&
            same_address(address, &other))
            return true;
    }
    return false;
}

bool listen_address_accepts_host(const struct listen_address *address,
                                 const struct string_list *names, struct span text)
{
    struct listen_address found;
    struct span host;
    struct span port;
    uint16_t number;
    bool is_six;
    char **name;

    if (!split_host_port(text, &host, &port, &is_six) ||
        (port.length > 0 && !parse_port(port, &number)))
        return false;
    if (read_address(host, is_six, &found))
        return is_loopback(&found.any) || is_any_address(address) ||
               same_address(&found, address) || is_listed(names, &found);
    if (is_six)
        return false;
    if (host.length == strlen("localhost") &&
        strncasecmp(host.bytes, "localhost", host.length) == 0)
        return true;
    vector_for_each (name, names) {
        if (strlen(*name) == host.length && strncasecmp(*name, host.bytes, host.length) == 0)
            return true;
    }
    return false;
}
