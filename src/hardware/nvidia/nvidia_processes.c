/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the processes on a GPU from NVML.
 */
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "hardware/nvidia/nvidia.h"

/* The number of entries in the first attempt, and the maximum number of attempts. */
#define ROOM_DEFAULT 64
#define ATTEMPTS     8

/* A function of the library that lists processes, and the entries that it fills in. */
struct process_listing {
    int(*call) NVML_PROCESSES;
    size_t size; /* of an entry, in bytes */
    bool draws;  /* it lists processes that draw */
};

/* Returns the size of an entry in version 3. Its functions kept their names while the struct grew
 * and shrank again. Other functions of the library show which struct they use: the larger one came
 * with the sizes of protected memory, and went when process details got their own call. */
static size_t size_of_v3(const struct nvml *nvml)
{
    return nvml->protected_memory_sizes != NULL && nvml->process_details == NULL
               ? sizeof(struct nvml_process_wide)
               : sizeof(struct nvml_process_v2);
}

static struct process_listing choose_newest(const struct nvml *nvml, int(*v1) NVML_PROCESSES,
                                            int(*v2) NVML_PROCESSES, int(*v3) NVML_PROCESSES)
{
    if (v3 != NULL)
        return (struct process_listing){.call = v3, .size = size_of_v3(nvml)};
    if (v2 != NULL)
        return (struct process_listing){.call = v2, .size = sizeof(struct nvml_process_v2)};
    return (struct process_listing){.call = v1, .size = sizeof(struct nvml_process_v1)};
}

static int add_use(const struct process_listing *listing, const char *entry,
                   struct nvidia_use_list *uses)
{
    struct nvml_process_v2 process = {.gpu_instance = NVML_NO_INSTANCE,
                                      .compute_instance = NVML_NO_INSTANCE};
    struct nvidia_use *use;

    /* Each version begins with the members of the one before. */
    memcpy(&process, entry,
           listing->size < sizeof(process) ? sizeof(struct nvml_process_v1) : sizeof(process));
    if (process.pid == 0 || process.pid > INT32_MAX)
        return 0;
    use = vector_append(uses);
    if (use == NULL)
        return BERTH_ERROR_MEMORY;
    use->pid = process.pid;
    use->draws = listing->draws;
    use->gpu_instance = process.gpu_instance;
    use->compute_instance = process.compute_instance;
    if (process.memory <= NVIDIA_MEMORY_MAX)
        use->memory = optional_number_of(process.memory);
    return 0;
}

/* Calls the library once. `*room` is the number of entries that fit; it becomes the number that is
 * needed. */
static int try_listing(struct nvidia_query *query, const struct process_listing *listing,
                       unsigned *room, struct nvidia_use_list *uses, bool *ret_is_enough)
{
    unsigned count = *room;
    /* Reserve the largest size for each entry, so that a library with the larger struct stays
     * within it. */
    struct nvml_process_wide *entries = calloc(count, sizeof(*entries));
    int number;
    int code = 0;

    if (entries == NULL)
        return BERTH_ERROR_MEMORY;
    number = listing->call(query->handle, &count, entries);
    *ret_is_enough = number != NVML_ERROR_INSUFFICIENT_SIZE || *room >= DEVICE_PROCESSES_MAX;
    query->lists_processes |= number == NVML_SUCCESS || number == NVML_ERROR_INSUFFICIENT_SIZE;
    if (nvidia_answered(query, number)) {
        for (unsigned i = 0; i < count && i < *room && code == 0; i++)
            code = add_use(listing, (const char *)entries + i * listing->size, uses);
    }
    free(entries);
    /* More processes may have started by the next attempt. */
    *room = count <= *room ? *room * 2 : count <= DEVICE_PROCESSES_MAX - 8 ? count + 8 : count;
    if (*room > DEVICE_PROCESSES_MAX)
        *room = DEVICE_PROCESSES_MAX;
    return code;
}

static int list_processes(struct nvidia_query *query, const struct process_listing *listing,
                          struct nvidia_use_list *uses)
{
    unsigned room = ROOM_DEFAULT;
    bool is_enough = listing->call == NULL || query->lost != 0;
    int code = 0;

    for (int i = 0; i < ATTEMPTS && !is_enough && code == 0; i++)
        code = try_listing(query, listing, &room, uses, &is_enough);
    return code;
}

static int compare_uses(const void *one, const void *other)
{
    const struct nvidia_use *first = one;
    const struct nvidia_use *second = other;

    if (first->pid != second->pid)
        return first->pid < second->pid ? -1 : 1;
    if (first->gpu_instance != second->gpu_instance)
        return first->gpu_instance < second->gpu_instance ? -1 : 1;
    if (first->compute_instance != second->compute_instance)
        return first->compute_instance < second->compute_instance ? -1 : 1;
    return 0;
}

/* Merges the two entries of a process that computes and draws; both have the same memory. */
static void merge_entries(struct nvidia_use_list *uses)
{
    size_t kept = 0;

    if (uses->count == 0)
        return;
    qsort(uses->items, uses->count, sizeof(*uses->items), compare_uses);
    for (size_t i = 1; i < uses->count; i++) {
        struct nvidia_use *last = &uses->items[kept];
        const struct nvidia_use *use = &uses->items[i];

        if (compare_uses(last, use) != 0) {
            uses->items[++kept] = *use;
            continue;
        }
        last->draws = last->draws && use->draws;
        if (use->memory.known && (!last->memory.known || use->memory.value > last->memory.value))
            last->memory = use->memory;
    }
    uses->count = kept + 1;
}

int nvidia_uses_read(struct nvidia_query *query, struct nvidia_use_list *uses,
                     struct berth_error *error)
{
    const struct nvml *nvml = query->nvml;
    /* Clients of MPS compute through its server and have a list of their own. */
    struct process_listing listings[] = {
        choose_newest(nvml, nvml->compute_v1, nvml->compute_v2, nvml->compute_v3),
        choose_newest(nvml, nvml->graphics_v1, nvml->graphics_v2, nvml->graphics_v3),
        choose_newest(nvml, nvml->mps_v1, nvml->mps_v2, nvml->mps_v3),
    };
    int code = 0;

    listings[1].draws = true;
    for (size_t i = 0; i < COUNT(listings) && code == 0; i++)
        code = list_processes(query, &listings[i], uses);
    if (code < 0)
        return error_set_memory(error);
    query->device->hides_processes = !query->lists_processes && query->lost == 0;
    merge_entries(uses);
    return 0;
}

static bool is_of(const struct nvidia_use *use, const struct nvidia_use *instance)
{
    return instance == NULL || (use->gpu_instance == instance->gpu_instance &&
                                use->compute_instance == instance->compute_instance);
}

int nvidia_uses_add(const struct nvidia_use_list *uses, const struct nvidia_use *instance,
                    struct device *device, struct berth_error *error)
{
    const struct nvidia_use *use;
    struct device_process *last = NULL;

    vector_for_each (use, uses) {
        if (!is_of(use, instance) || device->processes.count >= DEVICE_PROCESSES_MAX)
            continue;
        /* Entries are sorted. A process on several instances of a GPU has several entries in a row;
         * their memory is added up. */
        if (last == NULL || last->pid != use->pid) {
            last = vector_append(&device->processes);
            if (last == NULL)
                return error_set_memory(error);
            last->pid = use->pid;
            last->memory = use->memory;
            last->draws = use->draws;
            continue;
        }
        last->draws = last->draws && use->draws;
        if (use->memory.known)
            last->memory = optional_number_of(use->memory.value +
                                              (last->memory.known ? last->memory.value : 0));
    }
    return 0;
}
