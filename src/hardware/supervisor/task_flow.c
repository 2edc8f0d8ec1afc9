/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/supervisor/supervisor_internal.h"

#include "hardware/supervisor/task_start.h"
#include "model/machine/occupancy.h"

/* A device that hung or crashed its worker is read again after this time. */
#define RETRY_AFTER INT64_C(30000000000)

void task_flow_note_error(struct task_flow *flow, int code)
{
    if (code < 0)
        flow->lost = true;
}

/* ---- Applying results ---- */

static struct cached_vendor *find_vendor(struct task_flow *flow, enum vendor vendor)
{
    for (size_t i = 0; i < flow->cache.vendor_count; i++) {
        if (flow->cache.vendors[i].table->vendor == vendor)
            return &flow->cache.vendors[i];
    }
    return NULL;
}

/* Returns when to retry a failed step: at once, unless it hung or crashed. */
static int64_t retry_time(const struct task_flow *flow, const struct step_result *result)
{
    return result->lost ? flow->now + RETRY_AFTER : flow->now;
}

static void forget_device(void *context, struct cached_device *cached)
{
    struct task_flow *flow = context;

    workers_cancel_task(&flow->workers, &cached->read);
    device_cache_free_device(cached);
}

static void replace_problems(struct problem_list *place, struct problem_list *from)
{
    machine_report_finish_problems(place);
    *place = *from;
    *from = (struct problem_list){0};
}

/* Records whether the vendor's devices or candidates could be listed. */
static void note_list_result(struct task_flow *flow, struct cached_vendor *vendor,
                             const struct step_result *result)
{
    const char *failure = result->code == 0 ? NULL : result->message;

    if (result->code < 0)
        vendor->list_retry_at = retry_time(flow, result);
    task_flow_note_error(flow, device_cache_set_failure(&vendor->list_failure, failure));
}

static void apply_candidates(struct task_flow *flow, struct cached_vendor *vendor,
                             struct step_result *result)
{
    note_list_result(flow, vendor, result);
    if (result->code < 0) {
        vendor->listed = false;
        task_start_reads(flow, vendor);
        task_start_links(flow, vendor);
        return;
    }
    task_flow_note_error(flow, device_cache_update(vendor, STEP_READ_CANDIDATE,
                                                   &result->findings.found, forget_device, flow));
    for (size_t i = 0; i < vendor->candidates.count; i++)
        task_start_read(flow, vendor->candidates.items[i]);
    vendor->list_is_due = true;
    task_start_list(flow, vendor);
}

static void apply_candidate(struct task_flow *flow, struct cached_vendor *vendor,
                            struct cached_device *candidate, struct step_result *result)
{
    task_flow_note_error(flow, device_cache_set_failure(&candidate->failure,
                                                        result->code < 0 ? result->message : NULL));
    if (result->code < 0) {
        candidate->retry_at = retry_time(flow, result);
    } else {
        finding_list_finish(&candidate->last);
        candidate->last = result->findings.found;
        result->findings.found = (struct finding_list){0};
    }
    /* A late answer changes a list that was made without it. */
    vendor->list_is_due = true;
    task_start_list(flow, vendor);
}

static void apply_list(struct task_flow *flow, struct cached_vendor *vendor,
                       struct step_result *result)
{
    struct device_finding *found;

    vendor->listed = result->code == 0;
    note_list_result(flow, vendor, result);
    if (result->code == 0) {
        vector_for_each (found, &result->findings.found)
            found->device->id.vendor = vendor->table->vendor;
        replace_problems(&vendor->problems, &result->findings.problems);
        task_flow_note_error(flow, device_cache_update(vendor, STEP_READ, &result->findings.found,
                                                       forget_device, flow));
    }
    task_start_list(flow, vendor);
    if (!device_cache_is_listing(vendor))
        task_start_reads(flow, vendor);
    task_start_links(flow, vendor);
}

/* Returns whether the answer is about the device and its partitions. */
static bool is_valid_answer(const struct finding_list *list, const struct cached_device *cached)
{
    const struct device_finding *found;

    vector_for_each (found, list) {
        if (found->device->id.vendor != cached->read.vendor)
            return false;
    }
    return list->count > 0 &&
           device_id_equals(list->items[0].device->id, cached->listed.device->id);
}

