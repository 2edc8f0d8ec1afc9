/* SPDX-License-Identifier: Apache-2.0 */
#include "support/wire/fake_daemon.h"

#include "client/session.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "support/assert_error.h"
#include "support/failing_allocator.h"

/* A session with a fake daemon of some behaviour. */
struct scene {
    struct pool_address address;
    struct session session;
    struct berth_error error;
    struct wire_message question;
    struct wire_message answer;
};

static void begin_scene(struct scene *scene, void **state, const char *behaviour)
{
    *scene = (struct scene){.address = fake_address(state), .question = {.type = WIRE_HELLO}};
    setenv("BERTH_TEST_DAEMON", behaviour, 1);
    assert_int_equal(session_open(&scene->session, &scene->address, DIAL_START, &scene->error), 0);
}

static void end(struct scene *scene)
{
    session_close(&scene->session);
    assert_int_equal(scene->session.socket, -1);
    pool_address_finish(&scene->address);
}

static int send_hello(struct scene *scene)
{
    return session_request(&scene->session, &scene->question, WIRE_POOL, &scene->answer,
                           &scene->error);
}

static void check_answers(struct scene *scene)
{
    int code = send_hello(scene);

    assert_string_equal(scene->error.message, "");
    assert_int_equal(code, 0);
    assert_int_equal(scene->answer.number, scene->question.number);
    assert_int_equal(scene->answer.type, WIRE_POOL);
    wire_message_finish(&scene->answer);
}

/* Checks that a request fails with this code, and with the socket's path and `message`. */
static void check_fails(struct scene *scene, int code, const char *message)
{
    char *whole;

    assert_true(asprintf(&whole, "%s%s", scene->address.socket, message) > 0);
    assert_fails(send_hello(scene), code, &scene->error, whole);
    assert_int_equal(scene->answer.type, 0);
    free(whole);
}

static void answers_reach_who_asked(void **state)
{
    struct scene scene;

    begin_scene(&scene, state, "good");
    for (uint64_t i = 1; i < 4; i++) {
        check_answers(&scene);
        assert_int_equal(scene.question.number, i);
    }
    assert_int_equal(session_next_number(&scene.session), 4);
    end(&scene);
}

static void what_others_asked_is_passed_over(void **state)
{
    struct scene scene;

    begin_scene(&scene, state, "chatty");
    check_answers(&scene);
    check_answers(&scene);
    end(&scene);
}

static void a_question_outlives_the_daemon(void **state)
{
    struct scene scene;

    begin_scene(&scene, state, "dies once");
    assert_int_equal(send_hello(&scene), 0);
    assert_int_equal(scene.answer.type, WIRE_POOL);
    wire_message_finish(&scene.answer);
    assert_int_equal(fake_end_all(scene.address.directory), 2);
    /* The daemon ended between two requests. */
    scene.session.how = DIAL_ONLY;
    assert_int_equal(send_hello(&scene), 0);
    wire_message_finish(&scene.answer);
    assert_int_equal(fake_end_all(scene.address.directory), 3);
    end(&scene);
}

static void a_question_that_kills_every_daemon_ends(void **state)
{
    struct scene scene;

    begin_scene(&scene, state, "dies always");
    dial_settings.reconnect_timeout = DURATION_SECOND / 20;
    check_fails(&scene, BERTH_ERROR_IO, ": the daemon is gone");
    assert_in_range(fake_end_all(scene.address.directory), 2, 20);
    end(&scene);
}

static void what_it_says_when_it_closes_is_the_error(void **state)
{
    static const char *const behaviours[] = {"closes", "closes late"};

    for (size_t i = 0; i < 2; i++) {
        struct scene scene;

        begin_scene(&scene, state, behaviours[i]);
        assert_fails(send_hello(&scene), BERTH_ERROR_LIMIT, &scene.error, "too many");
        assert_true(scene.session.closed);
        assert_int_equal(scene.session.socket, -1);
        assert_int_equal(session_reconnect(&scene.session, &scene.error), 0);
        assert_false(scene.session.closed);
        assert_int_equal(fake_end_all(scene.address.directory), i + 1);
        end(&scene);
    }
}

static void garbage_is_refused(void **state)
{
    struct scene scene;

    begin_scene(&scene, state, "garbage");
    check_fails(&scene, BERTH_ERROR_SYNTAX, ": message: expected version 1, got 103");
    assert_int_equal(scene.session.socket, -1);
    assert_int_equal(fake_end_all(scene.address.directory), 1);
    end(&scene);
    begin_scene(&scene, state, "long");
    check_fails(&scene, BERTH_ERROR_LIMIT, ": message: expected at most 131072 bytes, got 131073");
    end(&scene);
}

