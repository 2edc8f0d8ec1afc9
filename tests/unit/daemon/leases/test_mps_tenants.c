/* SPDX-License-Identifier: Apache-2.0
 *
 * Which leases need a control daemon, with a real engine and jobs without clients.
 */
#include "support/unit.h"

#include "daemon/leases/mps_tenants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/leases/job.h"
#include "daemon/leases/mps_events.h"
#include "daemon/leases/pool.h"
#include "daemon/mps/mps.h"
#include "daemon/mps/mps_site.h"
#include "support/engine/engines.h"

enum { ALICE = 1001, BOB = 1002, FIRST_JOB = 1000 };

#define TENANT "sharing=mps share=250 uid=1001 "

struct stage {
    struct world world;
    struct pool pool;
};

static int begin(void **state)
{
    struct stage *stage = calloc(1, sizeof(*stage));
    struct pool *pool;

    if (stage == NULL)
        return -1;
    world_init(&stage->world, "nvidia0,nvidia1");
    pool = &stage->pool;
    pool->engine = stage->world.engine;
    pool->launcher.socket = -1;
    pool->vendors = UINT32_C(1) << VENDOR_NVIDIA;
    pool->settings.socket = "/run/test/berth.sock";
    pool->owner = ALICE;
    /* The pool's owner has no quota. */
    pool->clients.settings.owner = ALICE;
    setenv(MPS_CONTROL_VARIABLE, "/nonexistent/program", 1);
    *state = stage;
    return loop_init(&pool->loop, NULL) < 0 || job_init_pool(pool, NULL) < 0 ||
                   mps_events_init(pool, NULL) < 0
               ? -1
               : 0;
}

static int end(void **state)
{
    struct stage *stage = *state;

    mps_events_finish(&stage->pool);
    job_finish_pool(&stage->pool);
    loop_finish(&stage->pool.loop);
    world_finish(&stage->world);
    free(stage);
    return 0;
}

/* Grants a lease. Returns its id. */
static uint64_t grant(struct stage *stage, const char *words)
{
    struct engine_request *request = world_request(&stage->world, words);
    uint64_t lease;

    assert_int_equal(engine_try(stage->world.engine, request, &lease, NULL), CLAIM_GRANTED);
    engine_request_close(stage->world.engine, request);
    return lease;
}

static struct job *add_job(struct stage *stage, uint64_t lease)
{
    struct holder *holder = job_holder_new(ALICE, getpid(), 0, NULL);
    struct job *job;

    assert_non_null(holder);
    job = job_new(&stage->pool, NULL, holder);
    job_holder_release(holder);
    assert_non_null(job);
    job->state = JOB_HELD;
    job_add(&stage->pool, job, FIRST_JOB + lease, lease);
    return job;
}

static struct job *add_tenant(struct stage *stage, const char *words)
{
    return add_job(stage, grant(stage, words));
}

static bool has_tenant(const struct stage *stage, uint32_t slot)
{
    return mps_tenants_has(&stage->pool, slot, 0);
}

/* ---- Tenants ---- */

static void leases_by_mps_are_tenants_of_their_devices(void **state)
{
    struct stage *stage = *state;

    assert_false(has_tenant(stage, 0));
    add_tenant(stage, TENANT "device=nvidia1");
    assert_false(has_tenant(stage, 0));
    assert_true(has_tenant(stage, 1));
    add_tenant(stage, "device=nvidia0 uid=1001");
    assert_false(has_tenant(stage, 0));
}

static void devices_shared_in_another_way_need_none(void **state)
{
    struct stage *stage = *state;

    add_tenant(stage, "sharing=time-slice share=250 uid=1001 device=nvidia0");
    assert_false(has_tenant(stage, 0));
}

/* A process that began before its lease does not know of our directories. */
static void adopted_processes_are_no_tenants(void **state)
{
    struct stage *stage = *state;
    struct job *job = add_tenant(stage, TENANT "device=nvidia0");

    job->adopted = true;
    assert_false(has_tenant(stage, 0));
}

static void a_claim_that_is_being_refused_is_no_tenant(void **state)
{
    struct stage *stage = *state;
    struct job *job = add_tenant(stage, TENANT "device=nvidia0");

    job->unprepared = true;
    assert_true(has_tenant(stage, 0));
    job->end = LEASE_END_CANCELLED;
    assert_false(has_tenant(stage, 0));
    /* A lease that is ending still uses its device. */
    job->unprepared = false;
    assert_true(has_tenant(stage, 0));
}

static void a_lease_without_a_job_is_no_tenant(void **state)
{
    struct stage *stage = *state;

    grant(stage, TENANT "device=nvidia0");
    assert_false(has_tenant(stage, 0));
}

static void a_tenant_that_leaves_does_not_count(void **state)
{
    struct stage *stage = *state;
    const struct job *first = add_tenant(stage, TENANT "device=nvidia0");
    struct job *second;

    assert_false(mps_tenants_has(&stage->pool, 0, first->by_lease.id));
    second = add_tenant(stage, TENANT "device=nvidia0");
    assert_true(mps_tenants_has(&stage->pool, 0, first->by_lease.id));
    assert_true(mps_tenants_has(&stage->pool, 0, second->by_lease.id));
}

