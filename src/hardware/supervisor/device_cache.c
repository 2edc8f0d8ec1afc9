/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/supervisor/device_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"

static void finish_finding(struct device_finding *found)
{
    if (found->device != NULL)
        device_finish(found->device);
    free(found->device);
    free(found->key);
    free(found->path);
    *found = (struct device_finding){0};
}

void device_cache_free_device(struct cached_device *cached)
{
    if (cached == NULL)
        return;
    text_finish(&cached->read.packet);
    finish_finding(&cached->listed);
    finding_list_finish(&cached->last);
    machine_report_finish_problems(&cached->problems);
    free(cached->failure);
    free(cached);
}

static void finish_devices(struct cached_device_list *devices)
{
    for (size_t i = 0; i < devices->count; i++)
        device_cache_free_device(devices->items[i]);
    vector_finish(devices);
}

static void finish_vendor(struct cached_vendor *vendor)
{
    finish_devices(&vendor->candidates);
    finish_devices(&vendor->devices);
    text_finish(&vendor->list_candidates.packet);
    text_finish(&vendor->list.packet);
    text_finish(&vendor->links.packet);
    machine_report_finish_problems(&vendor->problems);
    vector_finish(&vendor->linked);
    vector_finish(&vendor->cached_links);
    free(vendor->list_failure);
    free(vendor->links_failure);
}

void device_cache_free_process(struct cached_process *process)
{
    if (process == NULL)
        return;
    text_finish(&process->describe.packet);
    device_process_list_finish(&process->one);
    free(process);
}

/* ---- The cache ---- */

/* Scanning /proc takes long on a machine with many processes. */
enum { PROCESSES_TIMEOUT = 300 * 1000 * 1000 };

void device_cache_init(struct device_cache *cache, const struct vendor_table *const *tables)
{
    *cache = (struct device_cache){
        .scan = {.kind = STEP_SCAN, .lane = LANE_PROCESSES, .timeout = PROCESSES_TIMEOUT}};
    for (size_t i = 0; tables[i] != NULL; i++) {
        struct cached_vendor *vendor = &cache->vendors[cache->vendor_count++];
        struct task task = {
            .vendor = tables[i]->vendor,
            .lane = tables[i]->lane,
            .timeout = tables[i]->timeout,
        };

        vendor->table = tables[i];
        vendor->list_candidates = vendor->list = vendor->links = task;
        vendor->list_candidates.kind = STEP_LIST_CANDIDATES;
        vendor->list.kind = STEP_LIST;
        vendor->links.kind = STEP_LINKS;
    }
}

void device_cache_finish(struct device_cache *cache)
{
    for (size_t i = 0; i < cache->vendor_count; i++)
        finish_vendor(&cache->vendors[i]);
    for (size_t i = 0; i < cache->processes.count; i++)
        device_cache_free_process(cache->processes.items[i]);
    vector_finish(&cache->processes);
    text_finish(&cache->scan.packet);
    findings_finish(&cache->scanned);
    free(cache->scan_failure);
}

void device_cache_each_task(struct device_cache *cache, void (*visit)(void *context, struct task *),
                            void *context)
{
    for (size_t i = 0; i < cache->vendor_count; i++) {
        struct cached_vendor *vendor = &cache->vendors[i];

        visit(context, &vendor->list_candidates);
        for (size_t j = 0; j < vendor->candidates.count; j++)
            visit(context, &vendor->candidates.items[j]->read);
        visit(context, &vendor->list);
        visit(context, &vendor->links);
        for (size_t j = 0; j < vendor->devices.count; j++)
            visit(context, &vendor->devices.items[j]->read);
    }
    visit(context, &cache->scan);
    for (size_t i = 0; i < cache->processes.count; i++)
        visit(context, &cache->processes.items[i]->describe);
}

struct cached_process *device_cache_get_process(struct device_cache *cache, uint64_t pid)
{
    struct cached_process *process = NULL;
    struct cached_process **place;

