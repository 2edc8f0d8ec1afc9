/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "launch/masks/inherited_masks.h"

#include <berth/error.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/text/text.h"
#include "launch/environment.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"

#define COMPOSITE "ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE"

/* Up to four masks, and the ids that they leave; "": none; NULL: no limit. */
struct row {
    const char *masks[4];
    const char *left;
};

static void check_row(const struct machine *machine, const struct row *row)
{
    struct string_list masks = {0};
    struct device_id_list ids = {0};
    struct berth_error error = BERTH_ERROR_INIT;
    struct text left = {0};
    bool has_mask = false;
    const struct device_id *id;

    for (size_t i = 0; i < COUNT(row->masks) && row->masks[i] != NULL; i++)
        assert_int_equal(string_list_append(&masks, row->masks[i]), 0);
    assert_int_equal(inherited_masks_resolve(&masks, machine, &ids, &has_mask, &error), 0);
    assert_string_equal(error.message, "");
    vector_for_each (id, &ids)
        text_append_format(&left, "%s%s", left.length > 0 ? "," : "", device_id_format(*id).text);
    if (has_mask != (row->left != NULL) ||
        strcmp(text_string(&left), row->left == NULL ? "" : row->left) != 0)
        fail_msg("%s %s left %s", row->masks[0], row->masks[1] == NULL ? "" : row->masks[1],
                 has_mask ? text_string(&left) : "all");
    text_finish(&left);
    vector_finish(&ids);
    string_list_finish(&masks);
}

static void check_rows(const char *ids, const struct row *rows, size_t count)
{
    struct machine machine = {0};

    machine_add_ids(&machine, ids);
    for (size_t i = 0; i < count; i++)
        check_row(&machine, &rows[i]);
    machine_finish(&machine);
}

static void cuda_by_index(void **state)
{
    static const struct row rows[] = {
        {{NULL}, NULL},
        {{"CUDA_VISIBLE_DEVICES=0"}, "nvidia0"},
        {{"CUDA_VISIBLE_DEVICES=5,0"}, "nvidia0,nvidia5"},
        {{"CUDA_VISIBLE_DEVICES= 0 ,\t2 "}, "nvidia0,nvidia2"},
        {{"CUDA_VISIBLE_DEVICES="}, ""},
        {{"CUDA_VISIBLE_DEVICES= "}, ""},
        {{"CUDA_VISIBLE_DEVICES=-1"}, ""},
        {{"CUDA_VISIBLE_DEVICES=0,-1,2"}, "nvidia0"},
        {{"CUDA_VISIBLE_DEVICES=0,1,2"}, "nvidia0"},
        {{"CUDA_VISIBLE_DEVICES=0,2,0,5"}, "nvidia0,nvidia2"},
        {{"CUDA_VISIBLE_DEVICES=0,,2"}, "nvidia0"},
        {{"CUDA_VISIBLE_DEVICES=2,"}, "nvidia2"},
        {{"CUDA_VISIBLE_DEVICES=2x,0"}, ""},
        {{"CUDA_VISIBLE_DEVICES=0.0"}, ""},
        {{"CUDA_VISIBLE_DEVICES=0:0"}, ""},
        {{"CUDA_VISIBLE_DEVICES=4294967296"}, ""},
        {{"CUDA_VISIBLE_DEVICES=99999999999999999999"}, ""},
        {{"CUDA_VISIBLE_DEVICES=all"}, ""},
        {{"CUDA_VISIBLE_DEVICES=GPU-"}, ""},
        {{"CUDA_VISIBLE_DEVICES=GPU-1"}, ""},
        {{"CUDA_VISIBLE_DEVICES=2", "CUDA_VISIBLE_DEVICES=0"}, "nvidia2"},
        {{"CUDA_VISIBLE_DEVICES", "OTHER=0"}, NULL},
        {{"ROCR_VISIBLE_DEVICES=-1", "ZE_AFFINITY_MASK=99999"}, NULL},
    };

    (void)state;
    check_rows("nvidia0,nvidia2,nvidia5", rows, COUNT(rows));
}

