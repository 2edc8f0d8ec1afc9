/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of a pool, from a YAML file; every key is optional:
 *
 *     policy: first                 # of requests that name none
 *     grace: 10s                    # from the notice to the force
 *     age_step: 1h                  # waiting that raises a claim one class
 *     time_slice_tenants: 4         # on one device
 *     mps_tenants: 8
 *     mps_control: /usr/bin/nvidia-cuda-mps-control # the program that MPS needs, where it is not
 *                                   # in one of the usual directories
 *     default_time: 8h              # of requests that name none
 *     longest_time: 2d              # of anybody but root and the pool's owner
 *     time_warning: 5m              # holders are told so long before their time limit; 0s: never
 *     admins: {users: [ann], groups: [gpu-admins]} # may do what the pool's owner may
 *     high: {users: [alice, 1001], groups: [staff]} # who may use --priority high beside them
 *     limits:                       # devices that may be held at once, and for how long
 *       each_user: 4                # of everybody who is not in `users`
 *       users: {bob: 2, carol: {devices: 0.5, longest_time: 4h}}
 *       groups: {students: 6, staff: {longest_time: 7d}}
 *     bounds: {connections: 1000, messages: 5000, waiting: 1000} # of each user; messages a second
 *     preferred: [nvidia4, nvidia5] # taken first among equals, in this order
 *     reserved: {nvidia7: {users: [alice]}} # nobody else gets it; {}: nobody at all
 *     squatters: avoid              # what a process without a lease on a device means; ignore
 *     squatters_except: [compositor] # programs that never count, beside those that are built in
 *     idle_warning: 30m             # a lease that is held but not used is marked, its owner told
 *     idle_reclaim: 2h              # and taken back
 *     prolog: {command: [/opt/gpu-check, --quick], deadline: 30s} # for each device before use
 *     epilog: {command: /opt/gpu-clean, deadline: 1m}             # and afterwards
 *     notify: /opt/berth-mail       # a program that is told what people should know
 *     history: yes                  # past leases are kept; no: they are not; /FILE: in this one
 *     history_keep: 90d             # and forgotten so long after their end
 *
 * People are a mapping as above or a list, which means users. A limit is a number of devices or a
 * mapping. A command is a list of words, or one word; its program is an absolute path, as a daemon
 * has no PATH to trust.
 */
#ifndef SPEC_CONFIGURATION_H
#define SPEC_CONFIGURATION_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/string_list.h"
#include "base/vector.h"
#include "model/device_id.h"

/* Numbers of users or of groups. */
struct number_list {
    VECTOR_OF(uint32_t);
};

struct people {
    struct number_list users;
    struct number_list groups;
};

/* How many devices may be held at once when there is no limit. */
#define DEVICES_UNLIMITED UINT64_MAX

/* How many there may be of each: lists are searched one by one. */
enum {
    CONFIGURED_PEOPLE_MAX = 10000, /* in a list of users or of groups */
    CONFIGURED_LIMITS_MAX = 10000,
    CONFIGURED_PROGRAMS_MAX = 1000,  /* in squatters_except */
    CONFIGURED_ARGUMENTS_MAX = 1000, /* in a command */
};

/* How much of `bounds` there may be. */
enum {
    BOUND_CONNECTIONS_MAX = 100000,
    BOUND_MESSAGES_MAX = 1000000,
    BOUND_WAITING_MAX = 1000000,
};

/* From when to when a check may have to end. */
#define CHECK_DEADLINE_MIN INT64_C(100000000)
#define CHECK_DEADLINE_MAX INT64_C(3600000000000)

struct allowance {
    uint64_t devices;     /* millionths of devices; DEVICES_UNLIMITED */
    int64_t longest_time; /* 0: what is said elsewhere */
};

struct device_limit {
    uint32_t key; /* uid or gid */
    bool is_group;
    struct allowance allowance;
};

struct limit_list {
    VECTOR_OF(struct device_limit);
};

/* How much each user may ask of the daemon; root and the pool's owner may ask more. */
struct bounds {
    uint32_t connections; /* at once */
    uint32_t messages;    /* in a second; more are read later */
    uint32_t waiting;     /* claims, and other things that are waited for */
};

struct reserved_device {
    struct device_id id;
    struct people people;
};

struct reserved_list {
    VECTOR_OF(struct reserved_device);
};

/* What a process without a lease on a device means. */
enum squatting {
    SQUATTING_AVOIDED, /* the device is not granted while it lasts */
    SQUATTING_IGNORED,
};

/* A program that is run for a device. */
struct check_command {
    struct string_list words; /* empty: none */
    int64_t deadline;
};

/* Which policies there are, the reader of the file does not know: where the name stands is for the
 * message of whoever does. */
struct configured_policy {
    char *name; /* NULL: the default */
    uint32_t line;
    uint32_t column;
};

/* Whether and where past leases are kept. */
struct configured_history {
    bool is_off;
    char *file; /* NULL: in the usual place */
};

struct configuration {
    struct configured_policy policy;
    int64_t grace;
    int64_t age_step;
    uint32_t time_slice_tenants;
    uint32_t mps_tenants;
    char *mps_control;    /* NULL: where it usually is */
    int64_t default_time; /* 0: none */
    int64_t longest_time; /* 0: any */
    int64_t time_warning; /* 0: none */
    struct people admins;
    struct people high;
    struct allowance each_user;
    struct limit_list limits;
    struct bounds bounds;
    struct device_id_list preferred;
    struct reserved_list reserved;
    enum squatting squatters;
    struct string_list squatters_except; /* those that are built in not among them */
    int64_t idle_warning;                /* 0: never */
    int64_t idle_reclaim;                /* 0: never */
    struct check_command prolog;
    struct check_command epilog;
    struct string_list notify; /* empty: none */
    struct configured_history history;
    int64_t history_keep;
};

/* Whether the number is in the list. */
bool configuration_number_list_has(const struct number_list *list, uint32_t number);

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

/* What keeps anybody from running the program of this path; NULL: nothing that is known. A text of
 * ours, or of the C library until it is asked again. */
const char *configuration_program_fault(const char *path);

/* Whether the programs of mps_control, prolog, epilog and notify are there and can be run by
 * somebody, in a file that configuration_read has accepted (NULL, or not there: they are). What may
 * not be looked at is not called missing. Fails with BERTH_ERROR_INVALID (file:line:column: key:
 * path: what is wrong), and as configuration_read does. */
int configuration_check_programs(const char *path, struct berth_error *error);

/* Frees what it holds; zeroed memory is fine. */
void configuration_finish(struct configuration *configuration);

#endif
