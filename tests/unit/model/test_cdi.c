/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the entries that CDI files offer is a device of ours.
 */
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "model/cdi.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"

#define UUID "GPU-5a3f7c1e-0000-1111-2222-333344445555"

/* Adds the entry "name node node ...". */
static void add_entry(struct cdi_registry *registry, const char *line)
{
    struct cdi_entry *entry = vector_append(registry);
    char *words = copy_of(line);
    char *rest = words;
    const char *word;

    assert_non_null(entry);
    while ((word = strsep(&rest, " ")) != NULL) {
        if (entry->name == NULL)
            entry->name = copy_of(word);
        else
            assert_int_equal(string_list_append(&entry->nodes, word), 0);
    }
    free(words);
}

/* Adds a device with these nodes. */
static struct device *give(struct machine *machine, const char *id, const char *uuid,
                           const char *nodes)
{
    struct device *device = machine_add(machine, id_of(id));
    char *words = copy_of(nodes);
    char *rest = words;
    const char *word;

    if (uuid != NULL)
        device->uuid = copy_of(uuid);
    while ((word = strsep(&rest, " ")) != NULL) {
        if (*word != '\0')
            assert_int_equal(string_list_append(&device->nodes, word), 0);
    }
    free(words);
    return device;
}

/* Checks which of the entries, ended by NULL, belongs to a device. */
static void check(const char *id, const char *uuid, const char *nodes, const char *wanted,
                  const char *const *entries)
{
    struct cdi_registry registry = {0};
    struct machine machine = {0};
    struct device *device = give(&machine, id, uuid, nodes);
    const char *found;

    device->pci = (struct pci_address){.known = true, .bus = 3};
    for (; *entries != NULL; entries++)
        add_entry(&registry, *entries);
    found = cdi_registry_find(&registry, device);
    if (wanted == NULL)
        assert_null(found);
    else
        assert_non_null(found);
    if (wanted != NULL)
        assert_string_equal(found, wanted);
    cdi_registry_finish(&registry);
    machine_finish(&machine);
}

#define CHECK(id, uuid, nodes, wanted, ...) \
    check(id, uuid, nodes, wanted, (const char *const[]){__VA_ARGS__, NULL})

#define NVIDIA0 "/dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools"

static void nvidia_by_its_file(void **state)
{
    (void)state;
    CHECK("nvidia0", NULL, NVIDIA0, "nvidia.com/gpu=0", "nvidia.com/gpu=0 /dev/nvidia0");
    /* Minor and index need not be the same. */
    CHECK("nvidia1", NULL, NVIDIA0, "nvidia.com/gpu=1", "nvidia.com/gpu=0 /dev/nvidia1",
          "nvidia.com/gpu=1 /dev/nvidia0");
    /* Files of all GPUs and files for displays are ignored. */
    CHECK("nvidia0", NULL, NVIDIA0, "nvidia.com/gpu=0",
          "nvidia.com/gpu=0 /dev/nvidia0 /dev/nvidiactl /dev/nvidia-modeset /dev/dri/card1 "
          "/dev/dri/renderD129");
    CHECK("nvidia0", NULL, NVIDIA0, NULL, "nvidia.com/gpu=x /dev/dri/card1");
    CHECK("nvidia0", NULL, NVIDIA0, NULL, "nvidia.com/gpu=1 /dev/nvidia1");
    CHECK("nvidia0", NULL, NVIDIA0, NULL, "nvidia.com/gds=0 /dev/nvidia-fs0");
    CHECK("nvidia0", NULL, "", NULL, "nvidia.com/gpu=0 /dev/nvidia0");
    CHECK("nvidia0", NULL, "/dev/nvidia00", NULL, "nvidia.com/gpu=0 /dev/nvidia0");
}

static void no_more_than_the_device(void **state)
{
    (void)state;
    CHECK("nvidia0", NULL, NVIDIA0, NULL, "nvidia.com/gpu=all /dev/nvidia0");
    CHECK("nvidia0", UUID, NVIDIA0, NULL, "nvidia.com/gpu=both /dev/nvidia0 /dev/nvidia1");
    CHECK("nvidia0", UUID, NVIDIA0, NULL, "nvidia.com/gpu=" UUID " /dev/nvidia0 /dev/nvidia1");
    CHECK("nvidia0", NULL, NVIDIA0, NULL,
          "nvidia.com/gpu=0:1 /dev/nvidia0 /dev/nvidia-caps/nvidia-cap30");
    CHECK("amd0", NULL, "/dev/kfd /dev/dri/renderD128", NULL,
          "any.com/gpu=two /dev/dri/renderD128 /dev/nvidia0");
}