static void the_container_runtime(void **state)
{
    static const struct row rows[] = {
        {{"NVIDIA_VISIBLE_DEVICES=all"}, NULL},
        {{"NVIDIA_VISIBLE_DEVICES="}, NULL},
        {{"NVIDIA_VISIBLE_DEVICES=void"}, ""},
        {{"NVIDIA_VISIBLE_DEVICES=none"}, ""},
        {{"NVIDIA_VISIBLE_DEVICES=1"}, "nvidia1"},
        {{"NVIDIA_VISIBLE_DEVICES=1,2"}, "nvidia1,nvidia2"},
        {{"NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices"}, NULL},
        {{"NVIDIA_VISIBLE_DEVICES=k8s.device-plugin.nvidia.com/gpu=0"}, NULL},
        /* Three GPUs of the host are the three that are visible here. */
        {{"NVIDIA_VISIBLE_DEVICES=4,5,6"}, NULL},
        {{"NVIDIA_VISIBLE_DEVICES=2,3,4"}, NULL},
        {{"NVIDIA_VISIBLE_DEVICES=4"}, ""},
        {{"NVIDIA_VISIBLE_DEVICES=0,1,2"}, "nvidia0,nvidia1,nvidia2"},
        {{"NVIDIA_VISIBLE_DEVICES=0,1,x"}, "nvidia0,nvidia1"},
        {{"CUDA_VISIBLE_DEVICES=0,1", "NVIDIA_VISIBLE_DEVICES=1,2"}, "nvidia1"},
        {{"CUDA_VISIBLE_DEVICES=0", "NVIDIA_VISIBLE_DEVICES=1"}, ""},
        {{"CUDA_VISIBLE_DEVICES=0", "NVIDIA_VISIBLE_DEVICES=all"}, "nvidia0"},
    };

    (void)state;
    check_rows("nvidia0,nvidia1,nvidia2", rows, COUNT(rows));
}

static struct machine machine_with_uuids(void)
{
    static const char *const devices[][2] = {
        {"nvidia0", "GPU-aaaa-1111"},   {"nvidia0.1", "MIG-bbbb-2222"},
        {"nvidia0.2", "MIG-bbbb-3333"}, {"nvidia1", "GPU-aaaa-4444"},
        {"nvidia2", "GPU-aaaa-44445"},  {"amd0", "GPU-2f00"},
        {"amd1", "GPU-2f01"},
    };
    struct machine machine = {0};

    for (size_t i = 0; i < COUNT(devices); i++)
        machine_add(&machine, id_of(devices[i][0]))->uuid = copy_of(devices[i][1]);
    machine_device(&machine, "nvidia0")->partitioned = true;
    return machine;
}

static void uuids_and_partitions(void **state)
{
    static const struct row rows[] = {
        {{"CUDA_VISIBLE_DEVICES=MIG-bbbb-3"}, "nvidia0.2,amd0,amd1"},
        {{"CUDA_VISIBLE_DEVICES=MIG-bbbb"}, "amd0,amd1"},
        {{"CUDA_VISIBLE_DEVICES=MIG-bbbb-2222,MIG-bbbb-3333"}, "nvidia0.1,nvidia0.2,amd0,amd1"},
        {{"CUDA_VISIBLE_DEVICES=GPU-aaaa"}, "amd0,amd1"},
        /* A whole UUID, and a prefix of another. */
        {{"CUDA_VISIBLE_DEVICES=gpu-AAAA-4444"}, "nvidia1,amd0,amd1"},
        {{"CUDA_VISIBLE_DEVICES=GPU-aaaa-444"}, "amd0,amd1"},
        {{"CUDA_VISIBLE_DEVICES=GPU-aaaa-444450"}, "amd0,amd1"},
        {{"CUDA_VISIBLE_DEVICES=1,GPU-aaaa-4444"}, "nvidia1,amd0,amd1"},
        {{"CUDA_VISIBLE_DEVICES=0"}, "nvidia0,nvidia0.1,nvidia0.2,amd0,amd1"},
        {{"CUDA_VISIBLE_DEVICES=GPU-aaaa-1,1"}, "nvidia0,nvidia0.1,nvidia0.2,nvidia1,amd0,amd1"},
        {{"NVIDIA_VISIBLE_DEVICES=0:2,1"}, "nvidia0.2,nvidia1,amd0,amd1"},
        {{"NVIDIA_VISIBLE_DEVICES=0:3,1"}, "amd0,amd1"},
        {{"NVIDIA_VISIBLE_DEVICES=0:1:2"}, "amd0,amd1"},
        {{"NVIDIA_VISIBLE_DEVICES=GPU-aaaa-44445"}, "nvidia2,amd0,amd1"},
        {{"NVIDIA_VISIBLE_DEVICES=GPU-aaaa-44445,GPU-aaaa-4444"}, "nvidia1,nvidia2,amd0,amd1"},
        {{"NVIDIA_VISIBLE_DEVICES=MIG-bbbb-3333"}, "nvidia0.2,amd0,amd1"},
        {{"NVIDIA_VISIBLE_DEVICES=GPU-of-another-host"}, "amd0,amd1"},
        {{"NVIDIA_VISIBLE_DEVICES=5,6,7"}, NULL},
        {{"ROCR_VISIBLE_DEVICES=gpu-2F01"}, "nvidia0,nvidia0.1,nvidia0.2,nvidia1,nvidia2,amd1"},
        {{"ROCR_VISIBLE_DEVICES=1,GPU-2f00", "HIP_VISIBLE_DEVICES=1"},
         "nvidia0,nvidia0.1,nvidia0.2,nvidia1,nvidia2,amd0"},
    };
    struct machine machine = machine_with_uuids();

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(&machine, &rows[i]);
    machine_finish(&machine);
}

