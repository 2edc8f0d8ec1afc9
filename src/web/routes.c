/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of paths and their handlers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/count.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "view/pool_json.h"
#include "web/assets.h"
#include "web/web_state.h"

#define NO_STORE "Cache-Control: no-store\r\n"

static const int64_t wrong_token_delay = DURATION_SECOND;

struct route {
    const char *path;
    void (*answer)(struct web *web, struct http_connection *connection,
                   const struct http_request *request);
    bool is_post;
    bool is_open; /* shows nothing of the pool: needs no token */
};

static void answer_json(struct http_connection *connection, struct text *document)
{
    if (text_failed(document))
        http_answer_send_line(connection, 503, "out of memory");
    else
        http_answer_send(connection, &(struct http_answer){.status = 200,
                                                           .type = "application/json",
                                                           .headers = NO_STORE,
                                                           .bytes = text_string(document),
                                                           .length = document->length});
    text_finish(document);
}

/* Returns whether the pool answers. If not, sends the answer 503. */
static bool is_live(struct web *web, struct http_connection *connection)
{
    const char *reason = web->follower.reason.message;

    switch (event_clients_state(&web->clients)) {
    case FOLLOWER_LIVE:
        if (web->follower.has_view)
            return true;
        reason = "it has not answered yet";
        break;
    case FOLLOWER_SILENT:
    case FOLLOWER_GONE:
        break;
    }
    http_answer_send_line(connection, 503, "cannot show the pool: %s",
                          reason[0] == '\0' ? "reconnecting" : reason);
    return false;
}

/* ---- The pool ---- */

/* A request that waits for a snapshot of the pool. */
struct waiting_request {
    struct list_link link;
    uint64_t snapshot;
    struct http_connection *connection;
    void (*answer)(struct web *web, struct http_connection *connection);
};

static void on_waiter_closed(void *context)
{
    struct waiting_request *waiter = context;

    list_unlink(&waiter->link);
    free(waiter);
}

/* Answers with a snapshot that is taken after the request arrived: a script that has just changed
 * something must see the change. */
static void answer_fresh(struct web *web, struct http_connection *connection, bool whole,
                         void (*answer)(struct web *web, struct http_connection *connection))
{
    static const struct stream_events events = {.closed = on_waiter_closed};
    uint64_t snapshot = web_refresh(web, whole);
    struct waiting_request *waiter = snapshot == 0 ? NULL : calloc(1, sizeof(*waiter));

    if (waiter == NULL) {
        answer(web, connection);
        return;
    }
    *waiter =
        (struct waiting_request){.snapshot = snapshot, .connection = connection, .answer = answer};
    list_append(&web->waiting, &waiter->link);
    http_answer_defer(connection, &events, waiter);
}

void web_answer_waiting(struct web *web, bool all)
{
    struct list_link *link;

    /* Later requests wait for a later snapshot. */
    while ((link = list_first(&web->waiting)) != NULL) {
        struct waiting_request *waiter = container_of(link, struct waiting_request, link);

        if (!all && waiter->snapshot > web->follower.seen)
            return;
        list_unlink(&waiter->link);
        waiter->answer(web, waiter->connection);
        free(waiter);
    }
}

static void write_status(struct web *web, struct http_connection *connection)
{
    struct text document = {0};

    if (!is_live(web, connection))
        return;
    pool_json_write(&web->follower.view, &web->users, JSON_INDENTED, &document);
    answer_json(connection, &document);
}

static void answer_status(struct web *web, struct http_connection *connection,
                          const struct http_request *request)
{
    (void)request;
    answer_fresh(web, connection, true, write_status);
}

static void write_metrics(struct web *web, struct http_connection *connection)
{
    struct text text = {0};

    if (!is_live(web, connection))
        return;
    if (web->scrape == NULL) {
        metrics_write(&web->metrics, &web->follower.view, &web->follower.tally, &text);
        web->scrape = web_shared_text_create(&text);
    }
    if (web->scrape == NULL)
        http_answer_send_line(connection, 503, "out of memory");
    else
        http_answer_send(connection, &(struct http_answer){.status = 200,
                                                           .type = METRICS_TYPE,
                                                           .headers = NO_STORE,
                                                           .shared = web->scrape});
}

static void answer_metrics(struct web *web, struct http_connection *connection,
                           const struct http_request *request)
{
    (void)request;
    answer_fresh(web, connection, false, write_metrics);
}

