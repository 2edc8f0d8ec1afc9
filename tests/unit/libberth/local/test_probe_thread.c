/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool of the machine's hardware, which a script describes.
 */
#include "support/unit.h"

#include <berth/berth.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "support/assert_error.h"
#include "support/hardware/scripted_probe.h"
#include "support/programs/pools.h"
#include "support/temporary_directory.h"

/* A sample interval that is short for a test, but long enough to start a probe. */
#define OFTEN (10 * MILLISECOND)

#define FIRST \
    "{\"id\": \"nvidia0\", \"name\": \"A\", \"uuid\": \"GPU-0\", \"health\": 1, \"utilization\": "
#define SECOND_ID     "{\"id\": \"nvidia1\", \"name\": \"B\", \"uuid\": \"GPU-1\", \"health\": 1}"
#define DEVICES(load) "{\"devices\": [" FIRST #load "}, " SECOND_ID "]}"
#define SICK                                                                                   \
    "{\"devices\": [{\"id\": \"nvidia0\", \"name\": \"A\", \"health\": 2, \"health_reason\": " \
    "\"it fell off the bus\"}, " SECOND_ID "]}"

static struct berth_pool *open_with(const struct berth_pool_options *options)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_pool *pool = NULL;

    assert_int_equal(setenv("BERTH_PROBE_DEADLINE", "30s", 1), 0);
    assert_works(berth_pool_open(options, &pool, &error), &error);
    return pool;
}

static struct berth_pool *open_often(void)
{
    const struct berth_pool_options options = {.size = sizeof(options), .sample_interval = OFTEN};

    return open_with(&options);
}

static void close_and_check(struct berth_pool *pool)
{
    berth_pool_close(pool);
    await(!probe_runs());
}

static struct berth_device_state state_of(struct berth_pool *pool, size_t slot)
{
    struct berth_device_state state = {.size = sizeof(state)};

    assert_int_equal(berth_pool_device_state(pool, slot, &state, NULL), 0);
    return state;
}

static void the_pool_has_the_devices_of_the_machine(void **state)
{
    struct berth_device device;
    struct berth_pool *pool;
    struct berth_device_state seen;

    probe_script(*state, DEVICES(250));
    pool = open_with(NULL);
    assert_int_equal(berth_pool_capacity(pool), 2);
    assert_int_equal(berth_pool_device(pool, 1, &device, NULL), 0);
    assert_string_equal(device.uuid, "GPU-1");
    seen = state_of(pool, 0);
    assert_true(seen.present && !seen.old && !seen.asleep);
    assert_int_equal(seen.health, BERTH_HEALTH_OK);
    assert_int_equal(seen.utilization, 250);
    assert_true(seen.sampled_at > INT64_C(1600000000) * SECOND);
    assert_true(seen.memory_free == BERTH_UNKNOWN && seen.power == BERTH_UNKNOWN);
    assert_string_equal(seen.reason, "");
    assert_true(state_of(pool, 1).sampled_at == BERTH_UNKNOWN);
    berth_release(pool, claim_one(pool), NULL);
    close_and_check(pool);
}

static void the_machine_may_have_none(void **state)
{
    struct berth_lease lease;
    struct berth_pool *pool;

    probe_script(*state, "{}");
    pool = open_with(NULL);
    assert_int_equal(berth_pool_capacity(pool), 0);
    assert_int_equal(berth_try_claim(pool, NULL, &lease, NULL), BERTH_ERROR_NO_DEVICE);
    close_and_check(pool);
}

static void inherited_masks_hide_devices(void **state)
{
    struct berth_device device;
    struct berth_pool *pool;

    probe_script(*state, DEVICES(0));
    assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", "1", 1), 0);
    pool = open_often();
    unsetenv("CUDA_VISIBLE_DEVICES");
    assert_int_equal(berth_pool_capacity(pool), 1);
    assert_int_equal(berth_pool_device(pool, 0, &device, NULL), 0);
    assert_string_equal(device.uuid, "GPU-1");
    await(probe_count("ask ") >= 3); /* a hidden device stays hidden */
    assert_int_equal(berth_pool_capacity(pool), 1);
    close_and_check(pool);
}

