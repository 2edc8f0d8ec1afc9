/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of the request options and the parsers of their values.
 */
#include "spec/request_options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"
#include "spec/option_types.h"

enum { VENDOR_ANY = -1 };

static const struct choice vendor_choices[] = {
    {"nvidia", VENDOR_NVIDIA},
    {"amd", VENDOR_AMD},
    {"intel", VENDOR_INTEL},
    {"apple", VENDOR_APPLE},
    {"dri", VENDOR_DRI},
    {"any", VENDOR_ANY},
    {0},
};

/* Returns whether the value of --gpus is a model without a number, such as A100: it begins with a
 * letter, has no colon, and is not "all" in any spelling. */
static bool is_model_alone(const char *value)
{
    return isalpha((unsigned char)*value) && strchr(value, ':') == NULL &&
           strcasecmp(value, "all") != 0;
}

/* Reads [MODEL:]N, or MODEL for one device. Sets two members, so `member` is the whole struct
 * request_options. */
static int parse_gpus(const struct option *option, void *member, const char *value,
                      struct berth_error *error)
{
    struct request_options *options = member;
    bool alone = is_model_alone(value);
    const char *colon = alone ? value + strlen(value) : strrchr(value, ':');
    struct device_count gpus = {.min = 1, .max = 1};
    char *model = NULL;
    int code = 0;

    (void)option;
    if (!alone)
        code = request_parse_device_count(colon == NULL ? value : colon + 1, &gpus, error);
    if (code < 0)
        return code;
    if (colon != NULL) {
        model = strndup(value, (size_t)(colon - value));
        if (model == NULL)
            return error_set_memory(error);
    }
    free(options->count_model);
    options->count_model = model;
    options->request.gpus = gpus;
    return 0;
}

static int parse_replicas(const struct option *option, void *member, const char *value,
                          struct berth_error *error)
{
    uint64_t replicas;
    int code = quantity_parse_number(value, 1, REQUEST_COUNT_MAX, &replicas, error);

    (void)option;
    if (code == 0)
        *(uint32_t *)member = (uint32_t)replicas;
    return code;
}

static int parse_port(const struct option *option, void *member, const char *value,
                      struct berth_error *error)
{
    uint64_t port;
    int code = quantity_parse_number(value, 1, UINT16_MAX, &port, error);

    (void)option;
    if (code == 0)
        *(uint32_t *)member = (uint32_t)port;
    return code;
}

static int parse_interface(const struct option *option, void *member, const char *value,
                           struct berth_error *error)
{
    if (*value == '\0' || strlen(value) > INTERFACE_MAX)
        return error_set(error, BERTH_ERROR_RANGE,
                         "expected the name of a network interface of 1 to %d bytes, got %s",
                         INTERFACE_MAX, quote(value).text);
    return option_type_text(option, member, value, error);
}

static int parse_vendor(const struct option *option, void *member, const char *value,
                        struct berth_error *error)
{
    struct request *request = member;
    int vendor;
    int code = choice_parse(option->choices, value, &vendor, error);

    if (code < 0)
        return code;
    request->vendor_rule = vendor == VENDOR_ANY ? VENDOR_RULE_MIXED : VENDOR_RULE_EXACT;
    if (vendor != VENDOR_ANY)
        request->vendor = (enum vendor)vendor;
    return 0;
}

static int parse_share(const struct option *option, void *member, const char *value,
                       struct berth_error *error)
{
    uint64_t share;
    int code = quantity_parse_decimal(value, SHARE_DECIMALS, SHARE_WHOLE, &share, error);

    (void)option;
    if (code == 0)
        *(struct optional_number *)member = optional_number_of(share);
    return code;
}

static int parse_capability(const struct option *option, void *member, const char *value,
                            struct berth_error *error)
{
    (void)option;
    return capability_parse(value, member, error);
}

/* Parses a scheduling that the verb does not offer, too: the verb itself then says why not. */
static int parse_any_scheduling(const struct option *option, void *member, const char *value,
                                struct berth_error *error)
{
    int code = choice_parse(scheduling_names, value, member, error);

    return code < 0 ? option_type_choice(option, member, value, error) : 0;
}

/* Does the same for sharing modes. */
static int parse_any_sharing(const struct option *option, void *member, const char *value,
                             struct berth_error *error)
{
    int code = choice_parse(sharing_names, value, member, error);

    return code < 0 ? option_type_choice(option, member, value, error) : 0;
}

#define OPTIONS(member) .offset = offsetof(struct request_options, member)
#define REQUEST(member) OPTIONS(request.member)

