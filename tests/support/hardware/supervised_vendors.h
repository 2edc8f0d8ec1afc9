/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs berth-probe's supervisor in its own process, with two vendors that hang, crash, fail and lie
 * by a script. The test and all workers share the memory with these scripts.
 */
#ifndef TESTS_SUPERVISED_VENDORS_H
#define TESTS_SUPERVISED_VENDORS_H

#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "hardware/supervisor/supervisor.h"
#include "probe/probe.h"
#include "sandbox/sandbox.h"

#define MILLISECOND INT64_C(1000000)

/* Enough time for all steps that do not hang. */
#define SHORT (1000 * MILLISECOND)

enum { NOBODY = -1 };

/* How one vendor behaves. */
struct vendor_script {
    atomic_int count;   /* devices, from index 0 */
    atomic_int missing; /* this index is not listed; NOBODY: all are */
    atomic_int hangs;   /* reading this index hangs */
    atomic_int crashes; /* reading this index crashes */
    atomic_int fails;   /* reading this index returns an error */
    atomic_int lies;    /* reading this index returns another device */
    /* Reading this index ends after the links were requested. The links then end after the worker
     * that read it. */
    atomic_int slow;
    atomic_int slow_reader; /* this worker's pid; 0: none yet */
    atomic_bool list_hangs;
    atomic_bool list_crashes;
    atomic_bool list_fails;
    atomic_bool links_hang;
    atomic_bool candidates_hang; /* listing the candidates hangs */
    atomic_int candidate_hangs;  /* reading the candidate of this index hangs */
    atomic_int candidate_slow;   /* this candidate answers after the devices were listed once */
    atomic_bool attacks;         /* reading a device attacks the supervisor */
    atomic_int attempts;
    atomic_int successes;
    atomic_int memory_used; /* in GiB, of 80 */
    atomic_int lists;       /* how often the devices were listed */
    atomic_int reads;
    atomic_int links;
};

struct vendor_scripts {
    struct vendor_script nvidia;
    struct vendor_script amd;
};

struct fixture {
    struct vendor_scripts *scripts;
    struct probe probe;
    pid_t supervisor;
};

static struct vendor_scripts *scripts; /* of this process */

/* ---- The vendors ---- */

static void hang(const atomic_bool *while_true, const atomic_int *while_index, int index)
{
    while (while_true != NULL ? atomic_load(while_true) : atomic_load(while_index) == index)
        usleep(1000);
}

static int list(struct vendor_script *script, enum vendor vendor, struct findings *findings,
                struct berth_error *error)
{
    atomic_fetch_add(&script->lists, 1);
    hang(&script->list_hangs, NULL, 0);
    if (atomic_load(&script->list_crashes))
        raise(SIGSEGV);
    if (atomic_load(&script->list_fails))
        return error_set(error, BERTH_ERROR_INVALID, "the driver is another version");
    for (int i = 0; i < atomic_load(&script->count); i++) {
        struct device_finding *found;
        char *key;

        if (i == atomic_load(&script->missing))
            continue;
        found = finding_list_add(&findings->found,
                                 (struct device_id){vendor, (uint32_t)i, DEVICE_NO_MIG});
        if (found == NULL || asprintf(&key, "%d", i) < 0)
            return error_set_memory(error);
        found->key = key;
        /* The later vendor has the lower addresses. */
        found->device->pci = (struct pci_address){
            .known = true, .bus = (uint8_t)(vendor == VENDOR_AMD ? 1 + i : 64 + i)};
    }
    return 0;
}

/* Does what a driver's library could do to the supervisor if an attacker controlled it. */
static void attack_supervisor(struct vendor_script *script)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    pid_t supervisor = getppid();
    char path[64];
    int successes;

    snprintf(path, sizeof(path), "/proc/%d/mem", (int)supervisor);
    successes = open(path, O_RDWR | O_CLOEXEC) >= 0;
    successes += ptrace(PTRACE_ATTACH, supervisor, NULL, NULL) == 0;
    successes += kill(supervisor, SIGCONT) == 0;
    successes +=
        syscall(SYS_capget, &header, data) < 0 || data[0].permitted != 0 || data[1].permitted != 0;
    atomic_fetch_add(&script->successes, successes);
    atomic_fetch_add(&script->attempts, 1);
}

static int read_one(struct vendor_script *script, const struct device_finding *wanted,
                    struct findings *findings, struct berth_error *error)
{
    int index = (int)wanted->device->id.index;
    struct device_id id = wanted->device->id;
    struct device_finding *found;

