/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "reader/reader_messages.h"

#include <stdlib.h>
#include <string.h>

#include "support/assert_error.h"
#include "support/failing_allocator.h"
#include "support/random.h"
#include "support/steps.h"

static void add_numbers(struct reader_numbers *list, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *place = vector_append(list);

        assert_non_null(place);
        *place = first + i;
    }
}

/* A request with every field set. */
static struct reader_request request_fill(void)
{
    struct reader_request request = {
        .number = UINT64_MAX,
        .question = READER_LEFTOVERS,
        .socket = strdup("/run/berth/berth.sock"),
        .uid = 4000000000,
        .holder_pid = INT32_MAX,
        .holder_started = 1,
        .wants_exit_code = true,
        .root_pid = 7,
        .since = UINT64_MAX,
        .containers_matter = true,
        .identity_only = true,
        .session = 8,
    };

    assert_non_null(request.socket);
    add_numbers(&request.stalled, 100, 3);
    add_numbers(&request.spared, 200, 2);
    add_numbers(&request.pids, 300, READER_PROCESSES_MAX);
    for (uint64_t id = 1; id <= 3; id++) {
        struct reader_lease *lease = vector_append(&request.leases);
        struct reader_range *range = vector_append(&request.ranges);

        assert_true(lease != NULL && range != NULL);
        *lease = (struct reader_lease){id << 40};
        *range = (struct reader_range){(uint32_t)id * 65536, 65536};
    }
    return request;
}

/* An answer with every field set. */
static struct reader_answer answer_fill(void)
{
    struct reader_answer answer = {
        .number = 9,
        .more = true,
        .partial = true,
        .exit_code = optional_number_of(137),
    };
    struct reader_process *process = vector_append(&answer.processes);

    assert_non_null(process);
    *process = (struct reader_process){
        .pid = 4194304,
        .state = READER_FOUND,
        .has_descriptor = true,
        .descriptor = 5,
        .uid = optional_number_of(0),
        .parent = 1,
        .started = UINT64_MAX,
        .gid = optional_number_of(UINT32_MAX),
        .owner = optional_number_of(1000),
        .container = strdup("docker-0123"),
        .lease = 77,
        .socket = strdup("@s"),
        .devices = strdup(""),
    };
    assert_true(process->container != NULL && process->socket != NULL && process->devices != NULL);
    add_numbers(&process->groups, 1000, 2);
    add_numbers(&process->ancestors, 2000, 64);
    process = vector_append(&answer.processes);
    assert_non_null(process);
    *process = (struct reader_process){.pid = 3, .state = READER_STALLED, .descriptor = -1};
    return answer;
}

static const unsigned char *bytes_of(const struct text *packet)
{
    return (const unsigned char *)packet->bytes;
}

static struct text packet_of(const struct reader_answer *answer)
{
    struct text packet = {0};

    assert_int_equal(reader_answer_encode(answer, &packet), 0);
    return packet;
}

static void a_request_is_read_as_it_was_written(void **state)
{
    struct reader_request request = request_fill();
    struct reader_request again;
    struct text first = {0};
    struct text second = {0};

    (void)state;
    assert_int_equal(reader_request_encode(&request, &first), 0);
    assert_int_equal(reader_request_decode(bytes_of(&first), first.length, &again, NULL), 0);
    assert_int_equal(again.question, READER_LEFTOVERS);
    assert_string_equal(again.socket, "/run/berth/berth.sock");
    assert_true(again.uid == 4000000000 && again.holder_pid == INT32_MAX && again.root_pid == 7);
    assert_int_equal(again.session, 8);
    assert_true(again.wants_exit_code && again.containers_matter && again.identity_only);
    assert_true(again.since == UINT64_MAX && again.holder_started == 1);
    assert_true(again.stalled.count == 3 && again.stalled.items[2] == 102);
    assert_true(again.spared.count == 2 && again.pids.count == READER_PROCESSES_MAX);
    assert_true(again.leases.count == 3 && again.leases.items[2].id == UINT64_C(3) << 40);
    assert_true(again.ranges.items[1].first == 131072 && again.ranges.items[1].count == 65536);
    assert_int_equal(reader_request_encode(&again, &second), 0);
    assert_int_equal(first.length, second.length);
    assert_memory_equal(first.bytes, second.bytes, first.length);
    reader_request_finish(&request);
    reader_request_finish(&again);
    text_finish(&first);
    text_finish(&second);
}

static void an_answer_is_read_as_it_was_written(void **state)
{
    struct reader_answer answer = answer_fill();
    struct reader_answer again;
    struct text first = packet_of(&answer);
    struct text second;
    const struct reader_process *process;

    (void)state;
    assert_int_equal(reader_answer_decode(bytes_of(&first), first.length, &again, NULL), 0);
    assert_true(again.number == 9 && again.more && again.partial);
    assert_true(again.exit_code.known && again.exit_code.value == 137);
    assert_int_equal(again.processes.count, 2);
    process = &again.processes.items[0];
    assert_true(process->pid == 4194304 && process->state == READER_FOUND);
    /* A number of this process means nothing in another one. */
    assert_true(process->has_descriptor && process->descriptor == -1);
    assert_true(process->uid.known && process->uid.value == 0 && process->parent == 1);
    assert_true(process->gid.value == UINT32_MAX && process->owner.value == 1000);
    assert_true(process->groups.count == 2 && process->ancestors.items[63] == 2063);
    assert_true(process->lease == 77 && process->started == UINT64_MAX);
    assert_string_equal(process->container, "docker-0123");
    assert_string_equal(process->socket, "@s");
    assert_string_equal(process->devices, "");
    assert_false(again.processes.items[1].uid.known);
    second = packet_of(&again);
    assert_int_equal(first.length, second.length);
    assert_memory_equal(first.bytes, second.bytes, first.length);
    reader_answer_free(&answer);
    reader_answer_free(&again);
    text_finish(&first);
    text_finish(&second);
}

