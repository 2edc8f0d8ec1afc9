/* SPDX-License-Identifier: Apache-2.0
 *
 * How often the daemon probes the hardware, and how soon it retries.
 */
#include "support/unit.h"

#include "daemon/devices/probe_poll.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"

static void it_looks_as_often_as_somebody_cares(void **state)
{
    (void)state;
    assert_int_equal(probe_poll_interval(true, true), DURATION_SECOND);
    assert_int_equal(probe_poll_interval(true, false), DURATION_SECOND);
    assert_int_equal(probe_poll_interval(false, true), 10 * DURATION_SECOND);
    assert_int_equal(probe_poll_interval(false, false), 60 * DURATION_SECOND);
}

static void a_probe_that_fails_again_and_again_is_left_alone_longer(void **state)
{
    static const int64_t seconds[] = {1, 2, 4, 8, 16, 32, 60, 60};

    (void)state;
    for (unsigned i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++)
        assert_int_equal(probe_poll_restart_after(i + 1), seconds[i] * DURATION_SECOND);
    assert_int_equal(probe_poll_restart_after(UINT32_MAX), 60 * DURATION_SECOND);
}

/* The process that starts a daemon waits for 10 s. */
static void a_first_look_does_not_outlast_who_waits_for_it(void **state)
{
    (void)state;
    assert_true(PROBE_POLL_START_TIMEOUT <= 8 * DURATION_SECOND);
}

/* ---- A poll whose probe is the test ---- */

struct polled {
    struct loop loop;
    struct log log;
    struct pool_clock clock;
    struct probe_poll *poll;
    int probe; /* the probe's end of the last connection; -1: none */
    int starts;
    bool may_start;
    bool busy;
    bool needs_report;
    int requests;
    int reports;
    int lost;
    int answered;
};

static bool is_busy(void *context)
{
    return ((struct polled *)context)->busy;
}

static int64_t no_interval(void *context)
{
    (void)context;
    return 0;
}

static bool needs_report(void *context)
{
    return ((struct polled *)context)->needs_report;
}

static void count_request(void *context, struct device_id_list *only)
{
    struct polled *polled = context;
    struct device_id *id = only == NULL ? NULL : vector_append(only);

    polled->requests++;
    polled->needs_report = false;
    if (id != NULL)
        *id = (struct device_id){.vendor = VENDOR_NVIDIA, .index = 3, .mig = DEVICE_NO_MIG};
}

static int count_report(void *context, struct machine_report *report, struct berth_error *error)
{
    (void)error;
    ((struct polled *)context)->reports++;
    machine_report_finish(report);
    return 0;
}

static void count_loss(void *context)
{
    ((struct polled *)context)->lost++;
}

static void count_answer(void *context)
{
    ((struct polled *)context)->answered++;
}

static int spawn_nothing(void *context, int socket, struct berth_error *error)
{
    struct polled *polled = context;

    polled->starts++;
    if (!polled->may_start)
        return error_set(error, BERTH_ERROR_NOT_FOUND, "cannot start berth-probe: no such file");
    if (polled->probe >= 0)
        close(polled->probe);
    polled->probe = dup(socket);
    return 0;
}

static int begin(void **state)
{
    struct polled *polled = calloc(1, sizeof(*polled));

    assert_non_null(polled);
    polled->probe = -1;
    polled->may_start = true;
    assert_int_equal(loop_init(&polled->loop, NULL), 0);
    polled->loop.now = clock_read(CLOCK_BOOTTIME);
    polled->clock = (struct pool_clock){.loop = &polled->loop};
    log_init(&polled->log, &polled->loop, open("/dev/null", O_WRONLY | O_CLOEXEC), NULL);
    *state = polled;
    return 0;
}

static int end(void **state)
{
    struct polled *polled = *state;

    probe_poll_destroy(polled->poll);
    log_finish(&polled->log);
    loop_finish(&polled->loop);
    if (polled->probe >= 0)
        close(polled->probe);
    free(polled);
    return 0;
}

static void start_poll(struct polled *polled)
{
    const struct probe_poll_settings settings = {
        .loop = &polled->loop,
        .log = &polled->log,
        .clock = &polled->clock,
        .spawn = spawn_nothing,
        .spawn_context = polled,
        .events = {.context = polled,
                   .is_busy = is_busy,
                   .followed_interval = no_interval,
                   .needs_report = needs_report,
                   .awaits_report = needs_report,
                   .request = count_request,
                   .take = count_report,
                   .lost = count_loss,
                   .answered = count_answer},
    };

    assert_int_equal(probe_poll_create(&polled->poll, &settings, NULL), 0);
}

/* Receives the next request as the probe does. */
static struct probe_request receive_request(struct polled *polled)
{
    struct probe_channel channel;
    struct probe_request request = {0};
    const unsigned char *bytes;
    size_t length;

    probe_channel_init(&channel, dup(polled->probe));
    assert_int_equal(probe_channel_receive(&channel, &bytes, &length), 1);
    assert_int_equal(probe_request_decode(bytes, length, &request, NULL), 0);
    probe_channel_finish(&channel);
    return request;
}

static void answer_request(struct polled *polled, uint64_t number)
{
    const struct probe_answer answer = {.number = number};
    struct probe_channel channel;
    struct text packet = {0};

    probe_channel_init(&channel, dup(polled->probe));
    assert_int_equal(probe_answer_encode(&answer, &packet), 0);
    assert_int_equal(probe_channel_send(&channel, packet.bytes, packet.length), 0);
    text_finish(&packet);
    probe_channel_finish(&channel);
}

