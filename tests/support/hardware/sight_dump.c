/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one vendor's table without the probe: lists the devices, reads each of them and the links,
 * and prints the result as JSON.
 *
 *     dump-sight VENDOR
 *
 * A device that cannot be read has only id, pci, parent, path and error. Each step has a vendor
 * context of its own, because in the probe each step may run in another worker.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/text/json.h"
#include "hardware/vendors.h"

struct dump {
    struct json json;
    const struct vendor_table *table;
    struct sysroot root;
};

static void write_number(struct json *json, const char *key, struct optional_number number)
{
    json_number_member(json, key, number.known, number.value);
}

/* Writes a figure, or "no time" if the time of its sample is missing. */
static void write_figure(struct json *json, const char *key, const struct figure *figure)
{
    json_key(json, key);
    if (!figure->known)
        json_null(json);
    else if (figure->sampled_at <= 0)
        json_string(json, "no time");
    else
        json_signed(json, figure->value);
}

static void write_facts(struct json *json, const struct device *device)
{
    json_string_member(json, "name", device->name);
    json_string_member(json, "uuid", device->uuid);
    json_string_member(json, "cpus", device->cpus);
    write_number(json, "memory_total", device->memory_total);
    write_number(json, "numa", device->numa);
    write_number(json, "minor", device->minor);
    json_string_member(json, "cap", device->cap.known ? capability_format(device->cap).text : NULL);
    json_string_member(json, "kind", choice_name(device_kind_names, (int)device->kind));
    json_string_member(json, "health", choice_name(health_names, (int)device->health));
    json_string_member(json, "health_reason", device->health_reason);
    json_key(json, "partitioned");
    json_bool(json, device->partitioned);
    json_key(json, "asleep");
    json_bool(json, device->asleep);
    write_figure(json, "memory_free", &device->load.memory_free);
    write_figure(json, "utilization", &device->load.utilization);
    write_figure(json, "temperature", &device->load.temperature);
    write_figure(json, "power", &device->load.power);
    write_figure(json, "frequency", &device->load.frequency);
}

