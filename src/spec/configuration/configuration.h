/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the configuration of a pool from a YAML file and holds all defaults. Every key is optional:
 *
 *     policy: first                 # for requests without a policy
 *     grace: 10s                    # from SIGTERM to SIGKILL
 *     age_step: 1h                  # waiting time that raises a claim by one priority class
 *     time_slice_tenants: 4         # per device
 *     mps_tenants: 8                # per device
 *     mps: yes                      # run MPS for other users than the daemon's own
 *     mps_control: /usr/bin/nvidia-cuda-mps-control # the control program of MPS, if it is not in
 *                                   # a standard directory
 *     default_time: 8h              # for requests without a time limit
 *     longest_time: 2d              # for all users but root and the pool's owner
 *     time_warning: 5m              # warn holders this long before their time limit; 0s: never
 *     admins: {users: [ann], groups: [gpu-admins]} # have the rights of the pool's owner
 *     high: {users: [alice, 1001], groups: [staff]} # may use --priority high, as admins may
 *     limits:                       # maximum number of devices at once, and maximum time
 *       each_user: 4                # for each user that is not in `users`
 *       users: {bob: 2, carol: {devices: 0.5, longest_time: 4h}}
 *       groups: {students: 6, staff: {longest_time: 7d}}
 *     bounds: {connections: 1000, messages: 5000, waiting: 1000} # per user; messages per second
 *     preferred: [nvidia4, nvidia5] # allocated first among equal devices, in this order
 *     reserved: {nvidia7: {users: [alice]}} # only for these users; nobody: for no user
 *     squatters: avoid              # do not grant a device that a squatter uses; or: ignore
 *     squatter_memory: 1GiB         # memory in use without a process, above idle; 0: any
 *     squatters_except: [compositor] # more programs that are not squatters
 *     idle_warning: 30m             # mark a lease that is unused for this long; warn its user
 *     idle_reclaim: 2h              # end a lease that is unused for this long
 *     prolog: {command: [/opt/gpu-check, --quick], deadline: 30s} # runs per device before use
 *     epilog: {command: /opt/gpu-clean, deadline: 1m}             # runs per device after use
 *     notify: /opt/berth-mail       # a program that gets the messages for users and admins
 *     history: yes                  # keep ended leases; no: do not; /FILE: keep them in this file
 *     history_keep: 90d             # delete ended leases this long after their end
 *     history_size: 1GiB            # maximum size of the history file with its log
 *     show_commands: owner          # show other users only the name and program of a lease; or:
 *                                   # all; the default of a user's own daemon is all
 *
 * Users and groups are a mapping as above; a list means users. A limit is a number of devices or a
 * mapping. A command is a list of a program and its arguments, or a program alone. The program is
 * an absolute path, because a daemon cannot trust PATH.
 */
#ifndef SPEC_CONFIGURATION_CONFIGURATION_H
#define SPEC_CONFIGURATION_CONFIGURATION_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/optional.h"
#include "base/string_list.h"
#include "base/vector.h"
#include "model/machine/device_id.h"

struct text;

/* User ids or group ids. */
struct number_list {
    VECTOR_OF(uint32_t);
};

/* Users and groups with the same right. */
struct principals {
    struct number_list users;
    struct number_list groups;
};

/* The number of devices in an allowance without a limit. */
#define DEVICES_UNLIMITED UINT64_MAX

/* The maximum lengths of lists, which are searched linearly. */
enum {
    CONFIGURED_PRINCIPALS_MAX = 10000, /* in a list of users or of groups */
    CONFIGURED_LIMITS_MAX = 10000,
    CONFIGURED_PROGRAMS_MAX = 1000,  /* in squatters_except */
    CONFIGURED_ARGUMENTS_MAX = 1000, /* in a command */
};

/* The maximum values of struct bounds. */
enum {
    BOUND_CONNECTIONS_MAX = 100000,
    BOUND_MESSAGES_MAX = 1000000,
    BOUND_WAITING_MAX = 1000000,
};

/* The range of the deadline of a check, in nanoseconds. */
#define CHECK_DEADLINE_MIN INT64_C(100000000)
#define CHECK_DEADLINE_MAX INT64_C(3600000000000)

/* The maximum of squatter_memory, in bytes. */
#define SQUATTER_MEMORY_MAX (UINT64_C(1) << 50)

/* The range of history_size, in bytes. */
#define HISTORY_SIZE_MIN (UINT64_C(16) << 20)
#define HISTORY_SIZE_MAX (UINT64_C(1) << 50)

struct allowance {
    uint64_t devices;     /* millionths of devices; DEVICES_UNLIMITED */
    int64_t longest_time; /* nanoseconds; 0: the more general limit applies */
};

struct device_limit {
    uint32_t key; /* uid or gid */
    bool is_group;
    struct allowance allowance;
};

struct limit_list {
    VECTOR_OF(struct device_limit);
};

/* The daemon's limits for each user. Root and the pool's owner have higher limits. */
struct bounds {
    uint32_t connections; /* at once */
    uint32_t messages;    /* per second; further messages are read later */
    uint32_t waiting;     /* claims and other requests that wait */
};

struct reserved_device {
    struct device_id id;
    struct principals principals;
};