static void amd_within_amd(void **state)
{
    static const struct row rows[] = {
        {{"ROCR_VISIBLE_DEVICES=3,1"}, "amd3,amd1"},
        {{"ROCR_VISIBLE_DEVICES="}, ""},
        {{"ROCR_VISIBLE_DEVICES=-1"}, ""},
        {{"ROCR_VISIBLE_DEVICES=3,1", "HIP_VISIBLE_DEVICES=0"}, "amd3"},
        {{"ROCR_VISIBLE_DEVICES=3,1", "HIP_VISIBLE_DEVICES=1"}, "amd1"},
        {{"ROCR_VISIBLE_DEVICES=3,1", "HIP_VISIBLE_DEVICES=2"}, ""},
        {{"ROCR_VISIBLE_DEVICES=3,1", "GPU_DEVICE_ORDINAL=1,0"}, "amd3,amd1"},
        {{"ROCR_VISIBLE_DEVICES=3,1", "CUDA_VISIBLE_DEVICES=1"}, "amd1"},
        {{"ROCR_VISIBLE_DEVICES=-1", "HIP_VISIBLE_DEVICES=0"}, ""},
        {{"HIP_VISIBLE_DEVICES=0,2"}, "amd3,amd0"},
        {{"HIP_VISIBLE_DEVICES="}, NULL},
        {{"HIP_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES=0"}, "amd0"},
        {{"HIP_VISIBLE_DEVICES=1", "CUDA_VISIBLE_DEVICES=0"}, "amd1"},
        /* Both number the devices that ROCR leaves, not those that the other leaves. */
        {{"HIP_VISIBLE_DEVICES=1,2", "GPU_DEVICE_ORDINAL=1"}, "amd1"},
        {{"CUDA_VISIBLE_DEVICES=0,1"}, "amd1,amd0"},
        {{"CUDA_VISIBLE_DEVICES=-1"}, ""},
        {{"GPU_DEVICE_ORDINAL=0"}, "amd0"},
        /* Slurm sets the same list in all of them and means one selection. */
        {{"ROCR_VISIBLE_DEVICES=1,3", "GPU_DEVICE_ORDINAL=1,3"}, "amd3,amd1"},
        {{"CUDA_VISIBLE_DEVICES=3", "ROCR_VISIBLE_DEVICES=3", "ZE_AFFINITY_MASK=3",
          "GPU_DEVICE_ORDINAL=3"},
         "amd3"},
        {{"ROCR_VISIBLE_DEVICES=1,3", "GPU_DEVICE_ORDINAL=1"}, "amd3"},
        {{"ROCR_VISIBLE_DEVICES=NoDevFiles", "GPU_DEVICE_ORDINAL=NoDevFiles"}, ""},
        /* This is probably a mistake, but HIP applies both. */
        {{"ROCR_VISIBLE_DEVICES=1,3", "HIP_VISIBLE_DEVICES=1,3"}, "amd3"},
        {{"NVIDIA_VISIBLE_DEVICES=void"}, NULL},
    };

    (void)state;
    /* Slots in another order than indices: ordinals are 0, 1, 3. */
    check_rows("amd3,amd1,amd0", rows, COUNT(rows));
}

