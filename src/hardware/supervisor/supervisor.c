/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/supervisor/supervisor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "hardware/supervisor/build_report.h"
#include "hardware/supervisor/device_cache.h"
#include "hardware/supervisor/workers.h"
#include "probe/probe_channel.h"
#include "probe/probe_messages.h"

enum { WATCHED_MAX = 128 };

/* What hung or crashed is left alone for so long. */
#define RETRY_AFTER INT64_C(30000000000)
/* The answer is to be there by the deadline, so it is made a little earlier. */
#define MARGIN_MAX INT64_C(150000000)

struct probe_supervisor {
    struct workers workers;
    struct probe_channel client;
    struct device_cache cache;
    struct probe_request request;
    bool has_request; /* there is a request that was not answered */
    int64_t until;    /* when it is, whatever is known by then */
    uint64_t serial;  /* of the requests */
    int64_t now;      /* when this turn began */
    bool lost;        /* memory ran out: whoever asks starts another one */
};

static void note_error(struct probe_supervisor *supervisor, int code)
{
    if (code < 0)
        supervisor->lost = true;
}

/* ---- Beginning tasks ---- */

/* Unless it is at it already. */
static void start_task(struct probe_supervisor *supervisor, struct task *task,
                       const struct step *step)
{
    if (task->waits || task->runs)
        return;
    task->carried = false;
    note_error(supervisor, workers_add_task(&supervisor->workers, task, step));
}

static bool is_requested(const struct probe_supervisor *supervisor,
                         const struct cached_device *cached)
{
    const struct device_id_list *only = &supervisor->request.only;

    for (size_t i = 0; i < device_cache_count_findings(cached); i++) {
        if (device_id_list_has(only, device_cache_finding_at(cached, i)->device->id))
            return true;
    }
    return only->count == 0;
}

static void start_read(struct probe_supervisor *supervisor, struct cached_device *cached)
{
    struct step step = {
        .kind = STEP_READ,
        .vendor = cached->read.vendor,
        .about = {.items = &cached->listed, .count = 1},
    };

    if (cached->requested == supervisor->serial || !is_requested(supervisor, cached) ||
        (cached->failure != NULL && supervisor->now < cached->retry_at))
        return;
    cached->requested = supervisor->serial;
    start_task(supervisor, &cached->read, &step);
}

static void start_reads(struct probe_supervisor *supervisor, struct cached_vendor *vendor)
{
    for (size_t i = 0; i < vendor->devices.count; i++)
        start_read(supervisor, vendor->devices.items[i]);
}

static bool is_busy(const struct task *task)
{
    return task->waits || (task->runs && !task->stuck);
}

/* The devices that could be read: others might hang again. Points to what is known. */
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

/* When all devices of a vendor were read that can be, and they are others than before. */
static void start_links(struct probe_supervisor *supervisor, struct cached_vendor *vendor)
{
    struct step step = {.kind = STEP_LINKS, .vendor = vendor->table->vendor};
    struct device_id_list ids = {0};
    bool is_early = vendor->table->links == NULL || is_busy(&vendor->list) || vendor->links.waits ||
                    vendor->links.runs;

    for (size_t i = 0; i < vendor->devices.count; i++)
        is_early = is_early || is_busy(&vendor->devices.items[i]->read);
    if (is_early)
        return;
    note_error(supervisor, collect_linkable(vendor, &step.about, &ids));
    if (!device_id_list_equals(&ids, &vendor->linked)) {
        vector_finish(&vendor->cached_links);
        if (ids.count > 1)
            start_task(supervisor, &vendor->links, &step);
        vector_finish(&vendor->linked);
        vendor->linked = ids;
        ids = (struct device_id_list){0};
    }
    vector_finish(&ids);
    vector_finish(&step.about);
}

static void start_describe(struct probe_supervisor *supervisor, uint64_t pid)
{
    struct cached_process *process = device_cache_get_process(&supervisor->cache, pid);
    struct device device = {.id = {.vendor = VENDOR_DRI, .mig = DEVICE_NO_MIG}};
    struct device_finding about = {.device = &device};
    struct step step = {.kind = STEP_DESCRIBE, .about = {.items = &about, .count = 1}};

    if (process == NULL) {
        supervisor->lost = true;
        return;
    }
    if (process->requested == supervisor->serial)
        return;
    process->requested = supervisor->serial;
    device.processes = process->one;
    start_task(supervisor, &process->describe, &step);
}

