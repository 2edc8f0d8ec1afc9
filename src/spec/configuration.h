/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of a pool, from a YAML file; every key is optional:
 *
 *     policy: first                 # of requests that name none
 *     grace: 10s                    # from the notice to the force
 *     age_step: 1h                  # waiting that raises a claim one class
 *     time_slice_tenants: 4         # on one device
 *     mps_tenants: 8
 *     default_time: 8h              # of requests that name none
 *     longest_time: 2d              # of anybody but the pool's owner
 *     high: [alice, 1001]           # who may use --priority high beside the owner
 *     limits:
 *       users: {bob: 2, carol: 0.5} # devices that may be held at once
 *       groups: {students: 4}
 */
#ifndef SPEC_CONFIGURATION_H
#define SPEC_CONFIGURATION_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"

struct device_limit {
    uint32_t key; /* uid or gid */
    bool is_group;
    uint64_t most; /* millionths of devices */
};

struct configuration {
    char *policy; /* NULL: the default */
    int64_t grace;
    int64_t age_step;
    uint32_t time_slice_tenants;
    uint32_t mps_tenants;
    int64_t default_time; /* 0: none */
    int64_t longest_time; /* 0: any */
    struct {
        VECTOR_OF(uint32_t);
    } high; /* uids */
    struct {
        VECTOR_OF(struct device_limit);
    } limits;
};

/* Reads the file; NULL, or a file that is not there: the defaults. Names of users and groups are
 * looked up. Fails with BERTH_ERROR_SYNTAX, _INVALID, _RANGE (file:line:column: message, the
 * nearest known name), _IO, _PERMISSION, _LIMIT or _MEMORY. The caller finishes *ret_configuration,
 * which is untouched on failure. */
int configuration_read(const char *path, struct configuration *ret_configuration,
                       struct berth_error *error);
void configuration_finish(struct configuration *configuration);

#endif