static void a_refusal_is_an_error(void **state)
{
    struct scene scene;

    begin_scene(&scene, state, "refuses");
    assert_fails(send_hello(&scene), BERTH_ERROR_BUSY, &scene.error, "it is taken");
    assert_true(scene.session.socket >= 0);
    fake_end_all(scene.address.directory);
    end(&scene);
    begin_scene(&scene, state, "other answer");
    check_fails(&scene, BERTH_ERROR_SYNTAX, ": expected the answer 'pool', got 'done'");
    end(&scene);
}

static void codes_from_outside_are_checked(void **state)
{
    struct wire_message message = {.type = WIRE_REFUSED, .error = 4, .text = (char *)"no such"};
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    assert_fails(session_refusal(&message, &error), BERTH_ERROR_NOT_FOUND, &error, "no such");
    message.text = NULL;
    assert_fails(session_refusal(&message, &error), BERTH_ERROR_NOT_FOUND, &error, "not found");
    message.error = 0;
    assert_fails(session_refusal(&message, &error), BERTH_ERROR_IO, &error,
                 "input or output failed");
    message.error = UINT32_MAX;
    assert_int_equal(session_refusal(&message, NULL), BERTH_ERROR_IO);
    message.error = 1U << 31;
    assert_int_equal(session_refusal(&message, NULL), BERTH_ERROR_IO);
}

static void nothing_comes_in_time(void **state)
{
    struct scene scene;

    begin_scene(&scene, state, "good");
    assert_int_equal(session_receive(&scene.session, 0, &scene.answer, &scene.error),
                     SESSION_NOTHING);
    assert_int_equal(session_receive(&scene.session, 1000000, &scene.answer, &scene.error),
                     SESSION_NOTHING);
    scene.question.number = 7;
    assert_int_equal(session_send(&scene.session, &scene.question, &scene.error), 0);
    assert_int_equal(
        session_receive(&scene.session, 20 * DURATION_SECOND, &scene.answer, &scene.error),
        SESSION_MESSAGE);
    assert_int_equal(scene.answer.number, 7);
    wire_message_finish(&scene.answer);
    end(&scene);
}

static void wake(int number)
{
    (void)number;
}