static void describe_users(struct probe_supervisor *supervisor, const struct finding_list *list)
{
    const struct device_process *process;
    const struct device_finding *found;

    if (supervisor->request.without_processes)
        return;
    vector_for_each (found, list) {
        vector_for_each (process, &found->device->processes)
            start_describe(supervisor, process->pid);
    }
}

/* ---- Ends of tasks ---- */

static struct cached_vendor *find_vendor(struct probe_supervisor *supervisor, enum vendor vendor)
{
    for (size_t i = 0; i < supervisor->cache.vendor_count; i++) {
        if (supervisor->cache.vendors[i].table->vendor == vendor)
            return &supervisor->cache.vendors[i];
    }
    return NULL;
}

/* When a step that failed is tried again: at once, unless it hung or crashed. */
static int64_t retry_time(const struct probe_supervisor *supervisor,
                          const struct step_result *result)
{
    return result->lost ? supervisor->now + RETRY_AFTER : supervisor->now;
}

static void forget_device(void *context, struct cached_device *cached)
{
    struct probe_supervisor *supervisor = context;

    workers_cancel_task(&supervisor->workers, &cached->read);
    device_cache_free_device(cached);
}

static void replace_problems(struct problem_list *place, struct problem_list *from)
{
    machine_report_finish_problems(place);
    *place = *from;
    *from = (struct problem_list){0};
}

static void apply_list(struct probe_supervisor *supervisor, struct cached_vendor *vendor,
                       struct step_result *result)
{
    struct device_finding *found;

    vendor->listed = result->code == 0;
    note_error(supervisor, device_cache_set_failure(&vendor->list_failure,
                                                    result->code == 0 ? NULL : result->message));
    if (result->code == 0) {
        vector_for_each (found, &result->findings.found)
            found->device->id.vendor = vendor->table->vendor;
        replace_problems(&vendor->problems, &result->findings.problems);
        note_error(supervisor, device_cache_update_vendor(vendor, &result->findings.found,
                                                          forget_device, supervisor));
    } else {
        vendor->list_retry_at = retry_time(supervisor, result);
    }
    start_reads(supervisor, vendor);
    start_links(supervisor, vendor);
}

static struct cached_device *find_cached_device(const struct cached_vendor *vendor,
                                                const struct task *task)
{
    for (size_t i = 0; i < vendor->devices.count; i++) {
        if (&vendor->devices.items[i]->read == task)
            return vendor->devices.items[i];
    }
    return NULL;
}

/* Whether what was read is the device and parts of it. */
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

static void apply_read(struct probe_supervisor *supervisor, struct cached_vendor *vendor,
                       const struct task *task, struct step_result *result)
{
    struct cached_device *cached = find_cached_device(vendor, task);
    const char *failure = result->code < 0 ? result->message : NULL;

    if (cached == NULL)
        return;
    if (failure == NULL && !is_valid_answer(&result->findings.found, cached))
        failure = "gave an answer that makes no sense";
    note_error(supervisor, device_cache_set_failure(&cached->failure, failure));
    if (failure == NULL) {
        finding_list_finish(&cached->last);
        cached->last = result->findings.found;
        result->findings.found = (struct finding_list){0};
        describe_users(supervisor, &cached->last);
    } else {
        cached->retry_at = retry_time(supervisor, result);
    }
    replace_problems(&cached->problems, &result->findings.problems);
    start_links(supervisor, vendor);
}

static void apply_links(struct probe_supervisor *supervisor, struct cached_vendor *vendor,
                        struct step_result *result)
{
    const struct link *link;

    note_error(supervisor, device_cache_set_failure(&vendor->links_failure,
                                                    result->code < 0 ? result->message : NULL));
    vector_finish(&vendor->cached_links);
    vector_for_each (link, &result->findings.links) {
        struct cached_link *cached = vector_append(&vendor->cached_links);

        if (cached == NULL) {
            supervisor->lost = true;
            return;
        }
        /* Their places were checked against what was asked about. */
        cached->between[0] = vendor->linked.items[link->between[0]];
        cached->between[1] = vendor->linked.items[link->between[1]];
        cached->kind = link->kind;
        cached->lanes = link->lanes;
    }
    /* A slow device may have answered meanwhile. */
    start_links(supervisor, vendor);
}

