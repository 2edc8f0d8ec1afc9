/* SPDX-License-Identifier: Apache-2.0 */
#include "support/programs/launch_environments.h"

#include "base/count.h"
#include "support/assert_error.h"
#include "support/failing_allocator.h"

struct setting {
    const char *name;
    const char *value; /* NULL: not set */
};

static void no_lease_hides_all(void **state)
{
    struct launched launched = leased("nvidia0,amd0", NVIDIA | AMD | INTEL);

    (void)state;
    launched.facts.lease = 0;
    launch(&launched, polluted);
    check_value(&launched, "CUDA_VISIBLE_DEVICES", "-1");
    check_value(&launched, "NVIDIA_VISIBLE_DEVICES", "void");
    check_value(&launched, "ROCR_VISIBLE_DEVICES", "-1");
    check_value(&launched, "HIP_VISIBLE_DEVICES", NULL);
    check_value(&launched, "ZE_AFFINITY_MASK", "99999");
    check_value(&launched, "BERTH_LEASE", "1");
    check_value(&launched, "BERTH_DEVICES", "");
    check_value(&launched, "BERTH_DEVICE_NODES", "");
    check_value(&launched, "BERTH_CDI_DEVICES", "");
    check_value(&launched, "BERTH_CPUS", NULL);
    launched.facts.vendors = 0;
    launch(&launched, nothing);
    check_value(&launched, "CUDA_VISIBLE_DEVICES", NULL);
    check_value(&launched, "BERTH_LEASE", NULL);
    launched_finish(&launched);
}

static void give_uuid(struct launched *launched, const char *id, const char *uuid)
{
    machine_device(&launched->machine, id)->uuid = copy_of(uuid);
}

