/* SPDX-License-Identifier: Apache-2.0
 *
 * From a granted claim, or none, to a running command.
 */
#ifndef CLI_LAUNCHING_H
#define CLI_LAUNCHING_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/string_list.h"
#include "cli/claiming.h"

struct launch {
    const char *verb;    /* for messages */
    struct claim *claim; /* granted; NULL: no device could ever do, every GPU is hidden */
    char *const *words;  /* the command, ended by NULL */
    bool uuid;           /* name devices by UUID */
    bool warns;          /* say on standard error what the pool warns of */
    uint32_t replicas;
    bool has_replica;       /* each is told its number */
    uint32_t first_replica; /* that of the first */
};

/* The environment of one of the replicas, counted from 0 within the launch. As launch_environment.
 */
int launch_make_environment(const struct launch *launch, uint32_t replica,
                            struct string_list *ret_environment, struct berth_error *error);

/* Becomes the command, of which there is one replica. Returns only on failure: the exit code,
 * having said what failed. */
int launch_exec(const struct launch *launch);

/* Says that the command could not be started, with the error of doing so. Returns the exit code. */
int launch_fail_start(const struct launch *launch, struct berth_error *error);

/* The same for any other error of launching. */
int launch_fail(const struct launch *launch, struct berth_error *error);

#endif