static void intel_and_its_tiles(void **state)
{
    static const struct row rows[] = {
        {{"ZE_AFFINITY_MASK=0"}, "intel0"},
        {{"ZE_AFFINITY_MASK=1,0"}, "intel0,intel1"},
        {{"ZE_AFFINITY_MASK=1.0,1.1"}, ""},
        {{"ZE_AFFINITY_MASK=7,1"}, "intel1"},
        {{"ZE_AFFINITY_MASK=99999"}, ""},
        {{"ZE_AFFINITY_MASK="}, NULL},
        {{"ZE_AFFINITY_MASK=0,x,1"}, "intel0"},
        {{"ZE_AFFINITY_MASK=0.,1"}, ""},
        {{"ZE_AFFINITY_MASK=0.1.2"}, ""},
        {{"CUDA_VISIBLE_DEVICES=0"}, NULL},
        {{"ZE_AFFINITY_MASK=default"}, NULL},
        {{"ZE_FLAT_DEVICE_HIERARCHY=FLAT"}, NULL},
        {{"ZE_AFFINITY_MASK=1.0,1.1", COMPOSITE}, "intel1"},
    };
    static const struct row of_tiles[] = {
        /* Flat, intel0 is 0 and 1, intel2 is 2, intel5 is 3 to 6. */
        {{"ZE_AFFINITY_MASK=0"}, "intel0"},
        {{"ZE_AFFINITY_MASK=1"}, "intel0"},
        {{"ZE_AFFINITY_MASK=2"}, "intel2"},
        {{"ZE_AFFINITY_MASK=3"}, "intel5"},
        {{"ZE_AFFINITY_MASK=6,1"}, "intel5,intel0"},
        {{"ZE_AFFINITY_MASK=7"}, ""},
        {{"ZE_AFFINITY_MASK=2", "ZE_FLAT_DEVICE_HIERARCHY=COMBINED"}, "intel2"},
        {{"ZE_AFFINITY_MASK=2", COMPOSITE}, "intel5"},
        {{"ZE_AFFINITY_MASK=2.3,0.1", COMPOSITE}, "intel5,intel0"},
        {{"ZE_AFFINITY_MASK=2.4,0.2,1.1", COMPOSITE}, ""},
        {{"ZE_AFFINITY_MASK=5", COMPOSITE}, ""},
    };
    struct machine machine = {0};

    (void)state;
    check_rows("intel0,intel1", rows, COUNT(rows));
    machine_add_ids(&machine, "intel5,intel0,intel2");
    machine_device(&machine, "intel0")->tiles = optional_number_of(2);
    machine_device(&machine, "intel5")->tiles = optional_number_of(4);
    for (size_t i = 0; i < COUNT(of_tiles); i++)
        check_row(&machine, &of_tiles[i]);
    machine_finish(&machine);
}

static void intel_counts_cards_before_what_is_integrated(void **state)
{
    static const struct row rows[] = {
        {{"ZE_AFFINITY_MASK=0"}, "intel1"},
        {{"ZE_AFFINITY_MASK=1"}, "intel2"},
        {{"ZE_AFFINITY_MASK=2"}, "intel0"},
        {{"ZE_AFFINITY_MASK=0", "ZE_ENABLE_PCI_ID_DEVICE_ORDER=0"}, "intel1"},
        {{"ZE_AFFINITY_MASK=0", "ZE_ENABLE_PCI_ID_DEVICE_ORDER="}, "intel1"},
        {{"ZE_AFFINITY_MASK=0", "ZE_ENABLE_PCI_ID_DEVICE_ORDER=1"}, "intel0"},
        {{"ZE_AFFINITY_MASK=1", "ZE_ENABLE_PCI_ID_DEVICE_ORDER=1", COMPOSITE}, "intel1"},
    };
    struct machine machine = {0};

    (void)state;
    machine_add_ids(&machine, "intel0,intel1,intel2");
    machine_device(&machine, "intel0")->kind = DEVICE_KIND_INTEGRATED;
    machine_device(&machine, "intel1")->kind = DEVICE_KIND_DISCRETE;
    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(&machine, &rows[i]);
    machine_finish(&machine);
}

