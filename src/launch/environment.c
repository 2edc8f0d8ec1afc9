/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/environment.h"

#include <inttypes.h>
#include <string.h>

#include "base/bitset.h"
#include "base/count.h"
#include "base/error.h"
#include "base/text.h"

enum { CPUS_MOST = 65536 };

enum variable {
    VARIABLE_NONE,
    CUDA_VISIBLE_DEVICES,
    CUDA_DEVICE_ORDER,
    NVIDIA_VISIBLE_DEVICES,
    ROCR_VISIBLE_DEVICES,
    HIP_VISIBLE_DEVICES,
    GPU_DEVICE_ORDINAL,
    ZE_AFFINITY_MASK,
    ZE_ENABLE_PCI_ID_DEVICE_ORDER,
    ONEAPI_DEVICE_SELECTOR,
    BERTH_LEASE,
    BERTH_DEVICES,
    BERTH_DEVICE_NODES,
    BERTH_CDI_DEVICES,
    BERTH_CPUS,
    BERTH_SOCKET,
    BERTH_INVENTORY,
    BERTH_REPLICA,
    VARIABLES,
};

struct name {
    const char *text;
    size_t length;
};
#define NAME(variable) [variable] = {#variable, sizeof(#variable) - 1}

static const struct name names[VARIABLES] = {
    NAME(CUDA_VISIBLE_DEVICES),   NAME(CUDA_DEVICE_ORDER),
    NAME(NVIDIA_VISIBLE_DEVICES), NAME(ROCR_VISIBLE_DEVICES),
    NAME(HIP_VISIBLE_DEVICES),    NAME(GPU_DEVICE_ORDINAL),
    NAME(ZE_AFFINITY_MASK),       NAME(ZE_ENABLE_PCI_ID_DEVICE_ORDER),
    NAME(ONEAPI_DEVICE_SELECTOR), NAME(BERTH_LEASE),
    NAME(BERTH_DEVICES),          NAME(BERTH_DEVICE_NODES),
    NAME(BERTH_CDI_DEVICES),      NAME(BERTH_CPUS),
    NAME(BERTH_SOCKET),           NAME(BERTH_INVENTORY),
    NAME(BERTH_REPLICA),
};

/* How a mask calls a device. */
enum naming {
    NAMING_INDEX,       /* all that the vendor understands */
    NAMING_AS_WANTED,   /* the index; the UUID with --uuid and, as it has no index, for MIG */
    NAMING_UUID_IF_ALL, /* the UUID, or the index where one of the devices has none known */
};

static const struct vendor_masks {
    struct mask_rule {
        enum variable variable;
        enum naming naming;
        const char *hidden; /* what leaves no device; an empty mask means all to some */
    } masks[2];
    /* What makes the masks count as we do. */
    enum variable order;
    const char *order_value;
    /* The vendor's runtime also reads this mask, which is another vendor's, unless the other
     * variable is there; that one counts within the vendor's own mask. */
    enum variable also_read;
    enum variable read_before;
} vendor_masks[VENDOR_DRI + 1] = {
    [VENDOR_NVIDIA] = {.masks = {{CUDA_VISIBLE_DEVICES, NAMING_AS_WANTED, "-1"},
                                 {NVIDIA_VISIBLE_DEVICES, NAMING_UUID_IF_ALL, "void"}},
                       .order = CUDA_DEVICE_ORDER,
                       .order_value = "PCI_BUS_ID"},
    [VENDOR_AMD] = {.masks = {{ROCR_VISIBLE_DEVICES, NAMING_AS_WANTED, "-1"}},
                    .also_read = CUDA_VISIBLE_DEVICES,
                    .read_before = HIP_VISIBLE_DEVICES},
    [VENDOR_INTEL] = {.masks = {{ZE_AFFINITY_MASK, NAMING_INDEX, "99999"}},
                      .order = ZE_ENABLE_PCI_ID_DEVICE_ORDER,
                      .order_value = "1"},
    /* The others have none. */
};

/* These would narrow or replace our masks. */
static const enum variable never_inherited[] = {
    HIP_VISIBLE_DEVICES,
    GPU_DEVICE_ORDINAL,
    ONEAPI_DEVICE_SELECTOR,
    BERTH_REPLICA,
};

/* What becomes of each variable: as inherited, removed, or NAME=VALUE. */
struct change {
    bool is_ours;
    struct text assignment;
};

struct building {
    const struct launch_facts *facts;
    const struct device *devices;
    const struct device *devices_end;
    struct change changes[VARIABLES];
};

static void remove_variable(struct building *building, enum variable variable)
{
    building->changes[variable].is_ours = true;
    text_clear(&building->changes[variable].assignment);
}

