/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/request_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/quote.h"

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

static const struct choice rank_mask_names[] = {
    {"all", RANK_MASK_ALL},
    {"one", RANK_MASK_ONE},
    {0},
};

static int replace_text(char **text, const char *value, struct berth_error *error)
{
    char *copy = strdup(value);

    if (copy == NULL)
        return error_set_memory(error);
    free(*text);
    *text = copy;
    return 0;
}

static int take_size(struct optional_number *number, const char *value, struct berth_error *error)
{
    uint64_t size;
    int code = quantity_parse_size(value, &size, error);

    if (code == 0)
        *number = optional_number_of(size);
    return code;
}

static int take_duration(struct optional_number *number, const char *value,
                         struct berth_error *error)
{
    int64_t duration;
    int code = quantity_parse_duration(value, &duration, error);

    if (code == 0)
        *number = optional_number_of((uint64_t)duration);
    return code;
}

static int take_gpus(void *target, const char *value, struct berth_error *error)
{
    struct request_options *options = target;
    const char *colon = strrchr(value, ':');
    int code = device_count_parse(colon == NULL ? value : colon + 1, &options->request.gpus, error);

    if (code < 0)
        return code;
    free(options->count_model);
    options->count_model = NULL;
    if (colon == NULL)
        return 0;
    options->count_model = strndup(value, (size_t)(colon - value));
    return options->count_model == NULL ? error_set_memory(error) : 0;
}

static int take_replicas(void *target, const char *value, struct berth_error *error)
{
    struct request_options *options = target;
    uint64_t replicas;
    int code = quantity_parse_number(value, 1, REQUEST_COUNT_MOST, &replicas, error);

    if (code == 0)
        options->request.replicas = (uint32_t)replicas;
    return code;
}

static int take_vendor(void *target, const char *value, struct berth_error *error)
{
    struct request *request = &((struct request_options *)target)->request;
    int vendor;
    int code = choice_parse(vendor_choices, value, &vendor, error);

    if (code < 0)
        return code;
    request->vendor_rule = vendor == VENDOR_ANY ? VENDOR_RULE_MIXED : VENDOR_RULE_EXACT;
    if (vendor != VENDOR_ANY)
        request->vendor = (enum vendor)vendor;
    return 0;
}

static int take_share(void *target, const char *value, struct berth_error *error)
{
    struct request_options *options = target;
    uint64_t share;
    int code = quantity_parse_decimal(value, SHARE_DECIMALS, SHARE_WHOLE, &share, error);

    if (code == 0)
        options->request.share = optional_number_of(share);
    return code;
}

static int take_min_cap(void *target, const char *value, struct berth_error *error)
{
    return capability_parse(value, &((struct request_options *)target)->request.min_cap, error);
}

/* The rest of the takers only say which member a value goes to. */
#define TAKER(name, function, member)                                                  \
    static int take_##name(void *target, const char *value, struct berth_error *error) \
    {                                                                                  \
        return function(&((struct request_options *)target)->member, value, error);    \
    }

#define CHOICE_TAKER(name, choices, member)                                            \
    static int take_##name(void *target, const char *value, struct berth_error *error) \
    {                                                                                  \
        struct request_options *options = target;                                      \
        int choice;                                                                    \
        int code = choice_parse(choices, value, &choice, error);                       \
                                                                                       \
        if (code == 0)                                                                 \
            options->member = (__typeof__(options->member))choice;                     \
        return code;                                                                   \
    }

#define FLAG_TAKER(name, member)                                                       \
    static int take_##name(void *target, const char *value, struct berth_error *error) \
    {                                                                                  \
        (void)value;                                                                   \
        (void)error;                                                                   \
        ((struct request_options *)target)->member = true;                             \
        return 0;                                                                      \
    }

TAKER(device, device_id_list_parse, request.wanted)
TAKER(avoid, device_id_list_parse, request.avoided)
TAKER(model, replace_text, request.model)
TAKER(min_free, take_size, request.min_free)
TAKER(min_memory, take_size, request.min_memory)
TAKER(memory, take_size, request.memory)
TAKER(policy, replace_text, request.policy)
TAKER(affinity, replace_text, request.affinity)
TAKER(wait, take_duration, request.wait)
TAKER(time, take_duration, request.time)
TAKER(name, replace_text, request.name)
CHOICE_TAKER(sharing, sharing_names, request.sharing)
CHOICE_TAKER(scheduling, scheduling_names, request.scheduling)
CHOICE_TAKER(priority, priority_names, request.priority)
CHOICE_TAKER(rank_mask, rank_mask_names, rank_mask)
FLAG_TAKER(opportunistic, request.opportunistic)
FLAG_TAKER(nonblock, request.nonblock)
FLAG_TAKER(or_cpu, request.or_cpu)
FLAG_TAKER(ranks, request.ranks)
FLAG_TAKER(uuid, uuid)
FLAG_TAKER(label, label)

