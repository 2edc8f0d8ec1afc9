/* SPDX-License-Identifier: Apache-2.0
 *
 * HELLO, EXPLAIN and LOOK.
 */
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/handlers/handle.h"
#include "daemon/leases/device_drain.h"
#include "support/daemons/device_processes.h"
#include "support/daemons/played_probe.h"
#include "support/daemons/played_recorder.h"
#include "support/daemons/pool_stage.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"

/* ---- HELLO ---- */

static void hello_tells_what_pool_this_is(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message = {.type = WIRE_HELLO, .number = 9};

    pool->recorder_process->order.file = "/var/made-up/history.db";
    handle_hello(client.connection, &message);
    assert_message(&client, WIRE_POOL, &message);
    assert_int_equal(message.number, 9);
    assert_string_equal(message.about.pool, pool->name);
    assert_string_equal(message.about.socket, STAGE_SOCKET);
    assert_string_equal(message.about.inventory, "/run/stage/devices.json");
    assert_string_equal(message.about.version_text, BERTH_VERSION);
    assert_string_equal(message.about.history, "/var/made-up/history.db");
    assert_int_equal(message.pid, pool->pid);
    assert_int_equal(message.snapshot.capacity, 4);
    assert_int_equal(message.epoch, followers_epoch(pool->followers));
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &client);
}

/* ---- EXPLAIN ---- */

static void explain(const struct stage_client *client, uint64_t id)
{
    struct wire_message message = {.type = WIRE_EXPLAIN, .number = 9, .id = id};

    handle_explain(client->connection, &message);
}

static void a_waiting_claim_is_explained(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message;

    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4 time=100s"});
    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4"});
    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4"});
    pool_stage_go_on(stage, 40 * DURATION_SECOND);
    explain(&client, 2);
    assert_message(&client, WIRE_WAITING, &message);
    assert_int_equal(message.id, 2);
    assert_int_equal(message.position, 1);
    assert_int_equal(message.snapshot.pending, 2);
    assert_contains(message.text, "needs 4");
    assert_int_equal(message.estimate.value, 60 * DURATION_SECOND);
    wire_message_finish(&message);
    explain(&client, 3);
    assert_message(&client, WIRE_WAITING, &message);
    assert_int_equal(message.position, 2);
    assert_false(message.estimate.known);
    wire_message_finish(&message);
    explain(&client, 1);
    assert_refused(&client, BERTH_ERROR_NOT_FOUND,
                   "cannot explain claim 1: no waiting claim has this id");
    explain(&client, 99);
    assert_refused(&client, BERTH_ERROR_NOT_FOUND,
                   "cannot explain claim 99: no waiting claim has this id");
    pool_stage_hang_up(stage, &client);
}

static void a_claim_in_preparation_is_explained(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message;

    pool_stage_claim(stage, &(struct stage_claim){0})->unprepared = true;
    explain(&client, 1);
    assert_message(&client, WIRE_WAITING, &message);
    assert_string_equal(message.text, "its devices are being checked");
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &client);
}

/* ---- LOOK ---- */

/* All pages of a snapshot, as a client collects them. */
struct seen {
    size_t pages;
    uint32_t devices[200]; /* indices of their ids */
    size_t device_count;
    uint64_t leases[2000]; /* ids */
    size_t lease_count;
    uint64_t claims[2000]; /* likewise */
    uint32_t positions[2000];
    size_t claim_count;
    size_t unexplained; /* claims far back in the queue */
    size_t problems;
    bool has_tally;
};

static void add_page(struct seen *seen, const struct wire_message *page)
{
    const struct pool_snapshot *snapshot = &page->snapshot;
    const struct claim_info *claim;
    const struct lease_info *lease;
    const struct slot_info *slot;

    seen->pages++;
    vector_for_each (slot, &snapshot->slots)
        seen->devices[seen->device_count++] = slot->device->id.index;
    vector_for_each (lease, &snapshot->leases)
        seen->leases[seen->lease_count++] = lease->id;
    vector_for_each (claim, &snapshot->claims) {
        seen->positions[seen->claim_count] = claim->position;
        seen->claims[seen->claim_count++] = claim->id;
        seen->unexplained += strcmp(claim->why, "it is far back in the queue") == 0;
    }
    seen->problems += snapshot->problems.count;
    seen->has_tally = page->tally != NULL;
}

