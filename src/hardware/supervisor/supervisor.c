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

struct supervisor {
    struct crew crew;
    struct channel client;
    struct knowledge knowledge;
    struct probe_request request;
    bool asking;     /* there is a request that was not answered */
    int64_t until;   /* when it is, whatever is known by then */
    uint64_t serial; /* of the requests */
    int64_t now;     /* when this turn began */
    bool lost;       /* memory ran out: whoever asks starts another one */
};

static void keep(struct supervisor *supervisor, int code)
{
    if (code < 0)
        supervisor->lost = true;
}

/* ---- Beginning tasks ---- */

/* Unless it is at it already. */
static void begin(struct supervisor *supervisor, struct task *task, const struct step *step)
{
    if (task->waits || task->runs)
        return;
    task->carried = false;
    keep(supervisor, crew_add(&supervisor->crew, task, step));
}

static bool is_wanted(const struct supervisor *supervisor, const struct known *known)
{
    const struct device_id_list *only = &supervisor->request.only;

    for (size_t i = 0; i < known_count(known); i++) {
        if (device_id_list_has(only, known_at(known, i)->device->id))
            return true;
    }
    return only->count == 0;
}

static void begin_read(struct supervisor *supervisor, struct known *known)
{
    struct step step = {
        .kind = STEP_READ,
        .vendor = known->read.vendor,
        .about = {.items = &known->listed, .count = 1},
    };

    if (known->asked == supervisor->serial || !is_wanted(supervisor, known) ||
        (known->failure != NULL && supervisor->now < known->retry_at))
        return;
    known->asked = supervisor->serial;
    begin(supervisor, &known->read, &step);
}

static void begin_reads(struct supervisor *supervisor, struct known_vendor *vendor)
{
    for (size_t i = 0; i < vendor->devices.count; i++)
        begin_read(supervisor, vendor->devices.items[i]);
}

static bool is_busy(const struct task *task)
{
    return task->waits || (task->runs && !task->stuck);
}

/* The devices that could be read: others might hang again. Points to what is known. */
static int collect_linkable(const struct known_vendor *vendor, struct found_list *ret_list,
                            struct device_id_list *ret_ids)
{
    for (size_t i = 0; i < vendor->devices.count; i++) {
        const struct known *known = vendor->devices.items[i];

        for (size_t j = 0; j < known->last.count && known->failure == NULL && !known->read.runs;
             j++) {
            struct found *found = vector_append(ret_list);
            struct device_id *id = found == NULL ? NULL : vector_append(ret_ids);

            if (id == NULL)
                return BERTH_ERROR_MEMORY;
            *found = known->last.items[j];
            *id = found->device->id;
        }
    }
    return 0;
}

/* When all devices of a vendor were read that can be, and they are others than before. */
static void begin_links(struct supervisor *supervisor, struct known_vendor *vendor)
{
    struct step step = {.kind = STEP_LINKS, .vendor = vendor->table->vendor};
    struct device_id_list ids = {0};
    bool is_early = vendor->table->links == NULL || is_busy(&vendor->list) || vendor->links.waits ||
                    vendor->links.runs;

    for (size_t i = 0; i < vendor->devices.count; i++)
        is_early = is_early || is_busy(&vendor->devices.items[i]->read);
    if (is_early)
        return;
    keep(supervisor, collect_linkable(vendor, &step.about, &ids));
    if (!device_id_list_equals(&ids, &vendor->linked)) {
        vector_finish(&vendor->known_links);
        if (ids.count > 1)
            begin(supervisor, &vendor->links, &step);
        vector_finish(&vendor->linked);
        vendor->linked = ids;
        ids = (struct device_id_list){0};
    }
    vector_finish(&ids);
    vector_finish(&step.about);
}

static void begin_describe(struct supervisor *supervisor, uint64_t pid)
{
    struct known_process *process = known_process_need(&supervisor->knowledge, pid);
    struct device device = {.id = {.vendor = VENDOR_DRI, .mig = DEVICE_NO_MIG}};
    struct found about = {.device = &device};
    struct step step = {.kind = STEP_DESCRIBE, .about = {.items = &about, .count = 1}};

    if (process == NULL) {
        supervisor->lost = true;
        return;
    }
    if (process->asked == supervisor->serial)
        return;
    process->asked = supervisor->serial;
    device.processes = process->one;
    begin(supervisor, &process->describe, &step);
}

