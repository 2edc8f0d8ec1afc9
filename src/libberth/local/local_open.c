/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens pools of the hardware, of given devices or of an inventory file.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "engine/policy/policies.h"
#include "launch/masks/inherited_masks.h"
#include "libberth/local/local_pool.h"
#include "libberth/local/local_query.h"
#include "spec/inventory.h"

/* The default interval of a program's own sampling function. */
enum { SAMPLE_INTERVAL = 250000000 };

/* Pools are numbered, so that a lease names its pool. */
static atomic_uint_least32_t last_serial;

static int check_device(const struct berth_device *device, size_t number, struct berth_error *error)
{
    if ((unsigned)device->vendor > BERTH_DRI)
        return error_set(error, BERTH_ERROR_INVALID,
                         "device %zu: vendor: expected one of enum berth_vendor, got %d", number,
                         (int)device->vendor);
    if (device->index > DEVICE_INDEX_MAX ||
        (device->mig != BERTH_NO_MIG && device->mig > DEVICE_INDEX_MAX))
        return error_set(error, BERTH_ERROR_INVALID,
                         "device %zu: expected an index and a MIG number up to %d, got %u and %u",
                         number, DEVICE_INDEX_MAX, device->index, device->mig);
    if (device->mig != BERTH_NO_MIG && device->vendor != BERTH_NVIDIA)
        return error_set(error, BERTH_ERROR_INVALID,
                         "device %zu: mig: only an nvidia device has partitions, got vendor %s",
                         number, vendor_name((enum vendor)device->vendor));
    if (device->memory < 0 && device->memory != BERTH_UNKNOWN)
        return error_set(error, BERTH_ERROR_INVALID,
                         "device %zu: memory: expected bytes or BERTH_UNKNOWN, got %lld", number,
                         (long long)device->memory);
    return 0;
}

static int copy_text(const char *text, char **ret_copy)
{
    if (text == NULL)
        return 0;
    *ret_copy = strdup(text);
    return *ret_copy == NULL ? BERTH_ERROR_MEMORY : 0;
}

/* Sets a partition's parent, its GPU, as an inventory does. */
static int name_parent(struct device *device)
{
    struct device_id whole = device->id;

    if (device->id.mig == DEVICE_NO_MIG)
        return 0;
    whole.mig = DEVICE_NO_MIG;
    return copy_text(device_id_format(whole).text, &device->parent);
}

static int add_device(struct machine *machine, const struct berth_device *from,
                      struct berth_error *error)
{
    struct device *device;
    int code = check_device(from, machine->devices.count, error);

    if (code < 0)
        return code;
    device = vector_append(&machine->devices);
    if (device == NULL)
        return error_set_memory(error);
    device->id = (struct device_id){
        .vendor = (enum vendor)from->vendor, .index = from->index, .mig = from->mig};
    if (from->memory != BERTH_UNKNOWN)
        device->memory_total = optional_number_of((uint64_t)from->memory);
    device->cap = (struct capability){.known = from->cap_major != 0 || from->cap_minor != 0,
                                      .major = from->cap_major,
                                      .minor = from->cap_minor};
    if (copy_text(from->name, &device->name) < 0 || copy_text(from->uuid, &device->uuid) < 0 ||
        name_parent(device) < 0)
        return error_set_memory(error);
    return 0;
}

/* Compares by id, then by slot. Partitions come right before their GPU, since DEVICE_NO_MIG is the
 * largest number. */
static int compare_devices(const void *one, const void *other)
{
    const struct device *a = *(struct device *const *)one;
    const struct device *b = *(struct device *const *)other;

    if (a->id.vendor != b->id.vendor)
        return a->id.vendor < b->id.vendor ? -1 : 1;
    if (a->id.index != b->id.index)
        return a->id.index < b->id.index ? -1 : 1;
    if (a->id.mig != b->id.mig)
        return a->id.mig < b->id.mig ? -1 : 1;
    return (a > b) - (a < b);
}

/* Refuses a device that is listed twice, and marks GPUs whose partitions are listed. */
static int relate_devices(struct machine *machine, struct berth_error *error)
{
    size_t count = machine->devices.count;
    struct device **sorted = calloc(count + 1, sizeof(struct device *));
    int code = 0;

    if (sorted == NULL)
        return error_set_memory(error);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &machine->devices.items[i];
    qsort(sorted, count, sizeof(struct device *), compare_devices);
    for (size_t i = 1; i < count && code == 0; i++) {
        struct device_id earlier = sorted[i - 1]->id;

        if (device_id_equals(earlier, sorted[i]->id))
            code = error_set(error, BERTH_ERROR_INVALID, "device %zu: %s is listed twice",
                             (size_t)(sorted[i] - machine->devices.items),
                             device_id_format(earlier).text);
        sorted[i]->partitioned = earlier.vendor == sorted[i]->id.vendor &&
                                 earlier.index == sorted[i]->id.index &&
                                 sorted[i]->id.mig == DEVICE_NO_MIG;
    }
    free(sorted);
    return code;
}

