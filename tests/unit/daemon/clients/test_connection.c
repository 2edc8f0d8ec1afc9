/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/clients/connection.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/daemons/clients_stage.h"

/* Connects a client of this process's user, who is no owner. Returns the client's end. */
static int connect_client(struct stage *stage, struct connection **ret_connection)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends),
                     0);
    connection_open(&stage->clients, ends[0], false);
    *ret_connection =
        list_is_empty(&stage->clients.connections)
            ? NULL
            : container_of(list_last(&stage->clients.connections), struct connection, in_clients);
    return ends[1];
}

static void the_kernel_names_the_client(void **state)
{
    struct stage *stage = *state;
    struct connection *connection;
    int client = connect_client(stage, &connection);

    assert_non_null(connection);
    assert_int_equal(connection->pid, getpid());
    assert_int_equal(connection->uid, geteuid());
    assert_int_equal(connection->gid, getegid());
    assert_int_equal(stage->clients.connection_count, 1);
    close(client);
}

static void messages_are_received_and_answered(void **state)
{
    struct stage *stage = *state;
    struct connection *connection;
    int client = connect_client(stage, &connection);

    stage->answers = true;
    stage_send(client, WIRE_HELLO, 17);
    stage_take_turn(stage);
    assert_int_equal(stage->received, 1);
    assert_int_equal(stage->last_type, WIRE_HELLO);
    assert_int_equal(stage->last_number, 17);
    assert_true(stage->settled >= 1);
    assert_int_equal(stage_receive_type(client), WIRE_DONE);
    close(client);
}

static void an_early_message_is_read_at_once_unless_that_is_deferred(void **state)
{
    struct stage *stage = *state;
    int ends[2];

    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
        stage_send(ends[1], WIRE_HELLO, 1);
        stage->clients.is_deferring = i == 1;
        connection_open(&stage->clients, ends[0], false);
        assert_int_equal(stage->received, 1);
        close(ends[1]);
    }
    stage_take_turn(stage);
    assert_false(stage->clients.is_deferring);
    assert_int_equal(stage->received, 2);
}

static void bytes_that_are_no_message_close_the_connection(void **state)
{
    struct stage *stage = *state;
    struct connection *connection;
    int client = connect_client(stage, &connection);

    assert_int_equal(send(client, "hello", 5, MSG_DONTWAIT), 5);
    stage_take_turn(stage);
    assert_int_equal(stage->received, 0);
    assert_int_equal(stage->closed, 1);
    assert_int_equal(stage_receive_type(client), WIRE_CLOSING);
    assert_int_equal(stage_receive_type(client), 0);
    assert_int_equal(stage->clients.connection_count, 0);
    close(client);
}

static void a_closed_end_closes_the_connection(void **state)
{
    struct stage *stage = *state;
    struct connection *connection;
    int client = connect_client(stage, &connection);

    close(client);
    stage_take_turn(stage);
    assert_int_equal(stage->closed, 1);
    assert_true(list_is_empty(&stage->clients.connections));
}

static void answers_wait_for_the_journal(void **state)
{
    struct stage *stage = *state;
    struct connection *connection;
    int client = connect_client(stage, &connection);
    struct berth_error full = {.code = BERTH_ERROR_IO, .message = "the journal is full"};

    stage->is_behind = true;
    connection_send(connection, &(struct wire_message){.type = WIRE_DONE, .number = 1});
    assert_int_equal(stage_receive_type(client), -1);
    stage->is_behind = false;
    clients_flush(&stage->clients);
    assert_int_equal(stage_receive_type(client), WIRE_DONE);
    /* The refusal because of the journal itself does not wait. */
    stage->is_behind = true;
    connection_refuse(connection, 2, &full);
    assert_int_equal(stage_receive_type(client), WIRE_REFUSED);
    close(client);
}

