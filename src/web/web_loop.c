/* SPDX-License-Identifier: Apache-2.0 */
#include "web/web_loop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "web/event_timer.h"
#include "web/events.h"
#include "web/web_commands.h"
#include "web/web_state.h"

static const char common_headers[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n";

/* Minimum time between two messages with news: with an open page, after a scrape, and otherwise. */
static const int64_t page_pace = DURATION_SECOND / 4;
static const int64_t scrape_pace = 5 * DURATION_SECOND;
static const int64_t idle_pace = DURATION_SECOND;
/* How long loads are followed after a scrape. */
static const int64_t scrape_time = 60 * DURATION_SECOND;
/* How long requests wait for a snapshot, and how long the start waits for the first one. */
static const int64_t snapshot_timeout = DURATION_SECOND / 2;
static const int64_t first_timeout = 2 * DURATION_SECOND;
static const int64_t tick_time = 5 * DURATION_SECOND;

static const uint32_t idle_kinds = WIRE_NEWS_HELLO | WIRE_NEWS_LEASE | WIRE_NEWS_QUEUE;

/* ---- The pool ---- */

static void step_follower(struct web *web);

static void on_follower(evutil_socket_t descriptor, short what, void *context)
{
    (void)descriptor;
    (void)what;
    step_follower(context);
}

/* Arms the events that the follower waits for. */
static void wait_for_pool(struct web *web)
{
    int descriptor = follower_descriptor(&web->follower);
    int64_t wait = follower_next_timeout(&web->follower);

    event_del(web->readable);
    if (descriptor >= 0) {
        event_assign(web->readable, web->base, descriptor, EV_READ, on_follower, web);
        event_add(web->readable, NULL);
    }
    /* Round up: a timer that fires too early would fire twice. */
    event_timer_start(web->timer, wait + 1000);
}

static void notify_ready(struct web *web)
{
    char url[128];

    if (web->ready == NULL)
        return;
    snprintf(url, sizeof(url), "http://%s/",
             listen_address_format(http_server_address(web->server)).text);
    web->ready(url);
    web->ready = NULL;
}

/* Updates the job mapping. Prints an error once, when updates begin to fail. */
static void update_mapping(struct web *web)
{
    struct berth_error error = BERTH_ERROR_INIT;
    bool failed = job_mapping_update(&web->mapping, &web->follower.view, &error) < 0;

    if (failed && !web->mapping_failed)
        fprintf(stderr, "berth: web: %s\n", error.message);
    web->mapping_failed = failed;
}

static void handle_news(struct web *web, uint32_t news)
{
    update_mapping(web);
    event_clients_notify(&web->clients, news);
    follower_forget_ended(&web->follower);
    notify_ready(web);
}

/* Handles the daemon's messages. */
static void step_follower(struct web *web)
{
    uint64_t seen = web->follower.seen;
    int news = follower_step(&web->follower, &web->failed);

    if (news < 0) {
        event_base_loopbreak(web->base);
        return;
    }
    if (web->settings->token == NULL)
        web_commands_limit(&web->follower);
    if (web->follower.seen != seen) {
        web_shared_text_release(web->scrape);
        web->scrape = NULL;
    }
    if (news != 0)
        handle_news(web, (uint32_t)news);
    else
        event_clients_notify(&web->clients, 0);
    web_answer_waiting(web, follower_get_state(&web->follower) != FOLLOWER_LIVE);
    web_update_subscription(web);
    wait_for_pool(web);
}

void web_update_subscription(struct web *web)
{
    if (web->clients.count > 0)
        follower_set_interests(&web->follower, WIRE_NEWS_ALL, page_pace);
    else if (clock_now() < web->loads_until)
        follower_set_interests(&web->follower, WIRE_NEWS_ALL, scrape_pace);
    else
        follower_set_interests(&web->follower, idle_kinds, idle_pace);
}

uint64_t web_refresh(struct web *web, bool whole)
{
    uint64_t snapshot = 0;

    web->loads_until = clock_now() + scrape_time;
    web_update_subscription(web);
    if (follower_get_state(&web->follower) == FOLLOWER_LIVE) {
        snapshot = follower_refresh(&web->follower, whole);
        if (!evtimer_pending(web->timeout, NULL))
            event_timer_start(web->timeout, snapshot_timeout);
    }
    wait_for_pool(web);
    return snapshot;
}

static void on_clients_changed(void *context)
{
    web_update_subscription(context);
    wait_for_pool(context);
}

/* ---- Time and signals ---- */

static void on_tick(evutil_socket_t none, short what, void *context)
{
    struct web *web = context;

    (void)none;
    (void)what;
    /* The follower may find that the daemon is silent. */
    step_follower(web);
    event_clients_send_tick(&web->clients);
    event_timer_start(web->tick, tick_time);
}

/* Answers the waiting requests with the last snapshot, because the pool is slow. */
static void on_timeout(evutil_socket_t none, short what, void *context)
{
    struct web *web = context;

    (void)none;
    (void)what;
    web_answer_waiting(web, true);
    notify_ready(web);
}

static void on_end(evutil_socket_t signals, short what, void *context)
{
    (void)signals;
    (void)what;
    event_base_loopbreak(((struct web *)context)->base);
}

/* ---- Start and end ---- */

/* Raises the limit of descriptors. Returns how many connections fit, with some descriptors reserved
 * for the daemon, the history and files. */
static size_t raise_limit(void)
{
    const rlim_t own = 64;
    const rlim_t wanted = HTTP_CONNECTIONS_MAX + own;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return own;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= wanted)
        return HTTP_CONNECTIONS_MAX;
    return limit.rlim_cur >= 2 * own ? limit.rlim_cur - own : limit.rlim_cur / 2;
}