static void tenants_within_a_lease_leave_with_it(void **state)
{
    struct stage *stage = *state;
    uint64_t outer = add_tenant(stage, "device=nvidia0 uid=1001")->by_lease.id;
    uint64_t other = add_tenant(stage, "device=nvidia1 uid=1001")->by_lease.id;
    char words[128];
    uint64_t inner;

    snprintf(words, sizeof(words), TENANT "parent=%llu", (unsigned long long)outer);
    inner = add_tenant(stage, words)->by_lease.id;
    assert_true(has_tenant(stage, 0));
    assert_false(mps_tenants_has(&stage->pool, 0, inner));
    assert_false(mps_tenants_has(&stage->pool, 0, outer));
    assert_true(mps_tenants_has(&stage->pool, 0, other));
}

/* ---- Waiting holders ---- */

static void holders_wait_until_they_are_notified(void **state)
{
    struct stage *stage = *state;
    struct job *job = add_tenant(stage, TENANT "device=nvidia0");

    assert_false(mps_tenants_is_awaited(&stage->pool, 0));
    job->unprepared = job->waits_for_mps = true;
    assert_true(mps_tenants_is_awaited(&stage->pool, 0));
    assert_false(mps_tenants_is_awaited(&stage->pool, 1));
    job->end = LEASE_END_CANCELLED;
    assert_false(mps_tenants_is_awaited(&stage->pool, 0));
    job->end = 0;
    job->unprepared = false;
    assert_false(mps_tenants_is_awaited(&stage->pool, 0));
}

static void only_leases_by_mps_are_prepared(void **state)
{
    struct stage *stage = *state;
    struct job *exclusive = add_tenant(stage, "device=nvidia0 uid=1001");
    struct job *adopted = add_tenant(stage, TENANT "device=nvidia1");

    exclusive->unprepared = adopted->unprepared = adopted->adopted = true;
    assert_false(mps_tenants_prepare(&stage->pool, exclusive));
    assert_false(mps_tenants_prepare(&stage->pool, adopted));
    adopted->adopted = false;
    /* Its holder was notified by an earlier daemon. */
    adopted->unprepared = false;
    assert_false(mps_tenants_prepare(&stage->pool, adopted));
    assert_false(mps_is_busy(stage->pool.mps));
}

/* ---- Sites and refusals ---- */

static void a_tenant_determines_the_site(void **state)
{
    struct stage *stage = *state;
    struct mps_site site;

    assert_false(mps_tenants_find_site(&stage->pool, 1, &site));
    add_tenant(stage, TENANT "device=nvidia1 pipe=/p");
    assert_true(mps_tenants_find_site(&stage->pool, 1, &site));
    assert_int_equal(site.persona.uid, ALICE);
    assert_int_equal(site.persona.gid, USER_IDENTITY_NO_GROUP);
    assert_string_equal(site.pipe, "/p");
    assert_string_equal(site.log, "/run/test/mps/1001/nvidia1/log");
    mps_site_finish(&site);
}

static void requests_are_checked(void **state)
{
    struct stage *stage = *state;
    struct berth_error error = BERTH_ERROR_INIT;
    struct request request;

    request_init(&request);
    assert_int_equal(mps_tenants_check(&stage->pool, &request, ALICE, NULL), 0);
    request.sharing = SHARING_MPS;
    assert_int_equal(mps_tenants_check(&stage->pool, &request, ALICE, &error),
                     BERTH_ERROR_IMPOSSIBLE);
    assert_non_null(strstr(error.message, "/nonexistent/program: no such file"));
    setenv(MPS_CONTROL_VARIABLE, "/bin/sh", 1);
    assert_int_equal(mps_tenants_check(&stage->pool, &request, ALICE, NULL), 0);
    assert_int_equal(mps_tenants_check(&stage->pool, &request, BOB, &error),
                     BERTH_ERROR_IMPOSSIBLE);
    assert_non_null(strstr(error.message, "runs MPS only for user 1001 "));
    stage->pool.rules.mps = true;
    assert_int_equal(mps_tenants_check(&stage->pool, &request, BOB, &error),
                     BERTH_ERROR_IMPOSSIBLE);
    assert_non_null(strstr(error.message, "the daemon cannot become user 1002: "));
    stage->pool.may_become_others = true;
    assert_int_equal(mps_tenants_check(&stage->pool, &request, BOB, NULL), 0);
    setenv(MPS_CONTROL_VARIABLE, "/nonexistent/program", 1);
    /* The engine says that no device can be shared so. */
    stage->pool.vendors = UINT32_C(1) << VENDOR_AMD;
    assert_int_equal(mps_tenants_check(&stage->pool, &request, ALICE, NULL), 0);
    request_finish(&request);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(leases_by_mps_are_tenants_of_their_devices),
        TEST(devices_shared_in_another_way_need_none),
        TEST(adopted_processes_are_no_tenants),
        TEST(a_claim_that_is_being_refused_is_no_tenant),
        TEST(a_lease_without_a_job_is_no_tenant),
        TEST(a_tenant_that_leaves_does_not_count),
        TEST(tenants_within_a_lease_leave_with_it),
        TEST(holders_wait_until_they_are_notified),
        TEST(only_leases_by_mps_are_prepared),
        TEST(a_tenant_determines_the_site),
        TEST(requests_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