static void uuids_of_nvidia(void **state)
{
    struct launched launched = leased("nvidia0,nvidia1", NVIDIA);

    (void)state;
    give_uuid(&launched, "nvidia0", "GPU-a");
    launch(&launched, nothing);
    check_value(&launched, "CUDA_VISIBLE_DEVICES", "0,1");
    check_value(&launched, "NVIDIA_VISIBLE_DEVICES", "0,1");
    give_uuid(&launched, "nvidia1", "GPU-b");
    launch(&launched, nothing);
    check_value(&launched, "CUDA_VISIBLE_DEVICES", "0,1");
    check_value(&launched, "NVIDIA_VISIBLE_DEVICES", "GPU-a,GPU-b");
    launched.facts.uuid = true;
    launch(&launched, nothing);
    check_value(&launched, "CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b");
    check_value(&launched, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    launched_finish(&launched);
}

static void a_mig_instance_goes_by_its_uuid(void **state)
{
    struct launched launched = leased("nvidia0.3,nvidia1", NVIDIA);

    (void)state;
    give_uuid(&launched, "nvidia0.3", "MIG-a");
    give_uuid(&launched, "nvidia1", "GPU-b");
    launch(&launched, nothing);
    check_value(&launched, "CUDA_VISIBLE_DEVICES", "MIG-a,GPU-b");
    check_value(&launched, "NVIDIA_VISIBLE_DEVICES", "MIG-a,GPU-b");
    check_value(&launched, "BERTH_DEVICES", "nvidia0.3,nvidia1");
    check_value(&launched, "BERTH_CDI_DEVICES", "berth/gpu=nvidia0.3,berth/gpu=nvidia1");
    launched_finish(&launched);
}

static void uuids_of_the_others(void **state)
{
    struct launched launched = leased("amd1,intel0", AMD | INTEL);

    (void)state;
    give_uuid(&launched, "amd1", "GPU-2f");
    launch(&launched, nothing);
    check_value(&launched, "ROCR_VISIBLE_DEVICES", "1");
    launched.facts.uuid = true;
    launch(&launched, nothing);
    check_value(&launched, "ROCR_VISIBLE_DEVICES", "GPU-2f");
    /* Level Zero accepts no UUIDs. */
    check_value(&launched, "ZE_AFFINITY_MASK", "0");
    launched_finish(&launched);
}

static void check_refused(const char *ids, bool uuid, const char *message)
{
    struct launched launched = leased(ids, 0);
    struct string_list environment = {.count = 4711};
    struct berth_error error = BERTH_ERROR_INIT;

    launched.facts.uuid = uuid;
    launched.facts.devices = launched.machine.devices.items;
    launched.facts.device_count = launched.machine.devices.count;
    assert_fails(launch_environment(&launched.facts, (char *const *)polluted, &environment, &error),
                 BERTH_ERROR_INVALID, &error, message);
    assert_int_equal(
        launch_environment(&launched.facts, (char *const *)polluted, &environment, NULL),
        BERTH_ERROR_INVALID);
    assert_int_equal(environment.count, 4711);
    launched_finish(&launched);
}

static void an_unknown_uuid_is_refused_where_it_is_needed(void **state)
{
    (void)state;
    check_refused("nvidia0.1", false,
                  "the UUID of nvidia0.1 is not known, but CUDA_VISIBLE_DEVICES needs it");
    check_refused("nvidia4", true,
                  "the UUID of nvidia4 is not known, but CUDA_VISIBLE_DEVICES needs it");
    check_refused("amd2", true, "the UUID of amd2 is not known, but ROCR_VISIBLE_DEVICES needs it");
}

static void what_is_always_set(void **state)
{
    struct launched launched = leased("nvidia0,nvidia2", NVIDIA);

    (void)state;
    launched.facts.lease = UINT64_MAX;
    launch(&launched, polluted);
    check_value(&launched, "BERTH_LEASE", "18446744073709551615");
    check_value(&launched, "BERTH_DEVICES", "nvidia0,nvidia2");
    check_value(&launched, "BERTH_DEVICE_NODES", "");
    check_value(&launched, "BERTH_CDI_DEVICES", "berth/gpu=nvidia0,berth/gpu=nvidia2");
    check_value(&launched, "BERTH_CPUS", NULL);
    check_value(&launched, "BERTH_SOCKET", "/old");
    check_value(&launched, "BERTH_REPLICA", NULL);
    launched.facts.socket = "/run/berth/berth.sock";
    launched.facts.has_replica = true;
    launch(&launched, polluted);
    check_value(&launched, "BERTH_SOCKET", "/run/berth/berth.sock");
    check_value(&launched, "BERTH_REPLICA", "0");
    launched.facts.replica = 3;
    launch(&launched, nothing);
    check_value(&launched, "BERTH_REPLICA", "3");
    launched_finish(&launched);
}

static void a_shared_device_file_is_named_once(void **state)
{
    static const char *const nodes[][2] = {{"nvidia0", "/dev/nvidia0"},
                                           {"nvidia0", "/dev/nvidiactl"},
                                           {"nvidia1", "/dev/nvidia1"},
                                           {"nvidia1", "/dev/nvidiactl"}};
    struct launched launched = leased("nvidia0,nvidia1", NVIDIA);

    (void)state;
    for (size_t i = 0; i < COUNT(nodes); i++)
        assert_int_equal(
            string_list_append(&machine_device(&launched.machine, nodes[i][0])->nodes, nodes[i][1]),
            0);
    launch(&launched, nothing);
    check_value(&launched, "BERTH_DEVICE_NODES", "/dev/nvidia0:/dev/nvidiactl:/dev/nvidia1");
    launched_finish(&launched);
}

static void a_vendors_own_cdi_entry_goes_first(void **state)
{
    struct cdi_entry entries[] = {{.name = (char[]){"nvidia.com/gpu=GPU-b"}}};
    struct cdi_registry registry = {.items = entries, .count = COUNT(entries)};
    struct launched launched = leased("nvidia0,nvidia1", NVIDIA);

    (void)state;
    give_uuid(&launched, "nvidia1", "GPU-b");
    launched.facts.cdi = &registry;
    launch(&launched, polluted);
    check_value(&launched, "BERTH_CDI_DEVICES", "berth/gpu=nvidia0,nvidia.com/gpu=GPU-b");
    entries[0].ambiguous = true;
    launch(&launched, polluted);
    check_value(&launched, "BERTH_CDI_DEVICES", "berth/gpu=nvidia0,berth/gpu=nvidia1");
    launched_finish(&launched);
}

static void check_cpus(const char *first, const char *second, const char *wanted)
{
    struct launched launched = leased("nvidia0,nvidia1", NVIDIA);

    if (first != NULL)
        machine_device(&launched.machine, "nvidia0")->cpus = copy_of(first);
    if (second != NULL)
        machine_device(&launched.machine, "nvidia1")->cpus = copy_of(second);
    launch(&launched, polluted);
    check_value(&launched, "BERTH_CPUS", wanted);
    launched_finish(&launched);
}

static void cpus_are_merged(void **state)
{
    (void)state;
    check_cpus(NULL, NULL, NULL);
    check_cpus("", NULL, NULL);
    check_cpus("0-3", NULL, "0-3");
    check_cpus(NULL, "4", "4");
    check_cpus("8-15,40-47", "8-15,40-47", "8-15,40-47");
    check_cpus("8-15,40-47", "0-7,32-39", "0-15,32-47");
    check_cpus("3-5", "4,1", "1,3-5");
    check_cpus("not a list", NULL, NULL);
    check_cpus("0-4000000000", NULL, NULL);
}

static void what_is_none_of_ours_stays(void **state)
{
    static const char *const odd[] = {
        "CUDA_VISIBLE_DEVICES",   "CUDA_VISIBLE_DEVICES_OLD=1", "=",  "", "XCUDA_VISIBLE_DEVICES=1",
        "CUDA_VISIBLE_DEVICES=1", "CUDA_VISIBLE_DEVICES=2",     NULL,
    };
    struct launched launched = leased("nvidia0", NVIDIA);

    (void)state;
    launch(&launched, odd);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(launched.environment.items[i], odd[i]);
    check_value(&launched, "CUDA_VISIBLE_DEVICES", "0");
    launched_finish(&launched);
}

static const char *const of_another_job[] = {
    "CUDA_MPS_PIPE_DIRECTORY=/old",
    "CUDA_MPS_LOG_DIRECTORY=/old",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=7",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=7M",
    "RANK=7",
    "WORLD_SIZE=8",
    "LOCAL_RANK=7",
    "LOCAL_WORLD_SIZE=8",
    "GROUP_RANK=7",
    "MASTER_ADDR=old",
    "MASTER_PORT=7",
    "BERTH_BACKEND=old",
    "NCCL_SOCKET_IFNAME=old",
    "GLOO_SOCKET_IFNAME=old",
    NULL,
};

static void check_mps(struct optional_number share, struct optional_number memory,
                      const char *percentage, const char *limit)
{
    struct mps_facts mps = {
        .pipe_dir = "/run/pipe", .log_dir = "/run/log", .share = share, .memory = memory};
    struct launched launched = leased("nvidia1", NVIDIA);

    give_uuid(&launched, "nvidia1", "GPU-b");
    launched.facts.mps = &mps;
    launch(&launched, of_another_job);
    check_value(&launched, "CUDA_VISIBLE_DEVICES", "GPU-b");
    check_value(&launched, "NVIDIA_VISIBLE_DEVICES", "GPU-b");
    check_value(&launched, "CUDA_MPS_PIPE_DIRECTORY", "/run/pipe");
    check_value(&launched, "CUDA_MPS_LOG_DIRECTORY", "/run/log");
    check_value(&launched, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percentage);
    check_value(&launched, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", limit);
    check_value(&launched, "RANK", "7");
    launched_finish(&launched);
}

static void sharing_by_mps(void **state)
{
    struct optional_number unknown = {0};

    (void)state;
    check_mps(unknown, unknown, NULL, NULL);
    check_mps(optional_number_of(250000), unknown, "25", NULL);
    check_mps(optional_number_of(125000), unknown, "12.5", NULL);
    check_mps(optional_number_of(333333), unknown, "33.3333", NULL);
    check_mps(optional_number_of(1000000), unknown, "100", NULL);
    check_mps(optional_number_of(1), unknown, "0.0001", NULL);
    check_mps(unknown, optional_number_of(UINT64_C(40) << 30), NULL, "0=40960M");
    check_mps(unknown, optional_number_of((UINT64_C(3) << 20) - 1), NULL, "0=2M");
    check_mps(unknown, optional_number_of(1), NULL, "0=1M");
    check_mps(unknown, optional_number_of(UINT64_MAX), NULL, "0=17592186044415M");
}

static void without_mps_or_ranks_their_variables_are_as_inherited(void **state)
{
    struct launched launched = leased("nvidia1", NVIDIA);

    (void)state;
    launch(&launched, of_another_job);
    for (size_t i = 0; of_another_job[i] != NULL; i++)
        assert_string_equal(launched.environment.items[i], of_another_job[i]);
    launched_finish(&launched);
}

static void a_rank_is_told_its_place(void **state)
{
    struct rank_facts rank = {
        .rank = 5,
        .world_size = 6,
        .local_rank = 1,
        .local_world_size = 2,
        .group_rank = 2,
        .address = "127.0.0.1",
        .port = 65535,
        .backend = "gloo",
    };
    static const struct setting settings[] = {
        {"RANK", "5"},
        {"WORLD_SIZE", "6"},
        {"LOCAL_RANK", "1"},
        {"GROUP_RANK", "2"},
        {"LOCAL_WORLD_SIZE", "2"},
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", "65535"},
        {"BERTH_BACKEND", "gloo"},
    };
    struct launched launched = leased("amd1", AMD);

    (void)state;
    launched.facts.rank = &rank;
    launch(&launched, of_another_job);
    for (size_t i = 0; i < COUNT(settings); i++)
        check_value(&launched, settings[i].name, settings[i].value);
    check_value(&launched, "NCCL_SOCKET_IFNAME", "old");
    check_value(&launched, "GLOO_SOCKET_IFNAME", "old");
    check_value(&launched, "CUDA_MPS_PIPE_DIRECTORY", "/old");
    rank.interface = "ib0";
    launch(&launched, of_another_job);
    check_value(&launched, "NCCL_SOCKET_IFNAME", "ib0");
    check_value(&launched, "GLOO_SOCKET_IFNAME", "ib0");
    launched_finish(&launched);
}

static int attempt(void *context)
{
    struct launched *launched = context;
    struct string_list environment = {0};
    int code = launch_environment(&launched->facts, (char *const *)polluted, &environment, NULL);

    string_list_finish(&environment);
    return code;
}

static void no_memory(void **state)
{
    struct launched launched = leased("nvidia0,amd0,intel0", NVIDIA | AMD);

    (void)state;
    machine_device(&launched.machine, "nvidia0")->cpus = copy_of("0-3");
    launched.facts.devices = launched.machine.devices.items;
    launched.facts.device_count = launched.machine.devices.count;
    assert_true(failing_allocator_try_all(attempt, &launched) > 10);
    launched_finish(&launched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_lease_hides_all),
        cmocka_unit_test(uuids_of_nvidia),
        cmocka_unit_test(a_mig_instance_goes_by_its_uuid),
        cmocka_unit_test(uuids_of_the_others),
        cmocka_unit_test(an_unknown_uuid_is_refused_where_it_is_needed),
        cmocka_unit_test(what_is_always_set),
        cmocka_unit_test(a_shared_device_file_is_named_once),
        cmocka_unit_test(a_vendors_own_cdi_entry_goes_first),
        cmocka_unit_test(cpus_are_merged),
        cmocka_unit_test(what_is_none_of_ours_stays),
        cmocka_unit_test(sharing_by_mps),
        cmocka_unit_test(without_mps_or_ranks_their_variables_are_as_inherited),
        cmocka_unit_test(a_rank_is_told_its_place),
        cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
