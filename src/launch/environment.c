/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/environment.h"

#include <string.h>

#include "base/bitset.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "base/text/text.h"
#include "launch/cpus.h"
#include "launch/environment_changes.h"
#include "launch/environment_masks.h"

#define MEBIBYTE (UINT64_C(1) << 20)
/* A share is in millionths, and one percent is 10^4 millionths. */
#define PERCENT_DECIMALS 4

struct environment_builder {
    const struct launch_facts *facts;
    const struct device *devices;
    const struct device *devices_end;
    struct environment_changes changes;
};

/* Appends the CDI name of the device. Prefers the vendor's entry, which also adds the vendor's
 * libraries. */
static void append_cdi_name(const struct environment_builder *building, const struct device *device,
                            struct text *out)
{
    const struct cdi_registry *registry = building->facts->cdi;
    const char *name = registry == NULL ? NULL : cdi_registry_find(registry, device);

    if (name != NULL) {
        text_append(out, name);
        return;
    }
    text_append(out, CDI_KIND "=");
    device_id_append(device->id, out);
}

static void set_ids(struct environment_builder *building)
{
    struct text *ids = environment_changes_begin_value(&building->changes, BERTH_DEVICES);
    struct text *cdi = environment_changes_begin_value(&building->changes, BERTH_CDI_DEVICES);
    const char *separator = "";

    for (const struct device *device = building->devices; device < building->devices_end;
         device++) {
        struct device_id_text id = device_id_format(device->id);

        text_append(ids, separator);
        text_append(ids, id.text);
        text_append(cdi, separator);
        append_cdi_name(building, device, cdi);
        separator = ",";
    }
}

/* Returns true if an earlier device has the same node: all nvidia devices have /dev/nvidiactl. */
static bool has_earlier(const struct environment_builder *building, const struct device *device,
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

static void set_nodes(struct environment_builder *building)
{
    struct text *value = environment_changes_begin_value(&building->changes, BERTH_DEVICE_NODES);
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

static int set_cpus(struct environment_builder *building)
{
    size_t count = (size_t)(building->devices_end - building->devices);
    struct bitset cpus;
    int code = cpus_near(building->devices, count, &cpus);

    environment_changes_remove(&building->changes, BERTH_CPUS);
    if (code == 0) {
        bitset_format_ranges(&cpus,
                             environment_changes_begin_value(&building->changes, BERTH_CPUS));
        bitset_finish(&cpus);
    }
    return code == BERTH_ERROR_MEMORY ? code : 0;
}

static void set_pool(struct environment_changes *changes, const struct launch_facts *facts)
{
    if (facts->lease != 0)
        environment_changes_set_number(changes, BERTH_LEASE, facts->lease);
    if (facts->socket != NULL)
        environment_changes_set(changes, BERTH_SOCKET, facts->socket);
    if (facts->inventory != NULL)
        environment_changes_set(changes, BERTH_INVENTORY, facts->inventory);
    environment_changes_remove(changes, BERTH_REPLICA);
    if (facts->has_replica)
        environment_changes_set_number(changes, BERTH_REPLICA, facts->replica);
}

/* Sets the variables of MPS. Removes inherited limits, which belong to another lease. */
static void set_mps(struct environment_changes *changes, const struct mps_facts *mps)
{
    environment_changes_set(changes, CUDA_MPS_PIPE_DIRECTORY, mps->pipe_dir);
    environment_changes_set(changes, CUDA_MPS_LOG_DIRECTORY, mps->log_dir);
    environment_changes_remove(changes, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE);
    environment_changes_remove(changes, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT);
    if (mps->share.known) {
        int64_t share = (int64_t)mps->share.value;

        environment_changes_set(changes, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE,
                                quantity_format_decimal(share, PERCENT_DECIMALS).text);
    }
    /* The limit, in mebibytes, is for device 0: the mask leaves only one device. */
    if (mps->memory.known) {
        uint64_t mebibytes = mps->memory.value / MEBIBYTE;
        struct text *limit =
            environment_changes_begin_value(changes, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT);

        text_append(limit, "0=");
        text_append_number(limit, mebibytes > 0 ? mebibytes : 1);
        text_append_char(limit, 'M');
    }
}

static void set_rank(struct environment_changes *changes, const struct rank_facts *rank)
{
    environment_changes_set_number(changes, RANK, rank->rank);
    environment_changes_set_number(changes, WORLD_SIZE, rank->world_size);
    environment_changes_set_number(changes, LOCAL_RANK, rank->local_rank);
    environment_changes_set_number(changes, LOCAL_WORLD_SIZE, rank->local_world_size);
    environment_changes_set_number(changes, GROUP_RANK, rank->group_rank);
    environment_changes_set(changes, MASTER_ADDR, rank->address);
    environment_changes_set_number(changes, MASTER_PORT, rank->port);
    environment_changes_set(changes, BERTH_BACKEND, rank->backend);
    if (rank->interface != NULL) {
        environment_changes_set(changes, NCCL_SOCKET_IFNAME, rank->interface);
        environment_changes_set(changes, GLOO_SOCKET_IFNAME, rank->interface);
    }
}

static int set_variables(struct environment_builder *building, char *const *inherited,
                         struct berth_error *error)
{
    const struct launch_facts *facts = building->facts;
    int code = environment_masks_set(facts, inherited, &building->changes, error);

    if (code < 0)
        return code;
    set_pool(&building->changes, facts);
    set_ids(building);
    set_nodes(building);
    if (facts->mps != NULL)
        set_mps(&building->changes, facts->mps);
    if (facts->rank != NULL)
        set_rank(&building->changes, facts->rank);
    return set_cpus(building) < 0 ? error_set_memory(error) : 0;
}

int launch_environment(const struct launch_facts *facts, char *const *inherited,
                       struct string_list *ret_environment, struct berth_error *error)
{
    struct environment_builder building = {.facts = facts};
    struct string_list environment = {0};
    int code;

    if (facts->lease != 0 && facts->device_count > 0) {
        building.devices = facts->devices;
        building.devices_end = facts->devices + facts->device_count;
    }
    code = set_variables(&building, inherited, error);
    if (code == 0 && environment_changes_apply(&building.changes, inherited, &environment) < 0)
        code = error_set_memory(error);
    environment_changes_finish(&building.changes);
    if (code == 0)
        *ret_environment = environment;
    else
        string_list_finish(&environment);
    return code;
}