static int make_machine(const struct berth_device *devices, size_t count,
                        struct machine *ret_machine, struct berth_error *error)
{
    struct machine machine = {0};
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++)
        code = add_device(&machine, &devices[i], error);
    if (code == 0)
        code = relate_devices(&machine, error);
    if (code < 0)
        machine_finish(&machine);
    else
        *ret_machine = machine;
    return code;
}

/* ---- The pool itself ---- */

/* ---- The program's own policy ---- */

static int64_t value_of(struct figure figure)
{
    return figure.known ? figure.value : BERTH_UNKNOWN;
}

static size_t gather_candidates(const struct berth_pool *pool,
                                const struct policy_question *question)
{
    size_t count = 0;

    bitset_for_each (slot, question->candidates) {
        const struct load *load = &question->machine->devices.items[slot].load;
        struct berth_candidate candidate = {
            .slot = slot,
            .load = {.memory_free = value_of(load->memory_free),
                     .utilization = value_of(load->utilization)},
            .avoid = bitset_has(question->avoided, slot),
        };

        if (question->slots != NULL) {
            candidate.queued = question->slots[slot].queued;
            candidate.active = question->slots[slot].active;
            candidate.tenants = question->slots[slot].tenants;
        }
        pool->candidates[count++] = candidate;
    }
    return count;
}

/* Corrects the size of the choice: required slots first, then chosen ones, then the lowest. */
static void complete_choice(const struct berth_pool *pool, const struct policy_question *question,
                            size_t count, struct bitset *ret_chosen)
{
    size_t left = question->count;

    bitset_for_each (slot, question->required) {
        bitset_add(ret_chosen, slot);
        left--;
    }
    for (int chosen = 1; chosen >= 0; chosen--) {
        for (size_t i = 0; i < count && left > 0; i++) {
            size_t slot = pool->candidates[i].slot;

            if (pool->chosen[i] != chosen || bitset_has(ret_chosen, slot))
                continue;
            bitset_add(ret_chosen, slot);
            left--;
        }
    }
}

static int choose_slots(const struct policy *policy, const struct policy_question *question,
                        struct bitset *ret_chosen)
{
    const struct berth_pool *pool = policy->context;
    size_t count = gather_candidates(pool, question);

    memset(pool->chosen, 0, count * sizeof(*pool->chosen));
    pool->choose(pool->choose_data, pool->candidates, count, question->count, pool->chosen);
    complete_choice(pool, question, count, ret_chosen);
    return 0;
}

/* The program's own policy: `choose` of berth_pool_options. Its context is the pool. */
static const struct policy custom_policy = {
    .name = "own",
    .summary = "the program's own choice",
    .choose = choose_slots,
};

/* ---- Creating a pool ---- */

static int read_options(struct berth_pool *pool, const struct berth_pool_options *given,
                        struct engine_settings *ret_settings, struct berth_error *error)
{
    struct berth_pool_options options;
    struct engine_settings settings = {0};
    int code = local_read_options(&options, sizeof(options), given, given == NULL ? 0 : given->size,
                                  error);

    if (code == 0 && (options.sample_interval < 0 || options.grace < 0))
        code = error_set(error, BERTH_ERROR_INVALID,
                         "options: expected sample_interval and grace of 0 ns or more, got less");
    if (code == 0)
        code = policy_find(options.policy, &settings.policy, error);
    if (code < 0)
        return code;
    pool->sample = options.sample;
    pool->sample_data = options.sample_data;
    pool->sample_interval = options.sample_interval;
    if (pool->sample_interval == 0)
        pool->sample_interval = pool->sample == NULL ? PROBE_THREAD_INTERVAL : SAMPLE_INTERVAL;
    pool->expired = options.expired;
    pool->expired_data = options.expired_data;
    pool->choose = options.choose;
    pool->choose_data = options.choose_data;
    pool->custom_policy = custom_policy;
    pool->custom_policy.context = pool;
    if (pool->choose != NULL)
        settings.policy = &pool->custom_policy;
    settings.grace = options.grace;
    *ret_settings = settings;
    return 0;
}

static int make_scratch(struct berth_pool *pool, struct berth_error *error)
{
    size_t count = pool->capacity + 1;

    pool->described = calloc(count, sizeof(*pool->described));
    pool->slots = calloc(count, sizeof(*pool->slots));
    pool->candidates = calloc(count, sizeof(*pool->candidates));
    pool->chosen = calloc(count, sizeof(*pool->chosen));
    if (pool->described == NULL || pool->slots == NULL || pool->candidates == NULL ||
        pool->chosen == NULL || id_map_init(&pool->collectors) < 0)
        return error_set_memory(error);
    return 0;
}

