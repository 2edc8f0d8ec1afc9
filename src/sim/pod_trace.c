/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pod_trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quote.h"
#include "sim/trace_csv.h"

#define MEBIBYTE ((uint64_t)1024 * 1024)
/* A thousandth of a GPU in the engine's units. */
#define SHARE_UNIT (SHARE_WHOLE / TRACE_WHOLE)

enum { NODE_NAME, NODE_CPUS, NODE_MEMORY, NODE_GPUS, NODE_MODEL };

static const struct trace_csv_column node_columns[] = {
    [NODE_NAME] = {.name = "sn"},
    [NODE_CPUS] = {.name = "cpu_milli"},
    [NODE_MEMORY] = {.name = "memory_mib"},
    [NODE_GPUS] = {.name = "gpu"},
    [NODE_MODEL] = {.name = "model", .optional = true},
};

enum { POD_CPUS, POD_MEMORY, POD_GPUS, POD_PART, POD_MODELS };

static const struct trace_csv_column pod_columns[] = {
    [POD_CPUS] = {.name = "cpu_milli"},
    [POD_MEMORY] = {.name = "memory_mib"},
    [POD_GPUS] = {.name = "num_gpu"},
    [POD_PART] = {.name = "gpu_milli"},
    [POD_MODELS] = {.name = "gpu_spec", .optional = true},
};

/* A pod as read, before pods are grouped by kind. */
struct pod {
    struct trace_kind kind;
    size_t position; /* in the file */
};

struct pod_list {
    VECTOR_OF(struct pod);
};

void pod_trace_finish(struct pod_trace *trace)
{
    struct trace_node *node;
    struct trace_kind *kind;

    vector_for_each (node, &trace->nodes) {
        free(node->name);
        free(node->model);
    }
    vector_for_each (kind, &trace->kinds)
        free(kind->models);
    vector_finish(&trace->nodes);
    vector_finish(&trace->kinds);
    vector_finish(&trace->pods);
    *trace = (struct pod_trace){0};
}

/* Reads CPUs and memory, which nodes and pods have in the same units. */
static int read_host_part(const struct trace_csv *csv, size_t cpus, size_t memory,
                          uint64_t *ret_cpus, uint64_t *ret_memory, struct berth_error *error)
{
    uint64_t mebibytes = 0;
    int code = trace_csv_number(csv, cpus, 0, TRACE_CPUS_MAX, ret_cpus, error);

    if (code == 0)
        code = trace_csv_number(csv, memory, 0, TRACE_MEMORY_MAX, &mebibytes, error);
    if (code == 0)
        *ret_memory = mebibytes * MEBIBYTE;
    return code;
}

static int read_text(const struct trace_csv *csv, size_t column, char **ret_text,
                     struct berth_error *error)
{
    const char *found = trace_csv_text(csv, column);

    if (strlen(found) > REQUEST_TEXT_MAX)
        return trace_csv_fail(csv, error, "%s: expected at most %d bytes, got %zu",
                              csv->columns[column].name, REQUEST_TEXT_MAX, strlen(found));
    *ret_text = strdup(found);
    return *ret_text == NULL ? error_set_memory(error) : 0;
}

static int read_node(const struct trace_csv *csv, struct pod_trace *trace,
                     struct berth_error *error)
{
    struct trace_node *node = vector_append(&trace->nodes);
    const char *model = trace_csv_text(csv, NODE_MODEL);
    uint64_t gpus = 0;
    int code;

    if (node == NULL)
        return error_set_memory(error);
    node->line = csv->line;
    if (*trace_csv_text(csv, NODE_NAME) == '\0')
        return trace_csv_fail(csv, error, "sn: expected a name, got nothing");
    code = read_text(csv, NODE_NAME, &node->name, error);
    if (code == 0)
        code = read_host_part(csv, NODE_CPUS, NODE_MEMORY, &node->cpus, &node->memory, error);
    if (code == 0)
        code = trace_csv_number(csv, NODE_GPUS, 0, TRACE_GPUS_MAX, &gpus, error);
    if (code == 0 && model != NULL && *model != '\0')
        code = read_text(csv, NODE_MODEL, &node->model, error);
    node->gpus = (uint32_t)gpus;
    trace->capacity += gpus * TRACE_WHOLE;
    return code;
}

