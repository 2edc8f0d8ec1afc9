/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the pool's devices and rules.
 */
#ifndef DAEMON_CONFIGURE_H
#define DAEMON_CONFIGURE_H

#include <berth/error.h>

#include "model/policy.h"
#include "spec/configuration/configuration.h"

struct policy;
struct pool;
struct text;

/* berthd CONFIGURE_NAMES_OPTION FILE prints the output of configure_print_names(). */
#define CONFIGURE_NAMES_OPTION "--resolve-names"

struct rules {
    struct configuration configuration; /* finished by the caller that read it */
    const struct policy *policy;        /* of requests that name none */
};

/* Reads a configuration as configuration_read_with_names does, and finds the policy that it names.
 */
int configure_read_rules(const char *path, const struct configuration_names *names,
                         struct rules *ret_rules, struct berth_error *error);

/* Reads a configuration and appends what configure_reload() needs to the output: a line for each
 * name of a user or group that the configuration has, "uNAME:x:UID:" or "gNAME:x:GID:"; on failure
 * the error's message. `error` must not be NULL. Asks the name service, which may block. */
int configure_print_names(const char *path, struct text *out, struct berth_error *error);

/* Creates the engine with the devices of the inventory, or of the journal, and applies the
 * configuration's rules. Without an inventory it waits a while for the first report, which
 * probe_events_begin() applies later. */
int configure_open(struct pool *pool, struct berth_error *error);

/* Reads the configuration again; a bad one is logged and the old rules stay. Names that /etc/passwd
 * and /etc/group do not have are looked up by another process (berthd --resolve-names), because a
 * name service may hang; the rules then change later, all at once. If that process fails or takes
 * too long, the old rules stay, too. */
void configure_reload(struct pool *pool);

#endif