static void describe_users(struct supervisor *supervisor, const struct found_list *list)
{
    const struct device_process *process;
    const struct found *found;

    if (supervisor->request.without_processes)
        return;
    vector_for_each (found, list) {
        vector_for_each (process, &found->device->processes)
            begin_describe(supervisor, process->pid);
    }
}

/* ---- Ends of tasks ---- */

static struct known_vendor *vendor_of(struct supervisor *supervisor, enum vendor vendor)
{
    for (size_t i = 0; i < supervisor->knowledge.vendor_count; i++) {
        if (supervisor->knowledge.vendors[i].table->vendor == vendor)
            return &supervisor->knowledge.vendors[i];
    }
    return NULL;
}

/* When a step that failed is tried again: at once, unless it hung or crashed. */
static int64_t retry_time(const struct supervisor *supervisor, const struct step_result *result)
{
    return result->lost ? supervisor->now + RETRY_AFTER : supervisor->now;
}

static void device_is_gone(void *context, struct known *known)
{
    struct supervisor *supervisor = context;

    crew_forget(&supervisor->crew, &known->read);
    known_free(known);
}

static void take_problems(struct problem_list *place, struct problem_list *from)
{
    problem_list_finish(place);
    *place = *from;
    *from = (struct problem_list){0};
}

static void list_is_done(struct supervisor *supervisor, struct known_vendor *vendor,
                         struct step_result *result)
{
    struct found *found;

    vendor->listed = result->code == 0;
    keep(supervisor,
         known_set_failure(&vendor->list_failure, result->code == 0 ? NULL : result->message));
    if (result->code == 0) {
        vector_for_each (found, &result->sight.found)
            found->device->id.vendor = vendor->table->vendor;
        take_problems(&vendor->problems, &result->sight.problems);
        keep(supervisor,
             known_vendor_compare(vendor, &result->sight.found, device_is_gone, supervisor));
    } else {
        vendor->list_retry_at = retry_time(supervisor, result);
    }
    begin_reads(supervisor, vendor);
    begin_links(supervisor, vendor);
}

static struct known *known_of(const struct known_vendor *vendor, const struct task *task)
{
    for (size_t i = 0; i < vendor->devices.count; i++) {
        if (&vendor->devices.items[i]->read == task)
            return vendor->devices.items[i];
    }
    return NULL;
}

/* Whether what was read is the device and parts of it. */
static bool is_of(const struct found_list *list, const struct known *known)
{
    const struct found *found;

    vector_for_each (found, list) {
        if (found->device->id.vendor != known->read.vendor)
            return false;
    }
    return list->count > 0 && device_id_equals(list->items[0].device->id, known->listed.device->id);
}

static void read_is_done(struct supervisor *supervisor, struct known_vendor *vendor,
                         const struct task *task, struct step_result *result)
{
    struct known *known = known_of(vendor, task);
    const char *failure = result->code < 0 ? result->message : NULL;

    if (known == NULL)
        return;
    if (failure == NULL && !is_of(&result->sight.found, known))
        failure = "gave an answer that makes no sense";
    keep(supervisor, known_set_failure(&known->failure, failure));
    if (failure == NULL) {
        found_list_finish(&known->last);
        known->last = result->sight.found;
        result->sight.found = (struct found_list){0};
        describe_users(supervisor, &known->last);
    } else {
        known->retry_at = retry_time(supervisor, result);
    }
    take_problems(&known->problems, &result->sight.problems);
    begin_links(supervisor, vendor);
}

static void links_are_done(struct supervisor *supervisor, struct known_vendor *vendor,
                           struct step_result *result)
{
    const struct link *link;

    keep(supervisor,
         known_set_failure(&vendor->links_failure, result->code < 0 ? result->message : NULL));
    vector_finish(&vendor->known_links);
    vector_for_each (link, &result->sight.links) {
        struct known_link *known = vector_append(&vendor->known_links);

        if (known == NULL) {
            supervisor->lost = true;
            return;
        }
        /* Their places were checked against what was asked about. */
        known->between[0] = vendor->linked.items[link->between[0]];
        known->between[1] = vendor->linked.items[link->between[1]];
        known->kind = link->kind;
        known->lanes = link->lanes;
    }
    /* A slow device may have answered meanwhile. */
    begin_links(supervisor, vendor);
}

