/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of the CUDA double, and the functions for tests.
 */
#include "doubles/cuda_calls.h"

#include <pthread.h>
#include <stdlib.h>

#define RULES_MAX 32
#define NAMES_MAX 64

enum action { ACTION_REFUSE, ACTION_GRUMBLE, ACTION_LIE, ACTION_HOLD };

/* What a call does instead of its normal work. */
struct rule {
    enum action action;
    char name[64];
    int unit;
    int status;
    int64_t number;
    int times;
};

struct count {
    char name[64];
    unsigned count;
};

struct machine machine;
struct primary primaries[MACHINE_UNITS];
bool is_initialised;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static struct rule rules[RULES_MAX];
static struct count counts[NAMES_MAX];
static unsigned starts;
static unsigned held;
static _Thread_local struct stack own_stack;

static void count_call(const char *name)
{
    struct count *count = counts;

    while (count < counts + NAMES_MAX && count->count > 0 && strcmp(count->name, name) != 0)
        count++;
    if (count == counts + NAMES_MAX)
        abort();
    strncpy(count->name, name, sizeof(count->name) - 1);
    count->count++;
}

/* A rule for CUDA_DOUBLE_ANY applies to every unit. */
static struct rule *find_rule(enum action action, const char *name, int unit)
{
    for (struct rule *rule = rules; rule < rules + RULES_MAX; rule++) {
        if (rule->times != 0 && rule->action == action && strcmp(rule->name, name) == 0 &&
            (rule->unit == CUDA_DOUBLE_ANY || rule->unit == unit))
            return rule;
    }
    return NULL;
}

static struct rule *use_rule(enum action action, const char *name, int unit)
{
    struct rule *rule = find_rule(action, name, unit);

    if (rule != NULL && rule->times > 0)
        rule->times--;
    return rule;
}

static int begin(struct call *call, const char *name, int unit)
{
    const struct rule *rule;

    *call = (struct call){0};
    count_call(name);
    if (find_rule(ACTION_HOLD, name, unit) != NULL) {
        held++;
        pthread_cond_broadcast(&change);
        while (find_rule(ACTION_HOLD, name, unit) != NULL)
            pthread_cond_wait(&change, &mutex);
        held--;
    }
    rule = use_rule(ACTION_REFUSE, name, unit);
    if (rule != NULL)
        return rule->status;
    rule = use_rule(ACTION_GRUMBLE, name, unit);
    if (rule != NULL)
        call->grumble = rule->status;
    rule = use_rule(ACTION_LIE, name, unit);
    if (rule != NULL) {
        call->lies = true;
        call->number = rule->number;
    }
    return 0;
}

int call_begin_early(struct call *call, const char *name)
{
    pthread_mutex_lock(&mutex);
    return begin(call, name, CUDA_DOUBLE_ANY);
}

int call_begin(struct call *call, const char *name, int unit)
{
    int status;

    pthread_mutex_lock(&mutex);
    status = begin(call, name, unit);
    return is_initialised ? status : CUDA_ERROR_NOT_INITIALIZED;
}