static int take_inventory(void *target, const char *value, struct berth_error *error)
{
    (void)error;
    ((struct request_options *)target)->inventory = value;
    return 0;
}

static const struct option request_rows[] = {
    {.name = "gpus",
     .letter = 'n',
     .argument = "[MODEL:]N",
     .help = "devices for each replica: a number, a range such as 2-4, or all (default 1)",
     .take = take_gpus},
    {.name = "replicas",
     .argument = "R",
     .help = "how many copies, each with its own devices (default 1)",
     .take = take_replicas},
    {.name = "device", .argument = "ID,...", .help = "only these devices", .take = take_device},
    {.name = "avoid",
     .argument = "ID,...",
     .help = "not these devices if another will do",
     .take = take_avoid},
    {.name = "vendor",
     .argument = "VENDOR",
     .choices = vendor_choices,
     .help = "nvidia, amd, intel, apple or dri; any lets one replica mix vendors",
     .take = take_vendor},
    {.name = "model",
     .argument = "TEXT",
     .help = "devices whose model name contains this, in any case",
     .take = take_model},
    {.name = "min-free",
     .argument = "SIZE",
     .help = "at least this much free memory, such as 20GiB",
     .take = take_min_free},
    {.name = "min-memory",
     .argument = "SIZE",
     .help = "at least this much memory in all",
     .take = take_min_memory},
    {.name = "min-cap",
     .argument = "X.Y",
     .help = "at least this compute capability",
     .take = take_min_cap},
    {.name = "sharing",
     .argument = "MODE",
     .choices = sharing_names,
     .help = "exclusive (default), mps or time-slice",
     .take = take_sharing},
    {.name = "share",
     .argument = "FRACTION",
     .help = "how much of a shared device, such as 0.25",
     .take = take_share},
    {.name = "memory",
     .argument = "SIZE",
     .help = "memory to reserve on a shared device",
     .take = take_memory},
    {.name = "scheduling",
     .argument = "HOW",
     .choices = scheduling_names,
     .help = "how replicas are granted: gang (all at once, default), spread or best-effort",
     .take = take_scheduling},
    {.name = "policy",
     .argument = "NAME",
     .help = "which of the devices that would do are taken",
     .take = take_policy},
    {.name = "affinity",
     .argument = "KEY",
     .help = "among equals, prefer the devices that last served this key",
     .take = take_affinity},
    {.name = "priority",
     .argument = "CLASS",
     .choices = priority_names,
     .help = "low, normal (default) or high",
     .take = take_priority},
    {.name = "opportunistic",
     .help = "take only what nobody waits for, and give way",
     .take = take_opportunistic},
    {.name = "wait",
     .argument = "DURATION",
     .help = "give up after this time, such as 90s, 5m or 1h30m",
     .take = take_wait},
    {.name = "nonblock", .help = "give up at once", .take = take_nonblock},
    {.name = "time",
     .argument = "DURATION",
     .help = "the longest that the devices will be held",
     .take = take_time},
    {.name = "or-cpu", .help = "where no device could ever do, go on without", .take = take_or_cpu},
    {.name = "name", .argument = "TEXT", .help = "a name for people", .take = take_name},
    {.name = "uuid", .help = "name devices by UUID in the masks", .take = take_uuid},
    {.name = "ranks", .help = "one copy of the command for each device", .take = take_ranks},
    {.name = "rank-mask",
     .argument = "WHICH",
     .choices = rank_mask_names,
     .help = "what a rank sees: all of its replica, or one",
     .take = take_rank_mask},
    {.name = "label", .help = "begin each line of output with its rank", .take = take_label},
    {.name = "inventory",
     .argument = "FILE",
     .help = "the devices of this file instead of the hardware",
     .take = take_inventory},
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
    options->count_model = NULL;
}

int request_options_complete(struct request_options *options, struct berth_error *error)
{
    struct request *request = &options->request;

    if (options->count_model != NULL && request->model != NULL &&
        strcasecmp(options->count_model, request->model) != 0)
        return error_set(error, BERTH_ERROR_INVALID,
                         "model: wanted one, found %s with --gpus and %s with --model",
                         quote(options->count_model).text, quote(request->model).text);
    if (options->count_model != NULL && request->model == NULL) {
        request->model = options->count_model;
        options->count_model = NULL;
    }
    if (!request->ranks && options->rank_mask != RANK_MASK_ALL)
        return error_set(error, BERTH_ERROR_INVALID, "rank-mask: goes with ranks, found none");
    if (!request->ranks && options->label)
        return error_set(error, BERTH_ERROR_INVALID, "label: goes with ranks, found none");
    return request_validate(request, error);
}