    atomic_fetch_add(&script->reads, 1);
    if (atomic_load(&script->attacks))
        attack_supervisor(script);
    hang(NULL, &script->hangs, index);
    if (index == atomic_load(&script->slow)) {
        atomic_store(&script->slow_reader, getpid());
        while (atomic_load(&script->links) == 0)
            usleep(1000);
    }
    if (index == atomic_load(&script->crashes))
        raise(SIGSEGV);
    if (index == atomic_load(&script->fails))
        return error_set(error, BERTH_ERROR_IO, "GPU is lost");
    if (index == atomic_load(&script->lies))
        id.index = 77;
    found = finding_list_add(&findings->found, id);
    if (found == NULL)
        return error_set_memory(error);
    found->device->pci = wanted->device->pci;
    found->device->name = strdup("Test GPU");
    found->device->health = HEALTH_OK;
    found->device->load.utilization =
        load_figure_sampled(atomic_load(&script->reads), clock_read(CLOCK_REALTIME));
    found->device->memory_total = optional_number_of(UINT64_C(80) << 30);
    found->device->load.memory_free = load_figure_sampled(
        (int64_t)(80 - atomic_load(&script->memory_used)) << 30, clock_read(CLOCK_REALTIME));
    device_process_find_or_add(&found->device->processes, (uint64_t)getppid());
    return 0;
}

static int nvidia_list(struct vendor_context *context, const struct finding_list *candidates,
                       struct findings *findings, struct berth_error *error)
{
    (void)context;
    (void)candidates;
    return list(&scripts->nvidia, VENDOR_NVIDIA, findings, error);
}

static int nvidia_read(struct vendor_context *context, const struct device_finding *wanted,
                       struct findings *findings, struct berth_error *error)
{
    (void)context;
    return read_one(&scripts->nvidia, wanted, findings, error);
}

/* Links the devices as a chain. */
static int nvidia_links(struct vendor_context *context, const struct finding_list *devices,
                        struct findings *findings, struct berth_error *error)
{
    (void)context;
    atomic_fetch_add(&scripts->nvidia.links, 1);
    hang(&scripts->nvidia.links_hang, NULL, 0);
    /* That worker ends after its answer is received, because another one has replaced it. */
    while (atomic_load(&scripts->nvidia.slow_reader) != 0 &&
           kill(atomic_load(&scripts->nvidia.slow_reader), 0) == 0)
        usleep(1000);
    for (size_t i = 1; i < devices->count; i++) {
        struct link *link = vector_append(&findings->links);

        if (link == NULL)
            return error_set_memory(error);
        *link = (struct link){.between = {i - 1, i}, .kind = LINK_NVLINK, .lanes = 4};
    }
    return 0;
}

static int add_candidate(struct findings *findings, const char *key, struct berth_error *error)
{
    struct device_id id = {.vendor = VENDOR_AMD, .mig = DEVICE_NO_MIG};
    struct device_finding *candidate = finding_list_add(&findings->found, id);

    if (candidate == NULL || (candidate->key = strdup(key)) == NULL)
        return error_set_memory(error);
    return 0;
}

static int amd_list_candidates(struct vendor_context *context, struct findings *findings,
                               struct berth_error *error)
{
    int code = 0;

    (void)context;
    hang(&scripts->amd.candidates_hang, NULL, 0);
    for (int i = 0; i < atomic_load(&scripts->amd.count) && code == 0; i++) {
        char key[16];

        snprintf(key, sizeof(key), "%d", i);
        code = add_candidate(findings, key, error);
    }
    return code;
}

static int amd_read_candidate(struct vendor_context *context,
                              const struct device_finding *candidate, struct findings *findings,
                              struct berth_error *error)
{
    int index = atoi(candidate->key);
    char key[32];

    (void)context;
    hang(NULL, &scripts->amd.candidate_hangs, index);
    while (index == atomic_load(&scripts->amd.candidate_slow) &&
           atomic_load(&scripts->amd.lists) == 0)
        usleep(1000);
    snprintf(key, sizeof(key), "%s answered", candidate->key);
    return add_candidate(findings, key, error);
}

/* Lists the devices. The address of a device is known if its candidate answered. */
static int amd_list(struct vendor_context *context, const struct finding_list *candidates,
                    struct findings *findings, struct berth_error *error)
{
    const struct device_finding *candidate;
    int code = list(&scripts->amd, VENDOR_AMD, findings, error);

    (void)context;
    vector_for_each (candidate, candidates) {
        if (strstr(candidate->key, "answered") != NULL)
            continue;
        for (size_t i = 0; i < findings->found.count; i++) {
            struct device_finding *found = &findings->found.items[i];

            if (strcmp(found->key, candidate->key) != 0)
                continue;
            found->device->pci = (struct pci_address){0};
            free(found->key);
            found->key = strdup("unknown");
        }
    }
    return code;
}

static int amd_read(struct vendor_context *context, const struct device_finding *wanted,
                    struct findings *findings, struct berth_error *error)
{
    (void)context;
    return read_one(&scripts->amd, wanted, findings, error);
}