int call_begin_current(struct call *call, const char *name, struct primary **ret_primary)
{
    int unit;
    int status;

    pthread_mutex_lock(&mutex);
    unit = call_unit_now();
    status = begin(call, name, unit);
    if (!is_initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (status != 0)
        return status;
    if (unit < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *ret_primary = &primaries[unit];
    return primaries[unit].counts.is_active ? primaries[unit].fault
                                            : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

int call_end(const struct call *call, int status)
{
    pthread_mutex_unlock(&mutex);
    return status == 0 ? call->grumble : status;
}

int call_unit(int device)
{
    int unit = -1;

    pthread_mutex_lock(&mutex);
    if (is_initialised && device >= 0 && device < (int)machine.shown)
        unit = (int)machine.order[device];
    pthread_mutex_unlock(&mutex);
    return unit;
}

int call_unit_of_context(const void *context)
{
    for (int unit = 0; unit < MACHINE_UNITS; unit++) {
        if (context == &primaries[unit])
            return unit;
    }
    return -1;
}

struct stack *call_stack(void)
{
    if (own_stack.start != starts)
        own_stack = (struct stack){.start = starts};
    return &own_stack;
}

int call_unit_now(void)
{
    const struct stack *stack = call_stack();

    return stack->depth == 0 ? -1 : (int)(stack->items[stack->depth - 1] - primaries);
}

/* ---- Functions for tests ---- */

static void add_rule(const struct rule *rule, const char *name)
{
    struct rule *place = NULL;

    pthread_mutex_lock(&mutex);
    for (struct rule *other = rules; other < rules + RULES_MAX; other++) {
        if (other->times == 0)
            place = place == NULL ? other : place;
        else if (other->action == rule->action && other->unit == rule->unit &&
                 strcmp(other->name, name) == 0) {
            place = other;
            break;
        }
    }
    if (place == NULL)
        abort();
    *place = *rule;
    strncpy(place->name, name, sizeof(place->name) - 1);
    pthread_mutex_unlock(&mutex);
}

EXPORTED void cuda_double_restart(bool shall_be_initialised)
{
    pthread_mutex_lock(&mutex);
    memset(primaries, 0, sizeof(primaries));
    memset(rules, 0, sizeof(rules));
    memset(counts, 0, sizeof(counts));
    starts++;
    if (shall_be_initialised)
        machine_read(&machine);
    is_initialised = shall_be_initialised && machine.init == 0 && machine.shown > 0;
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&mutex);
}

EXPORTED void cuda_double_refuse(const char *name, int unit, int status, int times)
{
    add_rule(
        &(struct rule){.action = ACTION_REFUSE, .unit = unit, .status = status, .times = times},
        name);
}

EXPORTED void cuda_double_grumble(const char *name, int unit, int status, int times)
{
    add_rule(
        &(struct rule){.action = ACTION_GRUMBLE, .unit = unit, .status = status, .times = times},
        name);
}

EXPORTED void cuda_double_lie(const char *name, int unit, int64_t number, int times)
{
    add_rule(&(struct rule){.action = ACTION_LIE, .unit = unit, .number = number, .times = times},
             name);
}

EXPORTED void cuda_double_fault(int unit, int status)
{
    pthread_mutex_lock(&mutex);
    if (primaries[unit].counts.is_active && primaries[unit].fault == 0)
        primaries[unit].fault = status;
    pthread_mutex_unlock(&mutex);
}

EXPORTED void cuda_double_ruin(int unit, int status)
{
    pthread_mutex_lock(&mutex);
    primaries[unit].ruin = status;
    if (primaries[unit].counts.is_active)
        primaries[unit].fault = status;
    pthread_mutex_unlock(&mutex);
}

EXPORTED void cuda_double_run(int unit, bool is_running)
{
    pthread_mutex_lock(&mutex);
    primaries[unit].is_running = is_running;
    pthread_mutex_unlock(&mutex);
}

EXPORTED void cuda_double_set_memory(int unit, uint64_t total, uint64_t free_bytes)
{
    pthread_mutex_lock(&mutex);
    machine.units[unit].total = total;
    machine.units[unit].free = free_bytes;
    pthread_mutex_unlock(&mutex);
}

EXPORTED struct cuda_double_counts cuda_double_counts(int unit)
{
    struct cuda_double_counts found;

    pthread_mutex_lock(&mutex);
    found = primaries[unit].counts;
    pthread_mutex_unlock(&mutex);
    return found;
}

EXPORTED unsigned cuda_double_calls(const char *name)
{
    unsigned found = 0;

    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < NAMES_MAX; i++) {
        if (counts[i].count > 0 && strcmp(counts[i].name, name) == 0)
            found = counts[i].count;
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

EXPORTED unsigned cuda_double_depth(void)
{
    unsigned depth;

    pthread_mutex_lock(&mutex);
    depth = call_stack()->depth;
    pthread_mutex_unlock(&mutex);
    return depth;
}

EXPORTED void cuda_double_hold(const char *name, int unit)
{
    add_rule(&(struct rule){.action = ACTION_HOLD, .unit = unit, .times = CUDA_DOUBLE_ALWAYS},
             name);
}

EXPORTED void cuda_double_await(unsigned threads)
{
    pthread_mutex_lock(&mutex);
    while (held < threads)
        pthread_cond_wait(&change, &mutex);
    pthread_mutex_unlock(&mutex);
}

EXPORTED void cuda_double_let_go(void)
{
    pthread_mutex_lock(&mutex);
    for (struct rule *rule = rules; rule < rules + RULES_MAX; rule++) {
        if (rule->action == ACTION_HOLD)
            rule->times = 0;
    }
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&mutex);
}