/* Keeps the least memory that was seen in use, for the device and each of its partitions. */
static void carry_idle_memory(const struct finding_list *from, struct finding_list *to)
{
    struct device_finding *found;

    vector_for_each (found, to) {
        struct optional_number before = {0};

        for (size_t i = 0; i < from->count; i++) {
            if (device_id_equals(from->items[i].device->id, found->device->id))
                before = from->items[i].device->memory_idle;
        }
        occupancy_note_idle(found->device, before);
    }
}

static void apply_read(struct task_flow *flow, struct cached_vendor *vendor,
                       struct cached_device *cached, struct step_result *result)
{
    const char *failure = result->code < 0 ? result->message : NULL;

    if (failure == NULL && !is_valid_answer(&result->findings.found, cached))
        failure = "gave an invalid answer";
    task_flow_note_error(flow, device_cache_set_failure(&cached->failure, failure));
    if (failure == NULL) {
        carry_idle_memory(&cached->last, &result->findings.found);
        finding_list_finish(&cached->last);
        cached->last = result->findings.found;
        result->findings.found = (struct finding_list){0};
        task_start_describing(flow, &cached->last);
    } else {
        cached->retry_at = retry_time(flow, result);
    }
    replace_problems(&cached->problems, &result->findings.problems);
    task_start_links(flow, vendor);
}

static void apply_links(struct task_flow *flow, struct cached_vendor *vendor,
                        struct step_result *result)
{
    const struct link *link;

    task_flow_note_error(flow, device_cache_set_failure(&vendor->links_failure,
                                                        result->code < 0 ? result->message : NULL));
    vector_finish(&vendor->cached_links);
    vector_for_each (link, &result->findings.links) {
        struct cached_link *cached = vector_append(&vendor->cached_links);

        if (cached == NULL) {
            flow->lost = true;
            return;
        }
        /* task_codec_decode_result() has checked these positions. */
        cached->between[0] = vendor->linked.items[link->between[0]];
        cached->between[1] = vendor->linked.items[link->between[1]];
        cached->kind = link->kind;
        cached->lanes = link->lanes;
    }
    /* A slow device may have answered in the meantime. */
    task_start_links(flow, vendor);
}

static void apply_scan(struct task_flow *flow, struct step_result *result)
{
    struct device_cache *cache = &flow->cache;

    if (result->stalled_at != 0) {
        stalled_list_add(&flow->stalled, result->stalled_at);
        if (flow->scans < TASK_START_SCANS_MAX) {
            task_start_scan(flow);
            return;
        }
    }
    task_flow_note_error(flow, device_cache_set_failure(&cache->scan_failure,
                                                        result->code < 0 ? result->message : NULL));
    if (result->code < 0)
        return;
    findings_finish(&cache->scanned);
    cache->scanned = result->findings;
    result->findings = (struct findings){0};
    task_start_describing(flow, &cache->scanned.found);
}

/* Returns whether earlier facts about the process are better than the kernel's own figures. They
 * must be of the same user, so their lease is as reliable as one in an environment. */
static bool knows_more(const struct device_process *before, const struct device_process *now)
{
    return now->undecided && !before->undecided && before->started != 0 && before->uid.known &&
           now->uid.known && before->uid.value == now->uid.value;
}

static void apply_description(struct task_flow *flow, struct task *task, struct step_result *result)
{
    struct cached_process *process = container_of(task, struct cached_process, describe);
    struct device *device =
        result->findings.found.count == 1 ? result->findings.found.items[0].device : NULL;

    if (result->stalled_at != 0) {
        stalled_list_add(&flow->stalled, result->stalled_at);
        task_start_description(flow, process);
        return;
    }
    if (result->code < 0 || device == NULL || device->processes.count != 1 ||
        device->processes.items[0].pid != process->one.items[0].pid ||
        knows_more(&process->one.items[0], &device->processes.items[0]))
        return;
    device_process_list_finish(&process->one);
    process->one = device->processes;
    device->processes = (struct device_process_list){0};
}

