/* SPDX-License-Identifier: Apache-2.0
 *
 * AMD devices in a made-up machine, read through the vendor's table.
 */
#ifndef TESTS_AMD_MACHINE_H
#define TESTS_AMD_MACHINE_H

#include "support/hardware/made_up_machine.h"

#include "hardware/sysfs/pci_names.h"
#include "hardware/vendors.h"

#define KFD_NODES "/sys/class/kfd/kfd/topology/nodes"

/* The worker's context, kept from step to step. */
static struct vendor_context amd_context;

/* The number of a KFD node that does not answer and is not read as a candidate; 0: none. */
static unsigned amd_stuck_node;

/* A setup function for cmocka. Device names come from its pci.ids, not from the installed one. */
static inline int amd_enter(void **state)
{
    if (machine_enter(state) < 0)
        return -1;
    amd_context.root = &machine;
    amd_stuck_node = 0;
    machine_file("/usr/share/misc/pci.ids", "1002  Advanced Micro Devices, Inc. [AMD/ATI]\n"
                                            "\t744c  Navi 31 [Radeon RX 7900 XT/7900 XTX]\n");
    return 0;
}

static inline int amd_leave(void **state)
{
    pci_names_finish();
    return machine_leave(state);
}

#define AMD_TEST(function) cmocka_unit_test_setup_teardown(function, amd_enter, amd_leave)

/* Writes a file of a KFD node, with a newline after its content. */
static inline void kfd_file(unsigned node, const char *name, const char *value)
{
    char directory[128];

    snprintf(directory, sizeof(directory), KFD_NODES "/%u", node);
    machine_value(directory, name, value);
}

/* Adds a KFD node for the CPUs of a NUMA node. */
static inline void kfd_cpus(unsigned node)
{
    kfd_file(node, "gpu_id", "0");
    kfd_file(node, "properties", "cpu_cores_count 8\nsimd_count 0\nlocation_id 0");
}

/* Adds a KFD node for a GPU. `more` has further properties, one per line. */
static inline void kfd_gpu(unsigned node, const char *gpu_id, const char *more)
{
    char properties[512];

    snprintf(properties, sizeof(properties), "cpu_cores_count 0\nsimd_count 192\n%s", more);
    kfd_file(node, "gpu_id", gpu_id);
    kfd_file(node, "properties", properties);
}

/* Adds a link that begins at a node. */
static inline void kfd_link(unsigned node, unsigned number, const char *properties)
{
    char name[64];

    snprintf(name, sizeof(name), "io_links/%u/properties", number);
    kfd_file(node, name, properties);
}

/* Adds a device of the amdgpu driver, "/sys/devices/pci0000:00/0000:03:00.0", with a card node and
 * a render node. */
static inline void amd_card(const char *device, const char *card, const char *render)
{
    machine_pci(device, "1002:744c");
    machine_driver(device, "pci", "amdgpu");
    machine_drm_node(device, card);
    machine_drm_node(device, render);
}

/* Reads the candidates as the supervisor does. The caller finishes them. Returns 0 or a code. */
static inline int amd_read_candidates(struct findings *ret_read, struct berth_error *error)
{
    struct findings listed = {0};
    char stuck[32];
    int code = amd_table.list_candidates(&amd_context, &listed, error);

    snprintf(stuck, sizeof(stuck), "number %u\n", amd_stuck_node);
    for (size_t i = 0; i < listed.found.count && code == 0; i++) {
        struct device_finding *candidate = &listed.found.items[i];
        struct device_finding *bare;

        if (amd_stuck_node == 0 || strcmp(candidate->key, stuck) != 0) {
            code = amd_table.read_candidate(&amd_context, candidate, ret_read, error);
            continue;
        }
        bare = finding_list_add(&ret_read->found, candidate->device->id);
        assert_non_null(bare);
        bare->key = candidate->key;
        candidate->key = NULL;
    }
    findings_finish(&listed);
    return code;
}

/* Reads the candidates and lists the devices. Returns 0 or a code. */
static inline int amd_try_list(struct findings *findings, struct berth_error *error)
{
    struct findings candidates = {0};
    int code = amd_read_candidates(&candidates, error);

    if (code == 0)
        code = amd_table.list(&amd_context, &candidates.found, findings, error);
    findings_finish(&candidates);
    return code;
}

static inline void amd_list(struct findings *findings)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (amd_try_list(findings, &error) < 0)
        fail_msg("%s", error.message);
}

/* Lists the devices and reads the one at this place. The caller finishes the findings. */
static inline struct device *amd_look(size_t place, struct findings *findings)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct findings listed = {0};

    amd_list(&listed);
    assert_true(place < listed.found.count);
    if (amd_table.read(&amd_context, &listed.found.items[place], findings, &error) < 0)
        fail_msg("%s", error.message);
    assert_int_equal(findings->found.count, 1);
    assert_true(device_id_equals(findings->found.items[0].device->id,
                                 listed.found.items[place].device->id));
    assert_string_equal(findings->found.items[0].key, listed.found.items[place].key);
    findings_finish(&listed);
    return findings->found.items[0].device;
}

#endif
