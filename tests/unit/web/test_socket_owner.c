/* SPDX-License-Identifier: Apache-2.0
 *
 * The users of the other ends of real connections on loopback.
 */
#include "support/unit.h"

#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "web/listen_address.h"
#include "web/socket_owner.h"

#define UID_NEVER 4242424242u

struct ends {
    int questions;
    int listener;
    int client;
    int server;
    struct listen_address ours;
    struct listen_address peer;
};

/* Connects a client with this address to a new listener. Returns false if there is no such address.
 */
static bool begin(struct ends *ends, const char *listens, const char *connects)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct listen_address client;

    *ends = (struct ends){.questions = socket_owner_open()};
    if (ends->questions < 0)
        return false;
    assert_int_equal(listen_address_parse(listens, &ends->ours, &error), 0);
    assert_int_equal(listen_address_parse(connects, &client, &error), 0);
    ends->listener = listen_address_open(&ends->ours, &error);
    if (ends->listener < 0) {
        close(ends->questions);
        return false;
    }
    ends->client = socket(client.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(ends->client >= 0);
    assert_int_equal(bind(ends->client, &client.any, client.length), 0);
    assert_int_equal(connect(ends->client, &ends->ours.any, ends->ours.length), 0);
    ends->peer.length = sizeof(ends->peer.six);
    ends->server = accept(ends->listener, &ends->peer.any, &ends->peer.length);
    assert_true(ends->server >= 0);
    return true;
}

static void end(struct ends *ends)
{
    if (ends->client >= 0)
        close(ends->client);
    close(ends->server);
    close(ends->listener);
    close(ends->questions);
}

/* Returns the user of the client, or UID_NEVER. */
static uint32_t find(const struct ends *ends)
{
    uint32_t uid = UID_NEVER;

    return socket_owner_find(ends->questions, &ends->ours.any, &ends->peer.any, &uid) ? uid
                                                                                      : UID_NEVER;
}

static void check_own_connection(const char *listens, const char *connects)
{
    struct ends ends;

    if (!begin(&ends, listens, connects))
        skip();
    /* A kernel without sock_diag for TCP never answers. */
    if (find(&ends) == UID_NEVER)
        skip();
    for (int i = 0; i < 3; i++)
        assert_int_equal(find(&ends), getuid());
    end(&ends);
}

static void own_connections(void **state)
{
    (void)state;
    check_own_connection("127.0.0.1:0", "127.0.0.1:0");
    check_own_connection("127.0.0.1:0", "127.9.8.7:0");
}

static void own_connections_by_ipv6(void **state)
{
    (void)state;
    check_own_connection("[::1]:0", "[::1]:0");
}

/* A closed socket belongs to no user: the kernel would say root. */
static void closed_ends(void **state)
{
    struct ends ends;

    (void)state;
    if (!begin(&ends, "127.0.0.1:0", "127.0.0.1:0"))
        skip();
    close(ends.client);
    ends.client = -1;
    assert_int_equal(find(&ends), UID_NEVER);
    end(&ends);
}

/* A listening socket with the peer's address is not the other end. */
static void other_sockets(void **state)
{
    struct ends ends;

    (void)state;
    if (!begin(&ends, "127.0.0.1:0", "127.0.0.1:0"))
        skip();
    ends.peer = ends.ours;
    assert_int_equal(find(&ends), UID_NEVER);
    ends.peer.four.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1 */
    assert_int_equal(find(&ends), UID_NEVER);
    end(&ends);
}

static void without_an_answer(void **state)
{
    struct ends ends;
    struct listen_address six;
    struct berth_error error = BERTH_ERROR_INIT;
    int questions;

    (void)state;
    if (!begin(&ends, "127.0.0.1:0", "127.0.0.1:0"))
        skip();
    questions = ends.questions;
    ends.questions = -1;
    assert_int_equal(find(&ends), UID_NEVER);
    ends.questions = questions;
    assert_int_equal(listen_address_parse("[::1]:1", &six, &error), 0);
    ends.peer = six;
    assert_int_equal(find(&ends), UID_NEVER);
    end(&ends);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_connections),   cmocka_unit_test(own_connections_by_ipv6),
        cmocka_unit_test(closed_ends),       cmocka_unit_test(other_sockets),
        cmocka_unit_test(without_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