static int compare_nodes(const void *one, const void *other)
{
    const struct trace_node *node = one;
    const struct trace_node *next = other;
    int order = strcmp(node->name, next->name);

    return order != 0 ? order : (node->line > next->line) - (node->line < next->line);
}

/* Adds `scale` - 1 copies of each node. */
static int multiply_nodes(struct pod_trace *trace, uint32_t scale, struct berth_error *error)
{
    size_t count = trace->nodes.count;

    if (vector_reserve(&trace->nodes, count * scale) < 0)
        return error_set_memory(error);
    for (size_t i = count; i < count * scale; i++) {
        struct trace_node *node = vector_append(&trace->nodes);
        const struct trace_node *from = &trace->nodes.items[i % count];
        struct text name = {0};

        text_append_format(&name, "%s~%zu", from->name, i / count + 1);
        *node = *from;
        node->name = text_detach(&name);
        node->model = from->model == NULL ? NULL : strdup(from->model);
        if (node->name == NULL || (from->model != NULL && node->model == NULL))
            return error_set_memory(error);
    }
    trace->capacity *= scale;
    return 0;
}

/* Sorts the nodes by name and refuses duplicates. */
static int order_nodes(const char *path, struct pod_trace *trace, struct berth_error *error)
{
    if (trace->nodes.count > 0)
        qsort(trace->nodes.items, trace->nodes.count, sizeof(*trace->nodes.items), compare_nodes);
    for (size_t i = 1; i < trace->nodes.count; i++) {
        const struct trace_node *node = &trace->nodes.items[i];

        if (strcmp(node->name, node[-1].name) == 0)
            return error_set(error, BERTH_ERROR_INVALID,
                             "%s:%zu: expected a unique name, got %s as in line %zu", path,
                             node->line, quote(node->name).text, node[-1].line);
    }
    return 0;
}

static int read_nodes(const char *path, uint32_t scale, struct pod_trace *trace,
                      struct berth_error *error)
{
    struct trace_csv csv;
    int code = trace_csv_open(path, node_columns, COUNT(node_columns), &csv, error);

    while (code == 0 && (code = trace_csv_next(&csv, error)) > 0)
        code = read_node(&csv, trace, error);
    if (code == 0 && trace->capacity == 0)
        code =
            error_set(error, BERTH_ERROR_INVALID, "%s: expected nodes with GPUs, got none", path);
    if (code == 0 && trace->capacity / TRACE_WHOLE * scale > DEVICE_INDEX_MAX)
        code = error_set(error, BERTH_ERROR_INVALID, "%s: expected at most %d GPUs, got more", path,
                         DEVICE_INDEX_MAX);
    if (code == 0)
        code = order_nodes(path, trace, error);
    if (code == 0)
        code = multiply_nodes(trace, scale, error);
    if (code == 0)
        code = order_nodes(path, trace, error);
    trace_csv_finish(&csv);
    return code;
}

/* Reads the accepted models. They are ignored for a pod without GPUs. */
static int read_models(const struct trace_csv *csv, struct trace_kind *kind,
                       struct berth_error *error)
{
    if (trace_csv_text(csv, POD_MODELS) != NULL && kind->gpus > 0)
        return read_text(csv, POD_MODELS, &kind->models, error);
    kind->models = strdup("");
    return kind->models == NULL ? error_set_memory(error) : 0;
}

