/* SPDX-License-Identifier: Apache-2.0
 *
 * What the daemon may have the launcher run for MPS: the control program, as users other than root.
 * The launcher checks this, because whoever controls the daemon must not control the launcher.
 */
#ifndef DAEMON_MPS_MPS_RULES_H
#define DAEMON_MPS_MPS_RULES_H

#include <stdint.h>

/* The name of the control program, and where it usually is, terminated by NULL. */
#define MPS_PROGRAM_NAME "nvidia-cuda-mps-control"
extern const char *const mps_rules_default_programs[];

/* Fixed when the daemon starts. */
struct mps_rules {
    const char *program; /* the configured one; NULL: those above */
    const char *base;    /* the directory for all users */
};

struct mps_rules_order {
    const char *program;
    const char *base; /* NULL: it does not matter */
    uint32_t uid;
    uint32_t gid;
    char *const *environment; /* terminated by NULL */
};

/* Returns 0, or EPERM if the order is against the rules. Without rules (NULL) all is allowed. */
int mps_rules_check(const struct mps_rules *rules, const struct mps_rules_order *order);

#endif