static const struct option device_rows[] = {
    {.name = "gpus",
     .letter = 'n',
     .argument = "[MODEL:]N",
     .help = "devices per replica: 2, 2-4, all, A100 or A100:2",
     .parse = parse_gpus},
    {.name = "device",
     .argument = "ID,...",
     .help = "use only these devices",
     REQUEST(wanted),
     .parse = option_type_ids},
    {.name = "avoid",
     .argument = "ID,...",
     .help = "use these devices only if too few others match",
     REQUEST(avoided),
     .parse = option_type_ids},
    {.name = "vendor",
     .argument = "VENDOR",
     .choices = vendor_choices,
     .help = "nvidia, amd, intel, apple or dri; any: mixed",
     OPTIONS(request),
     .parse = parse_vendor},
    {.name = "model",
     .argument = "TEXT",
     .help = "only models whose name contains this; A|B: either",
     REQUEST(model),
     .parse = option_type_text},
    {.name = "min-free",
     .argument = "SIZE",
     .help = "at least this much free memory, such as 20GiB",
     REQUEST(min_free),
     .parse = option_type_size},
    {.name = "min-memory",
     .argument = "SIZE",
     .help = "at least this much memory in total",
     REQUEST(min_memory),
     .parse = option_type_size},
    {.name = "min-cap",
     .argument = "X.Y",
     .help = "at least this compute capability",
     REQUEST(min_cap),
     .parse = parse_capability},
    {.name = "policy",
     .argument = "NAME",
     .help = "placement policy; berth-plan(1) lists them",
     REQUEST(policy),
     .parse = option_type_text},
    {.name = "affinity",
     .argument = "KEY",
     .help = "prefer devices whose last job had this key",
     REQUEST(affinity),
     .parse = option_type_text},
};

const struct option_set request_device_set = {
    .heading = "Devices",
    .options = device_rows,
    .count = COUNT(device_rows),
};

static const struct choice joint_scheduling_names[] = {
    {"gang", SCHEDULING_GANG},
    {"spread", SCHEDULING_SPREAD},
    {0},
};

/* Here and below, a set and its variant for other verbs overlap: they have all rows in common but
 * the first and the last, which are the two forms of one option. */
static const struct option replica_rows[] = {
    {.name = "scheduling",
     .argument = "HOW",
     .choices = joint_scheduling_names,
     .help = "how replicas are granted: gang (default) or spread",
     REQUEST(scheduling),
     .parse = parse_any_scheduling},
    {.name = "replicas",
     .argument = "R",
     .help = "number of copies with their own devices (default 1)",
     REQUEST(replicas),
     .parse = parse_replicas},
    {.name = "scheduling",
     .argument = "HOW",
     .choices = scheduling_names,
     .help = "how replicas are granted: gang (default), spread or best-effort",
     REQUEST(scheduling),
     .parse = option_type_choice},
};

const struct option_set request_replica_set = {
    .heading = "Replicas",
    .verbs = "berth run, submit, reserve, wait and plan",
    .options = replica_rows + 1,
    .count = COUNT(replica_rows) - 1,
};

const struct option_set request_joint_replica_set = {
    .heading = "Replicas",
    .options = replica_rows,
    .count = COUNT(replica_rows) - 1,
};

static const struct choice sliced_sharing_names[] = {
    {"exclusive", SHARING_EXCLUSIVE},
    {"time-slice", SHARING_TIME_SLICE},
    {0},
};

static const struct option sharing_rows[] = {
    {.name = "sharing",
     .argument = "MODE",
     .choices = sharing_names,
     .help = "exclusive (default), mps or time-slice",
     REQUEST(sharing),
     .parse = option_type_choice},
    {.name = "share",
     .argument = "FRACTION",
     .help = "fraction of a shared device, such as 0.25",
     REQUEST(share),
     .parse = parse_share},
    {.name = "memory",
     .argument = "SIZE",
     .help = "memory to reserve on a shared device",
     REQUEST(memory),
     .parse = option_type_size},
    {.name = "sharing",
     .argument = "MODE",
     .choices = sliced_sharing_names,
     .help = "exclusive (default) or time-slice",
     REQUEST(sharing),
     .parse = parse_any_sharing},
};

const struct option_set request_sharing_set = {
    .heading = "Sharing",
    .options = sharing_rows,
    .count = COUNT(sharing_rows) - 1,
};

const struct option_set request_sliced_sharing_set = {
    .heading = "Sharing",
    .options = sharing_rows + 1,
    .count = COUNT(sharing_rows) - 1,
};

static const struct option mps_rows[] = {
    {.name = "mps-pipe-dir",
     .argument = "DIR",
     .help = "directory of the MPS pipes",
     REQUEST(mps_pipe_dir),
     .parse = option_type_text},
    {.name = "mps-log-dir",
     .argument = "DIR",
     .help = "directory of the MPS logs",
     REQUEST(mps_log_dir),
     .parse = option_type_text},
};

const struct option_set request_mps_set = {
    .heading = "Sharing",
    .verbs = "berth run, submit, reserve, wait and plan",
    .options = mps_rows,
    .count = COUNT(mps_rows),
};