static void apply_scan(struct probe_supervisor *supervisor, struct step_result *result)
{
    struct device_cache *cache = &supervisor->cache;

    note_error(supervisor, device_cache_set_failure(&cache->scan_failure,
                                                    result->code < 0 ? result->message : NULL));
    if (result->code < 0)
        return;
    findings_finish(&cache->scanned);
    cache->scanned = result->findings;
    result->findings = (struct findings){0};
    describe_users(supervisor, &cache->scanned.found);
}

static void apply_description(struct task *task, struct step_result *result)
{
    struct cached_process *process = container_of(task, struct cached_process, describe);
    struct device *device =
        result->findings.found.count == 1 ? result->findings.found.items[0].device : NULL;

    if (result->code < 0 || device == NULL || device->processes.count != 1 ||
        device->processes.items[0].pid != process->one.items[0].pid)
        return;
    device_process_list_finish(&process->one);
    process->one = device->processes;
    device->processes = (struct device_process_list){0};
}

static void handle_done_task(void *context, struct task *task, struct step_result *result)
{
    struct probe_supervisor *supervisor = context;
    struct cached_vendor *vendor = find_vendor(supervisor, task->vendor);

    if (task->kind == STEP_SCAN)
        apply_scan(supervisor, result);
    else if (task->kind == STEP_DESCRIBE)
        apply_description(task, result);
    else if (task->kind == STEP_LIST)
        apply_list(supervisor, vendor, result);
    else if (task->kind == STEP_READ)
        apply_read(supervisor, vendor, task, result);
    else
        apply_links(supervisor, vendor, result);
}

/* Others go on without it. */
static void handle_stuck_task(void *context, struct task *task)
{
    struct probe_supervisor *supervisor = context;
    struct cached_vendor *vendor = find_vendor(supervisor, task->vendor);

    if (task->kind == STEP_LIST)
        start_reads(supervisor, vendor);
    if (task->kind == STEP_LIST || task->kind == STEP_READ)
        start_links(supervisor, vendor);
}

/* ---- Requests ---- */

static void mark_carried(void *context, struct task *task)
{
    (void)context;
    task->carried = task->stuck;
}

/* Processes that no device had the last time. */
static void forget_processes(struct probe_supervisor *supervisor)
{
    struct device_cache *cache = &supervisor->cache;

    for (size_t i = cache->processes.count; i-- > 0;) {
        struct cached_process *process = cache->processes.items[i];

        if (process->requested == supervisor->serial || process->describe.waits ||
            process->describe.runs)
            continue;
        device_cache_free_process(process);
        cache->processes.items[i] = cache->processes.items[--cache->processes.count];
    }
}

static void start_vendor_tasks(struct probe_supervisor *supervisor, struct cached_vendor *vendor)
{
    const struct step step = {.kind = STEP_LIST, .vendor = vendor->table->vendor};
    bool may_list = vendor->list_failure == NULL || supervisor->now >= vendor->list_retry_at;

    if (vendor->links_failure != NULL)
        vector_finish(&vendor->linked); /* is tried again */
    if (may_list && (supervisor->request.only.count == 0 || !vendor->listed))
        start_task(supervisor, &vendor->list, &step);
    if (!is_busy(&vendor->list))
        start_reads(supervisor, vendor);
}

static void start_request(struct probe_supervisor *supervisor)
{
    const struct probe_request *request = &supervisor->request;
    const struct step scan = {.kind = STEP_SCAN};
    int64_t deadline = (int64_t)request->deadline;
    int64_t margin = deadline / 10 < MARGIN_MAX ? deadline / 10 : MARGIN_MAX;

    forget_processes(supervisor);
    supervisor->has_request = true;
    supervisor->serial++;
    supervisor->until = clock_after(supervisor->now, deadline - margin);
    device_cache_each_task(&supervisor->cache, mark_carried, NULL);
    for (size_t i = 0; i < supervisor->cache.vendor_count; i++)
        start_vendor_tasks(supervisor, &supervisor->cache.vendors[i]);
    if (!request->without_processes)
        start_task(supervisor, &supervisor->cache.scan, &scan);
}

static void note_awaited(void *context, struct task *task)
{
    bool *is_awaited = context;

    *is_awaited = *is_awaited || task->waits || (task->runs && !task->carried);
}

