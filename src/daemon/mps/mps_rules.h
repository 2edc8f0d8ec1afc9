/* SPDX-License-Identifier: Apache-2.0
 *
 * The launcher's rules for MPS: it runs only the control program, and never as root. The launcher
 * checks each order, because an attacker that controls the daemon must not control the launcher.
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
    char *const
        *arguments;   /* behind the program, terminated by NULL; NULL: fixed by the launcher */
    const char *base; /* NULL: it does not matter */
    uint32_t uid;
    uint32_t gid;
    char *const *environment; /* terminated by NULL */
};

/* Returns 0, or EPERM if the order is against the rules. Without rules (NULL) all is allowed.
 *
 * A user that the user database has gets the groups of the database (daemon/core/become_user.h).
 * The order names the group of any other user, as the kernel has told it to the daemon. Such a user
 * may be of a container. System groups, which give rights over the machine's files, are refused
 * then: all below 1000 but 100, "users". Asks the user database, which may block for long. */
int mps_rules_check(const struct mps_rules *rules, const struct mps_rules_order *order);

#endif