/* Refuses contradictory values. */
static int check_pod(const struct trace_csv *csv, const struct trace_kind *kind,
                     struct berth_error *error)
{
    if (kind->gpus > 0 && kind->part == 0)
        return trace_csv_fail(csv, error, "gpu_milli: expected 1 to %d for a pod with GPUs, got 0",
                              TRACE_WHOLE);
    if (kind->gpus > 1 && kind->part < TRACE_WHOLE)
        return trace_csv_fail(csv, error, "gpu_milli: expected %d for a pod with %u GPUs, got %u",
                              TRACE_WHOLE, kind->gpus, kind->part);
    if (kind->gpus == 0 && kind->cpus == 0 && kind->memory == 0)
        return trace_csv_fail(csv, error, "expected CPUs, memory or GPUs, got none");
    return 0;
}

/* Checks that the engine accepts the pod's request. */
static int check_request(const struct trace_csv *csv, const struct trace_kind *kind,
                         struct berth_error *error)
{
    struct request request;
    int code = pod_trace_build_request(kind, &request, error);

    if (code < 0)
        return code;
    code = request_validate(&request, error);
    request_finish(&request);
    return code < 0 ? error_wrap(error, code, "%s:%zu", csv->name, csv->line) : 0;
}

static int read_pod(const struct trace_csv *csv, struct pod_list *pods, struct berth_error *error)
{
    size_t position = pods->count;
    struct pod *pod = vector_append(pods);
    struct trace_kind *kind;
    uint64_t gpus = 0;
    uint64_t part = 0;
    int code;

    if (pod == NULL)
        return error_set_memory(error);
    pod->position = position;
    kind = &pod->kind;
    code = read_host_part(csv, POD_CPUS, POD_MEMORY, &kind->cpus, &kind->memory, error);
    if (code == 0)
        code = trace_csv_number(csv, POD_GPUS, 0, TRACE_GPUS_MAX, &gpus, error);
    if (code == 0)
        code = trace_csv_number(csv, POD_PART, 0, TRACE_WHOLE, &part, error);
    kind->gpus = (uint32_t)gpus;
    kind->part = gpus == 0 ? 0 : (uint32_t)part;
    if (code == 0)
        code = check_pod(csv, kind, error);
    if (code == 0)
        code = read_models(csv, kind, error);
    return code < 0 ? code : check_request(csv, kind, error);
}

static int compare_numbers(uint64_t one, uint64_t other)
{
    return (one > other) - (one < other);
}

static int compare_kinds(const struct trace_kind *one, const struct trace_kind *other)
{
    int order = compare_numbers(one->gpus, other->gpus);

    if (order == 0)
        order = compare_numbers(one->part, other->part);
    if (order == 0)
        order = compare_numbers(one->cpus, other->cpus);
    if (order == 0)
        order = compare_numbers(one->memory, other->memory);
    return order != 0 ? order : strcmp(one->models, other->models);
}

static int compare_pods(const void *one, const void *other)
{
    const struct pod *pod = one;
    const struct pod *next = other;
    int order = compare_kinds(&pod->kind, &next->kind);

    return order != 0 ? order : compare_numbers(pod->position, next->position);
}

/* Groups the pods by kind and takes ownership of their strings. */
static int gather_kinds(struct pod_list *pods, struct pod_trace *trace, struct berth_error *error)
{
    struct trace_kind *kind = NULL;

    if (vector_reserve(&trace->pods, pods->count) < 0)
        return error_set_memory(error);
    trace->pods.count = pods->count;
    if (pods->count > 0)
        qsort(pods->items, pods->count, sizeof(*pods->items), compare_pods);
    for (size_t i = 0; i < pods->count; i++) {
        struct pod *pod = &pods->items[i];

        if (kind == NULL || compare_kinds(kind, &pod->kind) != 0) {
            kind = vector_append(&trace->kinds);
            if (kind == NULL)
                return error_set_memory(error);
            *kind = pod->kind;
            pod->kind.models = NULL;
        }
        kind->pods++;
        trace->pods.items[pod->position] = (uint32_t)(trace->kinds.count - 1);
    }
    return 0;
}