static const struct vendor_table test_nvidia = {
    .vendor = VENDOR_NVIDIA,
    .lane = LANE_NVIDIA,
    .timeout = 30 * MILLISECOND,
    .list = nvidia_list,
    .read = nvidia_read,
    .links = nvidia_links,
};

static const struct vendor_table test_amd = {
    .vendor = VENDOR_AMD,
    .lane = LANE_SYSFS,
    .timeout = 30 * MILLISECOND,
    .list_candidates = amd_list_candidates,
    .read_candidate = amd_read_candidate,
    .list = amd_list,
    .read = amd_read,
};

static const struct vendor_table *const test_tables[] = {&test_nvidia, &test_amd, NULL};

/* ---- Setting up ---- */

static void vendor_script_init(struct vendor_script *script, int count)
{
    script->count = count;
    script->missing = script->hangs = script->crashes = script->fails = script->lies =
        script->slow = NOBODY;
    script->candidate_hangs = script->candidate_slow = NOBODY;
}

static bool is_without_filters; /* of the next supervisor */

/* Makes the kernel one without seccomp filters. */
static void refuse_filters(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof(steps) / sizeof(steps[0]), .filter = steps};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        _exit(1);
}

static void supervise(int socket)
{
    struct sysroot root = {.prefix = strdup("")};
    int code;

    signal(SIGSEGV, SIG_DFL); /* cmocka has installed a handler */
    if (is_without_filters)
        refuse_filters();
    if (sandbox_enter_supervisor(NULL) < 0)
        _exit(1);
    code = supervisor_run(socket, &root, test_tables, NULL);

    sysroot_finish(&root);
    _exit(code == 0 ? 0 : 1);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    int ends[2];

    assert_non_null(fixture);
    scripts =
        mmap(NULL, sizeof(*scripts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(scripts, MAP_FAILED);
    vendor_script_init(&scripts->nvidia, 4);
    vendor_script_init(&scripts->amd, 2);
    fixture->scripts = scripts;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    fixture->supervisor = fork();
    assert_true(fixture->supervisor >= 0);
    if (fixture->supervisor == 0) {
        close(ends[0]);
        supervise(ends[1]);
    }
    close(ends[1]);
    probe_channel_init(&fixture->probe.channel, ends[0]);
    fixture->probe.is_open = true;
    *state = fixture;
    return 0;
}

static int set_up_without_filters(void **state)
{
    int code;

    is_without_filters = true;
    code = set_up(state);
    is_without_filters = false;
    return code;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    int status;

    probe_finish(&fixture->probe);
    if (fixture->supervisor > 0) {
        assert_int_equal(waitpid(fixture->supervisor, &status, 0), fixture->supervisor);
        assert_int_equal(status, 0);
    }
    munmap(fixture->scripts, sizeof(*fixture->scripts));
    free(fixture);
    return 0;
}

/* ---- Looking ---- */

static struct machine_report look(struct fixture *fixture, int64_t deadline)
{
    struct probe_request request = {.deadline = (uint64_t)deadline};
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine_report report;
    int64_t began = clock_now();

    if (probe_query(&fixture->probe, &request, &report, &error) < 0)
        fail_msg("%s", error.message);
    /* Allow more time, because the machine may be busy. */
    if (clock_now() - began > deadline + 2000 * MILLISECOND)
        fail_msg("expected an answer within %lld ms, got %lld ms",
                 (long long)(deadline / MILLISECOND),
                 (long long)((clock_now() - began) / MILLISECOND));
    return report;
}

/* Probes with more time than is needed. */
static struct machine_report look_well(struct fixture *fixture)
{
    return look(fixture, 60000 * MILLISECOND);
}

static const struct device *device_of(const struct machine_report *report, const char *id)
{
    struct device_id wanted;

    assert_int_equal(device_id_parse(id, &wanted, NULL), 0);
    for (size_t i = 0; i < report->machine.devices.count; i++) {
        if (device_id_equals(report->machine.devices.items[i].id, wanted))
            return &report->machine.devices.items[i];
    }
    fail_msg("expected %s, got none", id);
    return NULL;
}

static void assert_well(const struct machine_report *report, const char *id)
{
    const struct device *device = device_of(report, id);

    assert_int_equal(device->health, HEALTH_OK);
    assert_string_equal(device->name, "Test GPU");
    assert_false(device->old);
    assert_true(device->load.utilization.known);
}

static void assert_problem(const struct machine_report *report, const char *backend,
                           const char *words)
{
    const struct problem *problem;

    vector_for_each (problem, &report->problems) {
        if (strcmp(problem->backend, backend) == 0 && strstr(problem->message, words) != NULL)
            return;
    }
    vector_for_each (problem, &report->problems)
        print_message("%s: %s\n", problem->backend, problem->message);
    fail_msg("expected a problem of %s with '%s', got none", backend, words);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

#endif