static int add_hosts(struct web *web)
{
    char name[256] = "";
    char **host;

    /* The name of the machine counts only where other machines can connect. */
    if (!listen_address_is_loopback(&web->settings->address) &&
        gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' &&
        string_list_append(&web->hosts, name) < 0)
        return BERTH_ERROR_MEMORY;
    vector_for_each (host, &web->settings->hosts) {
        if (string_list_append(&web->hosts, *host) < 0)
            return BERTH_ERROR_MEMORY;
    }
    return 0;
}

/* Returns the signals that end the server. */
static sigset_t end_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

static int make_events(struct web *web, struct berth_error *error)
{
    const sigset_t ends = end_signals();

    web->signals = signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC);
    if (web->signals < 0)
        return error_set_errno(error, errno, "cannot create a signalfd");
    web->base = event_base_new();
    if (web->base == NULL)
        return error_set_memory(error);
    web->readable = event_new(web->base, -1, EV_READ, on_follower, web);
    web->timer = evtimer_new(web->base, on_follower, web);
    web->tick = evtimer_new(web->base, on_tick, web);
    web->timeout = evtimer_new(web->base, on_timeout, web);
    if (web->readable == NULL || web->timer == NULL || web->tick == NULL || web->timeout == NULL ||
        add_hosts(web) < 0)
        return error_set_memory(error);
    web->end = event_new(web->base, web->signals, EV_READ, on_end, web);
    return web->end == NULL || event_add(web->end, NULL) != 0 ? error_set_memory(error) : 0;
}

/* Opens the files that options name. */
static int open_files(struct web *web, struct berth_error *error)
{
    int code = 0;

    if (web->settings->token != NULL) {
        code = token_read(web->settings->token, &web->token, error);
        if (code < 0)
            return error_wrap(error, BERTH_ERROR_INVALID, "--token");
    }
    if (web->settings->job_mapping != NULL) {
        code = job_mapping_open(&web->mapping, web->settings->job_mapping, error);
        if (code < 0)
            return error_wrap(error, code, "--job-mapping");
    }
    return 0;
}

static int start_web(struct web *web, struct berth_error *error)
{
    const struct follower_settings follow = {
        .inventory = web->settings->inventory,
        .kinds = idle_kinds,
        .interval = idle_pace,
        .claims_max = EVENTS_CLAIMS_MAX,
        .keeps_ended = true,
    };
    const struct http_server_settings server = {
        .address = web->settings->address,
        .listener = web->settings->listener,
        .connections = raise_limit(),
        .headers = common_headers,
        .subordinates = getenv("BERTH_SUBUID"),
        .handler = web_answer,
        .context = web,
    };
    const sigset_t ends = end_signals();
    int code = open_files(web, error);

    if (code == 0)
        code = make_events(web, error);
    if (code == 0)
        code = web_history_init(&web->history, web->base, web->settings->token == NULL, error);
    if (code == 0)
        code = http_server_create(web->base, &server, &web->server, error);
    if (code == 0)
        code = follower_open(&web->follower, &follow, error);
    /* Until here the signals end the process: follower_open() may block. */
    if (code == 0)
        sigprocmask(SIG_BLOCK, &ends, NULL);
    return code;
}

static void free_event(struct event *event)
{
    if (event != NULL)
        event_free(event);
}

static void finish_web(struct web *web)
{
    web->clients.changed = NULL;
    http_server_destroy(web->server);
    event_clients_finish(&web->clients);
    web_history_finish(&web->history);
    web_shared_text_release(web->scrape);
    metrics_finish(&web->metrics);
    job_mapping_close(&web->mapping);
    free_event(web->end);
    if (web->signals >= 0)
        close(web->signals);
    free_event(web->timeout);
    free_event(web->tick);
    free_event(web->timer);
    free_event(web->readable);
    if (web->base != NULL)
        event_base_free(web->base);
    string_list_finish(&web->hosts);
    user_names_finish(&web->users);
}

int web_serve(const struct web_settings *settings, void (*ready)(const char *url),
              struct berth_error *error)
{
    struct web web = {.settings = settings, .ready = ready, .signals = -1};
    int code;

    signal(SIGPIPE, SIG_IGN);
    list_init(&web.waiting);
    event_clients_init(&web.clients, &web.follower, &web.users);
    code = start_web(&web, error);
    if (code == 0) {
        web.clients.changed = on_clients_changed;
        web.clients.context = &web;
        event_timer_start(web.timeout, first_timeout);
        event_timer_start(web.tick, tick_time);
        step_follower(&web);
        if (web.failed.code == 0)
            event_base_dispatch(web.base);
        code = web.failed.code;
        if (code < 0)
            *error = web.failed;
    }
    finish_web(&web);
    if (code == 0 || web.failed.code < 0)
        follower_close(&web.follower);
    return code;
}