static void a_request_needs_a_question_that_is_known(void **state)
{
    struct reader_request request = {0};
    struct berth_error error = BERTH_ERROR_INIT;
    struct text packet = {0};

    (void)state;
    assert_int_equal(reader_request_encode(&request, &packet), BERTH_ERROR_INVALID);
    text_clear(&packet);
    request.question = READER_MARKED + 1;
    assert_int_equal(reader_request_encode(&request, &packet), BERTH_ERROR_INVALID);
    assert_int_equal(reader_request_decode((const unsigned char *)"", 0, &request, &error),
                     BERTH_ERROR_SYNTAX);
    assert_true(error.message[0] != '\0');
    text_finish(&packet);
}

static void lists_have_limits(void **state)
{
    struct reader_request request = {.question = READER_DESCRIBE};
    struct reader_answer answer = {.number = 1};
    struct text packet = {0};

    (void)state;
    add_numbers(&request.pids, 1, READER_PROCESSES_MAX + 1);
    assert_int_equal(reader_request_encode(&request, &packet), BERTH_ERROR_INVALID);
    for (uint32_t i = 0; i <= READER_PAGE_MAX; i++) {
        struct reader_process *process = vector_append(&answer.processes);

        assert_non_null(process);
        *process = (struct reader_process){.pid = i + 1, .state = READER_OURS};
    }
    text_clear(&packet);
    assert_int_equal(reader_answer_encode(&answer, &packet), BERTH_ERROR_INVALID);
    reader_request_finish(&request);
    reader_answer_free(&answer);
    text_finish(&packet);
}

static void pids_are_positive(void **state)
{
    static const uint32_t wrong[] = {0, UINT32_C(1) << 31, UINT32_MAX};
    struct text packet = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct reader_answer answer = {.number = 1};
        struct reader_process *process = vector_append(&answer.processes);

        assert_non_null(process);
        *process = (struct reader_process){.pid = wrong[i], .state = READER_OURS};
        text_clear(&packet);
        assert_int_equal(reader_answer_encode(&answer, &packet), BERTH_ERROR_INVALID);
        reader_answer_free(&answer);
    }
    text_finish(&packet);
}

static void a_damaged_packet_does_no_harm(void **state)
{
    struct test_random random = {.state = 11};
    struct reader_answer answer = answer_fill();
    struct text packet = packet_of(&answer);
    unsigned long steps = test_steps_up_to(20000, 200000);

    (void)state;
    for (unsigned long i = 0; i < steps; i++) {
        size_t length = test_random_below(&random, packet.length + 1);
        unsigned char *damaged = malloc(length + 1); /* on the heap, for the sanitizers */
        struct reader_request request;
        struct reader_answer again;

        assert_non_null(damaged);
        memcpy(damaged, packet.bytes, length);
        for (uint64_t many = test_random_below(&random, 4); length > 0 && many > 0; many--)
            damaged[test_random_below(&random, length)] = (unsigned char)test_random_next(&random);
        if (reader_answer_decode(damaged, length, &again, NULL) == 0)
            reader_answer_free(&again);
        if (reader_request_decode(damaged, length, &request, NULL) == 0)
            reader_request_finish(&request);
        free(damaged);
    }
    reader_answer_free(&answer);
    text_finish(&packet);
}

static int read_answer(void *context)
{
    const struct text *packet = context;
    struct berth_error error = BERTH_ERROR_INIT;
    struct reader_answer answer;
    int code = reader_answer_decode(bytes_of(packet), packet->length, &answer, &error);

    if (code == 0)
        reader_answer_free(&answer);
    else
        assert_int_equal(error.code, code);
    return code;
}

static void out_of_memory_is_reported_at_every_allocation(void **state)
{
    struct reader_answer answer = answer_fill();
    struct text packet = packet_of(&answer);

    (void)state;
    assert_true(failing_allocator_try_all(read_answer, &packet) >= 6);
    reader_answer_free(&answer);
    text_finish(&packet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_read_as_it_was_written),
        cmocka_unit_test(an_answer_is_read_as_it_was_written),
        cmocka_unit_test(a_request_needs_a_question_that_is_known),
        cmocka_unit_test(lists_have_limits),
        cmocka_unit_test(pids_are_positive),
        cmocka_unit_test(a_damaged_packet_does_no_harm),
        cmocka_unit_test(out_of_memory_is_reported_at_every_allocation),
    };

    return cmocka_run_group_tests_name("reader_messages", tests, NULL, NULL);
}