static void handle_done_task(void *context, struct task *task, struct step_result *result)
{
    struct task_flow *flow = context;
    struct cached_vendor *vendor = find_vendor(flow, task->vendor);

    switch (task->kind) {
    case STEP_LIST_CANDIDATES:
        apply_candidates(flow, vendor, result);
        break;
    case STEP_READ_CANDIDATE:
        apply_candidate(flow, vendor, container_of(task, struct cached_device, read), result);
        break;
    case STEP_LIST:
        apply_list(flow, vendor, result);
        break;
    case STEP_READ:
        apply_read(flow, vendor, container_of(task, struct cached_device, read), result);
        break;
    case STEP_LINKS:
        apply_links(flow, vendor, result);
        break;
    case STEP_SCAN:
        apply_scan(flow, result);
        break;
    case STEP_DESCRIBE:
        apply_description(flow, task, result);
        break;
    }
}

/* Starts the tasks that waited for this one; they run without its result. */
static void handle_stuck_task(void *context, struct task *task)
{
    struct task_flow *flow = context;
    struct cached_vendor *vendor = find_vendor(flow, task->vendor);

    if (task->kind == STEP_READ_CANDIDATE)
        task_start_list(flow, vendor);
    if (task->kind == STEP_LIST || task->kind == STEP_LIST_CANDIDATES)
        task_start_reads(flow, vendor);
    if (task->kind == STEP_LIST || task->kind == STEP_LIST_CANDIDATES || task->kind == STEP_READ)
        task_start_links(flow, vendor);
}

/* ---- Requests ---- */

static void mark_carried(void *context, struct task *task)
{
    (void)context;
    task->carried = task->stuck;
}

/* Frees the processes that used no device at the last request. */
static void forget_processes(struct task_flow *flow)
{
    struct device_cache *cache = &flow->cache;

    for (size_t i = cache->processes.count; i-- > 0;) {
        struct cached_process *process = cache->processes.items[i];

        if (process->requested == flow->serial || process->describe.waits || process->describe.runs)
            continue;
        device_cache_free_process(process);
        cache->processes.items[i] = cache->processes.items[--cache->processes.count];
    }
}

static void start_vendor_tasks(struct task_flow *flow, struct cached_vendor *vendor)
{
    bool has_candidates = vendor->table->list_candidates != NULL;
    const struct step step = {.kind = has_candidates ? STEP_LIST_CANDIDATES : STEP_LIST,
                              .vendor = vendor->table->vendor};
    bool may_list = vendor->list_failure == NULL || flow->now >= vendor->list_retry_at;

    if (vendor->links_failure != NULL)
        vector_finish(&vendor->linked); /* to find the links again */
    if (may_list && (flow->request.only.count == 0 || !vendor->listed))
        task_start(flow, has_candidates ? &vendor->list_candidates : &vendor->list, &step);
    if (!device_cache_is_listing(vendor))
        task_start_reads(flow, vendor);
}

void task_flow_start_request(struct task_flow *flow)
{
    forget_processes(flow);
    stalled_list_forget_ended(&flow->stalled);
    flow->serial++;
    flow->scans = 0;
    device_cache_each_task(&flow->cache, mark_carried, NULL);
    for (size_t i = 0; i < flow->cache.vendor_count; i++)
        start_vendor_tasks(flow, &flow->cache.vendors[i]);
    if (!flow->request.without_processes)
        task_start_scan(flow);
}

static void note_awaited(void *context, struct task *task)
{
    bool *is_awaited = context;

    *is_awaited = *is_awaited || task->waits || (task->runs && !task->carried);
}

bool task_flow_is_done(struct task_flow *flow)
{
    bool is_awaited = false;

    device_cache_each_task(&flow->cache, note_awaited, &is_awaited);
    return !is_awaited;
}

void task_flow_run(struct task_flow *flow)
{
    workers_run(&flow->workers, flow->now);
}

void task_flow_init(struct task_flow *flow, const struct sysroot *root,
                    const struct vendor_table *const *tables)
{
    *flow = (struct task_flow){0};
    workers_init(&flow->workers, root, tables);
    flow->workers.done = handle_done_task;
    flow->workers.stalled = handle_stuck_task;
    flow->workers.context = flow;
    device_cache_init(&flow->cache, tables);
}

void task_flow_finish(struct task_flow *flow)
{
    workers_finish(&flow->workers);
    device_cache_finish(&flow->cache);
    stalled_list_finish(&flow->stalled);
    vector_finish(&flow->request.only);
}