static void by_uuid_before_others(void **state)
{
    (void)state;
    CHECK("nvidia0", UUID, NVIDIA0, "nvidia.com/gpu=" UUID, "nvidia.com/gpu=0 /dev/nvidia0",
          "nvidia.com/gpu=" UUID " /dev/nvidia0");
    CHECK("nvidia0", UUID, NVIDIA0, "a.com/gpu=0", "a.com/gpu=0 /dev/nvidia0",
          "b.com/gpu=0 /dev/nvidia0");
    /* Without a matching file, only the name decides. */
    CHECK("nvidia0", UUID, NVIDIA0, "nvidia.com/gpu=" UUID, "nvidia.com/gpu=" UUID);
    CHECK("nvidia0", UUID, "", "nvidia.com/gpu=" UUID, "nvidia.com/gpu=" UUID " /dev/dxg");
    CHECK("nvidia0", UUID, NVIDIA0, NULL, "nvidia.com/gpu=0");
    CHECK("nvidia0", NULL, NVIDIA0, NULL, "nvidia.com/gpu=" UUID);
    /* Device files take precedence over the name. */
    CHECK("nvidia0", UUID, NVIDIA0, NULL, "nvidia.com/gpu=" UUID " /dev/nvidia3");
}

#define MIG_NODES NVIDIA0 " /dev/nvidia-caps/nvidia-cap30 /dev/nvidia-caps/nvidia-cap31"

static void mig_by_its_capabilities(void **state)
{
    (void)state;
    CHECK("nvidia0.1", NULL, MIG_NODES, "nvidia.com/gpu=0:1", "nvidia.com/gpu=0 /dev/nvidia0",
          "nvidia.com/gpu=0:0 /dev/nvidia0 /dev/nvidia-caps/nvidia-cap21 "
          "/dev/nvidia-caps/nvidia-cap22",
          "nvidia.com/gpu=0:1 /dev/nvidia0 /dev/nvidia-caps/nvidia-cap30 "
          "/dev/nvidia-caps/nvidia-cap31");
    CHECK("nvidia0.1", "MIG-1", MIG_NODES, "nvidia.com/gpu=MIG-1",
          "nvidia.com/gpu=0:1 /dev/nvidia0 /dev/nvidia-caps/nvidia-cap30",
          "nvidia.com/gpu=MIG-1 /dev/nvidia0 /dev/nvidia-caps/nvidia-cap30");
    CHECK("nvidia0.1", "MIG-1", MIG_NODES, NULL, "nvidia.com/gpu=MIG-1 /dev/nvidia0");
    CHECK("nvidia0.1", "MIG-1", MIG_NODES, "nvidia.com/gpu=MIG-1", "nvidia.com/gpu=MIG-1");
}

static void other_vendors(void **state)
{
    static const char intel[] = "/dev/dri/renderD129 /dev/dri/card1";

    (void)state;
    CHECK("amd0", NULL, "/dev/dri/renderD128 /dev/dri/card0 /dev/kfd", "amd.com/gpu=0",
          "amd.com/gpu=0 /dev/kfd /dev/dri/card0 /dev/dri/renderD128");
    CHECK("amd0", NULL, "/dev/dri/renderD128 /dev/dri/card0 /dev/kfd", NULL,
          "amd.com/gpu=0 /dev/kfd");
    CHECK("intel0", NULL, intel, "intel.com/gpu=card1", "intel.com/gpu=card0 /dev/dri/card0",
          "intel.com/gpu=card1 /dev/dri/card1 /dev/dri/by-path/pci-0000:03:00.0-card");
    CHECK("intel0", NULL, intel, NULL,
          "gpu.intel.com/gpu=x /dev/dri/card1 /dev/dri/by-path/pci-0000:04:00.0-card");
    CHECK("dri0", NULL, "/dev/dri/renderD128", "any.com/gpu=0",
          "any.com/gpu=0 /dev/dri/renderD128");
    CHECK("dri0", NULL, "", NULL, "any.com/gpu=0 /dev/dri/renderD128");
}

