/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done with each message. docs/PROTOCOL.md says it for clients.
 */
#ifndef DAEMON_MESSAGES_H
#define DAEMON_MESSAGES_H

#include "daemon/pool.h"

/* Does what a client says; may take things out of the message. */
void message_handle(struct connection *connection, struct wire_message *message);

/* claims.c */
void message_claim(struct connection *connection, struct wire_message *message);
/* The same once all has been asked that has to be (postponed.c). */
void message_claim_now(struct connection *connection, struct wire_message *message);
void message_test(struct connection *connection, struct wire_message *message);
void message_test_now(struct connection *connection, struct wire_message *message);

/* leases.c */
void message_release(struct connection *connection, struct wire_message *message);
void message_cancel(struct connection *connection, struct wire_message *message);
void message_stop(struct connection *connection, struct wire_message *message);
void message_extend(struct connection *connection, struct wire_message *message);
void message_watch(struct connection *connection, struct wire_message *message);

/* drains.c */
void message_drain(struct connection *connection, struct wire_message *message);
void message_undrain(struct connection *connection, struct wire_message *message);

/* news.c */
void message_follow(struct connection *connection, struct wire_message *message);

/* look.c */
void message_hello(struct connection *connection, struct wire_message *message);
void message_explain(struct connection *connection, struct wire_message *message);
void message_look(struct connection *connection, struct wire_message *message);
/* What is known of a lease; the texts are borrowed, the devices the caller's to free. */
void look_fill_lease(struct pool *pool, const struct job *job, const struct lease_view *view,
                     struct lease_info *item);
/* About how many bytes a device takes in a message, rather too many. */
size_t look_device_size(const struct device *device);
/* The same of a process that uses it. */
/* The counts of a snapshot, and the time. */
struct pool_snapshot look_counts(const struct pool *pool);
size_t look_process_size(const struct device_process *process);

#endif
