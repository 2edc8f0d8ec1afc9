/* SPDX-License-Identifier: Apache-2.0
 *
 * The event stream: what has changed, and who is to be told. A follower asks once and is answered
 * once, when there is something newer than what it knows; then it looks at what it wants to know
 * more of. So one that is slow costs nothing, and gets the newest when it asks again.
 */
#ifndef DAEMON_NEWS_H
#define DAEMON_NEWS_H

#include "daemon/pool.h"

int news_init(struct pool *pool, struct berth_error *error);
void news_finish(struct pool *pool);

/* Something of these kinds, bits of enum wire_news, has changed. Before news_init and after
 * news_finish nobody cares. */
void news_note(struct pool *pool, uint32_t kinds);
/* The same of an event of the engine. */
void news_note_event(struct pool *pool, const struct engine_event *event);

/* Another one for each start of the daemon; not 0. */
uint64_t news_epoch(const struct pool *pool);

/* Before each wait: answers those that may be answered. */
void news_tell(struct pool *pool);

/* Whether others than our recorder follow leases, or did a moment ago. */
bool news_has_readers(const struct pool *pool);

/* How often somebody wants the devices to be looked at; 0: nobody does. */
int64_t news_load_interval(const struct pool *pool);

/* ---- Counting ---- */

/* What was counted since the start; good until something else is. */
struct pool_tally *news_tally(struct pool *pool);

/* A claim has become a lease, after it waited this long. */
void tally_granted(struct pool *pool, int64_t waited);
/* A claim was refused at once. */
void tally_refused(struct pool *pool, int error);
/* A claim is over that waited. */
void tally_gone(struct pool *pool, enum lease_end end);
/* A lease is over that was held for so long. */
void tally_held(struct pool *pool, int64_t held);

#endif