/* One list in the masks of all vendors, as Slurm sets it without knowing the vendor. */
static void slurm(void **state)
{
    static const struct row rows[] = {
        {{"CUDA_VISIBLE_DEVICES=0,1", "ROCR_VISIBLE_DEVICES=0,1", "ZE_AFFINITY_MASK=0,1",
          "GPU_DEVICE_ORDINAL=0,1"},
         "nvidia0,nvidia1"},
        {{"CUDA_VISIBLE_DEVICES=2,3", "ROCR_VISIBLE_DEVICES=2,3", "ZE_AFFINITY_MASK=2,3",
          "GPU_DEVICE_ORDINAL=2,3"},
         "nvidia2,nvidia3"},
        {{"CUDA_VISIBLE_DEVICES=NoDevFiles"}, ""},
        {{"CUDA_VISIBLE_DEVICES=MIG-3"}, "nvidia4.1"},
    };
    struct machine machine = {0};

    (void)state;
    machine_add_ids(&machine, "nvidia0,nvidia1,nvidia2,nvidia3,nvidia4.1");
    machine_device(&machine, "nvidia4.1")->uuid = copy_of("MIG-3");
    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(&machine, &rows[i]);
    machine_finish(&machine);
}

static void vendors_do_not_mix(void **state)
{
    static const struct row rows[] = {
        {{"CUDA_VISIBLE_DEVICES=1"}, "nvidia1,amd0,amd1,intel0,apple0,dri0"},
        {{"CUDA_VISIBLE_DEVICES=-1", "NVIDIA_VISIBLE_DEVICES=void"},
         "amd0,amd1,intel0,apple0,dri0"},
        {{"ROCR_VISIBLE_DEVICES=1"}, "nvidia0,nvidia1,amd1,intel0,apple0,dri0"},
        {{"ROCR_VISIBLE_DEVICES=-1", "ZE_AFFINITY_MASK=99999"}, "nvidia0,nvidia1,apple0,dri0"},
    };

    (void)state;
    check_rows("nvidia0,nvidia1,amd0,amd1,intel0,apple0,dri0", rows, COUNT(rows));
    check_rows("", rows, 0);
}

static void tell_tiles(struct machine *machine)
{
    static const uint64_t tiles[] = {2, 1, 4}, first_tiles[] = {0, 2, 3};
    struct device *device;

    vector_for_each (device, &machine->devices) {
        if (device->id.vendor != VENDOR_INTEL)
            continue;
        device->tiles = optional_number_of(tiles[device->id.index]);
        device->ordinal = optional_number_of(device->id.index);
        device->first_tile = optional_number_of(first_tiles[device->id.index]);
    }
}

/* Checks that the masks of a lease leave exactly its devices. */
static void check_within(const struct machine *host, const char *leased, const char *hierarchy)
{
    const char *const inherited[] = {hierarchy, NULL};
    struct launch_facts facts = {.lease = 1, .vendors = 7};
    struct machine lease = {0};
    struct string_list environment = {0}, masks = {0};
    struct device_id_list ids = {0};
    bool has_mask = false;

    machine_add_ids(&lease, leased);
    tell_tiles(&lease);
    facts.devices = lease.devices.items;
    facts.device_count = lease.devices.count;
    assert_int_equal(launch_environment(&facts, (char *const *)inherited, &environment, NULL), 0);
    assert_int_equal(inherited_masks_collect(environment.items, &masks, NULL), 0);
    assert_int_equal(inherited_masks_resolve(&masks, host, &ids, &has_mask, NULL), 0);
    assert_true(has_mask);
    assert_int_equal(ids.count, lease.devices.count);
    for (size_t k = 0; k < ids.count; k++)
        assert_true(device_list_find(&lease.devices, ids.items[k]) < lease.devices.count);
    vector_finish(&ids);
    string_list_finish(&masks);
    string_list_finish(&environment);
    machine_finish(&lease);
}