/* Asks for all pages of these sections; 0: all. */
static void look(const struct stage_client *client, uint32_t sections, struct seen *seen)
{
    uint32_t section = 0;
    uint64_t after = 0;

    memset(seen, 0, sizeof(*seen));
    do {
        struct wire_message message = {.type = WIRE_LOOK,
                                       .number = 9,
                                       .sections = sections,
                                       .section = section,
                                       .after = after};

        handle_look(client->connection, &message);
        assert_message(client, WIRE_PAGE, &message);
        add_page(seen, &message);
        section = message.section;
        after = message.after;
        wire_message_finish(&message);
        assert_true(seen->pages < 200);
    } while (section != WIRE_SECTION_END);
}

static void a_small_pool_is_one_page(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct seen seen;

    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=3"});
    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4"});
    machine_report_add_problem(&pool->problems, "journal", "it was damaged");
    machine_report_add_problem(&pool->recorder_process->problems, "history", "no space");
    look(&client, 0, &seen);
    assert_int_equal(seen.pages, 1);
    assert_int_equal(seen.device_count, 4);
    assert_int_equal(seen.lease_count, 1);
    assert_int_equal(seen.claim_count, 1);
    assert_int_equal(seen.positions[0], 1);
    assert_int_equal(seen.problems, 2);
    assert_true(seen.has_tally);
    pool_stage_hang_up(stage, &client);
}

static void only_requested_sections_come(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct seen seen;

    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=3"});
    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4"});
    look(&client, 1 << WIRE_SECTION_LEASES, &seen);
    assert_int_equal(seen.device_count + seen.claim_count, 0);
    assert_int_equal(seen.lease_count, 1);
    look(&client, 1 << WIRE_SECTION_DEVICES | 1 << WIRE_SECTION_QUEUE, &seen);
    assert_int_equal(seen.lease_count, 0);
    assert_int_equal(seen.device_count, 4);
    assert_int_equal(seen.claim_count, 1);
    pool_stage_hang_up(stage, &client);
}

/* A section of a newer client: there is nothing more. */
static void an_unknown_section_is_the_last_page(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message = {.type = WIRE_LOOK, .section = UINT32_MAX, .after = UINT64_MAX};

    handle_look(client.connection, &message);
    assert_message(&client, WIRE_PAGE, &message);
    assert_int_equal(message.section, WIRE_SECTION_END);
    assert_int_equal(message.snapshot.slots.count, 0);
    wire_message_finish(&message);
    message = (struct wire_message){
        .type = WIRE_LOOK, .section = WIRE_SECTION_DEVICES, .after = UINT64_MAX};
    handle_look(client.connection, &message);
    assert_message(&client, WIRE_PAGE, &message);
    assert_int_equal(message.snapshot.slots.count, 0);
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &client);
}

/* More than a message has room for, if each is long. */
enum { MANY = 40 };

static int begin_many(void **state)
{
    struct text ids = {0};

    for (int i = 0; i < MANY; i++)
        text_append_format(&ids, "%snvidia%d", i == 0 ? "" : ",", i);
    *state = pool_stage_make(&(struct pool_stage_settings){
        .devices = text_string(&ids), .parts = pool_stage_all, .part_count = POOL_STAGE_ALL});
    text_finish(&ids);
    return 0;
}

static int compare_numbers(const void *one, const void *other)
{
    uint64_t first = *(const uint64_t *)one;
    uint64_t second = *(const uint64_t *)other;

    return (first > second) - (first < second);
}

/* Each of `count` ids from `first` on is there once. */
static bool is_complete(uint64_t *ids, size_t count, size_t wanted, uint64_t first)
{
    if (count != wanted)
        return false;
    qsort(ids, count, sizeof(*ids), compare_numbers);
    for (size_t i = 0; i < count; i++) {
        if (ids[i] != first + i)
            return false;
    }
    return true;
}

