/* SPDX-License-Identifier: Apache-2.0
 *
 * A request for devices: how many, of what kind, how they are shared, and for how long. Options,
 * spec files and messages are all converted to this struct, and request_validate checks it. A
 * request owns its strings and lists.
 */
#ifndef MODEL_REQUEST_H
#define MODEL_REQUEST_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/optional.h"
#include "base/text/choice.h"
#include "base/text/text.h"
#include "model/machine/capability.h"
#include "model/machine/device_id.h"
#include "model/machine/vendor.h"

/* The maximum number of devices and of replicas. */
#define REQUEST_COUNT_MAX 1000000
/* The maximum length of a name, model, affinity key or policy name, in bytes. */
#define REQUEST_TEXT_MAX 255
/* The maximum length of an MPS directory, in bytes: paths of sockets in it must fit into a socket
 * address. */
#define REQUEST_DIRECTORY_MAX 72
/* Shares are counted in millionths of a device. */
#define SHARE_WHOLE    1000000
#define SHARE_DECIMALS 6

struct device_count {
    uint32_t min; /* of each replica */
    uint32_t max; /* equal to `min` unless elastic */
    bool all;     /* every device that the request allows; `min` and `max` are ignored */
};

enum vendor_rule {
    VENDOR_RULE_ONE,   /* any vendor, but only one vendor per replica */
    VENDOR_RULE_MIXED, /* "any": a replica may have devices of several vendors */
    VENDOR_RULE_EXACT, /* only `vendor` */
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

    struct device_id_list wanted;  /* only these; empty: all */
    struct device_id_list avoided; /* these only if no other device fits */
    enum vendor_rule vendor_rule;
    enum vendor vendor;
    char *model; /* case-insensitive substrings separated by |; NULL: any */
    struct optional_number min_free;
    struct optional_number min_memory;
    struct capability min_cap;

    enum sharing sharing;
    struct optional_number share;  /* millionths of a device */
    struct optional_number memory; /* bytes reserved on each device */
    char *mps_pipe_dir; /* of the MPS control daemon, absolute; NULL: the pool's default */
    char *mps_log_dir;  /* likewise */

    struct optional_number cpus;        /* thousandths of a CPU of the host for each replica */
    struct optional_number host_memory; /* bytes of the host's memory for each replica */

    enum scheduling scheduling;
    enum priority priority;
    char *policy;   /* NULL: the default for the request */
    char *affinity; /* NULL: the user id in the machine's pool, else none */
    bool opportunistic;
    bool ranks; /* one process per device over all replicas */
    bool or_cpu;

    bool nonblock;
    struct optional_number wait; /* maximum waiting time in nanoseconds */
    struct optional_number time; /* time limit of the lease in nanoseconds */
    char *name;                  /* shown to users; NULL: none */
};

/* Initialises a request for one device and one replica, exclusive, without other conditions. */
void request_init(struct request *request);
void request_finish(struct request *request);

/* Copies a request. Overwrites *ret_request without finishing it. Fails with BERTH_ERROR_MEMORY;
 * *ret_request is untouched then. */
int request_copy(struct request *ret_request, const struct request *from);

/* Returns whether all members are equal, including those without effect, such as the vendor when
 * the rule is not exact. The values of unknown members are ignored. */
bool request_equals(const struct request *one, const struct request *other);

/* The fields of a request that options and spec files spell differently, for messages. */
struct request_names {
    const char *dashes; /* before each name: "--" or "" */
    const char *gpus;
    const char *ranks;
    const char *min_free;
    const char *min_memory;
    const char *mps_pipe_dir;
    const char *mps_log_dir;
};

/* The names of the options: as properties in a program, and as on a command line. */
extern const struct request_names request_option_names;
extern const struct request_names request_command_names;

/* Checks the request without regard to the devices of a pool. Fails with BERTH_ERROR_INVALID and a
 * message "FIELD: sentence". Pure. */
int request_validate(const struct request *request, struct berth_error *error);

/* Checks the request in the same way, with other names in the message. On failure *ret_field is the
 * name of the field at fault, a constant or one of the names. */
int request_validate_named(const struct request *request, const struct request_names *names,
                           const char **ret_field, struct berth_error *error);

/* Parses a device count: N, `all`, or an elastic range MIN-MAX. Fails with BERTH_ERROR_SYNTAX or
 * BERTH_ERROR_RANGE; *ret_count is untouched then. */
int request_parse_device_count(const char *string, struct device_count *ret_count,
                               struct berth_error *error);

/* Returns whether --device or --avoid of the request has an id that is only an index. */
bool request_is_unresolved(const struct request *request);

/* Sets the vendor of each id that is only an index: that of the present device with the same index.
 * Fails with BERTH_ERROR_INVALID, and names the option, when no device or several devices have the
 * index. */
int request_resolve_devices(struct request *request, const struct device_id_list *present,
                            struct berth_error *error);

/* Appends the request as text: "2 devices, model A100, at least 40 GiB free". */
void request_describe(const struct request *request, struct text *out);

#endif