/* Creates a pool that local_pool_free() can free, even if a later step fails. */
static struct berth_pool *create_pool(void)
{
    struct berth_pool *pool = calloc(1, sizeof(*pool));

    if (pool == NULL)
        return NULL;
    pool->generation = atomic_load(&fork_generation);
    pool->serial = atomic_fetch_add(&last_serial, 1) + 1;
    atomic_init(&pool->whole_device.references, 1);
    for (size_t i = 0; i < 2; i++)
        pool->kept_targets[i] = (struct target){.kind = TARGET_KEPT, .has_deadline = i == 1};
    list_init(&pool->arbiters);
    context_sets_init(&pool->context_sets);
    if (notifications_init(&pool->notifications) < 0) {
        free(pool);
        return NULL;
    }
    return pool;
}

/* Initialises the members that need the engine, and starts the pool's threads. */
static int start_pool(struct berth_pool *pool, struct berth_error *error)
{
    enum { TENANTS_MAX = 8 };
    struct engine_request *whole_device;
    int code;

    pool->grants_max = pool->capacity * TENANTS_MAX;
    local_query_describe_slots(pool, pool->described);
    local_pool_subscribe(pool);
    local_pool_advance(pool, clock_now());
    code = compiled_requests_add(pool, NULL, &whole_device, error);
    if (code < 0)
        return code;
    local_pool_publish_full(pool);
    /* A pool without devices never gets any, so nothing needs to be queried. A program that samples
     * its loads needs no probe thread. */
    if (pool->probe_thread.is_open && pool->sample == NULL && pool->capacity > 0)
        return probe_thread_start(pool, error);
    probe_thread_finish(&pool->probe_thread);
    if (pool->sample == NULL || pool->capacity == 0)
        return 0;
    timer_thread_sample(pool);
    lock_take(&pool->lock);
    code = timer_thread_ensure_running(pool, error);
    local_pool_leave(pool);
    return code;
}

/* Opens a pool of the machine. Takes over the machine and the probe thread (NULL: not the
 * hardware), also on failure. */
static int open_machine(struct machine *machine, struct probe_thread *probe_thread,
                        const struct berth_pool_options *options, struct berth_pool **ret_pool,
                        struct berth_error *error)
{
    struct engine_settings settings;
    struct berth_pool *pool = create_pool();
    int code = pool == NULL ? error_set_memory(error) : fork_watch(error);

    if (probe_thread != NULL && pool != NULL) {
        pool->probe_thread = *probe_thread;
        pool->is_hardware = true;
    } else if (probe_thread != NULL) {
        probe_thread_finish(probe_thread);
    }
    lock_prepare();
    if (code == 0)
        lock_favour_first(&pool->lock);
    if (code == 0)
        code = read_options(pool, options, &settings, error);
    if (code == 0) {
        pool->capacity = machine->devices.count;
        code = make_scratch(pool, error);
    }
    if (code == 0)
        code = engine_create(machine, &settings, &pool->engine, error);
    if (code == 0)
        code = start_pool(pool, error);
    machine_finish(machine);
    if (code < 0)
        local_pool_free(pool);
    else
        *ret_pool = pool;
    return code;
}

int berth_pool_open_devices(const struct berth_device *devices, size_t count,
                            const struct berth_pool_options *options, struct berth_pool **ret_pool,
                            struct berth_error *error)
{
    struct machine machine;
    int code = make_machine(devices, count, &machine, error);

    return code < 0 ? code : open_machine(&machine, NULL, options, ret_pool, error);
}

int berth_pool_open_inventory(const char *path, const struct berth_pool_options *options,
                              struct berth_pool **ret_pool, struct berth_error *error)
{
    struct machine machine;
    int code = inventory_read(path, &machine, error);

    return code < 0 ? code : open_machine(&machine, NULL, options, ret_pool, error);
}

int berth_pool_open(const struct berth_pool_options *options, struct berth_pool **ret_pool,
                    struct berth_error *error)
{
    const char *inventory = getenv("BERTH_INVENTORY");
    bool is_real = inventory == NULL || *inventory == '\0';
    struct probe_thread probe_thread = {0};
    struct machine machine = {0};
    int code = is_real ? probe_thread_open(&probe_thread, &machine, error)
                       : inventory_read(inventory, &machine, error);

    if (code == 0)
        code = inherited_masks_narrow(environ, &machine, error);
    if (code == 0)
        return open_machine(&machine, is_real ? &probe_thread : NULL, options, ret_pool, error);
    probe_thread_finish(&probe_thread);
    machine_finish(&machine);
    return code;
}
