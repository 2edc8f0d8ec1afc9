/* SPDX-License-Identifier: Apache-2.0 */
#include "promises/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/quantity.h"

void *need_memory(void *memory)
{
    if (memory == NULL) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return memory;
}

static char *copy(const char *string)
{
    return string == NULL ? NULL : need_memory(strdup(string));
}

void history_init(struct history *history, uint64_t seed, size_t capacity)
{
    *history = (struct history){.seed = seed, .capacity = capacity};
    history->operations = need_memory(calloc(capacity, sizeof(*history->operations)));
}

void history_finish(struct history *history)
{
    free(history->operations);
    *history = (struct history){0};
}

struct device plan_device(const struct device_plan *plan)
{
    struct device device = {
        .id = plan->id,
        .name = copy(plan->name),
        .uuid = copy(plan->uuid),
        .parent = copy(plan->parent),
        .memory_total = plan->memory,
        .cap = plan->cap,
        .health = plan->health,
        .partitioned = plan->partitioned,
        .host = plan->host,
    };

    if (plan->numa >= 0)
        device.numa = optional_number_of((uint64_t)plan->numa);
    if (plan->free_known)
        device.load.memory_free = load_figure_declared((int64_t)plan->free);
    return device;
}

struct machine plan_machine(const struct plan *plan, unsigned count)
{
    struct machine machine = {0};

    for (unsigned host = 0; host < plan->hosts && plan->hosts > 1; host++)
        need_memory(vector_append(&machine.hosts));
    for (unsigned slot = 0; slot < count; slot++) {
        struct device *device = need_memory(vector_append(&machine.devices));

        *device = plan_device(&plan->devices[slot]);
    }
    return machine;
}

void plan_ids(const struct plan *plan, slot_set slots, struct device_id_list *list)
{
    for (unsigned slot = 0; slot < plan->planned; slot++) {
        if ((slots >> slot & 1) != 0) {
            struct device_id *id = need_memory(vector_append(list));

            *id = plan->devices[slot].id;
        }
    }
}

/* Names a directory. Pipe and log directories have the same names on purpose: the engine must not
 * confuse them. */
static char *directory_name(uint32_t number)
{
    char name[24];

    snprintf(name, sizeof(name), "/mps/%" PRIu32, number);
    return number == 0 ? NULL : copy(name);
}

void asking_request(const struct asking *asking, const struct plan *plan, uint32_t number,
                    struct request *ret_request)
{
    char name[24];

    request_init(ret_request);
    ret_request->gpus = asking->gpus;
    ret_request->replicas = asking->replicas;
    ret_request->vendor_rule = asking->vendor_rule;
    ret_request->vendor = asking->vendor;
    ret_request->model = copy(asking->model);
    ret_request->min_free = asking->min_free;
    ret_request->min_memory = asking->min_memory;
    ret_request->min_cap = asking->min_cap;
    ret_request->sharing = asking->sharing;
    ret_request->share = asking->share;
    ret_request->memory = asking->memory;
    ret_request->mps_pipe_dir = directory_name(asking->pipe);
    ret_request->mps_log_dir = directory_name(asking->log);
    ret_request->scheduling = asking->scheduling;
    ret_request->priority = asking->priority;
    ret_request->policy = copy(asking->policy);
    ret_request->affinity = copy(asking->affinity);
    ret_request->opportunistic = asking->opportunistic;
    ret_request->ranks = asking->ranks;
    ret_request->time = asking->time;
    snprintf(name, sizeof(name), "operation %" PRIu32, number);
    ret_request->name = copy(name);
    plan_ids(plan, asking->wanted, &ret_request->wanted);
    plan_ids(plan, asking->avoided, &ret_request->avoided);
}

uint32_t asking_claims(const struct asking *asking)
{
    return asking->scheduling == SCHEDULING_BEST_EFFORT ? asking->replicas : 1;
}

/* ---- Descriptions ---- */

