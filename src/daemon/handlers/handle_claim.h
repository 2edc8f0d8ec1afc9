/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of CLAIM that claims for the client and claims for running processes (handle_adopt.h)
 * share.
 */
#ifndef DAEMON_HANDLERS_HANDLE_CLAIM_H
#define DAEMON_HANDLERS_HANDLE_CLAIM_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cached_request;
struct connection;
struct job;
struct pool;
struct request;
struct wire_message;

/* The process that a claim is for. */
struct claimant {
    uint32_t uid;
    const uint32_t *groups;
    size_t group_count;
    pid_t pid;
    uint64_t began;        /* the start of an adopted process, in ns of CLOCK_BOOTTIME */
    bool adopted;          /* it is a running process, not the client */
    const char *container; /* that began with the adopted process; NULL: none */
};

/* Checks the message's request and opens it in the engine. The request gets a reference, which
 * request_cache_release() drops. Fails if the request is invalid or not allowed. */
int handle_claim_open_request(struct connection *connection, struct wire_message *message,
                              const struct claimant *claimant, struct cached_request **ret_cached,
                              struct berth_error *error);

/* Reserves space in the journal for a claim of pool->clients.packet_length bytes. Fails as
 * journal_file_reserve(). */
int handle_claim_reserve(struct pool *pool, struct berth_error *error);

/* Refuses the client's claim, and counts that. */
void handle_claim_refuse(struct connection *connection, uint64_t number, struct berth_error *error);

/* Passes the claim to the engine, which grants or queues it, and sends the answer. */
int handle_claim_submit(struct connection *connection, const struct wire_message *message,
                        const struct claimant *claimant, struct cached_request *cached,
                        struct berth_error *error);

/* Creates a job that is in no map yet. Returns NULL without memory. */
struct job *handle_claim_new_job(struct connection *connection, const struct wire_message *message,
                                 const struct claimant *claimant);

/* Returns the end of the request's maximum wait, in the pool's time; TIME_NEVER: none. */
int64_t handle_claim_deadline(const struct pool *pool, const struct request *request);

#endif
