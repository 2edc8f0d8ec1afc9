/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of a request, for the verbs that take one and for berth_request_set.
 */
#ifndef SPEC_REQUEST_OPTIONS_H
#define SPEC_REQUEST_OPTIONS_H

#include <berth/error.h>
#include <stdbool.h>

#include "base/string_list.h"
#include "model/request.h"
#include "spec/option.h"

enum rank_mask {
    RANK_MASK_ALL, /* each rank sees its replica's devices */
    RANK_MASK_ONE, /* each rank sees only its own */
};

/* The library that ranks use to communicate. */
enum backend {
    BACKEND_UNSAID, /* nccl */
    BACKEND_NCCL,
    BACKEND_GLOO,
    BACKEND_MPI,
};

extern const struct choice backend_names[];
extern const struct choice rank_mask_names[];

/* The maximum length of the name of a network interface, in bytes. */
#define INTERFACE_MAX 15

struct request_options {
    struct request request;
    char *count_model;     /* the MODEL of -n MODEL:N */
    const char *inventory; /* points into argv */
    const char *spec;      /* points into argv: a file that the options override */
    bool uuid;             /* name devices by UUID in the environment */
    bool pin;              /* run on the CPUs near the devices */
    bool label;            /* start each output line with its rank */
    enum rank_mask rank_mask;
    enum backend backend;
    uint32_t master_port; /* 0: 29500, or a free port if that one is in use */
    char *interface;      /* for NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME; NULL: neither is set */

    /* Only a spec file sets these. */
    enum scheduling default_scheduling; /* for a request with neither scheduling nor ranks */
    struct string_list command;         /* the command with its arguments; empty: none */
    struct string_list notes;           /* about fields without effect, each with its position */
};

/* The options of a request, in sets that fill in a struct request_options. A verb takes some of the
 * sets, in this order; sets that follow each other may have the same heading. */
extern const struct option_set request_device_set;  /* which devices */
extern const struct option_set request_replica_set; /* how many copies */
extern const struct option_set request_sharing_set; /* a part of a device */
extern const struct option_set request_mps_set;     /* the directories of MPS */
extern const struct option_set request_queue_set;   /* the place in the queue */
extern const struct option_set request_waiting_set; /* how long to wait */
extern const struct option_set request_command_set; /* how the command runs */
extern const struct option_set request_mask_set;    /* how the environment names the devices */
extern const struct option_set request_cpu_set;     /* running without devices */
extern const struct option_set request_file_set;    /* spec files and inventories */

/* Variants of these sets: the same options, for verbs that take fewer values or use more of a file.
 */
extern const struct option_set request_joint_replica_set;  /* no best-effort scheduling */
extern const struct option_set request_sliced_sharing_set; /* no MPS */
extern const struct option_set request_job_file_set;       /* also the file's command */

/* All sets but the variants, and all variants, each ended by NULL. */
extern const struct option_set *const request_option_sets[];
extern const struct option_set *const request_variant_sets[];

/* The sets that berth_request_set takes, ended by NULL. */
extern const struct option_set *const request_property_sets[];

/* Returns the option with this name of `length` bytes, and its set; NULL if no set has it. */
const struct option *request_options_find(const struct option_set *const *sets, const char *name,
                                          size_t length, const struct option_set **ret_set);

void request_options_init(struct request_options *options);
void request_options_finish(struct request_options *options);

/* Combines the options into a request and validates it with request_validate. The request borrows
 * its strings and lists from the options. Fails with BERTH_ERROR_INVALID; *ret_request is untouched
 * then. */
int request_options_resolve(const struct request_options *options, struct request *ret_request,
                            struct berth_error *error);

/* Does the same with other names for the fields. On failure *ret_field is the name of the field at
 * fault, as with request_validate_named. */
int request_options_resolve_named(const struct request_options *options,
                                  const struct request_names *names, struct request *ret_request,
                                  const char **ret_field, struct berth_error *error);

/* Resolves the options in place. Call this once, after the last option. Fails as
 * request_options_resolve. */
int request_options_complete(struct request_options *options, struct berth_error *error);

#endif
