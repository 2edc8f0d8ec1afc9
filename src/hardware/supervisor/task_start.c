/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/supervisor/task_start.h"

#include "hardware/supervisor/supervisor_internal.h"

/* A process is described at most this often for one request. */
enum { ATTEMPTS_MAX = 3 };

void task_start(struct task_flow *flow, struct task *task, const struct step *step)
{
    if (task->waits || task->runs)
        return;
    task->carried = false;
    task_flow_note_error(flow, workers_add_task(&flow->workers, task, step));
}

static bool is_requested(const struct task_flow *flow, const struct cached_device *cached)
{
    const struct device_id_list *only = &flow->request.only;

    for (size_t i = 0; i < device_cache_count_findings(cached); i++) {
        if (device_id_list_has(only, device_cache_finding_at(cached, i)->device->id))
            return true;
    }
    return only->count == 0;
}

void task_start_read(struct task_flow *flow, struct cached_device *cached)
{
    struct step step = {
        .kind = cached->read.kind,
        .vendor = cached->read.vendor,
        .about = {.items = &cached->listed, .count = 1},
    };

    if (cached->requested == flow->serial ||
        (cached->failure != NULL && flow->now < cached->retry_at))
        return;
    cached->requested = flow->serial;
    task_start(flow, &cached->read, &step);
}

void task_start_reads(struct task_flow *flow, struct cached_vendor *vendor)
{
    for (size_t i = 0; i < vendor->devices.count; i++) {
        if (is_requested(flow, vendor->devices.items[i]))
            task_start_read(flow, vendor->devices.items[i]);
    }
}

/* Adds the last answer of each candidate, or the bare candidate if it has never answered. Leaves
 * out a candidate that does not exist any more. The list points into the cache. */
static int collect_candidates(const struct cached_vendor *vendor, struct finding_list *ret_list)
{
    for (size_t i = 0; i < vendor->candidates.count; i++) {
        const struct cached_device *candidate = vendor->candidates.items[i];
        struct device_finding *found;

        if (candidate->last.count == 0 && candidate->failure == NULL && !candidate->read.runs)
            continue;
        found = vector_append(ret_list);
        if (found == NULL)
            return BERTH_ERROR_MEMORY;
        *found = *device_cache_finding_at(candidate, 0);
    }
    return 0;
}

void task_start_list(struct task_flow *flow, struct cached_vendor *vendor)
{
    struct step step = {.kind = STEP_LIST, .vendor = vendor->table->vendor};

    if (!vendor->list_is_due || vendor->list.runs || device_cache_is_listing(vendor))
        return;
    vendor->list_is_due = false;
    task_flow_note_error(flow, collect_candidates(vendor, &step.about));
    task_start(flow, &vendor->list, &step);
    vector_finish(&step.about);
}

/* Adds the devices that could be read; the others might hang again. The list points into the
 * cache. */
static int collect_linkable(const struct cached_vendor *vendor, struct finding_list *ret_list,
                            struct device_id_list *ret_ids)
{
    for (size_t i = 0; i < vendor->devices.count; i++) {
        const struct cached_device *cached = vendor->devices.items[i];

        for (size_t j = 0; j < cached->last.count && cached->failure == NULL && !cached->read.runs;
             j++) {
            struct device_finding *found = vector_append(ret_list);
            struct device_id *id = found == NULL ? NULL : vector_append(ret_ids);

            if (id == NULL)
                return BERTH_ERROR_MEMORY;
            *found = cached->last.items[j];
            *id = found->device->id;
        }
    }
    return 0;
}

void task_start_links(struct task_flow *flow, struct cached_vendor *vendor)
{
    struct step step = {.kind = STEP_LINKS, .vendor = vendor->table->vendor};
    struct device_id_list ids = {0};
    bool is_early = vendor->table->links == NULL || device_cache_is_listing(vendor) ||
                    vendor->links.waits || vendor->links.runs;

    for (size_t i = 0; i < vendor->devices.count; i++)
        is_early = is_early || workers_is_busy(&vendor->devices.items[i]->read);
    if (is_early)
        return;
    task_flow_note_error(flow, collect_linkable(vendor, &step.about, &ids));
    if (!device_id_list_equals(&ids, &vendor->linked)) {
        vector_finish(&vendor->cached_links);
        if (ids.count > 1)
            task_start(flow, &vendor->links, &step);
        vector_finish(&vendor->linked);
        vendor->linked = ids;
        ids = (struct device_id_list){0};
    }
    vector_finish(&ids);
    vector_finish(&step.about);
}

/* Returns whether only the kernel's own figures of the process are read. */
static bool is_avoided(const struct task_flow *flow, uint64_t pid)
{
    struct optional_number uid;

    if (stalled_list_find(&flow->stalled, pid) != NULL)
        return true;
    if (flow->stalled.count <= STALLED_OF_USER_MAX)
        return false;
    uid = stalled_uid(pid);
    return uid.known && stalled_list_is_full_of(&flow->stalled, (uint32_t)uid.value);
}

void task_start_description(struct task_flow *flow, struct cached_process *process)
{
    struct device_process one = {.pid = process->one.items[0].pid};
    struct device device = {
        .id = {.vendor = VENDOR_DRI, .mig = DEVICE_NO_MIG},
        .processes = {.items = &one, .count = 1},
    };
    struct device_finding about = {.device = &device};
    const struct step step = {.kind = STEP_DESCRIBE, .about = {.items = &about, .count = 1}};
    const struct stalled_entry *stalled = stalled_list_find(&flow->stalled, one.pid);

    if ((stalled != NULL && stalled->wholly) || process->attempts >= ATTEMPTS_MAX) {
        device_process_finish(&process->one.items[0]);
        process->one.items[0] =
            (struct device_process){.pid = one.pid, .uid = stalled_uid(one.pid), .undecided = true};
        return;
    }
    process->attempts++;
    one.undecided = is_avoided(flow, one.pid);
    task_start(flow, &process->describe, &step);
}

static void start_describe(struct task_flow *flow, uint64_t pid)
{
    struct cached_process *process = device_cache_get_process(&flow->cache, pid);

    if (process == NULL) {
        flow->lost = true;
        return;
    }
    if (process->requested == flow->serial)
        return;
    process->requested = flow->serial;
    process->attempts = 0;
    if (!process->describe.waits && !process->describe.runs)
        task_start_description(flow, process);
}

void task_start_scan(struct task_flow *flow)
{
    struct step step = {.kind = STEP_SCAN};

    flow->scans++;
    task_flow_note_error(flow, stalled_list_avoid(&flow->stalled, &step.avoided));
    step.avoided.everybody |= flow->scans >= TASK_START_SCANS_MAX;
    task_start(flow, &flow->cache.scan, &step);
    proc_watch_finish_avoided(&step.avoided);
}

void task_start_describing(struct task_flow *flow, const struct finding_list *list)
{
    const struct device_process *process;
    const struct device_finding *found;

    if (flow->request.without_processes)
        return;
    vector_for_each (found, list) {
        vector_for_each (process, &found->device->processes)
            start_describe(flow, process->pid);
    }
}