/* Wherever a page ends, also between two sections, nothing is missing and nothing comes twice. */
static void no_item_is_lost_between_pages(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_OWNER);
    const struct device_list *devices = &engine_machine(pool->engine)->devices;
    struct seen seen;

    for (int i = 0; i < MANY; i++)
        pool_stage_claim(stage, &(struct stage_claim){.uid = STAGE_OWNER, .words = "gpus=1"});
    for (int i = 0; i < 20; i++)
        pool_stage_claim(stage, &(struct stage_claim){.uid = STAGE_OWNER, .words = "gpus=1"});
    for (size_t length = 0; length < 4000; length += 50) {
        char cpus[4000];

        memset(cpus, '1', length);
        cpus[length] = '\0';
        for (size_t i = 0; i < devices->count; i++) {
            free(devices->items[i].cpus);
            devices->items[i].cpus = copy_of(cpus);
        }
        look(&client, 0, &seen);
        assert_int_equal(seen.device_count, MANY);
        if (!is_complete(seen.leases, seen.lease_count, MANY, 1))
            fail_msg("leases are missing where devices have %zu bytes", length);
        if (!is_complete(seen.claims, seen.claim_count, 20, MANY + 1))
            fail_msg("claims are missing where devices have %zu bytes", length);
    }
    pool_stage_hang_up(stage, &client);
}

/* The same with leases whose command lines fill the pages before the queue. */
static void no_claim_is_lost_behind_long_leases(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_OWNER);
    struct seen seen;

    for (int i = 0; i < MANY + 20; i++)
        pool_stage_claim(
            stage, &(struct stage_claim){.uid = STAGE_OWNER, .words = "gpus=1", .command = "x"});
    for (size_t length = 0; length < 4000; length += 50) {
        char command[4000];

        memset(command, '1', length);
        command[length] = '\0';
        list_for_each (link, &pool->jobs) {
            struct holder *holder = container_of(link, struct job, in_pool)->holder;

            free(holder->command);
            holder->command = copy_of(command);
        }
        look(&client, 0, &seen);
        if (!is_complete(seen.leases, seen.lease_count, MANY, 1))
            fail_msg("leases are missing where commands have %zu bytes", length);
        if (!is_complete(seen.claims, seen.claim_count, 20, MANY + 1))
            fail_msg("claims are missing where commands have %zu bytes", length);
        for (size_t i = 0; i < seen.claim_count; i++)
            assert_int_equal(seen.positions[i], i + 1);
    }
    pool_stage_hang_up(stage, &client);
}

/* A long queue comes in pages, because each reason takes time; the last claims get none. */
static void a_long_queue_comes_in_pages(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_OWNER);
    struct seen seen;

    stage->pool.journaling = false;
    pool_stage_claim(stage, &(struct stage_claim){.uid = STAGE_OWNER, .words = "gpus=40"});
    for (int i = 0; i < 600; i++)
        pool_stage_claim(stage, &(struct stage_claim){.uid = STAGE_OWNER, .words = "gpus=40"});
    look(&client, 1 << WIRE_SECTION_QUEUE, &seen);
    assert_true(is_complete(seen.claims, seen.claim_count, 600, 2));
    assert_in_range(seen.pages, 10, 600);
    assert_int_equal(seen.unexplained, 600 - 512);
    pool_stage_hang_up(stage, &client);
}

/* A machine with very many faults still has a last page. */
static void problems_have_a_limit(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    char words[1000];
    struct seen seen;

    for (unsigned i = 0; i < 100; i++) {
        memset(words, 'x', sizeof(words));
        snprintf(words + 900, 100, "%u", i);
        machine_report_add_problem(&pool->problems, "journal", "%s", words);
    }
    look(&client, 0, &seen);
    assert_in_range(seen.problems, 10, 30);
    pool_stage_hang_up(stage, &client);
}

static void a_device_comes_with_its_processes_and_state(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    const uint32_t ancestors[] = {1};
    const struct device_process process = {
        .pid = 6000,
        .uid = optional_number_of(STAGE_OTHER),
        .owner = optional_number_of(STAGE_OTHER),
        .command = (char *)"/usr/bin/train --token=12345",
        .said_lease = 17,
        .said_socket = (char *)"/run/secret.sock",
        .ancestors = ancestors,
        .ancestor_count = 1,
    };
    struct wire_message message = {.type = WIRE_LOOK};
    const struct slot_info *slot;

    put_process(pool->engine, 0, &process);
    assert_int_equal(device_drain_set(pool, 1, "dust", (struct optional_number){0}, NULL), 0);
    handle_look(client.connection, &message);
    assert_message(&client, WIRE_PAGE, &message);
    slot = &message.snapshot.slots.items[0];
    assert_int_equal(slot->device->processes.count, 1);
    assert_int_equal(slot->device->processes.items[0].pid, 6000);
    /* Another user's arguments, and what only the daemon needs, stay here. */
    assert_string_equal(slot->device->processes.items[0].command, "train");
    assert_int_equal(slot->device->processes.items[0].said_lease, 0);
    assert_null(slot->device->processes.items[0].said_socket);
    assert_false(slot->device->processes.items[0].owner.known);
    assert_string_equal(message.snapshot.slots.items[1].reason, "dust");
    assert_int_equal(message.snapshot.slots.items[1].state, SLOT_STATE_DRAINED);
    wire_message_finish(&message);
    assert_int_equal(engine_device_processes(pool->engine, 0)->items[0].said_lease, 17);
    pool_stage_hang_up(stage, &client);
}

