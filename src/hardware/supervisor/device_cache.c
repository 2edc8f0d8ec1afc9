/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/supervisor/device_cache.h"

#include <stdlib.h>
#include <string.h>

static void found_finish(struct found *found)
{
    if (found->device != NULL)
        device_finish(found->device);
    free(found->device);
    free(found->key);
    free(found->path);
    *found = (struct found){0};
}

void known_free(struct known *known)
{
    if (known == NULL)
        return;
    text_finish(&known->read.packet);
    found_finish(&known->listed);
    found_list_finish(&known->last);
    problem_list_finish(&known->problems);
    free(known->failure);
    free(known);
}

static void vendor_finish(struct known_vendor *vendor)
{
    for (size_t i = 0; i < vendor->devices.count; i++)
        known_free(vendor->devices.items[i]);
    vector_finish(&vendor->devices);
    text_finish(&vendor->list.packet);
    text_finish(&vendor->links.packet);
    problem_list_finish(&vendor->problems);
    vector_finish(&vendor->linked);
    vector_finish(&vendor->known_links);
    free(vendor->list_failure);
    free(vendor->links_failure);
}

void known_process_free(struct known_process *process)
{
    if (process == NULL)
        return;
    text_finish(&process->describe.packet);
    device_process_list_finish(&process->one);
    free(process);
}

/* ---- All of it ---- */

/* Looking through /proc takes long on a machine with many processes. */
enum { PROCESSES_TIMEOUT = 300 * 1000 * 1000 };

void knowledge_init(struct knowledge *knowledge, const struct vendor_table *const *tables)
{
    *knowledge = (struct knowledge){
        .scan = {.kind = STEP_SCAN, .lane = LANE_PROCESSES, .timeout = PROCESSES_TIMEOUT}};
    for (size_t i = 0; tables[i] != NULL; i++) {
        struct known_vendor *vendor = &knowledge->vendors[knowledge->vendor_count++];
        struct task task = {
            .vendor = tables[i]->vendor,
            .lane = tables[i]->lane,
            .timeout = tables[i]->timeout,
        };

        vendor->table = tables[i];
        vendor->list = vendor->links = task;
        vendor->list.kind = STEP_LIST;
        vendor->links.kind = STEP_LINKS;
    }
}

void knowledge_finish(struct knowledge *knowledge)
{
    for (size_t i = 0; i < knowledge->vendor_count; i++)
        vendor_finish(&knowledge->vendors[i]);
    for (size_t i = 0; i < knowledge->processes.count; i++)
        known_process_free(knowledge->processes.items[i]);
    vector_finish(&knowledge->processes);
    text_finish(&knowledge->scan.packet);
    sight_finish(&knowledge->scanned);
    free(knowledge->scan_failure);
}

void knowledge_each_task(struct knowledge *knowledge, void (*visit)(void *context, struct task *),
                         void *context)
{
    for (size_t i = 0; i < knowledge->vendor_count; i++) {
        struct known_vendor *vendor = &knowledge->vendors[i];

        visit(context, &vendor->list);
        visit(context, &vendor->links);
        for (size_t j = 0; j < vendor->devices.count; j++)
            visit(context, &vendor->devices.items[j]->read);
    }
    visit(context, &knowledge->scan);
    for (size_t i = 0; i < knowledge->processes.count; i++)
        visit(context, &knowledge->processes.items[i]->describe);
}

struct known_process *known_process_need(struct knowledge *knowledge, uint64_t pid)
{
    struct known_process *process = NULL;
    struct known_process **place;

    for (size_t i = 0; i < knowledge->processes.count; i++) {
        if (knowledge->processes.items[i]->one.items[0].pid == pid)
            return knowledge->processes.items[i];
    }
    process = calloc(1, sizeof(*process));
    if (process == NULL || device_process_need(&process->one, pid) == NULL) {
        free(process);
        return NULL;
    }
    process->describe =
        (struct task){.kind = STEP_DESCRIBE, .lane = LANE_PROCESSES, .timeout = PROCESSES_TIMEOUT};
    place = vector_append(&knowledge->processes);
    if (place == NULL) {
        known_process_free(process);
        return NULL;
    }
    *place = process;
    return process;
}

int known_set_failure(char **failure, const char *words)
{
    char *copy = words == NULL ? NULL : strdup(words);

    if (words != NULL && copy == NULL)
        return BERTH_ERROR_MEMORY;
    free(*failure);
    *failure = copy;
    return 0;
}

size_t known_count(const struct known *known)
{
    return known->last.count > 0 ? known->last.count : 1;
}

const struct found *known_at(const struct known *known, size_t place)
{
    return known->last.count > 0 ? &known->last.items[place] : &known->listed;
}

/* ---- Comparing ---- */

static bool is_same_text(const char *one, const char *other)
{
    return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

/* The same id at another place is another device: what was known of the first is not true of it. */
static bool is_same(const struct found *one, const struct found *other)
{
    return device_id_equals(one->device->id, other->device->id) &&
           is_same_text(one->key, other->key);
}

static struct known *find(const struct known_vendor *vendor, const struct found *found)
{
    for (size_t i = 0; i < vendor->devices.count; i++) {
        if (is_same(&vendor->devices.items[i]->listed, found))
            return vendor->devices.items[i];
    }
    return NULL;
}

static struct known *add(struct known_vendor *vendor)
{
    struct known *known = calloc(1, sizeof(*known));
    struct known **place = known == NULL ? NULL : vector_append(&vendor->devices);

    if (place == NULL) {
        free(known);
        return NULL;
    }
    known->read = (struct task){
        .kind = STEP_READ,
        .vendor = vendor->table->vendor,
        .lane = vendor->table->lane,
        .timeout = vendor->table->timeout,
    };
    *place = known;
    return known;
}

int known_vendor_compare(struct known_vendor *vendor, struct found_list *list,
                         void (*gone)(void *context, struct known *known), void *context)
{
    struct found *found;
    int code = 0;

    for (size_t i = 0; i < vendor->devices.count; i++)
        vendor->devices.items[i]->marked = false;
    vector_for_each (found, list) {
        struct known *known = find(vendor, found);

        if (known == NULL)
            known = add(vendor);
        if (known == NULL) {
            code = BERTH_ERROR_MEMORY;
            continue;
        }
        known->marked = true;
        found_finish(&known->listed);
        known->listed = *found;
        *found = (struct found){0};
    }
    found_list_finish(list);
    for (size_t i = vendor->devices.count; i-- > 0;) {
        struct known *known = vendor->devices.items[i];

        if (known->marked || code < 0)
            continue;
        memmove(&vendor->devices.items[i], &vendor->devices.items[i + 1],
                (vendor->devices.count - i - 1) * sizeof(struct known *));
        vendor->devices.count--;
        gone(context, known);
    }
    return code;
}
