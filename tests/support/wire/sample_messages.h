/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages in which every member of their type is set, and random messages.
 */
#ifndef TESTS_SAMPLE_MESSAGES_H
#define TESTS_SAMPLE_MESSAGES_H

#include "support/unit.h"

#include <stdlib.h>

#include "base/count.h"
#include "codec/tagged.h"
#include "support/engine/machines.h"
#include "support/random.h"
#include "support/spec/requests.h"
#include "wire/wire.h"
#include "wire/wire_tables.h"

/* All types of this version. */
static const enum wire_type sample_types[] = {
    WIRE_HELLO,   WIRE_CLAIM,   WIRE_RELEASE, WIRE_CANCEL,  WIRE_STOP,   WIRE_EXTEND,
    WIRE_EXPLAIN, WIRE_WATCH,   WIRE_TEST,    WIRE_LOOK,    WIRE_POOL,   WIRE_WAITING,
    WIRE_GRANTED, WIRE_REFUSED, WIRE_DONE,    WIRE_PAGE,    WIRE_NOTICE, WIRE_ENDED,
    WIRE_CLOSING, WIRE_DRAIN,   WIRE_UNDRAIN, WIRE_WARNING, WIRE_FOLLOW, WIRE_NEWS,
};

/* Fills a zeroed device. */
static inline void device_fill(struct device *device, struct device_id id)
{
    struct device_process *process;

    *device = (struct device){
        .id = id,
        .name = copy_of("NVIDIA A100-SXM4-80GB"),
        .uuid = copy_of("GPU-1"),
        .parent = copy_of("nvidia0"),
        .cpus = copy_of("0-15,32-47"),
        .pci = {.known = true, .domain = 1, .bus = 7, .device = 2, .function = 3},
        .memory_total = optional_number_of(80 * GIB),
        .numa = optional_number_of(3),
        .minor = optional_number_of(0),
        .tiles = optional_number_of(2),
        .ordinal = optional_number_of(3),
        .first_tile = optional_number_of(5),
        .cap = {.known = true, .major = 8, .minor = 0},
        .health = HEALTH_SICK,
        .partitioned = true,
        .load = {.memory_free = load_figure_declared(1),
                 .utilization = load_figure_sampled(2, 3),
                 .temperature = load_figure_sampled(-4, 5),
                 .power = load_figure_sampled(6, -7),
                 .frequency = load_figure_sampled(8, 9)},
        .health_reason = copy_of("it fell off the bus"),
        .asleep = true,
        .old = true,
        .kind = DEVICE_KIND_DISCRETE,
    };
    process = device_process_find_or_add(&device->processes, 4711);
    assert_non_null(process);
    *process = (struct device_process){
        .pid = 4711,
        .uid = optional_number_of(1000),
        .memory = optional_number_of(GIB),
        .command = copy_of("python train.py"),
        .container = copy_of("d2c94e258dcb"),
        .lease = 12,
        .started = 4,
        .draws = true,
        .squats = true,
        .said_lease = 13,
        .said_socket = copy_of("/run/berth/berth.sock"),
        .owner = optional_number_of(1001),
    };
    assert_non_null(device_process_find_or_add(&device->processes, 1));
    assert_int_equal(string_list_append(&device->nodes, "/dev/nvidia0"), 0);
    assert_int_equal(string_list_append(&device->nodes, "/dev/nvidiactl"), 0);
}

static inline struct slot_info *message_add_slot(struct wire_message *message)
{
    struct slot_info *slot = vector_append(&message->snapshot.slots);

    assert_non_null(slot);
    slot->device = calloc(1, sizeof(*slot->device));
    assert_non_null(slot->device);
    return slot;
}

static inline void fill_slots(struct wire_message *message)
{
    struct slot_info *slot = message_add_slot(message);
    struct device *device = slot->device;

    device_fill(device, id_of("nvidia0.1"));
    *slot = (struct slot_info){
        .device = device,
        .state = SLOT_STATE_GONE,
        .sharing = SHARING_TIME_SLICE,
        .tenants = 4,
        .share_used = 750000,
        .memory_used = 60 * GIB,
        .blocks = SLOT_BLOCK_DRAINED | SLOT_BLOCK_SQUATTED,
        .reason = copy_of("its fan is broken"),
        .reason_uid = optional_number_of(0),
        .reason_time = 3,
        .name_uid = optional_number_of(1001),
        .name_pid = optional_number_of(4711),
    };
    message_add_slot(message)->device->id = id_of("amd1"); /* a device without facts */
}