static void end_loop(void *context)
{
    struct polled *polled = context;

    probe_poll_schedule(polled->poll);
    polled->loop.ended = true;
}

static void schedule(void *context)
{
    probe_poll_schedule(((struct polled *)context)->poll);
}

/* Handles the events that are there; the time is then that of the turn. */
static void run_turn(struct polled *polled)
{
    polled->loop.ended = false;
    loop_run(&polled->loop, &(struct loop_turn){schedule, end_loop, polled});
    polled->loop.now = clock_read(CLOCK_BOOTTIME);
}

static void first_report_waits_for_the_engine(void **state)
{
    struct polled *polled = *state;
    struct probe_request request;

    start_poll(polled);
    request = receive_request(polled);
    assert_int_equal(request.only.count, 0);
    answer_request(polled, request.number);
    run_turn(polled);
    assert_int_equal(polled->reports, 0);
    assert_int_equal(probe_poll_report_count(polled->poll), 1);
    probe_poll_begin(polled->poll);
    assert_int_equal(polled->reports, 1);
    assert_int_equal(polled->lost, 0);
}

static void an_answer_to_an_old_request_is_ignored(void **state)
{
    struct polled *polled = *state;
    struct probe_request request;

    start_poll(polled);
    probe_poll_begin(polled->poll);
    request = receive_request(polled);
    answer_request(polled, request.number + 1);
    run_turn(polled);
    assert_int_equal(polled->reports, 0);
    answer_request(polled, request.number);
    run_turn(polled);
    assert_int_equal(polled->reports, 1);
    assert_int_equal(polled->answered, 1);
}

/* A probe under an attacker's control must not keep the daemon busy. */
static void a_probe_that_answers_without_end_is_lost(void **state)
{
    struct polled *polled = *state;
    struct probe_request request;

    start_poll(polled);
    probe_poll_begin(polled->poll);
    request = receive_request(polled);
    for (int i = 0; i < 100; i++)
        answer_request(polled, request.number + 1);
    run_turn(polled);
    assert_int_equal(polled->lost, 1);
    assert_int_equal(polled->reports, 0);
    assert_false(probe_poll_answers(polled->poll));
}

static void a_claim_gets_a_new_report(void **state)
{
    struct polled *polled = *state;
    struct probe_request request;

    start_poll(polled);
    probe_poll_begin(polled->poll);
    request = receive_request(polled);
    answer_request(polled, request.number);
    run_turn(polled);
    assert_false(probe_poll_must_wait(polled->poll, false)); /* the report is fresh */
    polled->loop.now += 2 * PROBE_POLL_FRESH_FOR;
    assert_true(probe_poll_must_wait(polled->poll, false));
    assert_true(probe_poll_is_awaited(polled->poll));
    request = receive_request(polled);
    answer_request(polled, request.number);
    run_turn(polled);
    assert_false(probe_poll_is_awaited(polled->poll));
    assert_int_equal(polled->reports, 2);
}

static void a_probe_that_ends_is_lost(void **state)
{
    struct polled *polled = *state;

    start_poll(polled);
    probe_poll_begin(polled->poll);
    close(polled->probe);
    polled->probe = -1;
    run_turn(polled);
    assert_int_equal(polled->lost, 1);
    assert_int_equal(polled->answered, 1);
    assert_false(probe_poll_answers(polled->poll));
    assert_int_equal(probe_poll_problems(polled->poll)->count, 1);
    /* Claims do not wait for a report that cannot come. */
    assert_false(probe_poll_must_wait(polled->poll, true));
}

static void a_probe_that_cannot_start_is_a_problem(void **state)
{
    struct polled *polled = *state;
    struct berth_error error = BERTH_ERROR_INIT;

    polled->may_start = false;
    start_poll(polled);
    probe_poll_begin(polled->poll);
    assert_int_equal(polled->starts, 1);
    error_set(&error, BERTH_ERROR_NO_DEVICE, "this pool has no devices");
    probe_poll_explain(polled->poll, &error);
    assert_non_null(strstr(error.message, "cannot start berth-probe: no such file"));
}

static void without_hardware_nothing_is_awaited(void **state)
{
    (void)state;
    assert_false(probe_poll_must_wait(NULL, true));
    assert_false(probe_poll_answers(NULL));
    assert_int_equal(probe_poll_reports_needed(NULL), 0);
    probe_poll_schedule(NULL);
    probe_poll_begin(NULL);
    probe_poll_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_looks_as_often_as_somebody_cares),
        cmocka_unit_test(a_probe_that_fails_again_and_again_is_left_alone_longer),
        cmocka_unit_test(a_first_look_does_not_outlast_who_waits_for_it),
        cmocka_unit_test_setup_teardown(first_report_waits_for_the_engine, begin, end),
        cmocka_unit_test_setup_teardown(an_answer_to_an_old_request_is_ignored, begin, end),
        cmocka_unit_test_setup_teardown(a_probe_that_answers_without_end_is_lost, begin, end),
        cmocka_unit_test_setup_teardown(a_claim_gets_a_new_report, begin, end),
        cmocka_unit_test_setup_teardown(a_probe_that_ends_is_lost, begin, end),
        cmocka_unit_test_setup_teardown(a_probe_that_cannot_start_is_a_problem, begin, end),
        cmocka_unit_test(without_hardware_nothing_is_awaited),
    };

    return cmocka_run_group_tests_name("hardware_schedule", tests, NULL, NULL);
}