static void an_inventory_takes_the_place_of_the_hardware(void **state)
{
    FILE *file = fopen("machine.yaml", "w");
    struct berth_pool *pool;

    probe_script(*state, DEVICES(0));
    assert_non_null(file);
    fputs("devices:\n- {vendor: amd, index: 3}\n", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(setenv("BERTH_INVENTORY", "machine.yaml", 1), 0);
    pool = open_with(NULL);
    unsetenv("BERTH_INVENTORY");
    assert_int_equal(berth_pool_capacity(pool), 1);
    assert_int_equal(probe_count("start "), 0);
    berth_pool_close(pool);
}

static void a_probe_that_does_not_answer_is_an_error(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_pool *pool = NULL;

    probe_script(*state, "{\"behaviour\": \"hang\"}");
    assert_int_equal(setenv("BERTH_PROBE_DEADLINE", "10ms", 1), 0);
    assert_fails(berth_pool_open(NULL, &pool, &error), BERTH_ERROR_IO, &error,
                 "cannot read the hardware: berth-probe does not answer in time");
    assert_null(pool);
    assert_int_equal(setenv("BERTH_PROBE", "/nowhere/probe", 1), 0);
    assert_fails(berth_pool_open(NULL, &pool, &error), BERTH_ERROR_IO, &error,
                 "cannot start /nowhere/probe: No such file or directory");
    assert_int_equal(setenv("BERTH_PROBE_DEADLINE", "soon", 1), 0);
    assert_int_equal(berth_pool_open(NULL, &pool, &error), BERTH_ERROR_SYNTAX);
}

static void wrong_options_are_refused_and_leave_nothing(void **state)
{
    const struct berth_pool_options options = {.size = sizeof(options), .policy = "best"};
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_pool *pool = NULL;

    probe_script(*state, DEVICES(0));
    assert_int_equal(setenv("BERTH_PROBE_DEADLINE", "30s", 1), 0);
    assert_int_equal(berth_pool_open(&options, &pool, &error), BERTH_ERROR_INVALID);
    await(!probe_runs());
}

static void loads_follow_the_hardware(void **state)
{
    struct berth_pool *pool;

    probe_script(*state, DEVICES(100));
    pool = open_often();
    assert_int_equal(state_of(pool, 0).utilization, 100);
    probe_says(DEVICES(900));
    await(state_of(pool, 0).utilization == 900);
    close_and_check(pool);
}

static void a_sick_device_is_waited_for(void **state)
{
    struct berth_pool *pool;
    struct berth_request *request;
    struct berth_lease lease;

    probe_script(*state, SICK);
    pool = open_often();
    assert_int_equal(state_of(pool, 0).health, BERTH_HEALTH_SICK);
    assert_string_equal(state_of(pool, 0).reason, "it fell off the bus");
    assert_int_equal(berth_request_create(&request, NULL), 0);
    assert_int_equal(berth_request_set(request, "device", "nvidia0", NULL), 0);
    assert_int_equal(berth_try_claim(pool, request, &lease, NULL), BERTH_ERROR_BUSY);
    probe_says(DEVICES(0));
    assert_int_equal(berth_claim(pool, request, TIMEOUT, &lease, NULL), 0);
    assert_int_equal(state_of(pool, 0).health, BERTH_HEALTH_OK);
    berth_request_destroy(request);
    close_and_check(pool);
}

static void a_device_that_is_gone_comes_back(void **state)
{
    struct berth_pool *pool;
    struct berth_lease lease;
    struct berth_device device;

    probe_script(*state, DEVICES(0));
    pool = open_often();
    lease = claim_one(pool);
    assert_int_equal(device_of(pool, lease).slot, 0);
    probe_says("{\"devices\": [" SECOND_ID "]}");
    await(!state_of(pool, 0).present);
    assert_int_equal(device_of(pool, lease).slot, 0); /* the lease is still held */
    assert_int_equal(berth_release(pool, lease, NULL), 0);
    lease = claim_one(pool);
    assert_int_equal(device_of(pool, lease).slot, 1);
    probe_says(
        "{\"devices\": [{\"id\": \"nvidia2\"}, {\"id\": \"nvidia0\", \"name\": \"C\"}, " SECOND_ID
        "]}");
    await(state_of(pool, 0).present);
    assert_int_equal(berth_pool_capacity(pool), 2);
    assert_int_equal(berth_pool_device(pool, 0, &device, NULL), 0);
    assert_string_equal(device.name, "A"); /* the caller's copy does not change */
    close_and_check(pool);
}

static void it_goes_on_without_a_probe(void **state)
{
    struct berth_pool *pool;

    probe_script(*state, DEVICES(100));
    pool = open_often();
    probe_says("{\"behaviour\": \"die\"}");
    await(state_of(pool, 0).old);
    assert_int_equal(state_of(pool, 0).utilization, 100);
    berth_release(pool, claim_one(pool), NULL);
    probe_says(DEVICES(200));
    await(!state_of(pool, 0).old); /* another probe is started */
    assert_int_equal(state_of(pool, 0).utilization, 200);
    assert_true(probe_count("start ") >= 2);
    close_and_check(pool);
}

static void closing_does_not_wait_for_a_probe_that_hangs(void **state)
{
    struct berth_pool *pool;
    int64_t began;

    probe_script(*state, DEVICES(0));
    pool = open_often();
    probe_says("{\"behaviour\": \"hang\"}");
    await(probe_count("hang") == 1);
    began = monotonic_now();
    close_and_check(pool);
    assert_true(monotonic_now() - began < 20 * SECOND);
}

static void sample_both(void *data, size_t slot, struct berth_load *ret_load)
{
    (void)data;
    ret_load->utilization = (int64_t)slot + 1;
}

static void who_samples_by_itself_needs_no_probe(void **state)
{
    const struct berth_pool_options options = {
        .size = sizeof(options), .sample = sample_both, .sample_interval = OFTEN};
    struct berth_pool *pool;

    probe_script(*state, DEVICES(500));
    pool = open_with(&options);
    await(!probe_runs());
    assert_int_equal(state_of(pool, 1).utilization, 2);
    assert_int_equal(probe_count("ask "), 1);
    berth_pool_close(pool);
}

static void a_child_of_fork_leaves_the_probe_alone(void **state)
{
    struct berth_pool *pool;
    size_t asked;
    pid_t child;
    int status;

    probe_script(*state, DEVICES(0));
    pool = open_often();
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct berth_device_state seen = {.size = sizeof(seen)};
        int code = berth_pool_device_state(pool, 0, &seen, NULL);

        berth_pool_close(pool);
        _exit(code == BERTH_ERROR_FORKED ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    asked = probe_count("ask ");
    await(probe_count("ask ") > asked + 1);
    assert_int_equal(probe_count("start "), 1);
    assert_false(state_of(pool, 0).old);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD); /* the program has no child */
    close_and_check(pool);
}

static void states_are_filled_as_far_as_the_caller_knows_them(void **state)
{
    struct {
        struct berth_device_state state;
        unsigned char beyond[16];
    } larger = {.state = {.size = sizeof(larger)}};
    struct berth_device_state smaller;
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_pool *pool = pool_of(1);

    (void)state;
    memset(larger.beyond, 0xaa, sizeof(larger.beyond));
    assert_int_equal(berth_pool_device_state(pool, 0, &larger.state, &error), 0);
    assert_int_equal(larger.beyond[0], 0);
    assert_true(larger.state.present);
    memset(&smaller, 0xaa, sizeof(smaller));
    smaller.size = offsetof(struct berth_device_state, health);
    assert_int_equal(berth_pool_device_state(pool, 0, &smaller, &error), 0);
    assert_true(smaller.present);
    assert_true(smaller.power == (int64_t)UINT64_C(0xaaaaaaaaaaaaaaaa));
    smaller.size = 0;
    assert_int_equal(berth_pool_device_state(pool, 0, &smaller, &error), BERTH_ERROR_INVALID);
    smaller.size = sizeof(smaller);
    assert_int_equal(berth_pool_device_state(pool, 1, &smaller, &error), BERTH_ERROR_RANGE);
    berth_pool_close(pool);
}

#define in_directory(test) \
    cmocka_unit_test_setup_teardown(test, temporary_directory_enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_directory(the_pool_has_the_devices_of_the_machine),
        in_directory(the_machine_may_have_none),
        in_directory(inherited_masks_hide_devices),
        in_directory(an_inventory_takes_the_place_of_the_hardware),
        in_directory(a_probe_that_does_not_answer_is_an_error),
        in_directory(wrong_options_are_refused_and_leave_nothing),
        in_directory(loads_follow_the_hardware),
        in_directory(a_sick_device_is_waited_for),
        in_directory(a_device_that_is_gone_comes_back),
        in_directory(it_goes_on_without_a_probe),
        in_directory(closing_does_not_wait_for_a_probe_that_hangs),
        in_directory(who_samples_by_itself_needs_no_probe),
        in_directory(a_child_of_fork_leaves_the_probe_alone),
        cmocka_unit_test(states_are_filled_as_far_as_the_caller_knows_them),
    };

    return cmocka_run_group_tests_name("pool_hardware", tests, NULL, NULL);
}
