/* SPDX-License-Identifier: Apache-2.0
 *
 * Verbs that do one thing to each of several ids.
 */
#ifndef CLI_LEASE_ID_VERBS_H
#define CLI_LEASE_ID_VERBS_H

#include "cli/verbs.h"
#include "client/session.h"

/* What is done to one id. Returns 0 or a negative code with an error. */
typedef int id_action(struct session *session, uint64_t id, struct berth_error *error);

/* Runs such a verb: each of the actions, ended by NULL, for all ids in turn. An id that failed is
 * reported in a line of its own and left out from then on; the others go on. Returns the exit code:
 * EXIT_BERTH when one failed. */
int id_verb_run(const struct verb *verb, int argc, char **argv, id_action *const *actions);

/* --inventory. */
extern const struct option_set *const id_verb_sets[];

#endif