static void answer_events(struct web *web, struct http_connection *connection,
                          const struct http_request *request)
{
    /* A stream has no length. */
    if (request->method == HTTP_HEAD)
        http_answer_send(connection,
                         &(struct http_answer){.status = 200,
                                               .type = "text/event-stream; charset=utf-8",
                                               .headers = NO_STORE});
    else
        event_clients_add(&web->clients, connection);
}

static void answer_from_history(struct web *web, struct http_connection *connection,
                                const struct http_request *request, bool is_report)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct web_history_query question;

    if (web_history_read_query(request->query, is_report, &question, &error) < 0)
        http_answer_send_line(connection, 400, "%s", error.message);
    else
        web_history_answer(&web->history, web->follower.view.about.history, &question, connection);
}

static void answer_history(struct web *web, struct http_connection *connection,
                           const struct http_request *request)
{
    answer_from_history(web, connection, request, false);
}

static void answer_report(struct web *web, struct http_connection *connection,
                          const struct http_request *request)
{
    answer_from_history(web, connection, request, true);
}

static void answer_health(struct web *web, struct http_connection *connection,
                          const struct http_request *request)
{
    (void)request;
    if (is_live(web, connection))
        http_answer_send(connection, &(struct http_answer){.status = 200,
                                                           .headers = NO_STORE,
                                                           .bytes = "ok\n",
                                                           .length = 3,
                                                           .is_static = true});
}

/* ---- The token ---- */

static void answer_home(struct http_connection *connection, struct text *headers)
{
    text_append(headers, NO_STORE "Location: /\r\n");
    if (text_failed(headers))
        http_answer_send_line(connection, 503, "out of memory");
    else
        http_answer_send(connection,
                         &(struct http_answer){.status = 303, .headers = text_string(headers)});
    text_finish(headers);
}

static void answer_no_token(struct http_connection *connection, enum token_result result)
{
    static const char line[] =
        "expected the token (Authorization: Bearer, or the form of the page)\n";

    http_answer_send(
        connection,
        &(struct http_answer){.status = 401,
                              .headers = NO_STORE "WWW-Authenticate: Bearer realm=\"berth\"\r\n",
                              .bytes = line,
                              .length = sizeof(line) - 1,
                              .is_static = true,
                              .delay = result == TOKEN_WRONG ? wrong_token_delay : 0});
}

static void answer_login(struct web *web, struct http_connection *connection,
                         const struct http_request *request)
{
    struct text found = {0};
    struct text headers = {0};
    bool good = web->token.length == 0;

    if (!good && http_form_find(request->body, "token", &found))
        good = token_equals(&web->token, (struct span){text_string(&found), found.length});
    if (found.bytes != NULL)
        explicit_bzero(found.bytes, found.length);
    text_finish(&found);
    if (!good) {
        answer_no_token(connection, TOKEN_WRONG);
        return;
    }
    if (web->token.length > 0 && !logins_add(&web->logins, http_server_peer(connection),
                                             clock_read(CLOCK_BOOTTIME), &headers)) {
        http_answer_send_line(connection, 503, "cannot log in: there are no random numbers yet");
        return;
    }
    answer_home(connection, &headers);
}

static void answer_logout(struct web *web, struct http_connection *connection,
                          const struct http_request *request)
{
    struct text headers = {0};

    logins_end(&web->logins, request->cookie, &headers);
    answer_home(connection, &headers);
}

/* ---- The page ---- */

static const struct asset *find_asset(struct span name)
{
    for (const struct asset *asset = assets; asset->name != NULL; asset++) {
        if (span_equals(name, asset->name))
            return asset;
    }
    return NULL;
}

static void answer_asset(struct http_connection *connection, const struct asset *asset,
                         const struct http_request *request)
{
    char headers[128];

    /* Browsers must check the tag each time: a page of one version must never run the scripts of
     * another. */
    snprintf(headers, sizeof(headers), "Cache-Control: no-cache\r\nETag: %s\r\n", asset->tag);
    http_answer_send(connection,
                     &(struct http_answer){
                         .status = http_tag_matches(request->if_none_match, asset->tag) ? 304 : 200,
                         .type = asset->type,
                         .headers = headers,
                         .bytes = asset->bytes,
                         .length = asset->length,
                         .is_static = true});
}

static void answer_page(struct web *web, struct http_connection *connection,
                        const struct http_request *request)
{
    const struct asset *asset = find_asset((struct span){"index.html", strlen("index.html")});

    (void)web;
    if (asset != NULL)
        answer_asset(connection, asset, request);
    else
        http_answer_send_line(connection, 404, "Not Found");
}

