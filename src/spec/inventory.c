/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/inventory.h"

#include <string.h>

#include "base/bitset.h"
#include "base/count.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "codec/device_tags.h"
#include "spec/field.h"
#include "spec/inventory_checks.h"

enum {
    CPUS_MAX = 65536,
    LANES_MAX = 1024,
    MINOR_MAX = 1048575, /* the maximum of Linux */
    NUMA_MAX = 1023,
};

static int parse_pci(const struct field *field, const char *text, void *target,
                     struct berth_error *error)
{
    (void)field;
    return pci_parse(text, target, error);
}

static int parse_capability(const struct field *field, const char *text, void *target,
                            struct berth_error *error)
{
    (void)field;
    return capability_parse(text, target, error);
}

static int parse_device_id(const struct field *field, const char *text, void *target,
                           struct berth_error *error)
{
    (void)field;
    return device_id_parse(text, target, error);
}

/* Reads a list of CPUs and stores it in the kernel's notation. */
static int parse_cpus(const struct field *field, const char *text, void *target,
                      struct berth_error *error)
{
    struct text ranges = {0};
    struct bitset cpus;
    int code = bitset_parse_ranges(text, (size_t)field->max, &cpus, error);

    if (code < 0)
        return code;
    bitset_format_ranges(&cpus, &ranges);
    bitset_finish(&cpus);
    if (ranges.length > DEVICE_TEXT_MAX) {
        text_finish(&ranges);
        return error_set(error, BERTH_ERROR_LIMIT, "expected a list of at most %d bytes, got more",
                         DEVICE_TEXT_MAX);
    }
    *(char **)target = text_detach(&ranges);
    return *(char **)target == NULL ? error_set_memory(error) : 0;
}

/* Reads the size of the free memory. */
static int parse_free(const struct field *field, const char *text, void *target,
                      struct berth_error *error)
{
    struct optional_number size;
    int code = field_size.parse(field, text, &size, error);

    if (code == 0)
        *(struct figure *)target = load_figure_declared((int64_t)size.value);
    return code;
}

/* Reads a number with a decimal point, in units of 10^-decimals. */
static int parse_figure(const struct field *field, const char *text, void *target,
                        struct berth_error *error)
{
    uint64_t value;
    int code = quantity_parse_decimal(text, field->decimals, field->max, &value, error);

    if (code == 0)
        *(struct figure *)target = load_figure_declared((int64_t)value);
    return code;
}

static const struct field_type type_pci = {
    .wanted = "a PCI address such as 0000:07:00.0",
    .parse = parse_pci,
};
static const struct field_type type_capability = {
    .wanted = "a compute capability such as 8.0",
    .parse = parse_capability,
};
static const struct field_type type_device_id = {
    .wanted = "a device id",
    .parse = parse_device_id,
};
static const struct field_type type_cpus = {
    .wanted = "CPU numbers such as 0-15,32-47",
    .parse = parse_cpus,
};
static const struct field_type type_free = {.wanted = "a size such as 8GiB", .parse = parse_free};
static const struct field_type type_figure = {.wanted = "a number", .parse = parse_figure};

static int read_between(const struct field_reading *reading, const struct field *field,
                        const struct document_node *node, void *target)
{
    struct described_link *link = target;
    int code = 0;

    if (node->kind != NODE_LIST || node->count != 2)
        return document_error(reading->document, node, reading->error, BERTH_ERROR_SYNTAX,
                              "%s: expected a list of 2 device ids, got %s", field->name,
                              document_node_describe(node).text);
    for (size_t i = 0; i < 2 && code == 0; i++) {
        link->nodes[i] = node->items[i];
        code = field_read(reading, &type_device_id, field, node->items[i], &link->between[i]);
    }
    return code;
}

static const struct field_type type_between = {.read = read_between};

#define DEVICE(member) offsetof(struct device, member)

