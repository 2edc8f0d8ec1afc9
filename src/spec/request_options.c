/* SPDX-License-Identifier: Apache-2.0 */
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

const struct choice rank_mask_names[] = {
    {"all", RANK_MASK_ALL},
    {"one", RANK_MASK_ONE},
    {0},
};

const struct choice backend_names[] = {
    {"nccl", BACKEND_NCCL},
    {"gloo", BACKEND_GLOO},
    {"mpi", BACKEND_MPI},
    {0},
};

/* Returns whether the value of --gpus is a model without a number, such as A100: it begins with a
 * letter, which no number does, and is not "all" in any spelling. */
static bool is_model_alone(const char *value)
{
    return isalpha((unsigned char)*value) && strchr(value, ':') == NULL &&
           strcasecmp(value, "all") != 0;
}

/* Reads [MODEL:]N or MODEL, which means one. Sets two members, so `member` is the whole of the
 * options. */
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

#define OPTIONS(member) .offset = offsetof(struct request_options, member)
#define REQUEST(member) OPTIONS(request.member)

static const struct option request_rows[] = {
    {.name = "gpus",
     .letter = 'n',
     .argument = "[MODEL:]N",
     .help = "devices for each replica: a number, a range such as 2-4, or all (default 1)",
     .parse = parse_gpus},
    {.name = "replicas",
     .argument = "R",
     .help = "how many copies, each with its own devices (default 1)",
     REQUEST(replicas),
     .parse = parse_replicas},
    {.name = "device",
     .argument = "ID,...",
     .help = "only these devices",
     REQUEST(wanted),
     .parse = option_type_ids},
    {.name = "avoid",
     .argument = "ID,...",
     .help = "not these devices if another will do",
     REQUEST(avoided),
     .parse = option_type_ids},
    {.name = "vendor",
     .argument = "VENDOR",
     .choices = vendor_choices,
     .help = "nvidia, amd, intel, apple or dri; any lets one replica mix vendors",
     OPTIONS(request),
     .parse = parse_vendor},
    {.name = "model",
     .argument = "TEXT",
     .help = "devices whose model name contains this, in any case; A|B: one of these",
     REQUEST(model),
     .parse = option_type_text},
    {.name = "min-free",
     .argument = "SIZE",
     .help = "at least this much free memory, such as 20GiB",
     REQUEST(min_free),
     .parse = option_type_size},
    {.name = "min-memory",
     .argument = "SIZE",
     .help = "at least this much memory in all",
     REQUEST(min_memory),
     .parse = option_type_size},
    {.name = "min-cap",
     .argument = "X.Y",
     .help = "at least this compute capability",
     REQUEST(min_cap),
     .parse = parse_capability},
    {.name = "sharing",
     .argument = "MODE",
     .choices = sharing_names,
     .help = "exclusive (default), mps or time-slice",
     REQUEST(sharing),
     .parse = option_type_choice},
    {.name = "share",
     .argument = "FRACTION",
     .help = "how much of a shared device, such as 0.25",
     REQUEST(share),
     .parse = parse_share},
    {.name = "memory",
     .argument = "SIZE",
     .help = "memory to reserve on a shared device",
     REQUEST(memory),
     .parse = option_type_size},
    {.name = "mps-pipe-dir",
     .command_only = true,
     .argument = "DIR",
     .help = "where MPS has its pipes, instead of a directory of the pool's own",
     REQUEST(mps_pipe_dir),
     .parse = option_type_text},
    {.name = "mps-log-dir",
     .command_only = true,
     .argument = "DIR",
     .help = "where MPS has its logs",
     REQUEST(mps_log_dir),
     .parse = option_type_text},
    {.name = "scheduling",
     .argument = "HOW",
     .choices = scheduling_names,
     .help = "how replicas are granted: gang (all at once, default), spread or best-effort",
     REQUEST(scheduling),
     .parse = option_type_choice},
    {.name = "policy",
     .argument = "NAME",
     .help = "which of the devices that would do are taken: first, round-robin, least-loaded, "
             "best-available, best-compute, pack, spread, topology, frag or weighted "
             "(default: topology for several devices, frag for shares, else first)",
     REQUEST(policy),
     .parse = option_type_text},
    {.name = "affinity",
     .argument = "KEY",
     .help = "among equals, prefer the devices that last served this key",
     REQUEST(affinity),
     .parse = option_type_text},
    {.name = "priority",
     .argument = "CLASS",
     .choices = priority_names,
     .help = "low, normal (default) or high",
     REQUEST(priority),
     .parse = option_type_choice},
    {.name = "opportunistic",
     .help = "take only what nobody waits for, and give way",
     REQUEST(opportunistic),
     .parse = option_type_flag},
    {.name = "wait",
     .command_only = true,
     .argument = "DURATION",
     .help = "give up after this time, such as 90s, 5m or 1h30m",
     REQUEST(wait),
     .parse = option_type_duration},
    {.name = "nonblock",
     .command_only = true,
     .help = "give up at once",
     REQUEST(nonblock),
     .parse = option_type_flag},
    {.name = "time",
     .argument = "DURATION",
     .help = "the longest that the devices will be held",
     REQUEST(time),
     .parse = option_type_duration},
    {.name = "or-cpu",
     .command_only = true,
     .help = "where no device could ever do, go on without",
     REQUEST(or_cpu),
     .parse = option_type_flag},
    {.name = "spec",
     .command_only = true,
     .argument = "FILE",
     .help = "take the request, and the command, from this file; other options win over it",
     OPTIONS(spec),
     .parse = option_type_string},
    {.name = "name",
     .argument = "TEXT",
     .help = "a name for people",
     REQUEST(name),
     .parse = option_type_text},
    {.name = "uuid",
     .command_only = true,
     .help = "name devices by UUID in the masks",
     OPTIONS(uuid),
     .parse = option_type_flag},
    {.name = "pin",
     .command_only = true,
     .help = "keep the command on the CPUs near its devices, where they are known",
     OPTIONS(pin),
     .parse = option_type_flag},
    {.name = "ranks",
     .command_only = true,
     .help = "one copy of the command for each device",
     REQUEST(ranks),
     .parse = option_type_flag},
    {.name = "rank-mask",
     .command_only = true,
     .argument = "WHICH",
     .choices = rank_mask_names,
     .help = "what a rank sees: all of its replica, or one",
     OPTIONS(rank_mask),
     .parse = option_type_choice},
    {.name = "backend",
     .command_only = true,
     .argument = "NAME",
     .choices = backend_names,
     .help = "what ranks talk to each other with: nccl (default), gloo or mpi; told as "
             "BERTH_BACKEND",
     OPTIONS(backend),
     .parse = option_type_choice},
    {.name = "master-port",
     .command_only = true,
     .argument = "PORT",
     .help = "where ranks meet (default 29500, or a free one when that is taken)",
     OPTIONS(master_port),
     .parse = parse_port},
    {.name = "interface",
     .command_only = true,
     .argument = "NAME",
     .help = "the network interface that NCCL and Gloo are told to use (default: neither is told)",
     OPTIONS(interface),
     .parse = parse_interface},
    {.name = "label",
     .command_only = true,
     .help = "begin each line of output with its rank, or with its replica",
     OPTIONS(label),
     .parse = option_type_flag},
    {.name = "inventory",
     .command_only = true,
     .argument = "FILE",
     .help = "the devices of this file instead of the hardware",
     OPTIONS(inventory),
     .parse = option_type_string},
};