struct reserved_list {
    VECTOR_OF(struct reserved_device);
};

/* The effect of a squatter: a process that uses a device without a lease. */
enum squatting {
    SQUATTING_AVOIDED, /* the device is not granted while the process uses it */
    SQUATTING_IGNORED,
};

/* A program that runs before or after each use of a device. */
struct check_command {
    struct string_list argv; /* empty: none */
    int64_t deadline;
    bool may_signal; /* the program may signal all users' processes, as the daemon may */
};

/* The name of a policy and its position. The reader does not know the policies; the caller checks
 * the name and uses the position in its message. */
struct configured_policy {
    char *name; /* NULL: the default */
    uint32_t line;
    uint32_t column;
};

/* Whether and where ended leases are kept. */
struct configured_history {
    bool is_off;
    char *file; /* NULL: the default file */
};

/* The users that see the whole command line of a lease. */
enum show_commands {
    SHOW_COMMANDS_DEFAULT, /* owner in the machine's daemon, all in a user's own */
    SHOW_COMMANDS_OWNER,   /* the lease's user and the admins; others see the program's name */
    SHOW_COMMANDS_ALL,
};

struct configuration {
    struct configured_policy policy;
    int64_t grace;
    int64_t age_step;
    uint32_t time_slice_tenants;
    uint32_t mps_tenants;
    bool mps;             /* MPS for other users than the daemon's own */
    char *mps_control;    /* NULL: search the standard directories */
    int64_t default_time; /* 0: none */
    int64_t longest_time; /* 0: no maximum */
    int64_t time_warning; /* 0: none */
    struct principals admins;
    struct principals high;
    struct allowance each_user;
    struct limit_list limits;
    struct bounds bounds;
    struct device_id_list preferred;
    struct reserved_list reserved;
    enum squatting squatters;
    struct optional_number squatter_memory; /* bytes above idle; always known; 0: off */
    struct string_list squatters_except;    /* without the built-in programs */
    int64_t idle_warning;                   /* 0: never */
    int64_t idle_reclaim;                   /* 0: never */
    struct check_command prolog;
    struct check_command epilog;
    struct string_list notify; /* empty: none */
    struct configured_history history;
    int64_t history_keep;
    struct optional_number history_size; /* bytes; always known */
    enum show_commands show_commands;
};

/* Returns whether all users may see the command lines of all leases. `is_own`: the daemon is a
 * user's own. */
static inline bool configuration_shows_commands(const struct configuration *configuration,
                                                bool is_own)
{
    return configuration->show_commands == SHOW_COMMANDS_DEFAULT
               ? is_own
               : configuration->show_commands == SHOW_COMMANDS_ALL;
}

/* Returns whether the number is in the list. */
bool configuration_number_list_has(const struct number_list *list, uint32_t number);

/* Finds the number of a user or group. Returns false if there is no such name. */
struct configuration_names {
    bool (*find)(void *context, bool is_group, const char *name, uint32_t *ret_number);
    void *context;
};

/* Asks the name service, which may block. */
bool configuration_find_name(bool is_group, const char *name, uint32_t *ret_number);

/* Reads `length` bytes of text; `file` is the name for messages. Looks up the names of users and
 * groups, which may block. Fails with BERTH_ERROR_SYNTAX, _INVALID or _RANGE and a message
 * "file:line:column: ...", or with _LIMIT or _MEMORY. The caller finishes *ret_configuration, which
 * is untouched on failure. */
int configuration_parse(const char *file, const char *text, size_t length,
                        struct configuration *ret_configuration, struct berth_error *error);

/* Reads a file. If the path is NULL or the file does not exist, the result is the defaults. Also
 * fails with BERTH_ERROR_IO and _PERMISSION. */
int configuration_read(const char *path, struct configuration *ret_configuration,
                       struct berth_error *error);

/* Does the same with other names of users and groups; NULL: those of the name service. */
int configuration_read_with_names(const char *path, const struct configuration_names *names,
                                  struct configuration *ret_configuration,
                                  struct berth_error *error);

/* The configuration of the machine's pool. */
#define CONFIGURATION_MACHINE_FILE "/etc/berth/berth.yaml"

/* Appends the path of the file that a pool reads by default: berth/berth.yaml in XDG_CONFIG_HOME or
 * ~/.config if the pool is the user's own, CONFIGURATION_MACHINE_FILE otherwise. Appends nothing if
 * the user has no such directory. */
void configuration_append_path(bool is_own, struct text *out);

/* Returns why no user can run the program at this path; NULL: no reason is known. The text is
 * constant, or belongs to the C library and is valid until its next error text. */
const char *configuration_program_fault(const char *path);

/* Checks that the programs of mps_control, prolog, epilog and notify exist and that some user can
 * run them. configuration_read must have accepted the file; NULL or a path without a file passes. A
 * program in a directory that we cannot search passes. Fails with BERTH_ERROR_INVALID and a message
 * "file:line:column: key: path: reason", and as configuration_read does. */
int configuration_check_programs(const char *path, struct berth_error *error);

/* Frees the contents; zeroed memory is valid. */
void configuration_finish(struct configuration *configuration);

#endif