static void merge_file(struct cdi_registry *registry, unsigned level, const char *line)
{
    struct cdi_registry file = {0};

    add_entry(&file, line);
    assert_int_equal(cdi_registry_merge(registry, &file, level), 0);
    assert_int_equal(file.count, 0);
}

static void check_found(const struct cdi_registry *registry, const struct device *device,
                        const char *wanted)
{
    const char *found = cdi_registry_find(registry, device);

    if (wanted == NULL)
        assert_null(found);
    else
        assert_string_equal(found, wanted);
}

static void a_higher_level_wins(void **state)
{
    struct cdi_registry registry = {0};
    struct machine machine = {0};
    const struct device *device = give(&machine, "nvidia0", NULL, NVIDIA0);

    (void)state;
    merge_file(&registry, 0, "nvidia.com/gpu=0 /dev/nvidia0");
    check_found(&registry, device, "nvidia.com/gpu=0");
    merge_file(&registry, 1, "nvidia.com/gpu=0 /dev/nvidia5");
    check_found(&registry, device, NULL);
    merge_file(&registry, 2, "nvidia.com/gpu=0 /dev/nvidia0");
    check_found(&registry, device, "nvidia.com/gpu=0");
    assert_int_equal(registry.count, 1);
    cdi_registry_finish(&registry);
    machine_finish(&machine);
}

static void twice_in_one_level_is_neither(void **state)
{
    struct cdi_registry registry = {0};
    struct machine machine = {0};
    const struct device *device = give(&machine, "nvidia0", NULL, NVIDIA0);

    (void)state;
    merge_file(&registry, 0, "nvidia.com/gpu=0 /dev/nvidia0");
    merge_file(&registry, 0, "nvidia.com/gpu=0 /dev/nvidia0");
    check_found(&registry, device, NULL);
    /* Another level with the same name does not help, as in container runtimes. */
    merge_file(&registry, 1, "nvidia.com/gpu=0 /dev/nvidia0");
    check_found(&registry, device, NULL);
    merge_file(&registry, 1, "nvidia.com/gpu=zero /dev/nvidia0");
    check_found(&registry, device, "nvidia.com/gpu=zero");
    cdi_registry_finish(&registry);
    machine_finish(&machine);
}

static void there_is_a_limit(void **state)
{
    struct cdi_registry registry = {0};
    struct cdi_registry file = {0};
    char name[32];

    (void)state;
    for (unsigned i = 0; i < CDI_ENTRIES_MAX; i++) {
        snprintf(name, sizeof(name), "a.com/gpu=%u", i);
        add_entry(&file, name);
    }
    assert_int_equal(cdi_registry_merge(&registry, &file, 0), 0);
    add_entry(&file, "a.com/gpu=more");
    assert_int_equal(cdi_registry_merge(&registry, &file, 0), BERTH_ERROR_LIMIT);
    assert_int_equal(registry.count, CDI_ENTRIES_MAX);
    cdi_registry_finish(&file);
    cdi_registry_finish(&registry);
}

static void no_memory(void **state)
{
    struct cdi_registry registry = {0};
    struct cdi_registry file = {0};
    int code;

    (void)state;
    add_entry(&file, "a.com/gpu=0 /dev/nvidia0");
    failing_allocator_start(1);
    code = cdi_registry_merge(&registry, &file, 0);
    assert_true(failing_allocator_stop());
    assert_int_equal(code, BERTH_ERROR_MEMORY);
    assert_int_equal(registry.count, 0);
    assert_int_equal(cdi_registry_merge(&registry, &file, 0), 0);
    assert_int_equal(registry.count, 1);
    cdi_registry_finish(&registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvidia_by_its_file),
        cmocka_unit_test(no_more_than_the_device),
        cmocka_unit_test(by_uuid_before_others),
        cmocka_unit_test(mig_by_its_capabilities),
        cmocka_unit_test(other_vendors),
        cmocka_unit_test(a_higher_level_wins),
        cmocka_unit_test(twice_in_one_level_is_neither),
        cmocka_unit_test(there_is_a_limit),
        cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests_name("cdi", tests, NULL, NULL);
}