static inline void fill_leases(struct wire_message *message)
{
    struct lease_info *lease = vector_append(&message->snapshot.leases);

    assert_non_null(lease);
    *lease = (struct lease_info){
        .id = 12,
        .parent = 11,
        .uid = 1000,
        .pid = INT32_MAX,
        .name = copy_of("train"),
        .command = copy_of("python train.py"),
        .replicas = 2,
        .share = 250000,
        .memory = optional_number_of(GIB),
        .sharing = SHARING_MPS,
        .priority = PRIORITY_HIGH,
        .opportunistic = true,
        .draining = true,
        .granted = 2,
        .since = 1,
        .expires = optional_number_of(INT64_MAX),
        .force_at = optional_number_of(0),
        .end = LEASE_END_PARENT,
        .idle = optional_number_of(7),
        .idle_warned = true,
        .adopted = true,
        .preparing = true,
    };
    assert_int_equal(device_id_list_parse(&lease->devices, "nvidia0,nvidia1", NULL), 0);
    assert_non_null(vector_append(&message->snapshot.leases));
}

static inline void fill_claims(struct wire_message *message)
{
    struct claim_info *claim = vector_append(&message->snapshot.claims);

    assert_non_null(claim);
    *claim = (struct claim_info){
        .id = 13,
        .parent = 12,
        .uid = 1001,
        .pid = 77,
        .position = 1,
        .name = copy_of(""),
        .command = copy_of("sleep 1"),
        .request = copy_of("2 devices"),
        .since = -1,
        .why = copy_of("2 of 2 are leased"),
        .estimate = optional_number_of(90),
        .priority = PRIORITY_LOW,
        .opportunistic = true,
    };
    assert_non_null(vector_append(&message->snapshot.claims));
}

static inline void fill_ended(struct wire_message *message)
{
    struct ended_lease *ended = vector_append(&message->ended);

    assert_non_null(ended);
    *ended = (struct ended_lease){
        .lease = calloc(1, sizeof(*ended->lease)),
        .end = LEASE_END_DIED,
        .time = 77,
        .exit_code = optional_number_of(0),
    };
    assert_non_null(ended->lease);
    *ended->lease = (struct lease_info){
        .id = 4,
        .name = copy_of("over"),
        .replicas = 1,
        .judged_time = 9,
        .idle_time = 8,
    };
    assert_int_equal(device_id_list_parse(&ended->lease->devices, "nvidia1", NULL), 0);
}

static inline void fill_tally(struct wire_message *message)
{
    struct pool_tally *tally = calloc(1, sizeof(*tally));

    assert_non_null(tally);
    *tally = (struct pool_tally){
        .granted = 1,
        .impossible = 2,
        .refused = 3,
        .busy = 4,
        .timed_out = 5,
        .cancelled = UINT64_MAX,
        .waited = calloc(1, sizeof(*tally->waited)),
        .held = calloc(1, sizeof(*tally->held)),
    };
    assert_true(tally->waited != NULL && tally->held != NULL);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        tally->waited->counts[i] = i + 1;
    tally->waited->sum = 99;
    message->tally = tally;
}

static inline void fill_problems(struct wire_message *message)
{
    assert_int_equal(
        machine_report_add_problem(&message->snapshot.problems, "nvidia", "the driver hangs"), 0);
    assert_int_equal(machine_report_add_problem(&message->snapshot.problems, "", "%s", ""), 0);
}

/* Drops the members that the type does not use. */
static inline void message_drop_others(struct wire_message *message)
{
    struct wire_message kept = {.type = message->type, .number = message->number};
    struct text fields = {0};
    struct tagged_reading reading = {.type_bit = TAGGED_ALL_TYPES};

    assert_int_equal(tagged_write(&wire_tagged, TAGGED_ALL_TYPES, message, &fields), 0);
    assert_false(text_failed(&fields));
    reading.bytes = (const unsigned char *)fields.bytes;
    assert_int_equal(tagged_read_set(&reading, &wire_tagged, wire_tables_type_tags(message->type),
                                     (struct tagged_span){0, fields.length}, &kept),
                     0);
    text_finish(&fields);
    wire_message_finish(message);
    *message = kept;
}

/* Sets every member of a message, also members that its type does not use. The caller finishes it.
 */