static bool wants_gpus(const struct pod_trace *trace)
{
    const struct trace_kind *kind;

    vector_for_each (kind, &trace->kinds) {
        if (kind->gpus > 0)
            return true;
    }
    return false;
}

static int read_pods(const char *path, struct pod_trace *trace, struct berth_error *error)
{
    struct pod_list pods = {0};
    struct pod *pod;
    struct trace_csv csv;
    int code = trace_csv_open(path, pod_columns, COUNT(pod_columns), &csv, error);

    while (code == 0 && (code = trace_csv_next(&csv, error)) > 0)
        code = read_pod(&csv, &pods, error);
    if (code == 0)
        code = gather_kinds(&pods, trace, error);
    if (code == 0 && !wants_gpus(trace))
        code = error_set(error, BERTH_ERROR_INVALID, "%s: expected pods with GPUs, got none", path);
    vector_for_each (pod, &pods)
        free(pod->kind.models);
    vector_finish(&pods);
    trace_csv_finish(&csv);
    return code;
}

int pod_trace_read(const char *nodes, const char *pods, uint32_t scale, struct pod_trace *ret_trace,
                   struct berth_error *error)
{
    struct pod_trace trace = {0};
    int code = read_nodes(nodes, scale, &trace, error);

    if (code == 0)
        code = read_pods(pods, &trace, error);
    if (code < 0) {
        pod_trace_finish(&trace);
        return code;
    }
    *ret_trace = trace;
    return 0;
}

static int add_devices(const struct trace_node *node, struct machine *machine)
{
    for (uint32_t i = 0; i < node->gpus; i++) {
        uint32_t index = (uint32_t)machine->devices.count;
        struct device *device = vector_append(&machine->devices);

        if (device == NULL)
            return BERTH_ERROR_MEMORY;
        device->id = (struct device_id){VENDOR_NVIDIA, index, DEVICE_NO_MIG};
        device->host = (uint32_t)(machine->hosts.count - 1);
        device->name = node->model == NULL ? NULL : strdup(node->model);
        if (node->model != NULL && device->name == NULL)
            return BERTH_ERROR_MEMORY;
    }
    return 0;
}

static int add_node(const struct trace_node *node, struct machine *machine)
{
    struct host *host = vector_append(&machine->hosts);

    if (host == NULL)
        return BERTH_ERROR_MEMORY;
    host->name = strdup(node->name);
    host->cpus = optional_number_of(node->cpus);
    host->memory = optional_number_of(node->memory);
    return host->name == NULL ? BERTH_ERROR_MEMORY : add_devices(node, machine);
}

int pod_trace_build_machine(const struct pod_trace *trace, const uint32_t *order,
                            struct machine *ret_machine, struct berth_error *error)
{
    struct machine machine = {0};
    int code = vector_reserve(&machine.devices, trace->capacity / TRACE_WHOLE);

    for (size_t i = 0; i < trace->nodes.count && code == 0; i++)
        code = add_node(&trace->nodes.items[order == NULL ? i : order[i]], &machine);
    if (code < 0) {
        machine_finish(&machine);
        return error_set_memory(error);
    }
    *ret_machine = machine;
    return 0;
}

int pod_trace_build_request(const struct trace_kind *kind, struct request *ret_request,
                            struct berth_error *error)
{
    struct request request;

    request_init(&request);
    request.gpus = (struct device_count){.min = kind->gpus, .max = kind->gpus};
    if (kind->gpus == 1 && kind->part < TRACE_WHOLE) {
        request.sharing = SHARING_TIME_SLICE;
        request.share = optional_number_of((uint64_t)kind->part * SHARE_UNIT);
    }
    if (kind->cpus > 0)
        request.cpus = optional_number_of(kind->cpus);
    if (kind->memory > 0)
        request.host_memory = optional_number_of(kind->memory);
    if (*kind->models != '\0' && (request.model = strdup(kind->models)) == NULL) {
        request_finish(&request);
        return error_set_memory(error);
    }
    *ret_request = request;
    return 0;
}