/* A user who looks gets fresh loads; a follower has set its own interval. */
static void a_look_at_the_devices_is_noted(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message;
    struct seen seen;

    assert_int_equal(probe_poll_create(&pool->probe_poll, &(struct probe_poll_settings){0}, NULL),
                     0);
    look(&client, 0, &seen);
    assert_int_equal(pool->probe_poll->watched, 1);
    look(&client, 1 << WIRE_SECTION_DEVICES, &seen);
    assert_int_equal(pool->probe_poll->watched, 1);
    /* A further page is the same look. */
    message = (struct wire_message){.type = WIRE_LOOK, .section = WIRE_SECTION_LEASES};
    handle_look(client.connection, &message);
    assert_sent(&client, WIRE_PAGE);
    assert_int_equal(pool->probe_poll->watched, 1);
    assert_int_equal(seen.problems, 0);
    machine_report_add_problem(&pool->probe_poll->problems, "nvidia", "no driver");
    look(&client, 0, &seen);
    assert_int_equal(seen.problems, 1);
    probe_poll_destroy(pool->probe_poll);
    pool->probe_poll = NULL;
    pool_stage_hang_up(stage, &client);
}

/* A snapshot with a hole would be a lie: without memory the client gets no page at all. */
static void without_memory_no_page_has_a_hole(void **state)
{
    struct pool_stage *stage = *state;
    bool was_refused = true;

    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=3", .command = "x"});
    pool_stage_claim(stage, &(struct stage_claim){.words = "gpus=4", .command = "x"});
    put_process(stage->pool.engine, 0,
                &(struct device_process){.pid = 6000, .command = (char *)"train --x"});
    for (unsigned long n = 1; was_refused; n++) {
        struct stage_client client = pool_stage_connect(stage, STAGE_USER);
        struct wire_message message = {.type = WIRE_LOOK, .number = 9};
        struct seen seen;

        look(&client, 0, &seen); /* the answer has memory from here on */
        failing_allocator_start(n);
        handle_look(client.connection, &message);
        was_refused = failing_allocator_stop();
        while (pool_stage_receive(&client, &message)) {
            if (message.type == WIRE_PAGE) {
                assert_int_equal(message.snapshot.slots.count, 4);
                assert_int_equal(message.snapshot.leases.count, 1);
                assert_int_equal(message.snapshot.claims.count, 1);
            } else {
                assert_int_equal(message.type, WIRE_REFUSED);
                assert_int_equal(-(int)message.error, BERTH_ERROR_MEMORY);
            }
            wire_message_finish(&message);
        }
        pool_stage_hang_up(stage, &client);
    }
}

#define ON_STAGE(test)  cmocka_unit_test_setup_teardown(test, pool_stage_begin, pool_stage_end)
#define WITH_MANY(test) cmocka_unit_test_setup_teardown(test, begin_many, pool_stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(hello_tells_what_pool_this_is),
        ON_STAGE(a_waiting_claim_is_explained),
        ON_STAGE(a_claim_in_preparation_is_explained),
        ON_STAGE(a_small_pool_is_one_page),
        ON_STAGE(only_requested_sections_come),
        ON_STAGE(an_unknown_section_is_the_last_page),
        WITH_MANY(no_item_is_lost_between_pages),
        WITH_MANY(no_claim_is_lost_behind_long_leases),
        WITH_MANY(a_long_queue_comes_in_pages),
        ON_STAGE(problems_have_a_limit),
        ON_STAGE(a_device_comes_with_its_processes_and_state),
        ON_STAGE(a_look_at_the_devices_is_noted),
        ON_STAGE(without_memory_no_page_has_a_hole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
