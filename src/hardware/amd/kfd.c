/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/amd/kfd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bitset.h"
#include "base/count.h"
#include "base/error.h"

#define NODES "/sys/class/kfd/kfd/topology/nodes"

/* The GPU's own memory, visible to the CPUs or not. */
#define HEAP_PUBLIC  1
#define HEAP_PRIVATE 2

/* The first link of a node usually leads to CPUs. If none of the first links does, the CPUs are
 * unknown. */
#define CPU_LINKS_MAX 4

/* A line of KFD's files, "name number", and where its number goes. */
struct kfd_property {
    const char *name;
    size_t offset; /* of a struct optional_number */
};

#define NODE_PROPERTY(member)                      \
    {                                              \
#member, offsetof(struct kfd_node, member) \
    }
static const struct kfd_property node_properties[] = {
    NODE_PROPERTY(cpu_cores_count),  NODE_PROPERTY(simd_count),  NODE_PROPERTY(gfx_target_version),
    NODE_PROPERTY(device_id),        NODE_PROPERTY(location_id), NODE_PROPERTY(domain),
    NODE_PROPERTY(drm_render_minor), NODE_PROPERTY(unique_id),
};

#define LINK_PROPERTY(member)                      \
    {                                              \
#member, offsetof(struct kfd_link, member) \
    }
static const struct kfd_property link_properties[] = {
    LINK_PROPERTY(type),
    LINK_PROPERTY(node_to),
    LINK_PROPERTY(min_bandwidth),
    LINK_PROPERTY(max_bandwidth),
};

struct bank {
    struct optional_number heap_type;
    struct optional_number size_in_bytes;
};

#define BANK_PROPERTY(member)                  \
    {                                          \
#member, offsetof(struct bank, member) \
    }
static const struct kfd_property bank_properties[] = {
    BANK_PROPERTY(heap_type),
    BANK_PROPERTY(size_in_bytes),
};

/* The facts of a packed node that are not in its properties. */
struct packed_facts {
    struct optional_number number;
    struct optional_number gpu_id;
    struct optional_number is_hidden; /* unknown: the node is stuck */
};

#define PACKED_FACT(member)                            \
    {                                                  \
#member, offsetof(struct packed_facts, member) \
    }
static const struct kfd_property packed_facts[] = {
    PACKED_FACT(number),
    PACKED_FACT(gpu_id),
    PACKED_FACT(is_hidden),
};

/* Reads decimal digits and nothing else. */
static struct optional_number parse_digits(const char *digits, size_t length)
{
    struct optional_number number = {.known = length > 0};

    for (size_t i = 0; i < length && number.known; i++)
        number.known =
            digits[i] >= '0' && digits[i] <= '9' &&
            !__builtin_mul_overflow(number.value, 10, &number.value) &&
            !__builtin_add_overflow(number.value, (uint64_t)(digits[i] - '0'), &number.value);
    return number.known ? number : (struct optional_number){0};
}

/* Parses the name of a directory: a number without leading zeros, so each number has only one name.
 * Returns false if it is no such name. */
static bool parse_name(const char *name, uint32_t *ret_number)
{
    struct optional_number number = parse_digits(name, strlen(name));

    if (!number.known || number.value > UINT32_MAX || (name[0] == '0' && name[1] != '\0'))
        return false;
    *ret_number = (uint32_t)number.value;
    return true;
}

/* Returns the length without a last line that may have been cut in the middle of a number. */
static size_t whole_lines(const struct sysroot_value *value)
{
    size_t length = value->length;

    if (length < sizeof(value->text) - 1)
        return length;
    while (length > 0 && value->text[length - 1] != '\n')
        length--;
    return length;
}

/* Reads the lines that the table names, at most 64. The first line with a name counts. */
static void parse_properties(const char *text, size_t length, const struct kfd_property *table,
                             size_t count, void *into)
{
    const char *end = length == 0 ? text : text + length; /* NULL + 0 is undefined */
    uint64_t seen = 0;

    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const char *line_end = stop == NULL ? end : stop;
        const char *blank = memchr(text, ' ', (size_t)(line_end - text));
        size_t name = blank == NULL ? 0 : (size_t)(blank - text);

        for (size_t i = 0; i < count && name > 0; i++)
            if ((seen >> i & 1) == 0 && strlen(table[i].name) == name &&
                memcmp(table[i].name, text, name) == 0) {
                seen |= UINT64_C(1) << i;
                *(struct optional_number *)((char *)into + table[i].offset) =
                    parse_digits(blank + 1, (size_t)(line_end - blank - 1));
            }
        text = stop == NULL ? end : stop + 1;
    }
}

void kfd_parse_node(const char *text, size_t length, struct kfd_node *node)
{
    parse_properties(text, length, node_properties, COUNT(node_properties), node);
}

void kfd_parse_link(const char *text, size_t length, struct kfd_link *ret_link)
{
    *ret_link = (struct kfd_link){0};
    parse_properties(text, length, link_properties, COUNT(link_properties), ret_link);
}

static bool is_refusal(int number)
{
    return number == -EPERM || number == -EACCES;
}

