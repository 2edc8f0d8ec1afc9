/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of control daemons, and the time that they have until they answer.
 */
#include "support/unit.h"

#include "daemon/leases/mps_events.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/journal/journal_records.h"
#include "daemon/leases/pool.h"
#include "support/engine/engines.h"

struct stage {
    struct world world;
    struct pool pool;
};

static int begin(void **state)
{
    struct stage *stage = calloc(1, sizeof(*stage));

    if (stage == NULL || loop_init(&stage->pool.loop, NULL) < 0)
        return -1;
    world_init(&stage->world, "nvidia0,nvidia1");
    stage->pool.engine = stage->world.engine;
    stage->pool.settings.socket = "/run/test/berth.sock";
    *state = stage;
    return 0;
}

static int end(void **state)
{
    struct stage *stage = *state;

    mps_events_finish(&stage->pool);
    loop_finish(&stage->pool.loop);
    world_finish(&stage->world);
    free(stage);
    return 0;
}

static void check_timeout(struct stage *stage, const char *value, int code, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;

    setenv(MPS_TIMEOUT_VARIABLE, value, 1);
    assert_int_equal(mps_events_init(&stage->pool, &error), code);
    unsetenv(MPS_TIMEOUT_VARIABLE);
    assert_non_null(strstr(error.message, message));
    mps_events_finish(&stage->pool);
}

static void times_have_limits(void **state)
{
    check_timeout(*state, "soon", BERTH_ERROR_SYNTAX, "BERTH_MPS_DEADLINE: expected a duration");
    check_timeout(*state, "1ms", BERTH_ERROR_RANGE,
                  "BERTH_MPS_DEADLINE: expected from 10ms to 10m, got 1ms");
    check_timeout(*state, "11m", BERTH_ERROR_RANGE, "expected from 10ms to 10m, got 11m");
    check_timeout(*state, "300ms", 0, "");
    check_timeout(*state, "", 0, "");
}

static void records_come_back(void **state)
{
    struct stage *stage = *state;
    const struct kept_mps written = {
        .slot = 1,
        .is_there = true,
        .uid = 1001,
        .gid = 100,
        .pid = 77,
        .started = 99,
        .pipe = (char *)"/p",
        .log = (char *)"/l",
    };
    struct kept_mps known;

    assert_int_equal(mps_events_init(&stage->pool, NULL), 0);
    assert_int_equal(mps_events_restore(&stage->pool, &written, NULL), 0);
    assert_false(mps_events_kept(&stage->pool, 0, &known));
    assert_true(mps_events_kept(&stage->pool, 1, &known));
    assert_int_equal(known.slot, 1);
    assert_true(known.is_there);
    assert_int_equal(known.uid, 1001);
    assert_int_equal(known.gid, 100);
    assert_int_equal(known.pid, 77);
    assert_int_equal(known.started, 99);
    assert_string_equal(known.pipe, "/p");
    assert_string_equal(known.log, "/l");
    assert_int_equal(
        mps_events_restore(&stage->pool, &(const struct kept_mps){.slot = 1, .uid = 1001}, NULL),
        0);
    assert_false(mps_events_kept(&stage->pool, 1, &known));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(times_have_limits),
        TEST(records_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
