/* SPDX-License-Identifier: Apache-2.0
 *
 * What berth-web keeps while it runs, for the files of this room.
 */
#ifndef WEB_WEB_STATE_H
#define WEB_WEB_STATE_H

#include <event2/event.h>

#include "view/follower.h"
#include "view/user_names.h"
#include "web/event_clients.h"
#include "web/http_server.h"
#include "web/job_mapping.h"
#include "web/metrics.h"
#include "web/token.h"
#include "web/web_history.h"
#include "web/web_loop.h"

struct web {
    const struct web_settings *settings;
    void (*ready)(const char *url); /* NULL: it was told already */
    struct event_base *base;
    struct event *readable; /* of the follower */
    struct event *timer;    /* likewise */
    struct event *tick;     /* readers are told the time */
    struct event *timeout;  /* for looks that somebody waits for */
    struct event *end;      /* somebody wants it to end */
    int signals;            /* that say so, a signalfd; -1: none */
    struct http_server *server;
    struct token token;
    struct string_list hosts;
    struct follower follower;
    struct user_names users;
    struct event_clients clients;
    struct list waiting; /* requests that are answered after the next look */
    int64_t loads_until; /* as long as that somebody wants to know of loads */
    struct web_history history;
    struct metrics metrics;
    struct shared_text *scrape; /* the newest; NULL: none was asked for since the last look */
    struct job_mapping mapping;
    bool mapping_failed;       /* and somebody was told */
    struct berth_error failed; /* why it ends */
};

/* Answers a request; the context is a struct web. */
void web_answer(void *context, struct http_connection *connection,
                const struct http_request *request);

/* Answers those who waited for a look that is over, or all of them. */
void web_answer_waiting(struct web *web, bool all);

/* Follows what somebody looks at: everything while a page is open, at a slower pace for some time
 * after a scrape. */
void web_update_subscription(struct web *web);

/* Somebody wants to know what is now, once, and with `whole` all of the queue. Returns which look
 * is to be waited for (follower_refresh); 0: the pool does not answer, there is none. */
uint64_t web_refresh(struct web *web, bool whole);

#endif
