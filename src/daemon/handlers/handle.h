/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers: one function for each type of message. docs/PROTOCOL.md describes the messages.
 */
#ifndef DAEMON_HANDLERS_HANDLE_H
#define DAEMON_HANDLERS_HANDLE_H

struct connection;
struct wire_message;

/* Handles a message: calls the handler of its type, or refuses an unknown type. A handler answers
 * at once or later, and may take contents out of the message. */
void handle_message(struct connection *connection, struct wire_message *message);

/* handle_claim.c */
void handle_claim(struct connection *connection, struct wire_message *message);
/* Handles a claim without deferring it (deferred_claims.h). */
void handle_claim_now(struct connection *connection, struct wire_message *message);
void handle_test(struct connection *connection, struct wire_message *message);
void handle_test_now(struct connection *connection, struct wire_message *message);

/* handle_lease.c */
void handle_release(struct connection *connection, struct wire_message *message);
void handle_cancel(struct connection *connection, struct wire_message *message);
void handle_stop(struct connection *connection, struct wire_message *message);
void handle_extend(struct connection *connection, struct wire_message *message);
void handle_watch(struct connection *connection, struct wire_message *message);

/* handle_drain.c */
void handle_drain(struct connection *connection, struct wire_message *message);
void handle_undrain(struct connection *connection, struct wire_message *message);

/* handle_follow.c */
void handle_follow(struct connection *connection, struct wire_message *message);

/* handle_look.c */
void handle_hello(struct connection *connection, struct wire_message *message);
void handle_explain(struct connection *connection, struct wire_message *message);
void handle_look(struct connection *connection, struct wire_message *message);

#endif
