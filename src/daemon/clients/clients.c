/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/clients.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/clients/connection.h"
#include "wire/wire.h"

enum { ACCEPTED_IN_TURN = 64 };

/* The pause before the next attempt where descriptors or memory ran out. */
#define RETRY (DURATION_SECOND / 5)

/* The interval of log lines about missing descriptors. */
#define FULL_LOG_PERIOD (10 * DURATION_SECOND)

static void take_reserve(struct clients *clients)
{
    if (clients->reserve < 0)
        clients->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void log_full(struct clients *clients, int number)
{
    const struct clients_settings *settings = &clients->settings;
    int64_t now = loop_now(settings->loop);

    if (!rate_limit_is_full(&clients->full_log, now))
        return;
    rate_limit_take(&clients->full_log, now, FULL_LOG_PERIOD);
    log_line(settings->log, pool_clock_now(settings->clock), "error", "what=accept reason=%s",
             log_quote(strerror(number)).text);
}

static void pause_accepting(struct clients *clients)
{
    struct loop *loop = clients->settings.loop;

    loop_change(loop, &clients->listener.watch, 0);
    loop_set_timer(loop, &clients->retry, loop_now(loop) + RETRY);
}

static void resume_accepting(struct timer *timer)
{
    struct clients *clients = container_of(timer, struct clients, retry);

    take_reserve(clients);
    loop_change(clients->settings.loop, &clients->listener.watch, EPOLLIN);
}

static int accept_one(const struct clients *clients)
{
    // cppcheck-suppress nullPointer ; as accept(2) has it
    return accept4(clients->listener.watch.descriptor, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/* Accepts a connection with the descriptor that was kept for this. Returns whether there was one.
 */
static bool accept_with_reserve(struct clients *clients)
{
    int descriptor;

    if (clients->reserve < 0)
        return false;
    close(clients->reserve);
    clients->reserve = -1;
    descriptor = accept_one(clients);
    if (descriptor >= 0)
        connection_open(clients, descriptor, true);
    take_reserve(clients);
    return descriptor >= 0;
}

static void accept_connections(struct watch *watch, uint32_t events)
{
    struct clients *clients = container_of(watch, struct clients, listener.watch);

    (void)events;
    for (int i = 0; i < ACCEPTED_IN_TURN; i++) {
        int descriptor = accept_one(clients);
        int number = errno;

        if (descriptor >= 0) {
            connection_open(clients, descriptor, false);
            continue;
        }
        if (number != EMFILE && number != ENFILE && number != ENOMEM && number != ENOBUFS)
            return;
        log_full(clients, number);
        if (!accept_with_reserve(clients)) {
            pause_accepting(clients);
            return;
        }
    }
}

int clients_listen(struct clients *clients, struct berth_error *error)
{
    clients->listener.watch.ready = accept_connections;
    return loop_add(clients->settings.loop, &clients->listener.watch, EPOLLIN, error);
}

bool clients_stop_listening(struct clients *clients)
{
    /* A closed descriptor leaves the epoll set by itself. */
    return listener_close_unused(&clients->listener);
}

static void close_failed(struct clients *clients)
{
    const struct clients_callbacks *callbacks = &clients->settings.callbacks;

    while (!list_is_empty(&clients->closing)) {
        list_for_each (link, &clients->closing)
            connection_close(container_of(link, struct connection, in_closing));
        if (list_is_linked(&clients->retry.in_loop))
            loop_set_timer(clients->settings.loop, &clients->retry,
                           loop_now(clients->settings.loop));
        callbacks->settle(callbacks->context);
    }
}

void clients_end_turn(struct clients *clients)
{
    quota_serve(clients);
    close_failed(clients);
    clients->is_deferring = false;
}

void clients_begin_turn(struct clients *clients)
{
    clients->quotas.turn++;
}

void clients_flush(struct clients *clients)
{
    list_for_each (link, &clients->connections)
        connection_flush(container_of(link, struct connection, in_clients));
}

int clients_init(struct clients *clients, const struct clients_settings *settings,
                 struct berth_error *error)
{
    clients->settings = *settings;
    list_init(&clients->connections);
    list_init(&clients->closing);
    clients->retry.fire = resume_accepting;
    clients->reserve = -1;
    take_reserve(clients);
    clients->packet = malloc(WIRE_MESSAGE_MAX);
    if (quota_init(clients, error) < 0 || clients->packet == NULL)
        return error_set_memory(error);
    return 0;
}

void clients_finish(struct clients *clients)
{
    loop_set_timer(clients->settings.loop, &clients->retry, LOOP_NEVER);
    if (clients->reserve >= 0)
        close(clients->reserve);
    quota_finish(clients);
    listener_finish(&clients->listener);
    text_finish(&clients->answer);
    free(clients->packet);
}
