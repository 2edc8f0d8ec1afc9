/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost of one placement decision over many devices: 8 on each node, two thirds of them in use.
 *
 *     placement scan POLICY NODES    nanoseconds for a decision that rates every node
 *     placement kept POLICY NODES    for a claim and a release with cached ratings
 *     placement read NODES           for one pass over the facts of a decision
 *     placement memory POLICY NODES  bytes for each device
 */
#include <malloc.h>
#include <string.h>

#include "engine/policy/policies.h"
#include "engine/state.h"
#include "measure.h"

enum { DEVICES_OF_NODE = 8 };

#define GIB (UINT64_C(1) << 30)

struct bench {
    struct engine *engine;
    struct engine_request *request;
};

static void need(bool good, const char *what)
{
    if (!good)
        give_up("placement: %s failed", what);
}

static void add_device(struct machine *machine, uint32_t host)
{
    struct device *device = vector_append(&machine->devices);

    need(device != NULL, "memory");
    device->id =
        (struct device_id){VENDOR_NVIDIA, (uint32_t)machine->devices.count - 1, DEVICE_NO_MIG};
    device->name = strdup(host % 3 == 0 ? "NVIDIA T4" : "NVIDIA A100-SXM4-80GB");
    device->memory_total = optional_number_of(80 * GIB);
    device->load.memory_free =
        (struct figure){.known = true, .value = (int64_t)((10 + host % 64) * GIB)};
    device->cap = (struct capability){.known = true, .major = 8};
    device->host = host;
}

static void add_node(struct machine *machine, uint32_t number)
{
    struct host *host = vector_append(&machine->hosts);

    need(host != NULL, "memory");
    host->cpus = optional_number_of(96000);
    host->memory = optional_number_of(512 * GIB);
    for (int i = 0; i < DEVICES_OF_NODE; i++)
        add_device(machine, number);
}

/* Fills the pool evenly, but not perfectly evenly. */
static void rate(const struct policy *policy, const struct policy_node *node,
                 const struct policy_demand *demand, struct policy_offer *ret_offer)
{
    (void)policy;
    for (uint32_t i = 0; i < demand->count; i++)
        ret_offer->chosen |= UINT64_C(1) << node->order[i];
    ret_offer->cost = (int64_t)(node->cpus.value - node->cpus_left) + node->host % 7 * 3000;
}

static const struct policy evenly = {.name = "evenly", .rate = rate, .cacheable = true};

static struct engine_request *open_request(struct engine *engine, const struct request *request,
                                           const struct policy *policy)
{
    struct engine_request *opened;

    need(engine_request_open(engine, request, NULL, policy, &opened, NULL) == 0,
         "opening a request");
    return opened;
}

/* Leases two thirds of the devices: whole devices, pairs and shares in turn. */
static void fill(struct engine *engine, size_t devices)
{
    struct engine_request *requests[3];
    size_t held = 0;

    for (size_t i = 0; i < 3; i++) {
        struct request request;

        request_init(&request);
        request.gpus = (struct device_count){.min = i == 1 ? 2 : 1, .max = i == 1 ? 2 : 1};
        request.cpus = optional_number_of(4000);
        if (i == 2) {
            request.sharing = SHARING_TIME_SLICE;
            request.share = optional_number_of(SHARE_WHOLE / 3);
        }
        requests[i] = open_request(engine, &request, &evenly);
        request_finish(&request);
    }
    for (size_t i = 0; held < devices * 2 / 3; i++) {
        uint64_t lease;

        need(engine_try(engine, requests[i % 3], &lease, NULL) == CLAIM_GRANTED, "a claim");
        held += i % 3 == 1 ? 2 : 1;
    }
}

/* Initialises a request that uses every filter. */
static void ask_for_all(struct request *request)
{
    request_init(request);
    request->vendor_rule = VENDOR_RULE_EXACT;
    request->vendor = VENDOR_NVIDIA;
    request->model = strdup("a100|h100");
    request->min_free = optional_number_of(20 * GIB);
    request->min_memory = optional_number_of(40 * GIB);
    request->min_cap = (struct capability){.known = true, .major = 7};
    request->sharing = SHARING_TIME_SLICE;
    request->share = optional_number_of(SHARE_WHOLE / 4);
    request->memory = optional_number_of(16 * GIB);
    request->cpus = optional_number_of(6000);
    request->host_memory = optional_number_of(32 * GIB);
}