int kfd_read_node(const struct sysroot *root, uint32_t number, struct kfd_node *ret_node)
{
    struct kfd_node node = {.number = number};
    struct sysroot_value value;
    int properties_result, id_result;

    id_result = sysroot_read(root, &value, NODES "/%" PRIu32 "/gpu_id", number);
    if (id_result == 0)
        node.gpu_id = parse_digits(value.text, value.length);
    properties_result = sysroot_read(root, &value, NODES "/%" PRIu32 "/properties", number);
    if (properties_result == 0)
        kfd_parse_node(value.text, whole_lines(&value), &node);
    node.is_hidden = is_refusal(id_result) || is_refusal(properties_result);
    if (properties_result != 0 && id_result != 0 && !node.is_hidden)
        return properties_result;
    *ret_node = node;
    return 0;
}

int kfd_list(const struct sysroot *root, struct kfd_number_list *ret_numbers,
             struct berth_error *error)
{
    struct string_list names = {0};
    int result = sysroot_list(root, &names, NODES);
    int code = 0;
    char **name;

    if (result < 0 && result != -ENOENT && result != -ENOTDIR)
        code = error_set_errno(error, -result, "cannot list the nodes of KFD in %s", NODES);
    vector_for_each (name, &names) {
        uint32_t number;
        uint32_t *place;

        if (code < 0 || !parse_name(*name, &number))
            continue;
        place = vector_append(ret_numbers);
        if (place == NULL)
            code = error_set_memory(error);
        else
            *place = number;
    }
    string_list_finish(&names);
    return code;
}

static void append_properties(const struct kfd_property *table, size_t count, const void *from,
                              struct text *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct optional_number *number =
            (const struct optional_number *)((const char *)from + table[i].offset);

        if (number->known)
            text_append_format(out, "%s %" PRIu64 "\n", table[i].name, number->value);
    }
}

void kfd_pack_node(const struct kfd_node *node, struct text *out)
{
    struct packed_facts facts = {
        .number = optional_number_of(node->number),
        .gpu_id = node->gpu_id,
        .is_hidden = {.known = !node->is_stuck, .value = node->is_hidden},
    };

    append_properties(packed_facts, COUNT(packed_facts), &facts, out);
    append_properties(node_properties, COUNT(node_properties), node, out);
}

bool kfd_unpack_node(const char *text, struct kfd_node *ret_node)
{
    struct packed_facts facts = {0};
    struct kfd_node node = {0};

    parse_properties(text, strlen(text), packed_facts, COUNT(packed_facts), &facts);
    if (!facts.number.known || facts.number.value > UINT32_MAX)
        return false;
    kfd_parse_node(text, strlen(text), &node);
    node.number = (uint32_t)facts.number.value;
    node.gpu_id = facts.gpu_id;
    node.is_hidden = facts.is_hidden.value != 0;
    node.is_stuck = !facts.is_hidden.known;
    *ret_node = node;
    return true;
}

/* Decides as AMD's runtime does. A recorded machine may have only properties. A stuck node counts
 * as a GPU, because CPUs have no driver that hangs. */
bool kfd_is_gpu(const struct kfd_node *node)
{
    if (node->gpu_id.known)
        return node->gpu_id.value != 0;
    return node->is_stuck || (node->simd_count.known && node->simd_count.value > 0);
}

bool kfd_has_cpus(const struct kfd_node *node)
{
    return node->cpu_cores_count.known && node->cpu_cores_count.value > 0;
}

/* Bits 28 to 31 have the number of the partition if a GPU has several. For gfx94x, some kernels put
 * it into the bits of the function instead. */
struct pci_address kfd_pci(const struct sysroot *root, const struct kfd_node *node,
                           uint32_t *ret_partition)
{
    uint64_t location = node->location_id.value;
    struct pci_address pci = {
        .known = node->location_id.known && (location & 0xffff) != 0 &&
                 (location & ~UINT64_C(0xf000ffff)) == 0 &&
                 (!node->domain.known || node->domain.value <= UINT32_MAX),
        .domain = node->domain.known ? (uint32_t)node->domain.value : 0,
        .bus = (uint8_t)(location >> 8 & 0xff),
        .device = (uint8_t)(location >> 3 & 0x1f),
        .function = (uint8_t)(location & 7),
    };

    *ret_partition = 0;
    if (!pci.known)
        return (struct pci_address){0};
    *ret_partition = (uint32_t)(location >> 28);
    if (*ret_partition == 0 && pci.function != 0 && node->gfx_target_version.known &&
        node->gfx_target_version.value / 100 == 904 &&
        /* If this function exists, it is no partition, for example in a virtual machine. */
        !sysroot_has(root, "/sys/bus/pci/devices/%s/driver", pci_format(pci).text)) {
        *ret_partition = pci.function;
        pci.function = 0;
    }
    return pci;
}

/* Adds one memory bank if it is the GPU's own. */
static void add_bank(const struct sysroot *root, uint32_t number, const char *name, bool with_used,
                     struct kfd_memory *memory)
{
    struct optional_number used = {0};
    struct bank bank = {0};
    struct sysroot_value value;
    uint64_t total;

