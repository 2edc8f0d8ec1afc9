/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of quota.c and quota_log.c for each other.
 */
#ifndef DAEMON_CLIENTS_QUOTA_INTERNAL_H
#define DAEMON_CLIENTS_QUOTA_INTERNAL_H

#include <stdint.h>

struct quota;

/* Reviews the user soon: logs how many lines were left out, or forgets the user. */
void quota_review_later(struct quota *user);

/* Logs how many lines about the user were left out, unless that was logged a moment ago. Returns
 * when to call this again; LOOP_NEVER: no line is left out. */
int64_t quota_log_review(struct quota *user);

/* Logs how many lines about the user were left out; nothing if there are none. */
void quota_log_left_out(struct quota *user);

#endif
