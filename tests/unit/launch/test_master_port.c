/* SPDX-License-Identifier: Apache-2.0
 *
 * How the master port is chosen. No test needs a certain port to be free.
 */
#include "support/unit.h"

#include "launch/master_port.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/count.h"

enum { NEIGHBOURS = 100 };

static struct master_port choose(uint16_t wanted)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct master_port port;

    assert_int_equal(master_port_choose(wanted, &port, &error), 0);
    assert_string_equal(error.message, "");
    return port;
}

/* Binds a socket to a port (0: any) without listening. Other sockets can bind it too, but the
 * kernel does not choose it for another socket. Returns the socket, or -1. */
static int hold(int family, uint16_t port)
{
    const int on = 1;
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    const struct sockaddr *address =
        family == AF_INET ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6;
    int holder = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (holder < 0)
        return -1;
    setsockopt(holder, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (family == AF_INET6)
        setsockopt(holder, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(holder, address, family == AF_INET ? sizeof(v4) : sizeof(v6)) == 0)
        return holder;
    close(holder);
    return -1;
}

static uint16_t port_of(int holder)
{
    struct sockaddr_in6 address = {0}; /* the port is at the same offset as for IPv4 */
    socklen_t length = sizeof(address);

    assert_int_equal(getsockname(holder, (struct sockaddr *)&address, &length), 0);
    return ntohs(address.sin6_port);
}

static void check_wanted(uint16_t wanted, bool is_taken)
{
    struct master_port port = choose(wanted);

    assert_int_equal(port.number, wanted);
    assert_int_equal(port.is_taken, is_taken);
    master_port_finish(&port);
}

static void what_is_asked_for_is_used(void **state)
{
    int holder = hold(AF_INET, 0);
    uint16_t wanted = port_of(holder);
    struct master_port port = choose(wanted);

    (void)state;
    assert_false(port.is_taken);
    assert_true(port.has_name);
    /* Another `berth run` uses the port. */
    check_wanted(wanted, true);
    master_port_finish(&port);
    check_wanted(wanted, false);
    /* Another process listens on it. */
    assert_int_equal(listen(holder, 1), 0);
    check_wanted(wanted, true);
    close(holder);
}

static void who_listens_on_v6_counts(void **state)
{
    int holder = hold(AF_INET6, 0);

    (void)state;
    if (holder < 0) {
        print_message("skip: no IPv6 here\n");
        skip();
    }
    check_wanted(port_of(holder), false);
    assert_int_equal(listen(holder, 1), 0);
    check_wanted(port_of(holder), true);
    close(holder);
}

/* Privileged ports may be requested; the ranks will fail if they cannot bind. */
static void what_cannot_be_tried_is_not_taken(void **state)
{
    (void)state;
    check_wanted(1, false);
}

static void runs_do_not_meet(void **state)
{
    struct master_port ports[4];

    (void)state;
    for (size_t i = 0; i < COUNT(ports); i++) {
        ports[i] = choose(0);
        assert_true(ports[i].number >= MASTER_PORT_DEFAULT);
        assert_true(ports[i].has_name);
        assert_false(ports[i].is_taken);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(ports[i].number, ports[j].number);
    }
    for (size_t i = 0; i < COUNT(ports); i++)
        master_port_finish(&ports[i]);
}

static void a_listener_on_the_default_port_is_left_alone(void **state)
{
    int holder = hold(AF_INET, MASTER_PORT_DEFAULT);
    struct master_port port;

    (void)state;
    /* If the port cannot be bound, another process listens there. */
    if (holder >= 0)
        listen(holder, 1);
    port = choose(0);
    assert_int_not_equal(port.number, MASTER_PORT_DEFAULT);
    master_port_finish(&port);
    close(holder);
}

static void with_all_neighbours_taken_any_port_will_do(void **state)
{
    struct master_port ports[NEIGHBOURS];
    struct master_port port;

    (void)state;
    for (size_t i = 0; i < COUNT(ports); i++)
        ports[i] = choose((uint16_t)(MASTER_PORT_DEFAULT + i));
    port = choose(0);
    assert_true(port.number < MASTER_PORT_DEFAULT ||
                port.number >= MASTER_PORT_DEFAULT + NEIGHBOURS);
    assert_true(port.has_name);
    master_port_finish(&port);
    for (size_t i = 0; i < COUNT(ports); i++)
        master_port_finish(&ports[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_asked_for_is_used),
        cmocka_unit_test(who_listens_on_v6_counts),
        cmocka_unit_test(what_cannot_be_tried_is_not_taken),
        cmocka_unit_test(runs_do_not_meet),
        cmocka_unit_test(a_listener_on_the_default_port_is_left_alone),
        cmocka_unit_test(with_all_neighbours_taken_any_port_will_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