    if (sysroot_read(root, &value, NODES "/%" PRIu32 "/mem_banks/%s/properties", number, name) < 0)
        return;
    memory->is_listed = true;
    parse_properties(value.text, whole_lines(&value), bank_properties, COUNT(bank_properties),
                     &bank);
    if (!bank.heap_type.known || !bank.size_in_bytes.known || bank.size_in_bytes.value == 0 ||
        (bank.heap_type.value != HEAP_PUBLIC && bank.heap_type.value != HEAP_PRIVATE) ||
        __builtin_add_overflow(memory->total.value, bank.size_in_bytes.value, &total))
        return;
    memory->total = optional_number_of(total);
    if (with_used)
        used = sysroot_number(root, NODES "/%" PRIu32 "/mem_banks/%s/used_memory", number, name);
    /* In each bank the driver reports the memory used in all banks. */
    if (used.known)
        memory->used = used;
}

void kfd_read_memory(const struct sysroot *root, uint32_t number, bool with_used,
                     struct kfd_memory *ret_memory)
{
    struct string_list names = {0};
    uint32_t bank;
    char **name;

    *ret_memory = (struct kfd_memory){0};
    if (sysroot_list(root, &names, NODES "/%" PRIu32 "/mem_banks", number) == 0)
        vector_for_each (name, &names)
            if (parse_name(*name, &bank))
                add_bank(root, number, *name, with_used, ret_memory);
    string_list_finish(&names);
}

int kfd_read_links(const struct sysroot *root, uint32_t number, size_t max,
                   struct kfd_link_list *ret_links)
{
    int directory = sysroot_open(root, NODES "/%" PRIu32 "/io_links", number);
    struct string_list names = {0};
    size_t taken = 0;
    int result = 0;
    char **name;

    if (directory < 0)
        return 0;
    result = sysroot_list(root, &names, NODES "/%" PRIu32 "/io_links", number);
    vector_for_each (name, &names) {
        char path[sizeof("4294967295/properties")];
        struct sysroot_value value;
        struct kfd_link *link;
        uint32_t link_number;

        if (result == -ENOMEM || taken == max)
            break;
        if (!parse_name(*name, &link_number))
            continue;
        snprintf(path, sizeof(path), "%" PRIu32 "/properties", link_number);
        if (sysroot_read_at(directory, path, &value) < 0)
            continue;
        link = vector_append(ret_links);
        if (link == NULL)
            result = -ENOMEM;
        else
            kfd_parse_link(value.text, whole_lines(&value), link);
        taken++;
    }
    string_list_finish(&names);
    close(directory);
    return result == -ENOMEM ? -ENOMEM : 0;
}

/* Finds the node with CPUs that one of these links leads to. */
static bool find_cpus_among(const struct sysroot *root, uint32_t number,
                            const struct kfd_link_list *links, uint32_t *ret_number)
{
    const struct kfd_link *link;
    struct kfd_node other = {0};

    vector_for_each (link, links) {
        if (!link->node_to.known || link->node_to.value > UINT32_MAX ||
            link->node_to.value == number ||
            kfd_read_node(root, (uint32_t)link->node_to.value, &other) < 0 || !kfd_has_cpus(&other))
            continue;
        *ret_number = other.number;
        return true;
    }
    return false;
}

static bool find_cpu_node(const struct sysroot *root, uint32_t number, uint32_t *ret_number)
{
    struct kfd_link_list links = {0};
    bool is_found = false;

    for (size_t max = 1; max <= CPU_LINKS_MAX && !is_found; max *= CPU_LINKS_MAX) {
        links.count = 0;
        kfd_read_links(root, number, max, &links);
        is_found = find_cpus_among(root, number, &links, ret_number);
    }
    vector_finish(&links);
    return is_found;
}

/* KFD creates a node for each NUMA node with CPUs, in order, before the nodes of GPUs. */
static struct optional_number numa_of_ordinal(const struct sysroot *root, size_t ordinal)
{
    struct optional_number numa = optional_number_of(ordinal);
    struct sysroot_value value;
    struct bitset with_cpus;

    if (sysroot_read(root, &value, "/sys/devices/system/node/has_cpu") < 0 ||
        bitset_parse_ranges(value.text, SYSROOT_NAMES_MAX, &with_cpus, NULL) < 0)
        return numa;
    numa.known = false;
    bitset_for_each (node, &with_cpus)
        if (ordinal-- == 0)
            numa = optional_number_of(node);
    bitset_finish(&with_cpus);
    return numa;
}

struct optional_number kfd_numa(const struct sysroot *root, const struct kfd_node *node)
{
    uint32_t cpu_node = node->number;
    struct kfd_node other = {0};
    size_t ordinal = 0;

    if (!kfd_has_cpus(node) && !find_cpu_node(root, node->number, &cpu_node))
        return (struct optional_number){0};
    for (uint32_t number = 0; number < cpu_node; number++) {
        if (kfd_read_node(root, number, &other) < 0)
            return (struct optional_number){0};
        ordinal += kfd_has_cpus(&other);
    }
    return numa_of_ordinal(root, ordinal);
}
