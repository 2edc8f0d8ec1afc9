/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/clients/clients.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/daemons/clients_stage.h"
#include "support/temporary_directory.h"

enum { MALLORY = 1000, ALICE = 1001, MANY = 20 };

/* A connection of this user, and the client's end. */
struct pair {
    struct connection connection;
    int client;
};

static void open_pair(struct stage *stage, struct pair *pair)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends),
                     0);
    *pair = (struct pair){
        .connection = {.clients = &stage->clients, .watch.descriptor = ends[0]},
        .client = ends[1],
    };
    list_init(&pair->connection.jobs);
    list_init(&pair->connection.watchers);
}

static void close_pair(struct pair *pair)
{
    list_remove(&pair->connection.in_closing);
    quota_disconnect(&pair->connection);
    text_finish(&pair->connection.out);
    close(pair->connection.watch.descriptor);
    close(pair->client);
}

/* The user with the most connections gives up the newest one that has no job. */
static void each_user_gets_the_first_connections(void **state)
{
    struct stage *stage = *state;
    struct pair hogs[MANY];
    struct pair others[QUOTA_CONNECTIONS_SURE + 1];
    struct berth_error error = BERTH_ERROR_INIT;

    stage->rules.bounds.connections = 1000;
    stage->clients.quotas.connections_max = MANY;
    for (int i = 0; i < MANY; i++) {
        open_pair(stage, &hogs[i]);
        assert_int_equal(quota_connect(&hogs[i].connection, MALLORY, false, NULL), 0);
    }
    hogs[MANY - 1].connection.job_count = 1;
    for (int i = 0; i <= QUOTA_CONNECTIONS_SURE; i++) {
        int code;

        open_pair(stage, &others[i]);
        code = quota_connect(&others[i].connection, ALICE, false, &error);
        assert_int_equal(code, i < QUOTA_CONNECTIONS_SURE ? 0 : BERTH_ERROR_LIMIT);
        assert_int_equal(stage->clients.quotas.connections, MANY);
    }
    assert_false(hogs[MANY - 1].connection.closing);
    for (int i = 0; i < MANY - 1; i++)
        assert_int_equal(hogs[i].connection.closing, i >= MANY - 1 - QUOTA_CONNECTIONS_SURE);
    assert_int_equal(stage_receive_type(hogs[MANY - 2].client), WIRE_CLOSING);
    for (int i = 0; i < MANY; i++)
        close_pair(&hogs[i]);
    for (int i = 0; i <= QUOTA_CONNECTIONS_SURE; i++)
        close_pair(&others[i]);
    assert_int_equal(stage->clients.quotas.connections, 0);
}

/* With equal shares no user loses anything. */
static void equal_users_keep_what_they_have(void **state)
{
    struct stage *stage = *state;
    struct pair pairs[4];
    struct berth_error error = BERTH_ERROR_INIT;

    stage->rules.bounds.connections = 1000;
    stage->clients.quotas.connections_max = 3;
    for (int i = 0; i < 4; i++) {
        open_pair(stage, &pairs[i]);
        assert_int_equal(quota_connect(&pairs[i].connection, MALLORY + i, false, &error),
                         i < 3 ? 0 : BERTH_ERROR_LIMIT);
    }
    for (int i = 0; i < 4; i++)
        close_pair(&pairs[i]);
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    return client;
}

static int open_in_directory(void **state)
{
    struct stage *stage;

    if (temporary_directory_enter(state) < 0)
        return -1;
    free(*state);
    if (stage_begin(state) < 0)
        return -1;
    stage = *state;
    listener_init(&stage->clients.listener, "./berth.sock", -1, false);
    return listener_lock(&stage->clients.listener, NULL) < 0 ||
                   listener_open(&stage->clients.listener, NULL) < 0 ||
                   clients_listen(&stage->clients, NULL) < 0
               ? -1
               : 0;
}

static int close_in_directory(void **state)
{
    char *directory = getcwd(NULL, 0);

    if (stage_end(state) < 0)
        return -1;
    *state = directory;
    return temporary_directory_leave(state);
}

/* With no descriptor left, one client is served by the descriptor in reserve. The others wait, the
 * loop sleeps meanwhile, and they are served as soon as there are descriptors. */
static void clients_wait_for_descriptors(void **state)
{
    struct stage *stage = *state;
    int late[MANY];
    struct rlimit before;
    struct rlimit none;
    int lowest;

    stage->answers = true;
    for (int i = 0; i < MANY; i++) {
        late[i] = connect_to("berth.sock");
        stage_send(late[i], WIRE_HELLO, 1);
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    lowest = dup(0);
    close(lowest);
    none = (struct rlimit){(rlim_t)lowest, before.rlim_max};
    stage->rules.bounds.connections = 1000;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    stage_take_turn(stage);
    assert_int_equal(stage->received, 1);
    assert_int_equal(stage_receive_type(late[0]), WIRE_DONE);
    assert_true(list_is_linked(&stage->clients.retry.in_loop));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    stage_go_to(stage, stage->clients.retry.at);
    /* An ordinary user's messages may need more than one turn. */
    for (int turn = 0; turn < MANY && stage->received < MANY; turn++)
        stage_take_turn(stage);
    assert_int_equal(stage->received, MANY);
    for (int i = 0; i < MANY; i++)
        close(late[i]);
}

static void a_daemon_without_clients_stops_listening(void **state)
{
    struct stage *stage = *state;
    int client = connect_to("berth.sock");

    assert_false(clients_stop_listening(&stage->clients));
    stage_take_turn(stage);
    assert_int_equal(stage->clients.connection_count, 1);
    assert_true(clients_stop_listening(&stage->clients));
    close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_user_gets_the_first_connections, stage_begin,
                                        stage_end),
        cmocka_unit_test_setup_teardown(equal_users_keep_what_they_have, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(clients_wait_for_descriptors, open_in_directory,
                                        close_in_directory),
        cmocka_unit_test_setup_teardown(a_daemon_without_clients_stops_listening, open_in_directory,
                                        close_in_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