/* The text that the value is to be appended to. */
static struct text *begin_value(struct building *building, enum variable variable)
{
    struct text *assignment = &building->changes[variable].assignment;

    remove_variable(building, variable);
    text_append_bytes(assignment, names[variable].text, names[variable].length);
    text_append_char(assignment, '=');
    return assignment;
}

static void set_value(struct building *building, enum variable variable, const char *value)
{
    text_append(begin_value(building, variable), value);
}

static bool is_set(const struct building *building, enum variable variable)
{
    const struct text *assignment = &building->changes[variable].assignment;

    return assignment->length > 0 || text_failed(assignment);
}

/* Whether the masks of this rule hold UUIDs. */
static bool uses_uuids(const struct building *building, enum vendor vendor, enum naming naming)
{
    bool all_known = true;
    bool has_partition = false;

    for (const struct device *device = building->devices; device < building->devices_end;
         device++) {
        if (device->id.vendor != vendor)
            continue;
        all_known = all_known && device->uuid != NULL;
        has_partition = has_partition || device->id.mig != DEVICE_NO_MIG;
    }
    if (naming == NAMING_AS_WANTED)
        return building->facts->uuid || has_partition;
    return naming == NAMING_UUID_IF_ALL && all_known;
}

static int set_mask(struct building *building, enum vendor vendor, const struct mask_rule *rule,
                    struct berth_error *error)
{
    bool by_uuid = uses_uuids(building, vendor, rule->naming);
    struct text *value = begin_value(building, rule->variable);
    const char *separator = "";

    for (const struct device *device = building->devices; device < building->devices_end;
         device++) {
        if (device->id.vendor != vendor)
            continue;
        text_append(value, separator);
        separator = ",";
        if (!by_uuid)
            text_append_format(value, "%" PRIu32, device->id.index);
        else if (device->uuid != NULL)
            text_append(value, device->uuid);
        else
            return error_set(error, BERTH_ERROR_INVALID,
                             "wanted the UUID of %s for %s, found none known",
                             device_id_format(device->id).text, names[rule->variable].text);
    }
    return 0;
}

static size_t count_of_vendor(const struct building *building, enum vendor vendor)
{
    size_t count = 0;

    for (const struct device *device = building->devices; device < building->devices_end; device++)
        count += device->id.vendor == vendor;
    return count;
}

static int set_vendor(struct building *building, enum vendor vendor, struct berth_error *error)
{
    const struct vendor_masks *rule = &vendor_masks[vendor];
    bool is_leased = count_of_vendor(building, vendor) > 0;

    if (!is_leased && (building->facts->vendors & UINT32_C(1) << vendor) == 0)
        return 0;
    for (size_t i = 0; i < COUNT(rule->masks) && rule->masks[i].variable != VARIABLE_NONE; i++) {
        int code = 0;

        if (is_leased)
            code = set_mask(building, vendor, &rule->masks[i], error);
        else
            set_value(building, rule->masks[i].variable, rule->masks[i].hidden);
        if (code < 0)
            return code;
    }
    if (is_leased && rule->order != VARIABLE_NONE)
        set_value(building, rule->order, rule->order_value);
    return 0;
}

/* Keeps another vendor's mask, ours or inherited, from narrowing this vendor's. */
static void shield_vendor(struct building *building, enum vendor vendor)
{
    const struct vendor_masks *rule = &vendor_masks[vendor];
    size_t count = count_of_vendor(building, vendor);
    struct text *value;

    if (rule->also_read == VARIABLE_NONE || count == 0)
        return;
    if (!is_set(building, rule->also_read)) {
        remove_variable(building, rule->also_read);
        return;
    }
    value = begin_value(building, rule->read_before);
    for (size_t i = 0; i < count; i++)
        text_append_format(value, i == 0 ? "%zu" : ",%zu", i);
}

static void set_ids(struct building *building)
{
    struct text *ids = begin_value(building, BERTH_DEVICES);
    struct text *cdi = begin_value(building, BERTH_CDI_DEVICES);
    const char *separator = "";

    for (const struct device *device = building->devices; device < building->devices_end;
         device++) {
        struct device_id_text id = device_id_format(device->id);

        text_append(ids, separator);
        text_append(ids, id.text);
        text_append(cdi, separator);
        text_append(cdi, "berth/gpu=");
        text_append(cdi, id.text);
        separator = ",";
    }
}

/* Whether a device before this one has the node too, as nvidia's have /dev/nvidiactl. */
static bool has_earlier(const struct building *building, const struct device *device,
                        const char *node)
{
    char *const *other;

    for (const struct device *earlier = building->devices; earlier < device; earlier++) {
        vector_for_each (other, &earlier->nodes) {
            if (strcmp(*other, node) == 0)
                return true;
        }
    }
    return false;
}