static int answer_request(struct probe_supervisor *supervisor)
{
    struct probe_answer answer = {.number = supervisor->request.number};
    struct text packet = {0};
    int code =
        build_report(&supervisor->cache, supervisor->request.without_processes, &answer.report);

    if (code == 0)
        code = probe_answer_encode(&answer, &packet);
    if (code == 0)
        code = probe_channel_send(&supervisor->client, packet.bytes, packet.length);
    machine_report_finish(&answer.report);
    text_finish(&packet);
    vector_finish(&supervisor->request.only);
    supervisor->has_request = false;
    return code;
}

/* Answers as soon as everything is known, or when it is time. */
static int answer_when_ready(struct probe_supervisor *supervisor)
{
    bool is_awaited = false;

    if (!supervisor->has_request)
        return 0;
    device_cache_each_task(&supervisor->cache, note_awaited, &is_awaited);
    return is_awaited && supervisor->now < supervisor->until ? 0 : answer_request(supervisor);
}

/* One request after the other. Returns 0, or a code when nobody is there any more. */
static int receive_request(struct probe_supervisor *supervisor)
{
    const unsigned char *bytes = NULL;
    size_t length = 0;
    int code = probe_channel_flush(&supervisor->client);

    if (code < 0 || supervisor->has_request)
        return code;
    code = probe_channel_receive(&supervisor->client, &bytes, &length);
    if (code <= 0)
        return code;
    code = probe_request_decode(bytes, length, &supervisor->request, NULL);
    if (code == 0)
        start_request(supervisor);
    return code;
}

/* ---- The loop ---- */

static int64_t next_time(const struct probe_supervisor *supervisor)
{
    int64_t next = workers_next_time(&supervisor->workers);

    return supervisor->has_request && supervisor->until < next ? supervisor->until : next;
}

/* Returns whether the client is gone. */
static bool wait_for_events(struct probe_supervisor *supervisor)
{
    struct pollfd waiting[WATCHED_MAX];
    int64_t next = next_time(supervisor);
    int64_t left = next == INT64_MAX ? -1 : next - clock_now();
    size_t count;

    /* While a request is being answered only the end of the client matters. */
    waiting[0] = (struct pollfd){
        .fd = supervisor->client.descriptor,
        .events = POLLRDHUP | (supervisor->has_request ? 0 : POLLIN) |
                  (probe_channel_has_unsent(&supervisor->client) ? POLLOUT : 0),
    };
    count = workers_fill_pollfds(&supervisor->workers, waiting + 1, WATCHED_MAX - 1);
    if (count > WATCHED_MAX - 1)
        count = WATCHED_MAX - 1;
    poll(waiting, 1 + count,
         next == INT64_MAX ? -1
         : left <= 0       ? 0
                           : (int)((left + 999999) / 1000000));
    return (waiting[0].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static int serve_requests(struct probe_supervisor *supervisor)
{
    for (;;) {
        bool requested;
        int code;

        supervisor->now = clock_now();
        code = receive_request(supervisor);
        if (code < 0)
            return code;
        requested = supervisor->has_request;
        workers_run(&supervisor->workers, supervisor->now);
        code = supervisor->lost ? BERTH_ERROR_MEMORY : answer_when_ready(supervisor);
        if (code < 0)
            return code;
        /* The next request may have come with this one. */
        if (requested && !supervisor->has_request)
            continue;
        if (wait_for_events(supervisor))
            return BERTH_ERROR_IO;
    }
}

int supervisor_run(int socket, const struct sysroot *root, const struct vendor_table *const *tables,
                   struct berth_error *error)
{
    struct probe_supervisor supervisor = {0};
    int code;

    workers_init(&supervisor.workers, root, tables);
    supervisor.workers.done = handle_done_task;
    supervisor.workers.stalled = handle_stuck_task;
    supervisor.workers.context = &supervisor;
    device_cache_init(&supervisor.cache, tables);
    probe_channel_init(&supervisor.client, socket);
    code = serve_requests(&supervisor);
    workers_finish(&supervisor.workers);
    device_cache_finish(&supervisor.cache);
    probe_channel_finish(&supervisor.client);
    vector_finish(&supervisor.request.only);
    /* The other end is closed: that is how it ends. */
    if (code == BERTH_ERROR_IO)
        return 0;
    return code == BERTH_ERROR_MEMORY ? error_set_memory(error)
                                      : error_set(error, code, "a request that makes no sense");
}
