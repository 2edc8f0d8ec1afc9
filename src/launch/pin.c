/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/pin.h"

#include <errno.h>
#include <sched.h>

#include "base/error.h"
#include "launch/cpus.h"

/* Allocates a set for CPUS_MAX CPUs, more than a plain cpu_set_t holds. */
static cpu_set_t *new_cpu_set(size_t *ret_size)
{
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);

    *ret_size = CPU_ALLOC_SIZE(CPUS_MAX);
    if (set != NULL)
        CPU_ZERO_S(*ret_size, set);
    return set;
}

/* Removes the CPUs that this process may not use. */
static int keep_allowed(struct bitset *cpus, struct berth_error *error)
{
    size_t size;
    cpu_set_t *allowed = new_cpu_set(&size);
    int code = 0;

    if (allowed == NULL)
        return error_set_memory(error);
    if (sched_getaffinity(0, size, allowed) < 0)
        code = error_set_errno(error, errno, "cannot read the CPU affinity");
    bitset_for_each (cpu, cpus) {
        if (!CPU_ISSET_S(cpu, size, allowed))
            bitset_remove(cpus, cpu);
    }
    CPU_FREE(allowed);
    return code;
}

static void append_ids(const struct device *devices, size_t count, struct text *out)
{
    for (size_t i = 0; i < count; i++) {
        text_append(out, i == 0 ? "" : ",");
        text_append(out, device_id_format(devices[i].id).text);
    }
}

static int set_not_found(const struct device *devices, size_t count, const char *state,
                         struct berth_error *error)
{
    struct text ids = {0};
    int code;

    append_ids(devices, count, &ids);
    code = error_set(error, BERTH_ERROR_NOT_FOUND, "the CPUs near %s are %s", text_string(&ids),
                     state);
    text_finish(&ids);
    return code;
}

int pin_choose(const struct device *devices, size_t count, struct bitset *ret_cpus,
               struct berth_error *error)
{
    struct bitset cpus;
    int code = cpus_near(devices, count, &cpus);

    if (code == BERTH_ERROR_MEMORY)
        return error_set_memory(error);
    if (code < 0)
        return set_not_found(devices, count, "not known", error);
    code = keep_allowed(&cpus, error);
    if (code == 0 && bitset_is_empty(&cpus))
        code = set_not_found(devices, count, "not allowed for this process", error);
    if (code == 0)
        *ret_cpus = cpus;
    else
        bitset_finish(&cpus);
    return code;
}

void pin_apply(const struct bitset *cpus)
{
    size_t size;
    cpu_set_t *set = new_cpu_set(&size);

    if (set == NULL)
        return;
    bitset_for_each (cpu, cpus)
        CPU_SET_S(cpu, size, set);
    sched_setaffinity(0, size, set);
    CPU_FREE(set);
}
