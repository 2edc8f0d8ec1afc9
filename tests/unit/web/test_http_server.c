/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP server with short timeouts, and the clients of the event stream of an invented pool.
 */
#include "support/unit.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "support/views/pool_views.h"
#include "web/event_clients.h"
#include "web/http_server.h"

#define SHORT (DURATION_SECOND / 10)
#define LONG  (20 * DURATION_SECOND)

/* How the handler answers. */
enum act { ACT_ANSWER, ACT_LONG_ANSWER, ACT_WAIT, ACT_DELAY, ACT_READ };

struct scene {
    struct event_base *base;
    struct http_server *server;
    enum act act;
    size_t closed;
    struct http_connection *waiting;
    struct follower follower;
    struct user_names users;
    struct event_clients clients;
};

static char much[4 << 20];

static void on_closed(void *context)
{
    struct scene *scene = context;

    scene->closed++;
    scene->waiting = NULL;
}

static void handle(void *context, struct http_connection *connection,
                   const struct http_request *request)
{
    static const struct stream_events events = {.closed = on_closed};
    struct scene *scene = context;

    (void)request;
    switch (scene->act) {
    case ACT_ANSWER:
        http_answer_send_line(connection, 200, "%s", "here");
        break;
    case ACT_LONG_ANSWER:
        http_answer_send(connection, &(struct http_answer){.status = 200,
                                                           .bytes = much,
                                                           .length = sizeof(much),
                                                           .is_static = true});
        break;
    case ACT_WAIT:
        scene->waiting = connection;
        http_answer_defer(connection, &events, scene);
        break;
    case ACT_DELAY:
        http_answer_send(connection, &(struct http_answer){.status = 401, .delay = SHORT});
        break;
    case ACT_READ:
        event_clients_add(&scene->clients, connection);
        break;
    }
}

static void begin(struct scene *scene, enum act act, struct http_server_timeouts timeouts)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct http_server_settings settings = {
        .headers = "X-Ours: yes\r\n", .handler = handle, .context = scene, .timeouts = timeouts};

    *scene = (struct scene){.act = act, .base = event_base_new()};
    assert_non_null(scene->base);
    scene->follower.reason = (struct berth_error)BERTH_ERROR_INIT;
    event_clients_init(&scene->clients, &scene->follower, &scene->users);
    assert_int_equal(listen_address_parse("127.0.0.1:0", &settings.address, &error), 0);
    assert_int_equal(http_server_create(scene->base, &settings, &scene->server, &error), 0);
}

static void end(struct scene *scene)
{
    http_server_destroy(scene->server);
    event_clients_finish(&scene->clients);
    user_names_finish(&scene->users);
    event_base_free(scene->base);
}

static int reach(struct scene *scene)
{
    const struct listen_address *address = http_server_address(scene->server);
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int small = 4096;

    assert_true(descriptor >= 0);
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    assert_int_equal(connect(descriptor, &address->any, address->length), 0);
    assert_int_equal(fcntl(descriptor, F_SETFL, O_NONBLOCK), 0);
    return descriptor;
}

static int ask(struct scene *scene)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    int descriptor = reach(scene);

    assert_int_equal(send(descriptor, request, sizeof(request) - 1, MSG_NOSIGNAL),
                     sizeof(request) - 1);
    return descriptor;
}

/* Runs the event loop for a moment. */
static void turn(struct scene *scene)
{
    struct timeval moment = {.tv_usec = 2000};

    event_base_loopexit(scene->base, &moment);
    event_base_dispatch(scene->base);
}

/* Reads the available bytes. Returns false if the server has closed the connection. */
static bool take(int descriptor, struct text *out)
{
    char bytes[4096];

    for (;;) {
        ssize_t length = recv(descriptor, bytes, sizeof(bytes), 0);

        if (length < 0 && errno == EAGAIN)
            return true;
        if (length <= 0)
            return false;
        text_append_bytes(out, bytes, (size_t)length);
    }
}

