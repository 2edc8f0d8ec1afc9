/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mps/mps_rules.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

const char *const mps_rules_default_programs[] = {
    "/usr/bin/" MPS_PROGRAM_NAME,
    "/usr/local/bin/" MPS_PROGRAM_NAME,
    "/bin/" MPS_PROGRAM_NAME,
    "/usr/sbin/" MPS_PROGRAM_NAME,
    NULL,
};

/* The variables that a control program gets. No other one, because some make the loader load a
 * library. */
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
        if (strncmp(variable, *allowed, strlen(*allowed)) == 0)
            return true;
    }
    return false;
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
    if (order->uid == 0 || order->gid == 0 || !is_program_allowed(rules, order->program) ||
        (order->base != NULL && strcmp(order->base, rules->base) != 0))
        return EPERM;
    for (char *const *variable = order->environment; *variable != NULL; variable++) {
        if (!is_variable_allowed(*variable))
            return EPERM;
    }
    return 0;
}
