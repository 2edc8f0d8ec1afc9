/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mps/mps_rules.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "daemon/core/become_user.h"

/* For the kernel, this uid means "no change", so the program would keep the daemon's user. */
#define NO_USER UINT32_MAX

/* login.defs and systemd give smaller numbers to system groups. By an old convention, 100 is the
 * group "users"; images of containers use it. */
enum { FIRST_USER_GROUP = 1000, USERS_GROUP = 100 };

const char *const mps_rules_default_programs[] = {
    "/usr/bin/" MPS_PROGRAM_NAME,
    "/usr/local/bin/" MPS_PROGRAM_NAME,
    "/bin/" MPS_PROGRAM_NAME,
    "/usr/sbin/" MPS_PROGRAM_NAME,
    NULL,
};

/* The variables that a control program gets: names with any value, or all of it. No other one,
 * because some make the loader load a library. */
static const char *const allowed_variables[] = {
    "BERTH_LEASE=",
    "BERTH_MPS=",
    "BERTH_SOCKET=",
    "CUDA_DEVICE_ORDER=",
    "CUDA_MPS_LOG_DIRECTORY=",
    "CUDA_MPS_PIPE_DIRECTORY=",
    "CUDA_VISIBLE_DEVICES=",
    "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
    NULL,
};

static bool is_variable_allowed(const char *variable)
{
    for (const char *const *allowed = allowed_variables; *allowed != NULL; allowed++) {
        size_t length = strlen(*allowed);

        if ((*allowed)[length - 1] == '=' ? strncmp(variable, *allowed, length) == 0
                                          : strcmp(variable, *allowed) == 0)
            return true;
    }
    return false;
}

/* The database's group replaces that of the order for the users that it has. */
static bool is_user_allowed(uint32_t uid, uint32_t gid)
{
    if (uid == 0 || uid == NO_USER || gid == 0)
        return false;
    if (gid >= FIRST_USER_GROUP && gid != USER_IDENTITY_NO_GROUP)
        return true;
    return gid == USERS_GROUP || getpwuid(uid) != NULL;
}

static bool is_program_allowed(const struct mps_rules *rules, const char *program)
{
    if (rules->program != NULL)
        return strcmp(program, rules->program) == 0;
    for (const char *const *allowed = mps_rules_default_programs; *allowed != NULL; allowed++) {
        if (strcmp(program, *allowed) == 0)
            return true;
    }
    return false;
}

int mps_rules_check(const struct mps_rules *rules, const struct mps_rules_order *order)
{
    if (rules == NULL)
        return 0;
    if (!is_user_allowed(order->uid, order->gid) || !is_program_allowed(rules, order->program) ||
        (order->arguments != NULL && order->arguments[0] != NULL) ||
        (order->base != NULL && strcmp(order->base, rules->base) != 0))
        return EPERM;
    for (char *const *variable = order->environment; *variable != NULL; variable++) {
        if (!is_variable_allowed(*variable))
            return EPERM;
    }
    return 0;
}