/* The masks of a lease are the limit of a command inside it. */
static void a_lease_is_the_world_within(void **state)
{
    static const char *const leases[] = {
        "nvidia2,nvidia0",   "amd1",          "amd2,amd0",     "intel1",
        "nvidia1,amd1,amd0", "intel2,intel0", "intel2,nvidia0"};
    struct machine host = {0};

    (void)state;
    machine_add_ids(&host, "nvidia0,nvidia1,nvidia2,amd0,amd1,amd2,intel0,intel1,intel2");
    tell_tiles(&host);
    /* Level Zero would number it last; the masks of a lease do not. */
    machine_device(&host, "intel0")->kind = DEVICE_KIND_INTEGRATED;
    for (size_t i = 0; i < COUNT(leases); i++) {
        check_within(&host, leases[i], NULL);
        check_within(&host, leases[i], "ZE_FLAT_DEVICE_HIERARCHY=FLAT");
        check_within(&host, leases[i], COMPOSITE);
    }
    machine_finish(&host);
}

static void masks_are_collected(void **state)
{
    static const char *const environment[] = {
        "PATH=/bin",
        "HIP_VISIBLE_DEVICES=1",
        "CUDA_VISIBLE_DEVICES=",
        "CUDA_VISIBLE_DEVICES=2",
        "CUDA_VISIBLE_DEVICES",
        "CUDA_DEVICE_ORDER=PCI_BUS_ID",
        "NVIDIA_VISIBLE_DEVICES=all",
        "ROCR_VISIBLE_DEVICES=0",
        "GPU_DEVICE_ORDINAL=0",
        "ZE_AFFINITY_MASK=0.1",
        "ZE_AFFINITY_MASKS=0.1",
        "ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE",
        "ZE_ENABLE_PCI_ID_DEVICE_ORDER=1",
        "ZE_FLAT_DEVICE_HIERARCHY=FLAT",
        NULL,
    };
    static const char *const wanted[] = {"HIP_VISIBLE_DEVICES=1",
                                         "CUDA_VISIBLE_DEVICES=",
                                         "NVIDIA_VISIBLE_DEVICES=all",
                                         "ROCR_VISIBLE_DEVICES=0",
                                         "GPU_DEVICE_ORDINAL=0",
                                         "ZE_AFFINITY_MASK=0.1",
                                         "ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE",
                                         "ZE_ENABLE_PCI_ID_DEVICE_ORDER=1"};
    struct string_list masks = {0};

    (void)state;
    assert_int_equal(inherited_masks_collect((char *const *)environment, &masks, NULL), 0);
    assert_int_equal(masks.count, COUNT(wanted));
    for (size_t i = 0; i < COUNT(wanted); i++)
        assert_string_equal(masks.items[i], wanted[i]);
    for (size_t i = 0; i < COUNT(wanted); i++)
        assert_int_equal(inherited_masks_is_setting(wanted[i]), i >= 6);
    string_list_finish(&masks);
}

static int attempt(void *context)
{
    static const char *const environment[] = {
        "CUDA_VISIBLE_DEVICES=0,1", "ROCR_VISIBLE_DEVICES=1,0", "HIP_VISIBLE_DEVICES=0", NULL};
    struct string_list masks = {0};
    struct device_id_list ids = {0};
    bool has_mask;
    int code = inherited_masks_collect((char *const *)environment, &masks, NULL);

    if (code == 0)
        code = inherited_masks_resolve(&masks, context, &ids, &has_mask, NULL);
    vector_finish(&ids);
    string_list_finish(&masks);
    return code;
}

static void no_memory(void **state)
{
    struct machine machine = machine_with_uuids();

    (void)state;
    assert_true(failing_allocator_try_all(attempt, &machine) > 5);
    machine_finish(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuda_by_index),
        cmocka_unit_test(the_container_runtime),
        cmocka_unit_test(uuids_and_partitions),
        cmocka_unit_test(amd_within_amd),
        cmocka_unit_test(intel_and_its_tiles),
        cmocka_unit_test(intel_counts_cards_before_what_is_integrated),
        cmocka_unit_test(slurm),
        cmocka_unit_test(vendors_do_not_mix),
        cmocka_unit_test(a_lease_is_the_world_within),
        cmocka_unit_test(masks_are_collected),
        cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
