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
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

struct device_limit {
    uint32_t key; /* uid or gid */
    bool is_group;
    uint64_t most; /* millionths of devices */
};

struct limit_list {
    VECTOR_OF(struct device_limit);
};

struct user_list {
    VECTOR_OF(uint32_t);
};

/* Which policies there are, the reader of the file does not know: where the name stands is for the
 * message of whoever does. */
struct configured_policy {
    char *name; /* NULL: the default */
    uint32_t line;
    uint32_t column;
};

struct configuration {
    struct configured_policy policy;
    int64_t grace;
    int64_t age_step;
    uint32_t time_slice_tenants;
    uint32_t mps_tenants;
    int64_t default_time;  /* 0: none */
    int64_t longest_time;  /* 0: any */
    struct user_list high; /* uids */
    struct limit_list limits;
};

/* Reads `length` bytes of text; `file` is the name for messages. Names of users and groups are
 * looked up. Fails with BERTH_ERROR_SYNTAX, _INVALID, _RANGE (file:line:column: message, the
 * nearest known name), _LIMIT or _MEMORY. The caller finishes *ret_configuration, which is
 * untouched on failure. */
int configuration_parse(const char *file, const char *text, size_t length,
                        struct configuration *ret_configuration, struct berth_error *error);

/* Reads a file; NULL, or one that is not there: the defaults. Also fails with BERTH_ERROR_IO and
 * _PERMISSION. */
int configuration_read(const char *path, struct configuration *ret_configuration,
                       struct berth_error *error);

/* Frees what it holds; zeroed memory is fine. */
void configuration_finish(struct configuration *configuration);

#endif