void device_plan_describe(const struct device_plan *device, unsigned slot, struct text *out)
{
    text_append_format(out, "  slot %u: %s %s", slot, device_id_format(device->id).text,
                       device->name == NULL ? "(unknown model)" : device->name);
    if (device->memory.known)
        text_append_format(out, ", %s", quantity_format_size(device->memory.value).text);
    if (device->free_known)
        text_append_format(out, ", %s free", quantity_format_size(device->free).text);
    if (device->cap.known)
        text_append_format(out, ", capability %s", capability_format(device->cap).text);
    if (device->host > 0)
        text_append_format(out, ", host %" PRIu32, device->host);
    if (device->partitioned)
        text_append(out, ", partitioned");
    if (device->health == HEALTH_SICK)
        text_append(out, ", sick");
    text_append(out, "\n");
}

static void describe_slots(const char *lead, slot_set slots, struct text *out)
{
    const char *separator = lead;

    for (unsigned slot = 0; slot < SLOTS_MAX; slot++) {
        if ((slots >> slot & 1) != 0) {
            text_append_format(out, "%s%u", separator, slot);
            separator = ",";
        }
    }
}

static void describe_party(const struct asking *asking, struct text *out)
{
    text_append_format(out, "; by uid %" PRIu32, asking->uid);
    for (uint32_t i = 0; i < asking->group_count; i++)
        text_append_format(out, "%s%" PRIu32, i == 0 ? " of groups " : ",", asking->groups[i]);
    if (asking->masked)
        describe_slots(asking->mask == 0 ? "" : ", mask of slots ", asking->mask, out);
    if (asking->parent.operation != 0)
        text_append_format(out, ", within the lease of %" PRIu32 ".%" PRIu32,
                           asking->parent.operation, asking->parent.part);
}

static void describe_asking(const struct operation *operation, struct text *out)
{
    const struct asking *asking = &operation->asking;
    const struct plan none = {0};
    struct request request;

    asking_request(asking, &none, operation->number, &request);
    request_describe(&request, out);
    describe_slots(", only slots ", asking->wanted, out);
    describe_slots(", avoids slots ", asking->avoided, out);
    if (asking->scheduling != SCHEDULING_UNSAID)
        text_append_format(out, ", %s", choice_name(scheduling_names, (int)asking->scheduling));
    if (asking->priority != PRIORITY_UNSAID)
        text_append_format(out, ", priority %s",
                           choice_name(priority_names, (int)asking->priority));
    if (asking->opportunistic)
        text_append(out, ", opportunistic");
    if (asking->ranks)
        text_append(out, ", ranks");
    if (asking->pipe != 0)
        text_append_format(out, ", pipes in %" PRIu32, asking->pipe);
    if (asking->log != 0)
        text_append_format(out, ", logs in %" PRIu32, asking->log);
    if (asking->policy != NULL)
        text_append_format(out, ", policy %s", asking->policy);
    if (asking->time.known)
        text_append_format(out, " (time %" PRIu64 ")", asking->time.value);
    describe_party(asking, out);
    request_finish(&request);
    if (operation->known)
        text_append_format(out, "; times out after %" PRId64, operation->amount);
    if (operation->keep)
        text_append(out, "; the request stays open");
}

static const char *const operation_names[] = {
    [OPERATION_CLAIM] = "claim",
    [OPERATION_TRY] = "try",
    [OPERATION_GIVE] = "give",
    [OPERATION_PICK] = "pick",
    [OPERATION_AGAIN] = "claim again with the request of",
    [OPERATION_CLOSE] = "close the request of",
    [OPERATION_CANCEL] = "cancel",
    [OPERATION_RELEASE] = "release",
    [OPERATION_DRAIN] = "drain (the holder died)",
    [OPERATION_VACATED] = "vacated",
    [OPERATION_EXTEND] = "extend",
    [OPERATION_RETURN] = "return",
    [OPERATION_ADVANCE] = "advance the time",
    [OPERATION_BLOCK] = "block",
    [OPERATION_UNBLOCK] = "unblock",
    [OPERATION_HEALTH] = "health",
    [OPERATION_GONE] = "device gone",
    [OPERATION_BACK] = "device added",
    [OPERATION_LOAD] = "free memory",
    [OPERATION_WORK] = "work",
    [OPERATION_WEIGHT] = "weight",
    [OPERATION_LIMIT_USER] = "limit of user",
    [OPERATION_LIMIT_GROUP] = "limit of group",
    [OPERATION_PREFER] = "prefer",
    [OPERATION_RESERVE] = "reserve",
    [OPERATION_RULES] = "rules:",
    [OPERATION_RESTORE] = "restore from the events",
};

