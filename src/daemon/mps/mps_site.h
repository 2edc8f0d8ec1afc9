/* SPDX-License-Identifier: Apache-2.0
 *
 * The site of an MPS control daemon: the user that it runs as, and its directories. Pure functions.
 */
#ifndef DAEMON_MPS_MPS_SITE_H
#define DAEMON_MPS_MPS_SITE_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/become_user.h"
#include "model/machine/device_id.h"

struct request;
struct text;

struct mps_site {
    struct user_identity persona;
    char *pipe;
    char *log;
    bool is_pipe_given; /* the request names it, so its parent directories are not created */
    bool is_log_given;
};

/* A lease that needs a control daemon. The caller owns the values. */
struct mps_site_source {
    const char *base; /* the pool's directory for all users */
    struct user_identity user;
    const struct request *request; /* it shares by MPS, and may name directories */
    struct device_id device;
};

/* Appends the directory of all control daemons of a user. */
void mps_site_append_root(const char *base, uint32_t uid, struct text *out);

/* Makes the site for a lease; the caller finishes it. Fails with BERTH_ERROR_MEMORY, or with
 * BERTH_ERROR_RANGE if the paths of its sockets would be too long. */
int mps_site_make(const struct mps_site_source *source, struct mps_site *ret_site,
                  struct berth_error *error);
/* Frees the directories. Zeroed memory is fine. */
void mps_site_finish(struct mps_site *site);

/* Returns whether one control daemon can serve both. */
bool mps_site_is_same(const struct mps_site *one, const struct mps_site *other);

#endif