static const struct field device_fields[] = {
    {"vendor", &field_choice, .offset = DEVICE(id.vendor), .required = true,
     .choices = vendor_names},
    {"index", &field_number32, .offset = DEVICE(id.index), .required = true,
     .max = DEVICE_INDEX_MAX},
    {"mig", &field_number32, .offset = DEVICE(id.mig), .max = DEVICE_INDEX_MAX},
    {"name", &field_text, .offset = DEVICE(name)},
    {"uuid", &field_text, .offset = DEVICE(uuid)},
    {"parent", &field_text, .offset = DEVICE(parent)},
    {"pci", &type_pci, .offset = DEVICE(pci)},
    {"minor", &field_number, .offset = DEVICE(minor), .max = MINOR_MAX},
    {"tiles", &field_number, .offset = DEVICE(tiles), .min = 1, .max = DEVICE_TILES_MAX},
    {"memory", &field_size, .offset = DEVICE(memory_total)},
    {"free", &type_free, .offset = DEVICE(load.memory_free)},
    {"cap", &type_capability, .offset = DEVICE(cap)},
    {"numa", &field_number, .offset = DEVICE(numa), .max = NUMA_MAX},
    {"cpus", &type_cpus, .offset = DEVICE(cpus), .max = CPUS_MAX},
    {"health", &field_choice, .offset = DEVICE(health), .choices = health_names},
    {"utilization", &type_figure, .offset = DEVICE(load.utilization), .decimals = 3, .max = 1000},
    {"temperature", &type_figure, .offset = DEVICE(load.temperature), .decimals = 3,
     .max = 1000000},
    {"power", &type_figure, .offset = DEVICE(load.power), .decimals = 3, .max = 1000000000},
    {"nodes", &field_texts, .offset = DEVICE(nodes)},
};

static const struct record device_record = {
    .what = "a device",
    .fields = device_fields,
    .field_count = COUNT(device_fields),
    .check = inventory_check_device,
};

static const struct field link_fields[] = {
    {"between", &type_between, .required = true},
    {"kind", &field_choice, .offset = offsetof(struct described_link, kind), .required = true,
     .choices = link_kind_names},
    {"lanes", &field_number32, .offset = offsetof(struct described_link, lanes), .min = 1,
     .max = LANES_MAX},
};

static const struct record link_record = {
    .what = "a link",
    .fields = link_fields,
    .field_count = COUNT(link_fields),
    .check = inventory_check_link,
};

static void *append_device(void *list)
{
    struct device *device = vector_append((struct device_list *)list);

    if (device != NULL)
        device->id.mig = DEVICE_NO_MIG;
    return device;
}

static void *append_link(void *list)
{
    return vector_append((struct described_link_list *)list);
}

static const struct field inventory_fields[] = {
    {"devices", &field_records, .offset = offsetof(struct described_machine, devices),
     .required = true, .record = &device_record, .append = append_device},
    {"links", &field_records, .offset = offsetof(struct described_machine, links),
     .record = &link_record, .append = append_link},
};

static const struct record inventory_record = {
    .what = "an inventory",
    .fields = inventory_fields,
    .field_count = COUNT(inventory_fields),
    .check = inventory_check_machine,
};

static int build_machine(const struct document *document, struct machine *ret_machine,
                         struct berth_error *error)
{
    const struct field_reading reading = {.document = document, .error = error};
    struct described_machine described = {0};
    struct machine machine = {0};
    int code;

    if (document->root == NULL)
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "%s:1:1: expected an inventory with the field 'devices', got nothing",
                         document->file);
    code = field_read_record(&reading, &inventory_record, document->root, &described);
    machine.devices = described.devices;
    if (code == 0)
        code = inventory_checks_resolve_links(&reading, &described, &machine);
    vector_finish(&described.links);
    if (code < 0) {
        machine_finish(&machine);
        return code;
    }
    *ret_machine = machine;
    return 0;
}

int inventory_parse(const char *file, const char *text, size_t length, struct machine *ret_machine,
                    struct berth_error *error)
{
    struct document document;
    int code = document_parse(&document, file, text, length, error);

    if (code < 0)
        return code;
    code = build_machine(&document, ret_machine, error);
    document_finish(&document);
    return code;
}

int inventory_read(const char *path, struct machine *ret_machine, struct berth_error *error)
{
    struct document document;
    int code = document_read(&document, path, error);

    if (code < 0)
        return code;
    code = build_machine(&document, ret_machine, error);
    document_finish(&document);
    return code;
}