static void scan_is_done(struct supervisor *supervisor, struct step_result *result)
{
    struct knowledge *knowledge = &supervisor->knowledge;

    keep(supervisor,
         known_set_failure(&knowledge->scan_failure, result->code < 0 ? result->message : NULL));
    if (result->code < 0)
        return;
    sight_finish(&knowledge->scanned);
    knowledge->scanned = result->sight;
    result->sight = (struct sight){0};
    describe_users(supervisor, &knowledge->scanned.found);
}

static void describe_is_done(struct task *task, struct step_result *result)
{
    struct known_process *process = container_of(task, struct known_process, describe);
    struct device *device =
        result->sight.found.count == 1 ? result->sight.found.items[0].device : NULL;

    if (result->code < 0 || device == NULL || device->processes.count != 1 ||
        device->processes.items[0].pid != process->one.items[0].pid)
        return;
    device_process_list_finish(&process->one);
    process->one = device->processes;
    device->processes = (struct device_process_list){0};
}

static void task_is_done(void *context, struct task *task, struct step_result *result)
{
    struct supervisor *supervisor = context;
    struct known_vendor *vendor = vendor_of(supervisor, task->vendor);

    if (task->kind == STEP_SCAN)
        scan_is_done(supervisor, result);
    else if (task->kind == STEP_DESCRIBE)
        describe_is_done(task, result);
    else if (task->kind == STEP_LIST)
        list_is_done(supervisor, vendor, result);
    else if (task->kind == STEP_READ)
        read_is_done(supervisor, vendor, task, result);
    else
        links_are_done(supervisor, vendor, result);
}

/* Others go on without it. */
static void task_is_stuck(void *context, struct task *task)
{
    struct supervisor *supervisor = context;
    struct known_vendor *vendor = vendor_of(supervisor, task->vendor);

    if (task->kind == STEP_LIST)
        begin_reads(supervisor, vendor);
    if (task->kind == STEP_LIST || task->kind == STEP_READ)
        begin_links(supervisor, vendor);
}

/* ---- Requests ---- */

static void carry(void *context, struct task *task)
{
    (void)context;
    task->carried = task->stuck;
}

/* Processes that no device had the last time. */
static void forget_processes(struct supervisor *supervisor)
{
    struct knowledge *knowledge = &supervisor->knowledge;

    for (size_t i = knowledge->processes.count; i-- > 0;) {
        struct known_process *process = knowledge->processes.items[i];

        if (process->asked == supervisor->serial || process->describe.waits ||
            process->describe.runs)
            continue;
        known_process_free(process);
        knowledge->processes.items[i] = knowledge->processes.items[--knowledge->processes.count];
    }
}

static void begin_vendor(struct supervisor *supervisor, struct known_vendor *vendor)
{
    const struct step step = {.kind = STEP_LIST, .vendor = vendor->table->vendor};
    bool may_list = vendor->list_failure == NULL || supervisor->now >= vendor->list_retry_at;

    if (vendor->links_failure != NULL)
        vector_finish(&vendor->linked); /* is tried again */
    if (may_list && (supervisor->request.only.count == 0 || !vendor->listed))
        begin(supervisor, &vendor->list, &step);
    if (!is_busy(&vendor->list))
        begin_reads(supervisor, vendor);
}

static void begin_request(struct supervisor *supervisor)
{
    const struct probe_request *request = &supervisor->request;
    const struct step scan = {.kind = STEP_SCAN};
    int64_t deadline = (int64_t)request->deadline;
    int64_t margin = deadline / 10 < MARGIN_MAX ? deadline / 10 : MARGIN_MAX;

    forget_processes(supervisor);
    supervisor->asking = true;
    supervisor->serial++;
    supervisor->until = clock_after(supervisor->now, deadline - margin);
    knowledge_each_task(&supervisor->knowledge, carry, NULL);
    for (size_t i = 0; i < supervisor->knowledge.vendor_count; i++)
        begin_vendor(supervisor, &supervisor->knowledge.vendors[i]);
    if (!request->without_processes)
        begin(supervisor, &supervisor->knowledge.scan, &scan);
}

static void note_awaited(void *context, struct task *task)
{
    bool *is_awaited = context;

    *is_awaited = *is_awaited || task->waits || (task->runs && !task->carried);
}