    for (size_t i = 0; i < cache->processes.count; i++) {
        if (cache->processes.items[i]->one.items[0].pid == pid)
            return cache->processes.items[i];
    }
    process = calloc(1, sizeof(*process));
    if (process == NULL || device_process_find_or_add(&process->one, pid) == NULL) {
        free(process);
        return NULL;
    }
    process->describe = (struct task){
        .kind = STEP_DESCRIBE, .lane = LANE_DESCRIPTIONS, .timeout = PROCESSES_TIMEOUT};
    place = vector_append(&cache->processes);
    if (place == NULL) {
        device_cache_free_process(process);
        return NULL;
    }
    *place = process;
    return process;
}

int device_cache_set_failure(char **failure, const char *message)
{
    char *copy = message == NULL ? NULL : strdup(message);

    if (message != NULL && copy == NULL)
        return BERTH_ERROR_MEMORY;
    free(*failure);
    *failure = copy;
    return 0;
}

size_t device_cache_count_findings(const struct cached_device *cached)
{
    return cached->last.count > 0 ? cached->last.count : 1;
}

const struct device_finding *device_cache_finding_at(const struct cached_device *cached,
                                                     size_t place)
{
    return cached->last.count > 0 ? &cached->last.items[place] : &cached->listed;
}

/* ---- Comparing ---- */

/* Returns whether both are the same device. The same id with another key is another device: the
 * cached facts do not apply to it. */
static bool is_same_device(const struct device_finding *one, const struct device_finding *other)
{
    return device_id_equals(one->device->id, other->device->id) &&
           text_equals(one->key, other->key);
}

static struct cached_device *find_device(const struct cached_device_list *devices,
                                         const struct device_finding *found)
{
    for (size_t i = 0; i < devices->count; i++) {
        if (is_same_device(&devices->items[i]->listed, found))
            return devices->items[i];
    }
    return NULL;
}

static struct cached_device *add_device(const struct vendor_table *table, enum step_kind kind,
                                        struct cached_device_list *devices)
{
    struct cached_device *cached = calloc(1, sizeof(*cached));
    struct cached_device **place = cached == NULL ? NULL : vector_append(devices);

    if (place == NULL) {
        free(cached);
        return NULL;
    }
    cached->read = (struct task){
        .kind = kind,
        .vendor = table->vendor,
        .lane = table->lane,
        .timeout = table->timeout,
    };
    *place = cached;
    return cached;
}

int device_cache_update(struct cached_vendor *vendor, enum step_kind kind,
                        struct finding_list *list,
                        void (*gone)(void *context, struct cached_device *cached), void *context)
{
    struct cached_device_list *devices =
        kind == STEP_READ_CANDIDATE ? &vendor->candidates : &vendor->devices;
    struct device_finding *found;
    int code = 0;

    for (size_t i = 0; i < devices->count; i++)
        devices->items[i]->marked = false;
    vector_for_each (found, list) {
        struct cached_device *cached = find_device(devices, found);

        if (cached == NULL)
            cached = add_device(vendor->table, kind, devices);
        if (cached == NULL) {
            code = BERTH_ERROR_MEMORY;
            continue;
        }
        cached->marked = true;
        finish_finding(&cached->listed);
        cached->listed = *found;
        *found = (struct device_finding){0};
    }
    finding_list_finish(list);
    for (size_t i = devices->count; i-- > 0;) {
        struct cached_device *cached = devices->items[i];

        if (cached->marked || code < 0)
            continue;
        memmove(&devices->items[i], &devices->items[i + 1],
                (devices->count - i - 1) * sizeof(struct cached_device *));
        devices->count--;
        gone(context, cached);
    }
    return code;
}

bool device_cache_is_listing(const struct cached_vendor *vendor)
{
    bool is_listing = workers_is_busy(&vendor->list) || workers_is_busy(&vendor->list_candidates);

    for (size_t i = 0; i < vendor->candidates.count && !is_listing; i++)
        is_listing = workers_is_busy(&vendor->candidates.items[i]->read);
    return is_listing;
}