static void set_nodes(struct building *building)
{
    struct text *value = begin_value(building, BERTH_DEVICE_NODES);
    const char *separator = "";
    char *const *node;

    for (const struct device *device = building->devices; device < building->devices_end;
         device++) {
        vector_for_each (node, &device->nodes) {
            if (has_earlier(building, device, *node))
                continue;
            text_append(value, separator);
            text_append(value, *node);
            separator = ":";
        }
    }
}

/* Sets the union of what is known; what does not parse is not known. */
static int set_cpus(struct building *building)
{
    struct text lists = {0};
    struct bitset cpus;
    const char *last = "";
    int code = 0;

    remove_variable(building, BERTH_CPUS);
    for (const struct device *device = building->devices; device < building->devices_end;
         device++) {
        if (device->cpus == NULL || strcmp(device->cpus, last) == 0)
            continue;
        if (lists.length > 0)
            text_append_char(&lists, ',');
        text_append(&lists, device->cpus);
        last = device->cpus;
    }
    if (lists.length > 0)
        code = bitset_parse_ranges(text_string(&lists), CPUS_MOST, &cpus, NULL);
    if (lists.length > 0 && code == 0) {
        bitset_format_ranges(&cpus, begin_value(building, BERTH_CPUS));
        bitset_finish(&cpus);
    }
    if (text_failed(&lists))
        code = BERTH_ERROR_MEMORY;
    text_finish(&lists);
    return code == BERTH_ERROR_MEMORY ? code : 0;
}

static int decide(struct building *building, struct berth_error *error)
{
    const struct launch_facts *facts = building->facts;

    for (size_t i = 0; i < COUNT(never_inherited); i++)
        remove_variable(building, never_inherited[i]);
    for (enum vendor vendor = 0; vendor < COUNT(vendor_masks); vendor++) {
        int code = set_vendor(building, vendor, error);

        if (code < 0)
            return code;
    }
    for (enum vendor vendor = 0; vendor < COUNT(vendor_masks); vendor++)
        shield_vendor(building, vendor);
    if (facts->lease != 0)
        text_append_format(begin_value(building, BERTH_LEASE), "%" PRIu64, facts->lease);
    if (facts->socket != NULL)
        set_value(building, BERTH_SOCKET, facts->socket);
    if (facts->inventory != NULL)
        set_value(building, BERTH_INVENTORY, facts->inventory);
    if (facts->has_replica)
        text_append_format(begin_value(building, BERTH_REPLICA), "%" PRIu32, facts->replica);
    set_ids(building);
    set_nodes(building);
    if (set_cpus(building) < 0)
        return error_set_memory(error);
    return 0;
}

static bool is_inherited(const struct building *building, const char *entry)
{
    for (enum variable variable = VARIABLE_NONE + 1; variable < VARIABLES; variable++) {
        const struct name *name = &names[variable];

        if (building->changes[variable].is_ours && entry[0] == name->text[0] &&
            strncmp(entry, name->text, name->length) == 0 && entry[name->length] == '=')
            return false;
    }
    return true;
}

/* Puts the whole together. */
static int assemble(struct building *building, char *const *inherited,
                    struct string_list *environment)
{
    for (; *inherited != NULL; inherited++) {
        if (is_inherited(building, *inherited) && string_list_append(environment, *inherited) < 0)
            return BERTH_ERROR_MEMORY;
    }
    for (enum variable variable = VARIABLE_NONE + 1; variable < VARIABLES; variable++) {
        struct text *assignment = &building->changes[variable].assignment;
        char **place;

        if (text_failed(assignment))
            return BERTH_ERROR_MEMORY;
        if (assignment->length == 0)
            continue;
        place = vector_append(environment);
        if (place == NULL)
            return BERTH_ERROR_MEMORY;
        *place = text_take(assignment);
    }
    return vector_append(environment) == NULL ? BERTH_ERROR_MEMORY : 0;
}

int launch_environment(const struct launch_facts *facts, char *const *inherited,
                       struct string_list *ret_environment, struct berth_error *error)
{
    struct building building = {.facts = facts};
    struct string_list environment = {0};
    int code;

    if (facts->lease != 0 && facts->device_count > 0) {
        building.devices = facts->devices;
        building.devices_end = facts->devices + facts->device_count;
    }
    code = decide(&building, error);
    if (code == 0 && assemble(&building, inherited, &environment) < 0)
        code = error_set_memory(error);
    for (enum variable variable = VARIABLE_NONE; variable < VARIABLES; variable++)
        text_finish(&building.changes[variable].assignment);
    if (code == 0)
        *ret_environment = environment;
    else
        string_list_finish(&environment);
    return code;
}