const struct option_set request_option_set = {
    .heading = "Request",
    .options = request_rows,
    .count = COUNT(request_rows),
};

void request_options_init(struct request_options *options)
{
    *options = (struct request_options){0};
    request_init(&options->request);
}

void request_options_finish(struct request_options *options)
{
    request_finish(&options->request);
    free(options->count_model);
    free(options->interface);
    string_list_finish(&options->command);
    string_list_finish(&options->notes);
    options->count_model = options->interface = NULL;
}

/* Refuses options about ranks in a request without ranks. */
static int check_ranks(const struct request_options *options, const struct request_names *names,
                       const char **ret_field, struct berth_error *error)
{
    const char *option = NULL;

    if (options->rank_mask != RANK_MASK_ALL)
        option = "rank-mask";
    else if (options->backend != BACKEND_UNSAID)
        option = "backend";
    else if (options->master_port != 0)
        option = "master-port";
    else if (options->interface != NULL)
        option = "interface";
    if (!options->request.ranks && option != NULL) {
        *ret_field = option;
        return error_set(error, BERTH_ERROR_INVALID, "%s: goes with %s, got none", option,
                         names->ranks);
    }
    if (!options->request.ranks && options->request.replicas <= 1 && options->label) {
        *ret_field = "label";
        return error_set(error, BERTH_ERROR_INVALID,
                         "label: goes with %s or several replicas, got neither", names->ranks);
    }
    return 0;
}

int request_options_resolve_named(const struct request_options *options,
                                  const struct request_names *names, struct request *ret_request,
                                  const char **ret_field, struct berth_error *error)
{
    struct request request = options->request;
    int code;

    if (options->count_model != NULL && request.model != NULL &&
        strcasecmp(options->count_model, request.model) != 0) {
        *ret_field = "model";
        return error_set(error, BERTH_ERROR_INVALID,
                         "model: expected one, got %s with gpus and %s with model",
                         quote(options->count_model).text, quote(request.model).text);
    }
    if (request.model == NULL)
        request.model = options->count_model;
    code = check_ranks(options, names, ret_field, error);
    if (code < 0)
        return code;
    if (!request.ranks && request.scheduling == SCHEDULING_UNSAID)
        request.scheduling = options->default_scheduling;
    code = request_validate_named(&request, names, ret_field, error);
    if (code == 0)
        *ret_request = request;
    return code;
}

int request_options_resolve(const struct request_options *options, struct request *ret_request,
                            struct berth_error *error)
{
    const char *field;

    return request_options_resolve_named(options, &request_option_names, ret_request, &field,
                                         error);
}

int request_options_complete(struct request_options *options, struct berth_error *error)
{
    int code = request_options_resolve(options, &options->request, error);

    if (code == 0 && options->request.model == options->count_model)
        options->count_model = NULL;
    return code;
}