static void write_lists(struct json *json, const struct device *device)
{
    const struct device_process *process;
    char **node;

    json_key(json, "nodes");
    json_array_begin(json);
    vector_for_each (node, &device->nodes)
        json_string(json, *node);
    json_array_end(json);
    json_key(json, "processes");
    json_array_begin(json);
    vector_for_each (process, &device->processes) {
        json_object_begin(json);
        write_number(json, "pid", optional_number_of(process->pid));
        write_number(json, "memory", process->memory);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_found(struct json *json, const struct device_finding *found, const char *error)
{
    const struct device *device = found->device;

    json_object_begin(json);
    json_string_member(json, "id", device_id_format(device->id).text);
    json_string_member(json, "pci", device->pci.known ? pci_format(device->pci).text : NULL);
    json_string_member(json, "parent", device->parent);
    json_string_member(json, "path", found->path);
    json_string_member(json, "error", error);
    if (error == NULL) {
        write_facts(json, device);
        write_lists(json, device);
    }
    json_object_end(json);
}

static void write_problems(struct json *json, const struct problem_list *problems)
{
    const struct problem *problem;

    json_key(json, "problems");
    json_array_begin(json);
    vector_for_each (problem, problems)
        json_string(json, problem->message);
    json_array_end(json);
}

static void write_links(struct json *json, const struct findings *findings,
                        const struct finding_list *devices)
{
    const struct link *link;

    json_key(json, "links");
    json_array_begin(json);
    vector_for_each (link, &findings->links) {
        json_array_begin(json);
        for (size_t i = 0; i < 2; i++)
            json_string(json, device_id_format(devices->items[link->between[i]].device->id).text);
        json_string(json, choice_name(link_kind_names, (int)link->kind));
        json_unsigned(json, link->lanes);
        json_array_end(json);
    }
    json_array_end(json);
}

/* Returns the context of a step. end_step() closes it. */
static struct vendor_context start_step(const struct dump *dump)
{
    return (struct vendor_context){.root = &dump->root};
}

static void end_step(const struct dump *dump, struct vendor_context *context)
{
    if (dump->table->close != NULL)
        dump->table->close(context);
}

static void read_devices(struct dump *dump, const struct finding_list *devices)
{
    const struct device_finding *wanted;

    json_key(&dump->json, "devices");
    json_array_begin(&dump->json);
    vector_for_each (wanted, devices) {
        struct vendor_context context = start_step(dump);
        struct berth_error error = BERTH_ERROR_INIT;
        struct findings findings = {0};

        if (wanted->key == NULL)
            write_found(&dump->json, wanted, NULL);
        else if (dump->table->read(&context, wanted, &findings, &error) < 0)
            write_found(&dump->json, wanted, error.message);
        else
            for (size_t i = 0; i < findings.found.count; i++)
                write_found(&dump->json, &findings.found.items[i], NULL);
        findings_finish(&findings);
        end_step(dump, &context);
    }
    json_array_end(&dump->json);
}

static int read_candidates(struct dump *dump, struct findings *ret_read, struct berth_error *error)
{
    struct vendor_context context = start_step(dump);
    struct findings listed = {0};
    int code = 0;

    if (dump->table->list_candidates != NULL)
        code = dump->table->list_candidates(&context, &listed, error);
    end_step(dump, &context);
    for (size_t i = 0; i < listed.found.count && code == 0; i++) {
        context = start_step(dump);
        code = dump->table->read_candidate(&context, &listed.found.items[i], ret_read, error);
        end_step(dump, &context);
    }
    findings_finish(&listed);
    return code;
}

static int look(struct dump *dump)
{
    struct vendor_context context;
    struct berth_error error = BERTH_ERROR_INIT;
    struct findings candidates = {0};
    struct findings listed = {0};
    struct findings linked = {0};
    int code = read_candidates(dump, &candidates, &error);

    context = start_step(dump);
    if (code == 0)
        code = dump->table->list(&context, &candidates.found, &listed, &error);
    end_step(dump, &context);
    json_object_begin(&dump->json);
    read_devices(dump, &listed.found);
    context = start_step(dump);
    if (code == 0 && dump->table->links != NULL)
        code = dump->table->links(&context, &listed.found, &linked, &error);
    end_step(dump, &context);
    write_links(&dump->json, &linked, &listed.found);
    write_problems(&dump->json, &listed.problems);
    json_string_member(&dump->json, "error", code < 0 ? error.message : NULL);
    findings_finish(&linked);
    findings_finish(&listed);
    findings_finish(&candidates);
    return code;
}

static const struct vendor_table *find_table(const char *name)
{
    for (const struct vendor_table *const *table = vendor_tables; *table != NULL; table++)
        if (strcmp(vendor_name((*table)->vendor), name) == 0)
            return *table;
    return NULL;
}

int main(int count, char **arguments)
{
    struct dump dump = {.table = count == 2 ? find_table(arguments[1]) : NULL};
    struct text out = {0};
    int64_t start = clock_read(CLOCK_PROCESS_CPUTIME_ID);
    int64_t taken;

    if (dump.table == NULL || sysroot_init(&dump.root, NULL) < 0) {
        fprintf(stderr, "usage: dump-sight VENDOR\n");
        return 2;
    }
    json_start(&dump.json, &out, JSON_COMPACT);
    look(&dump);
    taken = clock_read(CLOCK_PROCESS_CPUTIME_ID) - start;
    write_number(&dump.json, "cpu_nanoseconds", optional_number_of((uint64_t)taken));
    json_object_end(&dump.json);
    json_finish(&dump.json);
    fputs(text_string(&out), stdout);
    text_finish(&out);
    sysroot_finish(&dump.root);
    return 0;
}