/* ---- Routes ---- */

static const struct route routes[] = {
    {.path = "/", .answer = answer_page, .is_open = true},
    {.path = "/api/events", .answer = answer_events},
    {.path = "/api/history", .answer = answer_history},
    {.path = "/api/report", .answer = answer_report},
    {.path = "/api/status", .answer = answer_status},
    {.path = "/healthz", .answer = answer_health},
    {.path = "/login", .answer = answer_login, .is_post = true, .is_open = true},
    {.path = "/logout", .answer = answer_logout, .is_post = true, .is_open = true},
    {.path = "/metrics", .answer = answer_metrics},
};

/* Returns the route of a path; NULL: there is none. */
static const struct route *find_route(struct span path)
{
    for (size_t i = 0; i < COUNT(routes); i++) {
        if (span_equals(path, routes[i].path))
            return &routes[i];
    }
    return NULL;
}

/* Returns whether an Origin header names the host of the request. */
static bool is_our_origin(struct span origin, struct span host)
{
    return (span_skip_prefix(&origin, "http://") || span_skip_prefix(&origin, "https://")) &&
           origin.length == host.length && strncasecmp(origin.bytes, host.bytes, host.length) == 0;
}

/* Returns whether our own page sent the form. In Sec-Fetch-Site, browsers send "same-origin" for
 * it, or "none" for a typed address. Old browsers, and all browsers on plain HTTP between machines,
 * send only Origin. Other clients send neither. */
static bool is_our_page(const struct http_request *request)
{
    if (request->fetch_site.bytes != NULL)
        return span_equals(request->fetch_site, "same-origin") ||
               span_equals(request->fetch_site, "none");
    return request->origin.bytes == NULL || is_our_origin(request->origin, request->host);
}

/* Checks the token of a request, or its login. */
static enum token_result check_access(struct web *web, const struct http_connection *connection,
                                      const struct http_request *request)
{
    enum token_result result = token_check(&web->token, request);

    if (result == TOKEN_MISSING && logins_check(&web->logins, http_server_peer(connection),
                                                clock_read(CLOCK_BOOTTIME), request->cookie))
        return TOKEN_GOOD;
    return result;
}

static void answer_method(struct http_connection *connection, const char *allowed)
{
    static const char line[] = "Method Not Allowed\n";
    char headers[64];

    snprintf(headers, sizeof(headers), "Allow: %s\r\n", allowed);
    http_answer_send(connection, &(struct http_answer){.status = 405,
                                                       .headers = headers,
                                                       .bytes = line,
                                                       .length = sizeof(line) - 1,
                                                       .is_static = true});
}

/* Returns whether the request's method is allowed. If not, sends the answer 405. */
static bool check_method(struct http_connection *connection, const struct http_request *request,
                         bool is_post)
{
    bool is_read = request->method == HTTP_GET || request->method == HTTP_HEAD;

    if (is_post ? request->method == HTTP_POST : is_read)
        return true;
    answer_method(connection, is_post ? "POST" : "GET, HEAD");
    return false;
}

static void answer_route(struct web *web, struct http_connection *connection,
                         const struct http_request *request, const struct route *route)
{
    enum token_result result;

    if (!check_method(connection, request, route->is_post))
        return;
    if (route->is_post && !is_our_page(request)) {
        http_answer_send_line(connection, 403, "cannot accept a form from another site");
        return;
    }
    result = route->is_open ? TOKEN_GOOD : check_access(web, connection, request);
    if (result != TOKEN_GOOD)
        answer_no_token(connection, result);
    else
        route->answer(web, connection, request);
}

void web_answer(void *context, struct http_connection *connection,
                const struct http_request *request)
{
    struct web *web = context;
    const struct route *route = find_route(request->path);
    const struct asset *asset = NULL;
    struct span path = request->path;

    if (request->has_host && !listen_address_accepts_host(http_server_address(web->server),
                                                          &web->hosts, request->host)) {
        http_answer_send_line(connection, 421,
                              "Host: expected a name of this server (--host NAME adds one), got "
                              "another");
        return;
    }
    if (route == NULL && span_skip_prefix(&path, "/assets/"))
        asset = find_asset(path);
    if (route != NULL) {
        answer_route(web, connection, request, route);
    } else if (asset != NULL) {
        if (check_method(connection, request, false))
            answer_asset(connection, asset, request);
    } else {
        http_answer_send_line(connection, 404, "Not Found");
    }
}