static const struct option queue_rows[] = {
    {.name = "priority",
     .argument = "CLASS",
     .choices = priority_names,
     .help = "low, normal (default) or high",
     REQUEST(priority),
     .parse = option_type_choice},
    {.name = "opportunistic",
     .help = "use idle devices; give them back when needed",
     REQUEST(opportunistic),
     .parse = option_type_flag},
    {.name = "time",
     .argument = "DURATION",
     .help = "time limit; the job is stopped after this long",
     REQUEST(time),
     .parse = option_type_duration},
    {.name = "name",
     .argument = "TEXT",
     .help = "name of the job in lists",
     REQUEST(name),
     .parse = option_type_text},
};

const struct option_set request_queue_set = {
    .heading = "Queue",
    .options = queue_rows,
    .count = COUNT(queue_rows),
};

static const struct option waiting_rows[] = {
    {.name = "wait",
     .argument = "DURATION",
     .help = "give up after this time, such as 90s or 1h30m",
     REQUEST(wait),
     .parse = option_type_duration},
    {.name = "nonblock",
     .help = "give up at once if no device is free",
     REQUEST(nonblock),
     .parse = option_type_flag},
};

const struct option_set request_waiting_set = {
    .heading = "Waiting",
    .verbs = "berth run, submit, reserve, wait and adopt",
    .options = waiting_rows,
    .count = COUNT(waiting_rows),
};

static const struct option command_rows[] = {
    {.name = "pin",
     .help = "run the command on the CPUs near its devices",
     OPTIONS(pin),
     .parse = option_type_flag},
    {.name = "label",
     .help = "start each output line with its rank or replica",
     OPTIONS(label),
     .parse = option_type_flag},
    {.name = "ranks",
     .help = "start one process per device, for distributed training",
     REQUEST(ranks),
     .parse = option_type_flag},
    {.name = "rank-mask",
     .argument = "WHICH",
     .choices = rank_mask_names,
     .help = "devices that a rank sees: all (default) or one",
     OPTIONS(rank_mask),
     .parse = option_type_choice},
    {.name = "backend",
     .argument = "NAME",
     .choices = backend_names,
     .help = "nccl (default), gloo or mpi; set as BERTH_BACKEND",
     OPTIONS(backend),
     .parse = option_type_choice},
    {.name = "master-port",
     .argument = "PORT",
     .help = "port where ranks meet (default 29500 or a free one)",
     OPTIONS(master_port),
     .parse = parse_port},
    {.name = "interface",
     .argument = "NAME",
     .help = "network interface for NCCL and Gloo",
     OPTIONS(interface),
     .parse = parse_interface},
};

const struct option_set request_command_set = {
    .heading = "Command",
    .verbs = "berth run and submit",
    .options = command_rows,
    .count = COUNT(command_rows),
};

static const struct option mask_rows[] = {
    {.name = "uuid",
     .help = "name devices by UUID, not by index",
     OPTIONS(uuid),
     .parse = option_type_flag},
};

const struct option_set request_mask_set = {
    .heading = "Command",
    .verbs = "berth run, submit and reserve",
    .options = mask_rows,
    .count = COUNT(mask_rows),
};

static const struct option cpu_rows[] = {
    {.name = "or-cpu",
     .help = "run on the CPU if no device can ever match",
     REQUEST(or_cpu),
     .parse = option_type_flag},
};

const struct option_set request_cpu_set = {
    .heading = "Command",
    .verbs = "berth run",
    .options = cpu_rows,
    .count = COUNT(cpu_rows),
};

static const struct option file_rows[] = {
    {.name = "spec",
     .argument = "FILE",
     .help = "read the request and the command from this file",
     OPTIONS(spec),
     .parse = option_type_string},
    {.name = "inventory",
     .argument = "FILE",
     .help = "use the devices in this file, not the hardware",
     OPTIONS(inventory),
     .parse = option_type_string},
    {.name = "spec",
     .argument = "FILE",
     .help = "read the request from this file",
     OPTIONS(spec),
     .parse = option_type_string},
};

const struct option_set request_file_set = {
    .heading = "Files",
    .options = file_rows + 1,
    .count = COUNT(file_rows) - 1,
};

const struct option_set request_job_file_set = {
    .heading = "Files",
    .options = file_rows,
    .count = COUNT(file_rows) - 1,
};

const struct option_set *const request_option_sets[] = {
    &request_device_set,
    &request_replica_set,
    &request_sharing_set,
    &request_mps_set,
    &request_queue_set,
    &request_waiting_set,
    &request_command_set,
    &request_mask_set,
    &request_cpu_set,
    &request_file_set,
    NULL,
};

const struct option_set *const request_variant_sets[] = {
    &request_joint_replica_set,
    &request_sliced_sharing_set,
    &request_job_file_set,
    NULL,
};

const struct option_set *const request_property_sets[] = {
    &request_device_set, &request_replica_set, &request_sharing_set, &request_queue_set, NULL,
};