static void describe_rules(const struct rules_plan *rules, struct text *out)
{
    text_append_format(out, " %" PRIu32 " time-slice and %" PRIu32 " mps tenants",
                       rules->time_slice_tenants, rules->mps_tenants);
    text_append_format(out, ", age_step %" PRId64 ", grace %" PRId64 ", policy %s", rules->age_step,
                       rules->grace, rules->policy == NULL ? "-" : rules->policy);
}

static void describe_rest(const struct operation *operation, struct text *out)
{
    switch (operation->kind) {
    case OPERATION_BLOCK:
    case OPERATION_UNBLOCK:
    case OPERATION_HEALTH:
        text_append_format(out, " slot %" PRIu32 " %s %" PRIu32, operation->slot,
                           operation->kind == OPERATION_HEALTH ? "is" : "reason", operation->what);
        break;
    case OPERATION_GONE:
    case OPERATION_BACK:
        text_append_format(out, " slot %" PRIu32, operation->slot);
        break;
    case OPERATION_LOAD:
    case OPERATION_WORK:
    case OPERATION_WEIGHT:
        text_append_format(out, " slot %" PRIu32 ": ", operation->slot);
        break;
    case OPERATION_LIMIT_USER:
    case OPERATION_LIMIT_GROUP:
        text_append_format(out, " %" PRIu32 ": ", operation->what);
        break;
    case OPERATION_PREFER:
        text_append_format(out, " slot %" PRIu32 " as %" PRIu32, operation->slot, operation->what);
        return;
    case OPERATION_RESERVE:
        text_append_format(out, " slot %" PRIu32, operation->slot);
        if (operation->known)
            text_append_format(out, " for users %#x, groups %#x", operation->people.users,
                               operation->people.groups);
        return;
    case OPERATION_RULES:
        describe_rules(&operation->rules, out);
        return;
    case OPERATION_RETURN:
        text_append(out, operation->what != 0 ? ", its first slot drained" : "");
        text_append(out, operation->known ? ", times out after " : "");
        break;
    default:
        break;
    }
    if (operation->kind == OPERATION_ADVANCE)
        text_append_format(out, " by %" PRId64 "%s", operation->amount,
                           operation->known ? ", moment by moment" : "");
    else if (operation->known && operation->kind == OPERATION_EXTEND)
        text_append_format(out, " to now plus %" PRId64, operation->amount);
    else if (operation->known && operation->kind == OPERATION_RESTORE)
        text_append(out, " of a dump");
    else if (operation->known)
        text_append_format(out, "%" PRId64, operation->amount);
    else if (operation->kind == OPERATION_EXTEND)
        text_append(out, " without a limit");
    else if (operation->kind >= OPERATION_LOAD && operation->kind <= OPERATION_LIMIT_GROUP)
        text_append(out, "none");
}

void operation_describe(const struct operation *operation, struct text *out)
{
    text_append_format(out, "  %" PRIu32 ": %s", operation->number,
                       operation_names[operation->kind]);
    if (operation->reference.operation != 0)
        text_append_format(out, " %" PRIu32 ".%" PRIu32, operation->reference.operation,
                           operation->reference.part);
    if (operation->kind <= OPERATION_PICK) {
        text_append(out, " ");
        describe_slots("slots ", operation->slots, out);
        text_append(out, operation->slots == 0 ? "" : ": ");
        describe_asking(operation, out);
    } else {
        describe_rest(operation, out);
    }
    text_append(out, "\n");
}

void history_describe(const struct history *history, struct text *out)
{
    const struct plan *plan = &history->plan;

    text_append_format(out, "seed %" PRIu64 ": %u of %u devices at the start", history->seed,
                       plan->initial, plan->planned);
    text_append(out, ",");
    describe_rules(&plan->rules, out);
    text_append(out, "\n");
    for (unsigned slot = 0; slot < plan->planned; slot++)
        device_plan_describe(&plan->devices[slot], slot, out);
    for (size_t i = 0; i < history->count; i++)
        operation_describe(&history->operations[i], out);
}