static int answer_request(struct supervisor *supervisor)
{
    struct probe_answer answer = {.number = supervisor->request.number};
    struct text packet = {0};
    int code = assemble_report(&supervisor->knowledge, supervisor->request.without_processes,
                               &answer.report);

    if (code == 0)
        code = probe_answer_encode(&answer, &packet);
    if (code == 0)
        code = channel_send(&supervisor->client, packet.bytes, packet.length);
    report_finish(&answer.report);
    text_finish(&packet);
    vector_finish(&supervisor->request.only);
    supervisor->asking = false;
    return code;
}

/* Answers as soon as everything is known, or when it is time. */
static int maybe_answer(struct supervisor *supervisor)
{
    bool is_awaited = false;

    if (!supervisor->asking)
        return 0;
    knowledge_each_task(&supervisor->knowledge, note_awaited, &is_awaited);
    return is_awaited && supervisor->now < supervisor->until ? 0 : answer_request(supervisor);
}

/* One request after the other. Returns 0, or a code when nobody is there any more. */
static int take_request(struct supervisor *supervisor)
{
    const unsigned char *bytes = NULL;
    size_t length = 0;
    int code = channel_flush(&supervisor->client);

    if (code < 0 || supervisor->asking)
        return code;
    code = channel_receive(&supervisor->client, &bytes, &length);
    if (code <= 0)
        return code;
    code = probe_request_decode(bytes, length, &supervisor->request, NULL);
    if (code == 0)
        begin_request(supervisor);
    return code;
}

/* ---- The loop ---- */

static int64_t next_time(const struct supervisor *supervisor)
{
    int64_t next = crew_next_time(&supervisor->crew);

    return supervisor->asking && supervisor->until < next ? supervisor->until : next;
}

/* Returns whether the client is gone. */
static bool wait_for_something(struct supervisor *supervisor)
{
    struct pollfd waiting[WATCHED_MAX];
    int64_t next = next_time(supervisor);
    int64_t left = next == INT64_MAX ? -1 : next - clock_now();
    size_t count;

    /* While a request is being answered only the end of the client matters. */
    waiting[0] = (struct pollfd){
        .fd = supervisor->client.descriptor,
        .events = POLLRDHUP | (supervisor->asking ? 0 : POLLIN) |
                  (channel_has_unsent(&supervisor->client) ? POLLOUT : 0),
    };
    count = crew_watch(&supervisor->crew, waiting + 1, WATCHED_MAX - 1);
    if (count > WATCHED_MAX - 1)
        count = WATCHED_MAX - 1;
    poll(waiting, 1 + count,
         next == INT64_MAX ? -1
         : left <= 0       ? 0
                           : (int)((left + 999999) / 1000000));
    return (waiting[0].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static int serve(struct supervisor *supervisor)
{
    for (;;) {
        bool asked;
        int code;

        supervisor->now = clock_now();
        code = take_request(supervisor);
        if (code < 0)
            return code;
        asked = supervisor->asking;
        crew_turn(&supervisor->crew, supervisor->now);
        code = supervisor->lost ? BERTH_ERROR_MEMORY : maybe_answer(supervisor);
        if (code < 0)
            return code;
        /* The next request may have come with this one. */
        if (asked && !supervisor->asking)
            continue;
        if (wait_for_something(supervisor))
            return BERTH_ERROR_IO;
    }
}

int supervisor_run(int socket, const struct root *root, const struct vendor_table *const *tables,
                   struct berth_error *error)
{
    struct supervisor supervisor = {0};
    int code;

    crew_init(&supervisor.crew, root, tables);
    supervisor.crew.done = task_is_done;
    supervisor.crew.stalled = task_is_stuck;
    supervisor.crew.context = &supervisor;
    knowledge_init(&supervisor.knowledge, tables);
    channel_init(&supervisor.client, socket);
    code = serve(&supervisor);
    crew_finish(&supervisor.crew);
    knowledge_finish(&supervisor.knowledge);
    channel_finish(&supervisor.client);
    vector_finish(&supervisor.request.only);
    /* The other end is closed: that is how it ends. */
    if (code == BERTH_ERROR_IO)
        return 0;
    return code == BERTH_ERROR_MEMORY ? error_set_memory(error)
                                      : error_set(error, code, "a request that makes no sense");
}
