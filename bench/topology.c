/* SPDX-License-Identifier: Apache-2.0
 *
 * The longest time that the engine takes to choose connected devices.
 *
 *     topology
 *
 * Prints one number: the milliseconds of the slowest of many requests, each for some of up to 64
 * devices of one machine, with generated links of several difficult kinds. */
#include <string.h>

#include "engine/engine.h"
#include "measure.h"

enum { DEVICES_MAX = 64 };

static uint64_t chance = 1;

static uint32_t draw(uint32_t below)
{
    chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((chance >> 33) % below);
}

/* A way to link devices. link() fills in the link of two devices, or returns false for none. */
struct way {
    enum vendor vendor;
    uint32_t parts; /* devices of one GPU; 0: each device is a whole GPU */
    bool (*link)(uint32_t one, uint32_t other, struct link *link);
};

static bool by_chance(uint32_t one, uint32_t other, struct link *link)
{
    (void)one;
    (void)other;
    link->kind = LINK_NVLINK;
    link->lanes = 1 + draw(18);
    return true;
}

static bool all_alike(uint32_t one, uint32_t other, struct link *link)
{
    (void)one;
    (void)other;
    link->kind = LINK_NVLINK;
    link->lanes = 6;
    return true;
}

static bool in_islands(uint32_t one, uint32_t other, struct link *link)
{
    link->kind = one / 12 == other / 12 ? LINK_NVLINK : LINK_SYS;
    link->lanes = one / 12 == other / 12 ? 12 : 0;
    return true;
}

static bool here_and_there(uint32_t one, uint32_t other, struct link *link)
{
    (void)one;
    (void)other;
    link->kind = LINK_PIX;
    return draw(8) == 0;
}

static bool by_xgmi(uint32_t one, uint32_t other, struct link *link)
{
    (void)one;
    (void)other;
    link->kind = LINK_XGMI;
    return true;
}

static bool by_xgmi_or_pcie(uint32_t one, uint32_t other, struct link *link)
{
    (void)one;
    (void)other;
    link->kind = draw(2) == 0 ? LINK_XGMI : LINK_SYS;
    return true;
}

static const struct way ways[] = {
    {VENDOR_NVIDIA, 0, by_chance},    {VENDOR_NVIDIA, 0, all_alike},
    {VENDOR_NVIDIA, 0, in_islands},   {VENDOR_NVIDIA, 0, here_and_there},
    {VENDOR_AMD, 8, by_xgmi},         {VENDOR_AMD, 0, by_xgmi_or_pcie},
    {VENDOR_AMD, 4, by_xgmi_or_pcie},
};

static void add_device(struct machine *machine, const struct way *way, uint32_t index)
{
    struct device *device = vector_append(&machine->devices);
    char parent[16];

    if (device == NULL)
        give_up("out of memory");
    device->id = (struct device_id){.vendor = way->vendor, .index = index, .mig = DEVICE_NO_MIG};
    device->numa = optional_number_of(index / 32);
    if (way->parts == 0)
        return;
    snprintf(parent, sizeof(parent), "gpu-%u", index / way->parts);
    device->parent = strdup(parent);
}

static struct engine *make_engine(const struct way *way, uint32_t count)
{
    struct machine machine = {0};
    struct engine *engine;

    for (uint32_t i = 0; i < count; i++)
        add_device(&machine, way, i);
    for (uint32_t one = 0; one < count; one++) {
        for (uint32_t other = one + 1; other < count; other++) {
            struct link link = {.between = {one, other}};
            struct link *place;

            if (!way->link(one, other, &link))
                continue;
            place = vector_append(&machine.links);
            if (place == NULL)
                give_up("out of memory");
            *place = link;
        }
    }
    if (engine_create(&machine, NULL, &engine, NULL) < 0)
        give_up("cannot create an engine");
    machine_finish(&machine);
    return engine;
}

/* Returns the nanoseconds from the claim to the grant. */
static int64_t time_of(struct engine *engine, uint32_t wanted)
{
    struct party party = {0};
    struct engine_request *compiled;
    struct request request;
    uint64_t lease;
    int64_t begin;
    int64_t taken;

    request_init(&request);
    request.gpus = (struct device_count){.min = wanted, .max = wanted};
    request.policy = strdup("topology");
    if (engine_request_open(engine, &request, &party, NULL, &compiled, NULL) < 0)
        give_up("cannot open a request");
    begin = now();
    if (engine_try(engine, compiled, &lease, NULL) != CLAIM_GRANTED)
        give_up("a claim was not granted");
    taken = now() - begin;
    engine_release(engine, lease, NULL);
    engine_request_close(engine, compiled);
    request_finish(&request);
    return taken;
}

/* Returns the shortest of three times. The work is the same, but the load of the machine varies. */
static int64_t quickest_time_of(struct engine *engine, uint32_t wanted)
{
    int64_t best = INT64_MAX;

    for (int i = 0; i < 3; i++) {
        int64_t taken = time_of(engine, wanted);

        best = taken < best ? taken : best;
    }
    return best;
}

int main(void)
{
    static const uint32_t counts[] = {16, 33, DEVICES_MAX - 1, DEVICES_MAX};
    int64_t worst = 0;

    for (size_t way = 0; way < sizeof(ways) / sizeof(*ways); way++) {
        for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
            struct engine *engine = make_engine(&ways[way], counts[i]);

            for (uint32_t wanted = 1; wanted <= counts[i]; wanted += wanted < 8 ? 1 : 5) {
                int64_t taken = quickest_time_of(engine, wanted);

                worst = taken > worst ? taken : worst;
            }
            engine_destroy(engine);
        }
    }
    printf("%f\n", (double)worst / 1e6);
    return 0;
}
