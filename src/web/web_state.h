/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of berth web, for the files of this folder.
 */
#ifndef WEB_WEB_STATE_H
#define WEB_WEB_STATE_H

#include <event2/event.h>

#include "base/system/user_names.h"
#include "view/follower.h"
#include "web/event_clients.h"
#include "web/http_server.h"
#include "web/job_mapping.h"
#include "web/logins.h"
#include "web/metrics.h"
#include "web/token.h"
#include "web/web_history.h"
#include "web/web_loop.h"

struct web {
    const struct web_settings *settings;
    void (*ready)(const char *url); /* NULL: called already */
    struct event_base *base;
    struct event *readable; /* the descriptor of the follower */
    struct event *timer;    /* the timeout of the follower */
    struct event *tick;     /* sends the time to clients */
    struct event *timeout;  /* of requests that wait for a snapshot */
    struct event *end;      /* SIGTERM or SIGINT */
    int signals;            /* a signalfd; -1: none */
    struct http_server *server;
    struct token token;
    struct logins logins;
    struct string_list hosts;
    struct follower follower;
    struct user_names users;
    struct event_clients clients;
    struct list waiting; /* requests that wait for the next snapshot */
    int64_t loads_until; /* after a scrape, loads are followed until this time */
    struct web_history history;
    struct metrics metrics;
    struct shared_text *scrape; /* the metrics of the last snapshot; NULL: not written yet */
    struct job_mapping mapping;
    bool mapping_failed;       /* the last update failed, and its error was printed */
    struct berth_error failed; /* why the server ends */
};

/* Answers a request; the context is a struct web. */
void web_answer(void *context, struct http_connection *connection,
                const struct http_request *request);

/* Answers the requests whose snapshot has arrived, or all waiting requests. */
void web_answer_waiting(struct web *web, bool all);

/* Subscribes to the news that clients need: everything while a page is open, and less often for
 * some time after a scrape. */
void web_update_subscription(struct web *web);

/* Requests a snapshot, with `whole` including the whole queue. Returns the number of the snapshot
 * to wait for (follower_refresh); 0: the pool does not answer. */
uint64_t web_refresh(struct web *web, bool whole);

#endif
