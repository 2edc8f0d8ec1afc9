/* SPDX-License-Identifier: Apache-2.0
 *
 * What somebody wants: how many devices, of what kind, shared how, for how long. Options, spec
 * files and messages all end up in this struct, and request_validate is the one place that says
 * whether it makes sense. A request owns its strings and lists.
 */
#ifndef MODEL_REQUEST_H
#define MODEL_REQUEST_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text/choice.h"
#include "base/text/text.h"
#include "model/capability.h"
#include "model/device_id.h"
#include "model/optional.h"
#include "model/vendor.h"

/* More devices or replicas than anybody has. */
#define REQUEST_COUNT_MAX 1000000
/* The longest name, model, affinity key or policy name, in bytes. */
#define REQUEST_TEXT_MAX 255
/* The longest directory of MPS, in bytes: the sockets in it have to fit into an address. */
#define REQUEST_DIRECTORY_MAX 72
/* Shares are counted in millionths of a device. */
#define SHARE_WHOLE    1000000
#define SHARE_DECIMALS 6

struct device_count {
    uint32_t min; /* of each replica */
    uint32_t max; /* equal to `least` unless elastic */
    bool all;     /* every device that passes; then the numbers do not count */
};

enum vendor_rule {
    VENDOR_RULE_ONE,   /* any vendor, but never two in one replica */
    VENDOR_RULE_MIXED, /* "any": also several vendors in one replica */
    VENDOR_RULE_EXACT, /* the one in `vendor` */
};

enum sharing {
    SHARING_EXCLUSIVE,
    SHARING_MPS,
    SHARING_TIME_SLICE,
};

enum scheduling {
    SCHEDULING_UNSAID, /* gang on the command line and with ranks, best-effort in a spec file */
    SCHEDULING_BEST_EFFORT,
    SCHEDULING_GANG,
    SCHEDULING_SPREAD,
};

enum priority {
    PRIORITY_UNSAID, /* normal */
    PRIORITY_LOW,
    PRIORITY_NORMAL,
    PRIORITY_HIGH,
};

extern const struct choice sharing_names[];
extern const struct choice scheduling_names[];
extern const struct choice priority_names[];

struct request {
    struct device_count gpus;
    uint32_t replicas;

    struct device_id_list wanted;  /* only these, when there are any */
    struct device_id_list avoided; /* not these if another will do */
    enum vendor_rule vendor_rule;
    enum vendor vendor;
    char *model; /* substring in any case, or several with | between them; NULL: any */
    struct optional_number min_free;
    struct optional_number min_memory;
    struct capability min_cap;

    enum sharing sharing;
    struct optional_number share;  /* millionths of a device */
    struct optional_number memory; /* bytes reserved on each device */
    char *mps_pipe_dir;            /* of the MPS control daemon, absolute; NULL: the pool's own */
    char *mps_log_dir;             /* likewise */

    struct optional_number cpus;        /* thousandths of a CPU for each replica, on its host */
    struct optional_number host_memory; /* bytes of the host's memory for each replica */

    enum scheduling scheduling;
    enum priority priority;
    char *policy;   /* NULL: the default for the request */
    char *affinity; /* NULL: the user's own */
    bool opportunistic;
    bool ranks; /* one process per device over all replicas */
    bool or_cpu;

    bool nonblock;
    struct optional_number wait; /* nanoseconds to wait at most */
    struct optional_number time; /* nanoseconds to hold at most */
    char *name;                  /* for people, NULL: none */
};

/* One device, one replica, exclusive, nothing else said. */
void request_init(struct request *request);
void request_finish(struct request *request);

/* A request of its own with the same members, whatever *ret_request was. Fails with
 * BERTH_ERROR_MEMORY; *ret_request is untouched then. */
int request_copy(struct request *ret_request, const struct request *from);

/* Whether all members are the same, also those that do not count, such as the vendor when the rule
 * is not exact. What is unknown has no value that could differ. */
bool request_equals(const struct request *one, const struct request *other);

/* The fields of a request that options and spec files spell differently, for messages. */
struct request_names {
    const char *gpus;
    const char *ranks;
    const char *min_free;
    const char *min_memory;
    const char *mps_pipe_dir;
    const char *mps_log_dir;
};

/* The names of the options. */
extern const struct request_names request_option_names;

/* Checks the request by itself, without the devices of a pool. Fails with BERTH_ERROR_INVALID and a
 * message "FIELD: sentence". Pure. */
int request_validate(const struct request *request, struct berth_error *error);

/* The same with other names. On failure *ret_field is the name of the field at fault, a constant or
 * one of the names. */
int request_validate_named(const struct request *request, const struct request_names *names,
                           const char **ret_field, struct berth_error *error);

/* Reads a device count: N, `all`, or an elastic range LEAST-LIMIT. Fails with BERTH_ERROR_SYNTAX
 * or BERTH_ERROR_RANGE; *ret_count is untouched then. */
int request_parse_device_count(const char *string, struct device_count *ret_count,
                               struct berth_error *error);

/* Whether --device or --avoid of the request has an id that is only an index. */
bool request_is_unresolved(const struct request *request);

/* Gives the ids that are only an index their vendor, by the devices that are present. Fails with
 * BERTH_ERROR_INVALID, naming the option, where that is not clear. */
int request_resolve_devices(struct request *request, const struct device_id_list *present,
                            struct berth_error *error);

/* Appends the request in words: "2 devices, model A100, at least 40 GiB free". */
void request_describe(const struct request *request, struct text *out);

#endif