/* Sends until the kernel takes no more. */
static size_t send_many(struct connection *connection)
{
    char words[WIRE_TEXT_MAX];
    size_t count = 0;

    memset(words, 'x', sizeof(words));
    words[sizeof(words) - 1] = '\0';
    while (!connection->closing && connection->unread < 256 * (size_t)1024) {
        connection_send(connection, &(struct wire_message){
                                        .type = WIRE_CLOSING, .number = count, .text = words});
        count++;
    }
    return count;
}

static void unread_answers_are_kept_in_order(void **state)
{
    struct stage *stage = *state;
    struct connection *connection;
    int client = connect_client(stage, &connection);
    unsigned char packet[2 * WIRE_TEXT_MAX];
    size_t count = send_many(connection);
    size_t seen = 0;

    assert_true(connection->wants_out);
    while (seen < count) {
        ssize_t length = recv(client, packet, sizeof(packet), MSG_DONTWAIT);
        uint64_t number;

        if (length < 0) {
            stage_take_turn(stage);
            continue;
        }
        memcpy(&number, packet + 8, sizeof(number));
        assert_int_equal(number, seen);
        seen++;
    }
    clients_flush(&stage->clients);
    assert_int_equal(connection->unread, 0);
    assert_false(connection->wants_out);
    close(client);
}

static void a_client_that_never_reads_is_closed(void **state)
{
    struct stage *stage = *state;
    struct connection *connection;
    int client = connect_client(stage, &connection);
    char words[WIRE_TEXT_MAX];

    memset(words, 'x', sizeof(words));
    words[sizeof(words) - 1] = '\0';
    for (int i = 0; i < 100000 && !connection->closing; i++)
        connection_send(connection, &(struct wire_message){.type = WIRE_CLOSING, .text = words});
    assert_true(connection->closing);
    assert_int_equal(connection->unread, 0);
    clients_end_turn(&stage->clients);
    assert_int_equal(stage->closed, 1);
    close(client);
}

static void failing_sends_the_reason_and_closes_at_the_end_of_the_turn(void **state)
{
    struct stage *stage = *state;
    struct connection *connection;
    int client = connect_client(stage, &connection);
    struct berth_error error = {.code = BERTH_ERROR_LIMIT, .message = "too much"};

    connection_fail(connection, &error);
    connection_fail(connection, &error);
    assert_int_equal(stage->closed, 0);
    assert_int_equal(stage_receive_type(client), WIRE_CLOSING);
    clients_end_turn(&stage->clients);
    assert_int_equal(stage->closed, 1);
    assert_int_equal(stage_receive_type(client), 0);
    close(client);
}

static void the_recorder_has_no_bounds_and_is_no_client(void **state)
{
    struct stage *stage = *state;
    struct connection *recorder;
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends),
                     0);
    recorder = connection_open_recorder(&stage->clients, ends[0]);
    assert_non_null(recorder);
    assert_null(recorder->quota);
    assert_int_equal(stage->clients.connection_count, 0);
    connection_send(recorder, &(struct wire_message){.type = WIRE_NEWS});
    assert_int_equal(stage->sent_to_recorder, 1);
    close(ends[1]);
    stage_take_turn(stage);
    assert_int_equal(stage->closed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_kernel_names_the_client, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(messages_are_received_and_answered, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(an_early_message_is_read_at_once_unless_that_is_deferred,
                                        stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(bytes_that_are_no_message_close_the_connection, stage_begin,
                                        stage_end),
        cmocka_unit_test_setup_teardown(a_closed_end_closes_the_connection, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(answers_wait_for_the_journal, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(unread_answers_are_kept_in_order, stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(a_client_that_never_reads_is_closed, stage_begin,
                                        stage_end),
        cmocka_unit_test_setup_teardown(failing_sends_the_reason_and_closes_at_the_end_of_the_turn,
                                        stage_begin, stage_end),
        cmocka_unit_test_setup_teardown(the_recorder_has_no_bounds_and_is_no_client, stage_begin,
                                        stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