static inline void message_fill_all(struct wire_message *message, enum wire_type type)
{
    *message = (struct wire_message){
        .type = type,
        .number = UINT64_MAX,
        .id = 12,
        .parent = 11,
        .token = {UINT64_MAX, 1},
        .request = calloc(1, sizeof(*message->request)),
        .hold = LEASE_HOLD_NOTHING,
        .resume = true,
        .command = copy_of("python train.py"),
        .about.inventory = copy_of("/tmp/machine.yaml"),
        .duration = 5,
        .started = 9,
        .present = true,
        .stay = true,
        .section = WIRE_SECTION_QUEUE,
        .after = 6,
        .error = 8,
        .text = copy_of("why"),
        .position = 7,
        .estimate = optional_number_of(0),
        .replicas = 2,
        .more = true,
        .granted = 8,
        .expires = optional_number_of(9),
        .vendors = 31,
        .mps_root = copy_of("/run/berth/mps/1000"),
        .about.socket = copy_of("/run/berth/berth.sock"),
        .about.pool = copy_of("0123456789abcdef"),
        .about.version_text = copy_of("0.1.0"),
        .pid = 4711,
        .force_at = 10,
        .end = LEASE_END_REVOKED,
        .exit_code = optional_number_of(255),
        .snapshot.capacity = 8,
        .snapshot.pending = 3,
        .snapshot.time = INT64_MAX,
        .epoch = 13,
        .kinds = WIRE_NEWS_ALL,
        .sections = 14,
        .about.history = copy_of("/var/lib/berth/history.db"),
        .lost = 3,
    };
    assert_non_null(message->request);
    request_fill(message->request);
    assert_int_equal(device_id_list_parse(&message->device_ids, "nvidia2,amd0", NULL), 0);
    assert_int_equal(string_list_append(&message->masks, "CUDA_VISIBLE_DEVICES=0,1"), 0);
    assert_int_equal(string_list_append(&message->masks, "ZE_AFFINITY_MASK="), 0);
    device_fill(vector_append(&message->devices), id_of("nvidia0"));
    ((struct device *)vector_append(&message->devices))->id = id_of("dri5");
    fill_slots(message);
    fill_leases(message);
    fill_claims(message);
    fill_problems(message);
    fill_ended(message);
    fill_tally(message);
}

/* Sets every member of a message that its type uses. The caller finishes it. */
static inline void message_fill(struct wire_message *message, enum wire_type type)
{
    message_fill_all(message, type);
    message_drop_others(message);
}

/* Makes a message of a random type with random members that it uses. The caller finishes it. */
static inline void message_randomise(struct wire_message *message, struct test_random *random)
{
    uint64_t bits = test_random_next(random);

    *message = (struct wire_message){
        .type = sample_types[test_random_below(random, COUNT(sample_types))],
        .number = test_random_any_length(random),
        .id = test_random_any_length(random),
        .parent = test_random_any_length(random),
        .token = {test_random_any_length(random), test_random_any_length(random)},
        .hold = (enum lease_hold)test_random_below(random, LEASE_HOLD_NOTHING + 1),
        .resume = (bits & 1) != 0,
        .command = random_text(random),
        .about.inventory = random_text(random),
        .duration = test_random_any_length(random),
        .section = (uint32_t)test_random_any_length(random),
        .after = test_random_any_length(random),
        .error = (uint32_t)test_random_any_length(random),
        .text = random_text(random),
        .position = (uint32_t)test_random_any_length(random),
        .estimate = random_optional(random),
        .replicas = (uint32_t)test_random_any_length(random),
        .more = (bits & 2) != 0,
        .granted = (int64_t)test_random_any_length(random),
        .expires = random_optional(random),
        .vendors = (uint32_t)test_random_any_length(random),
        .mps_root = random_text(random),
        .about.socket = random_text(random),
        .about.pool = random_text(random),
        .about.version_text = random_text(random),
        .pid = (int32_t)(test_random_any_length(random) & INT32_MAX),
        .force_at = (int64_t)test_random_any_length(random),
        .end = (enum lease_end)(test_random_any_length(random) & UINT32_MAX),
        .snapshot.capacity = (uint32_t)test_random_any_length(random),
        .snapshot.pending = (uint32_t)test_random_any_length(random),
        .snapshot.time = (int64_t)test_random_any_length(random),
        .epoch = test_random_any_length(random),
        .kinds = (uint32_t)test_random_any_length(random),
        .sections = (uint32_t)test_random_any_length(random),
        .about.history = random_text(random),
        .lost = test_random_any_length(random),
    };
    if ((bits & 4) != 0) {
        message->request = calloc(1, sizeof(*message->request));
        assert_non_null(message->request);
        request_randomise(message->request, random);
    }
    if ((bits & 8) != 0)
        fill_slots(message);
    if ((bits & 16) != 0)
        fill_leases(message);
    if ((bits & 32) != 0)
        fill_claims(message);
    if ((bits & 64) != 0)
        fill_problems(message);
    if ((bits & 128) != 0)
        fill_ended(message);
    if ((bits & 256) != 0)
        fill_tally(message);
    message_drop_others(message);
}

#endif
