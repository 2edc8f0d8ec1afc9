/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the pool's devices and rules come from.
 */
#ifndef DAEMON_CONFIGURE_H
#define DAEMON_CONFIGURE_H

#include <berth/error.h>

#include "model/policy.h"
#include "spec/configuration/configuration.h"

struct policy;
struct pool;

struct rules {
    struct configuration configuration; /* finished by the caller that read it */
    const struct policy *policy;        /* of requests that name none */
};

/* Reads a configuration as configuration_read does, and finds the policy that it names. */
int configure_read_rules(const char *path, struct rules *ret_rules, struct berth_error *error);

/* Makes the engine of the inventory's devices, or of those of the hardware that the journal knows,
 * by the rules of the configuration. Without an inventory it waits a while for the first report,
 * which probe_events_begin() applies later. */
int configure_open(struct pool *pool, struct berth_error *error);

/* Reads the configuration again; a bad one is logged and the old rules stay. */
void configure_reload(struct pool *pool);

#endif