static struct bench begin(const char *policy_name, size_t nodes, enum engine_index index)
{
    struct engine_settings settings = {.index = INDEX_ALWAYS, .time_slice_tenants = 8};
    const struct policy *policy;
    struct machine machine = {0};
    struct bench bench = {0};
    struct request request;

    need(policy_find(policy_name, &policy, NULL) == 0, "finding the policy");

    for (uint32_t i = 0; i < nodes; i++)
        add_node(&machine, i);
    need(engine_create(&machine, &settings, &bench.engine, NULL) == 0, "making the engine");
    fill(bench.engine, nodes * DEVICES_OF_NODE);
    bench.engine->settings.index = index;
    ask_for_all(&request);
    bench.request = open_request(bench.engine, &request, policy);
    request_finish(&request);
    need(engine_would_grant(bench.engine, bench.request, NULL) == CLAIM_GRANTED, "the decision");
    return bench;
}

static int64_t decide(void *data, uint64_t count)
{
    struct bench *bench = data;
    int64_t start = now();

    for (uint64_t i = 0; i < count; i++)
        need(engine_would_grant(bench->engine, bench->request, NULL) == CLAIM_GRANTED,
             "a decision");
    return now() - start;
}

static int64_t claim_and_release(void *data, uint64_t count)
{
    struct bench *bench = data;
    int64_t start = now();

    for (uint64_t i = 0; i < count; i++) {
        uint64_t lease;

        need(engine_try(bench->engine, bench->request, &lease, NULL) == CLAIM_GRANTED, "a claim");
        need(engine_release(bench->engine, lease, NULL) == 0, "a release");
    }
    return now() - start;
}

/* Sums up the fields of each device and its host that a decision reads. */
static int64_t read_fields(void *data, uint64_t count)
{
    const struct bench *bench = data;
    const struct engine *engine = bench->engine;
    const struct scope *scope = &engine->root;
    size_t devices = engine->machine.devices.count;
    int64_t start = now();

    for (uint64_t i = 0; i < count; i++) {
        uint64_t sum = 0;

        for (size_t slot = 0; slot < devices; slot++) {
            const struct ledger_slot *ledger = &scope->ledger[slot];
            const struct device *device = &engine->machine.devices.items[slot];
            const struct host_usage *host = &scope->host_usage[device->host];

            sum += bitset_has(&bench->request->accepts, slot);
            sum += bitset_has(&bench->request->avoided, slot);
            sum += ledger->usable + ledger->usage.brief.share + ledger->usage.brief.tenants +
                   ledger->usage.brief.sharing + ledger->usage.memory + ledger->usage.unreserved;
            sum += (uint64_t)device->load.memory_free.value + device->load.memory_free.known +
                   device->memory_total.value;
            sum += host->cpus + host->memory;
        }
        use_value(&sum);
    }
    return now() - start;
}

/* Returns the nanoseconds of the quickest of a few passes. A pass takes longer than a run of
 * quickest(). */
static double quickest_pass(int64_t (*run)(void *data, uint64_t count), void *data)
{
    int64_t best = INT64_MAX;

    for (int i = 0; i < 20; i++) {
        int64_t time = run(data, 1);

        best = time < best ? time : best;
    }
    return (double)best;
}

static double memory_of(const char *policy, size_t nodes)
{
    struct mallinfo2 before = mallinfo2();
    struct bench bench = begin(policy, nodes, INDEX_ALWAYS);
    struct mallinfo2 after = mallinfo2();

    use_value(&bench);
    return (double)(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) /
           (double)(nodes * DEVICES_OF_NODE);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    const char *policy = argc > 3 ? argv[2] : "first";
    size_t nodes = argc > 2 ? strtoul(argv[argc - 1], NULL, 10) : 0;
    struct bench bench;

    if (nodes == 0)
        give_up("usage: placement scan|kept|read|memory [POLICY] NODES");
    if (strcmp(mode, "memory") == 0) {
        printf("%.1f\n", memory_of(policy, nodes));
        return 0;
    }
    bench = begin(policy, nodes, strcmp(mode, "kept") == 0 ? INDEX_ALWAYS : INDEX_NEVER);
    if (strcmp(mode, "scan") == 0)
        printf("%.1f\n", quickest_pass(decide, &bench));
    else if (strcmp(mode, "read") == 0)
        printf("%.1f\n", quickest_pass(read_fields, &bench));
    else
        printf("%.1f\n", quickest(claim_and_release, &bench));
    return 0;
}
