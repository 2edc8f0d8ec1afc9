/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "probe/probe_messages.h"

#include <stdlib.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/failing_allocator.h"
#include "support/random.h"
#include "support/steps.h"
#include "support/wire/sample_reports.h"

static struct text packet_of(const struct probe_answer *answer)
{
    struct text packet = {0};

    assert_int_equal(probe_answer_encode(answer, &packet), 0);
    return packet;
}

static const unsigned char *bytes_of(const struct text *packet)
{
    return (const unsigned char *)packet->bytes;
}

static void a_request_is_read_as_it_was_written(void **state)
{
    struct probe_request request = {
        .number = UINT64_MAX, .deadline = INT64_MAX, .without_processes = true};
    struct probe_request again;
    struct text packet = {0};

    (void)state;
    assert_int_equal(device_id_list_parse(&request.only, "nvidia0,nvidia1.3,dri999999", NULL), 0);
    assert_int_equal(probe_request_encode(&request, &packet), 0);
    assert_int_equal(probe_request_decode(bytes_of(&packet), packet.length, &again, NULL), 0);
    assert_true(again.number == UINT64_MAX && again.deadline == INT64_MAX);
    assert_true(again.without_processes);
    assert_true(device_id_list_equals(&request.only, &again.only));
    vector_finish(&again.only);
    vector_finish(&request.only);
    text_finish(&packet);
}

static void an_empty_request_asks_for_all(void **state)
{
    struct probe_request request = {.number = 7};

    (void)state;
    assert_int_equal(probe_request_decode((const unsigned char *)"", 0, &request, NULL), 0);
    assert_true(request.number == 0 && request.only.count == 0 && !request.without_processes);
}

static void a_request_beyond_its_limits_is_not_written(void **state)
{
    struct probe_request request = {.deadline = UINT64_MAX};
    struct text packet = {0};

    (void)state;
    assert_int_equal(probe_request_encode(&request, &packet), BERTH_ERROR_INVALID);
    text_finish(&packet);
}

static void an_answer_is_read_as_it_was_written(void **state)
{
    struct probe_answer answer = answer_fill();
    struct probe_answer again;
    struct text packet = packet_of(&answer);

    (void)state;
    assert_int_equal(probe_answer_decode(bytes_of(&packet), packet.length, &again, NULL), 0);
    assert_true(same_answers(&answer, &again));
    machine_report_finish(&again.report);
    machine_report_finish(&answer.report);
    text_finish(&packet);
}

static void links_are_between_devices_that_there_are(void **state)
{
    static const size_t wrong[][2] = {{0, 2}, {1, 0}, {1, 1}, {0, UINT32_MAX}};

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct probe_answer answer = answer_fill();
        struct probe_answer untouched = {.number = 99};
        struct berth_error error = BERTH_ERROR_INIT;
        struct text packet;

        memcpy(answer.report.machine.links.items[0].between, wrong[i], sizeof(wrong[i]));
        packet = packet_of(&answer);
        assert_int_equal(probe_answer_decode(bytes_of(&packet), packet.length, &untouched, &error),
                         BERTH_ERROR_SYNTAX);
        assert_memory_equal(error.message, "expected links between two of 2 devices, got one", 48);
        assert_int_equal(untouched.number, 99);
        machine_report_finish(&answer.report);
        text_finish(&packet);
    }
}

static void a_cut_answer_is_refused_or_says_less(void **state)
{
    struct probe_answer answer = answer_fill();
    struct text packet = packet_of(&answer);

    (void)state;
    for (size_t length = 0; length < packet.length; length++) {
        unsigned char *cut = malloc(length + 1); /* on the heap, so that a sanitizer detects reads
                                                  * beyond the end */
        struct berth_error error = BERTH_ERROR_INIT;
        struct probe_answer again;

        assert_non_null(cut);
        memcpy(cut, packet.bytes, length);
        if (probe_answer_decode(cut, length, &again, &error) == 0)
            machine_report_finish(&again.report);
        else
            assert_true(error.code == BERTH_ERROR_SYNTAX && error.message[0] != '\0');
        free(cut);
    }
    machine_report_finish(&answer.report);
    text_finish(&packet);
}

static void a_damaged_answer_does_no_harm(void **state)
{
    struct test_random random = {.state = 5};
    struct probe_answer answer = answer_fill();
    struct text packet = packet_of(&answer);
    unsigned long steps = test_steps_up_to(20000, 200000);

    (void)state;
    for (unsigned long i = 0; i < steps; i++) {
        struct text damaged = {0};
        struct probe_answer again;

        text_append_bytes(&damaged, packet.bytes, packet.length);
        for (uint64_t many = 1 + test_random_below(&random, 4); many > 0; many--)
            damaged.bytes[test_random_below(&random, damaged.length)] =
                (char)test_random_next(&random);
        if (probe_answer_decode(bytes_of(&damaged), damaged.length, &again, NULL) == 0)
            machine_report_finish(&again.report);
        text_finish(&damaged);
    }
    machine_report_finish(&answer.report);
    text_finish(&packet);
}

static void garbage_is_refused(void **state)
{
    unsigned char garbage[64];
    struct berth_error error = BERTH_ERROR_INIT;
    struct probe_answer answer;

    (void)state;
    memset(garbage, 0xff, sizeof(garbage));
    assert_int_equal(probe_answer_decode(garbage, sizeof(garbage), &answer, &error),
                     BERTH_ERROR_SYNTAX);
    assert_true(error.message[0] != '\0');
}

static int read_answer(void *context)
{
    const struct text *packet = context;
    struct berth_error error = BERTH_ERROR_INIT;
    struct probe_answer answer;
    int code = probe_answer_decode(bytes_of(packet), packet->length, &answer, &error);

    if (code == 0)
        machine_report_finish(&answer.report);
    else
        assert_int_equal(error.code, code);
    return code;
}

static void out_of_memory_is_reported_at_every_allocation(void **state)
{
    struct probe_answer answer = answer_fill();
    struct text packet = packet_of(&answer);

    (void)state;
    assert_true(failing_allocator_try_all(read_answer, &packet) > 10);
    machine_report_finish(&answer.report);
    text_finish(&packet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_read_as_it_was_written),
        cmocka_unit_test(an_empty_request_asks_for_all),
        cmocka_unit_test(a_request_beyond_its_limits_is_not_written),
        cmocka_unit_test(an_answer_is_read_as_it_was_written),
        cmocka_unit_test(links_are_between_devices_that_there_are),
        cmocka_unit_test(a_cut_answer_is_refused_or_says_less),
        cmocka_unit_test(a_damaged_answer_does_no_harm),
        cmocka_unit_test(garbage_is_refused),
        cmocka_unit_test(out_of_memory_is_reported_at_every_allocation),
    };

    return cmocka_run_group_tests_name("probe_messages", tests, NULL, NULL);
}