static void a_signal_ends_the_waiting(void **state)
{
    struct sigaction waking = {.sa_handler = wake};
    struct itimerval often = {{0, 5000}, {0, 5000}};
    struct itimerval never = {0};
    struct sigaction before;
    struct scene scene;

    begin_scene(&scene, state, "good");
    assert_int_equal(sigaction(SIGALRM, &waking, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    assert_int_equal(session_receive(&scene.session, -1, &scene.answer, &scene.error),
                     SESSION_NOTHING);
    assert_int_equal(
        session_receive(&scene.session, 20 * DURATION_SECOND, &scene.answer, &scene.error),
        SESSION_NOTHING);
    check_answers(&scene);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    end(&scene);
}

static void a_lost_daemon_is_seen_and_found_again(void **state)
{
    struct scene scene;

    begin_scene(&scene, state, "good");
    fake_end_all(scene.address.directory);
    assert_int_equal(session_send(&scene.session, &scene.question, &scene.error), BERTH_ERROR_IO);
    assert_int_equal(scene.session.socket, -1);
    assert_int_equal(session_send(&scene.session, &scene.question, &scene.error), BERTH_ERROR_IO);
    assert_int_equal(session_receive(&scene.session, -1, &scene.answer, &scene.error),
                     BERTH_ERROR_IO);
    assert_int_equal(session_reconnect(&scene.session, &scene.error), 0);
    scene.error = (struct berth_error)BERTH_ERROR_INIT;
    check_answers(&scene);
    assert_int_equal(scene.session.reconnecting.until, 0);
    fake_end_all(scene.address.directory);
    assert_int_equal(chmod(scene.address.directory, 0777), 0);
    assert_int_equal(send_hello(&scene), BERTH_ERROR_PERMISSION);
    assert_int_equal(scene.error.code, BERTH_ERROR_PERMISSION);
    end(&scene);
}

static void a_daemon_that_stays_away_is_an_error(void **state)
{
    struct scene scene;

    begin_scene(&scene, state, "good");
    fake_end_all(scene.address.directory);
    scene.address.own = false;
    dial_settings.reconnect_timeout = DURATION_SECOND / 20;
    check_fails(&scene, BERTH_ERROR_NOT_FOUND, ": no daemon is running (connection refused)");
    end(&scene);
}

static void a_limit_holds_while_there_is_no_daemon(void **state)
{
    static const int64_t limits[] = {0, DURATION_SECOND / 20};
    static const char *const messages[] = {"not granted within 0s: the daemon at ",
                                           "not granted within 50ms: the daemon at "};

    const int64_t usual = dial_settings.reconnect_timeout;

    for (size_t i = 0; i < 2; i++) {
        const struct session_patience patience = {.limit = limits[i], .has_limit = true};
        struct scene scene;

        begin_scene(&scene, state, "good");
        fake_end_all(scene.address.directory);
        scene.address.own = false;
        session_set_patience(&scene.session, &patience);
        assert_int_equal(send_hello(&scene), BERTH_ERROR_TIMED_OUT);
        assert_memory_equal(scene.error.message, messages[i], strlen(messages[i]));
        assert_non_null(strstr(scene.error.message, " is gone"));
        /* The wait is over: the limit does not count for other requests. */
        session_end_limit(&scene.session);
        dial_settings.reconnect_timeout = 0;
        scene.session.reconnecting = (struct backoff){0};
        assert_int_equal(send_hello(&scene), BERTH_ERROR_NOT_FOUND);
        dial_settings.reconnect_timeout = usual;
        end(&scene);
    }
}

/* A limit of zero is a limit. */
static void a_daemon_that_does_not_answer_has_no_time_left(void **state)
{
    struct pool_address address = fake_address(state);
    struct wire_message message = {.type = WIRE_HELLO};
    const struct session_patience patience = {.has_limit = true};
    struct berth_error error = BERTH_ERROR_INIT;
    struct wire_message answer;
    struct session session;
    int sockets[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    assert_int_equal(session_open_connected(&session, &address, sockets[0], NULL), 0);
    session_set_patience(&session, &patience);
    assert_int_equal(session_request(&session, &message, WIRE_POOL, &answer, &error),
                     BERTH_ERROR_TIMED_OUT);
    assert_non_null(strstr(error.message, "not granted within 0s: the daemon"));
    session_close(&session);
    close(sockets[1]);
    pool_address_finish(&address);
}

/* The daemon reads nothing: sending ends when the caller's limit is over. */
static void a_full_socket_blocks_not_for_ever(void **state)
{
    struct pool_address address = fake_address(state);
    struct wire_message message = {.type = WIRE_HELLO};
    const struct session_patience patience = {.limit = DURATION_SECOND / 20, .has_limit = true};
    struct session session;
    int sockets[2];
    int sent = 0;
    int code = 0;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    assert_int_equal(session_open_connected(&session, &address, sockets[0], NULL), 0);
    session_set_patience(&session, &patience);
    while (code == 0 && sent++ < 100000)
        code = session_send(&session, &message, NULL);
    assert_int_equal(code, BERTH_ERROR_TIMED_OUT);
    session_close(&session);
    close(sockets[1]);
    pool_address_finish(&address);
}

static void opening_fails_as_dialling_does(void **state)
{
    struct pool_address address = fake_address(state);
    struct berth_error error = BERTH_ERROR_INIT;
    struct session session;

    assert_int_equal(session_open(&session, &address, DIAL_ONLY, &error), BERTH_ERROR_NOT_FOUND);
    pool_address_finish(&address);
}

static int talk_with_little_memory(void *context)
{
    struct wire_message question = {.type = WIRE_HELLO};
    struct wire_message answer = {0};
    struct session session;
    int code = session_open(&session, context, DIAL_START, NULL);

    if (code < 0)
        return code;
    code = session_request(&session, &question, WIRE_POOL, &answer, NULL);
    if (code == 0)
        wire_message_finish(&answer);
    session_close(&session);
    return code;
}

static void every_allocation_may_fail(void **state)
{
    struct pool_address address = fake_address(state);

    failing_allocator_try_all(talk_with_little_memory, &address);
    pool_address_finish(&address);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        fake_daemon_test(answers_reach_who_asked),
        fake_daemon_test(what_others_asked_is_passed_over),
        fake_daemon_test(a_question_outlives_the_daemon),
        fake_daemon_test(a_question_that_kills_every_daemon_ends),
        fake_daemon_test(what_it_says_when_it_closes_is_the_error),
        fake_daemon_test(garbage_is_refused),
        fake_daemon_test(a_refusal_is_an_error),
        cmocka_unit_test(codes_from_outside_are_checked),
        fake_daemon_test(nothing_comes_in_time),
        fake_daemon_test(a_signal_ends_the_waiting),
        fake_daemon_test(a_lost_daemon_is_seen_and_found_again),
        fake_daemon_test(a_daemon_that_stays_away_is_an_error),
        fake_daemon_test(a_limit_holds_while_there_is_no_daemon),
        fake_daemon_test(a_daemon_that_does_not_answer_has_no_time_left),
        fake_daemon_test(a_full_socket_blocks_not_for_ever),
        fake_daemon_test(opening_fails_as_dialling_does),
        fake_daemon_test(every_allocation_may_fail),
    };

    fake_daemon_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