/* Waits until the text contains this, or for NULL until the server closes the connection. */
static void await(struct scene *scene, int descriptor, const char *wanted, struct text *out)
{
    int64_t deadline = clock_now() + LONG;

    for (;;) {
        bool goes_on = take(descriptor, out);

        if (wanted != NULL ? strstr(text_string(out), wanted) != NULL : !goes_on)
            return;
        assert_true(goes_on);
        assert_true(clock_now() < deadline);
        turn(scene);
    }
}

static void an_answer_and_the_next(void **state)
{
    struct scene scene;
    struct text text = {0};
    int client;

    (void)state;
    begin(&scene, ACT_ANSWER, (struct http_server_timeouts){.idle = SHORT});
    client = ask(&scene);
    await(&scene, client, "\r\n\r\nhere\n", &text);
    assert_non_null(strstr(text_string(&text), "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(text_string(&text), "X-Ours: yes\r\n"));
    assert_non_null(strstr(text_string(&text), "Date: "));
    text_clear(&text);
    assert_int_equal(send(client, "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
    await(&scene, client, NULL, &text);
    assert_non_null(strstr(text_string(&text), "Connection: close\r\n"));
    close(client);
    /* A client that sends no further request is disconnected. */
    client = ask(&scene);
    await(&scene, client, NULL, &text);
    close(client);
    text_finish(&text);
    end(&scene);
}

static void half_a_request(void **state)
{
    struct scene scene;
    struct text text = {0};
    int client;

    (void)state;
    begin(&scene, ACT_ANSWER, (struct http_server_timeouts){.head = SHORT});
    client = reach(&scene);
    assert_int_equal(send(client, "GET", 3, 0), 3);
    await(&scene, client, NULL, &text);
    assert_int_equal(text.length, 0);
    close(client);
    /* A client that sends nothing is disconnected, too. */
    client = reach(&scene);
    await(&scene, client, NULL, &text);
    close(client);
    end(&scene);
}

/* The timeout counts from the first byte, however much follows. */
static void a_request_that_never_ends(void **state)
{
    int64_t deadline = clock_now() + LONG;
    struct scene scene;
    struct text text = {0};
    int client;

    (void)state;
    begin(&scene, ACT_ANSWER, (struct http_server_timeouts){.head = SHORT});
    client = reach(&scene);
    assert_int_equal(send(client, "GET / HTTP/1.1\r\n", 16, 0), 16);
    while (take(client, &text)) {
        assert_true(clock_now() < deadline);
        send(client, "A", 1, MSG_NOSIGNAL);
        turn(&scene);
    }
    assert_int_equal(text.length, 0);
    close(client);
    end(&scene);
}

/* Clients that read nothing, or too slowly, are disconnected. */
static void answers_that_are_not_taken(void **state)
{
    const struct http_server_timeouts timeouts[] = {{.stalled = SHORT}, {.answer = SHORT}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct scene scene;
        struct text text = {0};
        int64_t deadline = clock_now() + LONG;
        int client;

        begin(&scene, ACT_LONG_ANSWER, timeouts[i]);
        client = ask(&scene);
        /* Sending fails once the server has closed the connection. */
        while (send(client, "x", 1, MSG_NOSIGNAL) >= 0 || errno == EAGAIN) {
            assert_true(clock_now() < deadline);
            turn(&scene);
        }
        text_finish(&text);
        close(client);
        end(&scene);
    }
}

static void answers_that_come_later(void **state)
{
    struct scene scene;
    struct text text = {0};
    int64_t begun = clock_now();
    int client;

    (void)state;
    begin(&scene, ACT_DELAY, (struct http_server_timeouts){0});
    client = ask(&scene);
    await(&scene, client, "HTTP/1.1 401 Unauthorized\r\n", &text);
    assert_true(clock_now() - begun >= SHORT);
    close(client);
    text_clear(&text);
    scene.act = ACT_WAIT;
    client = ask(&scene);
    while (scene.waiting == NULL)
        turn(&scene);
    http_answer_send_line(scene.waiting, 200, "%s", "late");
    await(&scene, client, "late\n", &text);
    assert_int_equal(scene.closed, 0);
    close(client);
    text_finish(&text);
    end(&scene);
}

static void answers_that_never_come(void **state)
{
    struct scene scene;
    struct text text = {0};
    int client;

    (void)state;
    begin(&scene, ACT_WAIT, (struct http_server_timeouts){.wait = SHORT});
    client = ask(&scene);
    await(&scene, client, "HTTP/1.1 503 ", &text);
    assert_int_equal(scene.closed, 1);
    close(client);
    client = ask(&scene);
    while (scene.waiting == NULL)
        turn(&scene);
    end(&scene);
    assert_int_equal(scene.closed, 2);
    close(client);
    text_finish(&text);
}

/* ---- Clients of the event stream ---- */

static void show(struct scene *scene, struct pool_view view)
{
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(pool_view_index(&view, &error), 0);
    if (scene->follower.has_view)
        pool_view_finish(&scene->follower.view);
    scene->follower.view = view;
    scene->follower.has_view = true;
}

/* Sends the end of a lease with the next news. */
static void show_ended(struct scene *scene, struct lease_info *lease)
{
    struct ended_lease *ended = vector_append(&scene->follower.ended);

    assert_non_null(ended);
    *ended = (struct ended_lease){.lease = lease, .end = LEASE_END_RELEASED, .time = VIEW_NOW};
}

static int begin_reading(struct scene *scene, struct http_server_timeouts timeouts,
                         struct text *text)
{
    int client;

    begin(scene, ACT_READ, timeouts);
    show(scene, view_of(4));
    client = ask(scene);
    await(scene, client, "event: state\n", text);
    text_clear(text);
    return client;
}

static void end_reading(struct scene *scene, int client, struct text *text)
{
    close(client);
    text_finish(text);
    vector_finish(&scene->follower.ended);
    end(scene);
    assert_int_equal(scene->clients.count, 0);
    pool_view_finish(&scene->follower.view);
}

static void leases_that_are_too_short_to_be_seen(void **state)
{
    struct lease_info lease = {.id = 7};
    struct scene scene;
    struct text text = {0};
    int client = begin_reading(&scene, (struct http_server_timeouts){0}, &text);

    (void)state;
    show_ended(&scene, &lease);
    event_clients_notify(&scene.clients, WIRE_NEWS_LEASE);
    await(&scene, client, "\"what\":\"released\"", &text);
    assert_non_null(strstr(text_string(&text), "\"what\":\"granted\""));
    assert_null(strstr(text_string(&text), "event: hello"));
    end_reading(&scene, client, &text);
}

/* If the end of a lease does not come with the next news, the whole state is sent. */
static void leases_that_vanish(void **state)
{
    struct scene scene;
    struct text text = {0};
    int client = begin_reading(&scene, (struct http_server_timeouts){0}, &text);
    struct pool_view view = view_of(4);

    (void)state;
    view_lease(&view, 7, 0, 1);
    show(&scene, view);
    event_clients_notify(&scene.clients, WIRE_NEWS_LEASE);
    await(&scene, client, "\"what\":\"granted\"", &text);
    await(&scene, client, "event: load", &text);
    text_clear(&text);
    show(&scene, view_of(4));
    event_clients_notify(&scene.clients, WIRE_NEWS_LEASE);
    await(&scene, client, "event: load", &text);
    assert_null(strstr(text_string(&text), "event: hello"));
    /* A new snapshot arrives before the news. */
    text_clear(&text);
    event_clients_notify(&scene.clients, WIRE_NEWS_LEASE | WIRE_NEWS_LOAD);
    await(&scene, client, "event: load", &text);
    assert_null(strstr(text_string(&text), "event: hello"));
    scene.follower.news_count++;
    event_clients_notify(&scene.clients, WIRE_NEWS_LEASE);
    await(&scene, client, "event: hello", &text);
    end_reading(&scene, client, &text);
}

/* A lease that ended and still drains is sent once. */
static void leases_that_linger(void **state)
{
    struct lease_info over = {.id = 7};
    struct scene scene;
    struct text text = {0};
    int client = begin_reading(&scene, (struct http_server_timeouts){0}, &text);
    struct pool_view view = view_of(4);

    (void)state;
    view_lease(&view, 7, 0, 1);
    show(&scene, view);
    event_clients_notify(&scene.clients, WIRE_NEWS_LEASE);
    view = view_of(4);
    view_lease(&view, 7, 0, 1)->draining = true;
    show(&scene, view);
    show_ended(&scene, &over);
    event_clients_notify(&scene.clients, WIRE_NEWS_LEASE);
    scene.follower.ended.count = 0;
    await(&scene, client, "\"what\":\"released\"", &text);
    text_clear(&text);
    show(&scene, view_of(4));
    event_clients_notify(&scene.clients, WIRE_NEWS_LEASE);
    event_clients_send_tick(&scene.clients);
    await(&scene, client, "event: tick", &text);
    assert_null(strstr(text_string(&text), "event: lease"));
    assert_null(strstr(text_string(&text), "event: hello"));
    end_reading(&scene, client, &text);
}

static void many_leases_at_once(void **state)
{
    struct scene scene;
    struct text text = {0};
    int client = begin_reading(&scene, (struct http_server_timeouts){0}, &text);
    struct pool_view view = view_of(4);

    (void)state;
    for (uint64_t id = 1; id <= 300; id++)
        view_lease(&view, id, 0, 1);
    show(&scene, view);
    event_clients_notify(&scene.clients, WIRE_NEWS_LEASE);
    await(&scene, client, "event: load", &text);
    assert_null(strstr(text_string(&text), "event: lease"));
    assert_non_null(strstr(text_string(&text), "event: hello"));
    end_reading(&scene, client, &text);
}

static void readers_that_sleep_are_closed(void **state)
{
    struct scene scene;
    struct text text = {0};
    int64_t deadline = clock_now() + LONG;
    int client = begin_reading(&scene, (struct http_server_timeouts){.stalled = SHORT}, &text);

    (void)state;
    show(&scene, view_of(500));
    while (scene.clients.count > 0) {
        assert_true(clock_now() < deadline);
        event_clients_notify(&scene.clients, WIRE_NEWS_HELLO);
        turn(&scene);
    }
    end_reading(&scene, client, &text);
}

static void slow_readers_skip(void **state)
{
    struct scene scene;
    struct text text = {0};
    int client = begin_reading(&scene, (struct http_server_timeouts){0}, &text);
    struct pool_view view = view_of(4);
    size_t told = 200;

    (void)state;
    show(&scene, view_of(300));
    for (size_t i = 0; i < told; i++) {
        event_clients_notify(&scene.clients, WIRE_NEWS_HELLO);
        turn(&scene);
    }
    view_lease(&view, 77, 0, 1)->name = view_text("the newest");
    show(&scene, view);
    event_clients_notify(&scene.clients, WIRE_NEWS_HELLO);
    await(&scene, client, "the newest", &text);
    await(&scene, client, "event: state", &text);
    for (const char *at = text_string(&text); (at = strstr(at, "event: hello")) != NULL; at++)
        told--;
    assert_true(told > 100);
    end_reading(&scene, client, &text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_and_the_next),
        cmocka_unit_test(half_a_request),
        cmocka_unit_test(a_request_that_never_ends),
        cmocka_unit_test(answers_that_are_not_taken),
        cmocka_unit_test(answers_that_come_later),
        cmocka_unit_test(answers_that_never_come),
        cmocka_unit_test(leases_that_are_too_short_to_be_seen),
        cmocka_unit_test(leases_that_vanish),
        cmocka_unit_test(leases_that_linger),
        cmocka_unit_test(many_leases_at_once),
        cmocka_unit_test(readers_that_sleep_are_closed),
        cmocka_unit_test(slow_readers_skip),
    };

    return cmocka_run_group_tests_name("web server", tests, NULL, NULL);
}
