/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/watcher.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/leases/pool_news.h"
#include "support/daemons/pool_stage.h"
#include "support/engine/engines.h"
#include "support/failing_allocator.h"

static int begin(void **state)
{
    static const struct pool_part parts[] = {{pool_news_init, pool_news_finish}};

    *state =
        pool_stage_make(&(struct pool_stage_settings){.parts = parts, .part_count = COUNT(parts)});
    return 0;
}

static size_t watchers_of_pool(const struct pool *pool)
{
    size_t count = 0;

    list_for_each (link, &pool->watchers)
        count++;
    return count;
}

static struct cached_request *open_request(struct pool *pool)
{
    struct cached_request *cached;
    struct request request;

    request_init(&request);
    assert_int_equal(
        request_cache_open(pool, &request, &(struct requester){.uid = STAGE_USER}, &cached, NULL),
        0);
    return cached;
}

static void a_watcher_counts_as_waiting(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct quota *quota = client.connection->quota;
    struct watcher *watcher;

    pool->clients.packet_length = 700;
    watcher = watcher_new(client.connection, 42, NULL, NULL);
    assert_non_null(watcher);
    assert_int_equal(watcher->number, 42);
    assert_int_equal(watcher->deadline, TIME_NEVER);
    assert_int_equal(quota->waiting, 1);
    assert_int_equal(quota->waiting_bytes, 700);
    assert_int_equal(client.connection->watcher_count, 1);
    assert_int_equal(watchers_of_pool(pool), 1);
    /* The size of another message meanwhile does not matter. */
    pool->clients.packet_length = 1;
    watcher_free(watcher);
    assert_int_equal(quota->waiting, 0);
    assert_int_equal(quota->waiting_bytes, 0);
    assert_int_equal(client.connection->watcher_count, 0);
    assert_int_equal(watchers_of_pool(pool), 0);
    assert_true(list_is_empty(&client.connection->watchers));
    pool_stage_hang_up(stage, &client);
}

static void a_user_has_a_limit_over_all_connections(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client one = pool_stage_connect(stage, STAGE_USER);
    struct stage_client other = pool_stage_connect(stage, STAGE_USER);
    struct stage_client stranger = pool_stage_connect(stage, STAGE_OTHER);
    struct berth_error error = BERTH_ERROR_INIT;

    stage->pool.rules.bounds.waiting = 2;
    assert_non_null(watcher_new(one.connection, 1, NULL, NULL));
    assert_non_null(watcher_new(other.connection, 1, NULL, NULL));
    assert_null(watcher_new(other.connection, 2, NULL, &error));
    assert_int_equal(error.code, BERTH_ERROR_LIMIT);
    assert_non_null(watcher_new(stranger.connection, 1, NULL, NULL));
    pool_stage_hang_up(stage, &one);
    assert_non_null(watcher_new(other.connection, 3, NULL, NULL));
    pool_stage_hang_up(stage, &other);
    pool_stage_hang_up(stage, &stranger);
}

/* The owner of the pool has no quota, but one connection has a limit all the same. */
static void a_connection_has_a_limit(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_OWNER);
    struct berth_error error = BERTH_ERROR_INIT;

    assert_null(client.connection->quota);
    for (int i = 0; i < WATCHERS_MAX; i++)
        assert_non_null(watcher_new(client.connection, (uint64_t)i, NULL, NULL));
    assert_null(watcher_new(client.connection, 5000, NULL, &error));
    assert_int_equal(error.code, BERTH_ERROR_LIMIT);
    assert_string_equal(error.message, "too many waiting requests on this connection");
    assert_int_equal(watchers_of_pool(&stage->pool), WATCHERS_MAX);
    pool_stage_hang_up(stage, &client);
    assert_int_equal(watchers_of_pool(&stage->pool), 0);
}

static void a_watcher_keeps_its_request_open(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct cached_request *cached = open_request(pool);
    struct watcher *watcher = watcher_new(client.connection, 1, cached, NULL);

    assert_int_equal(cached->users, 2);
    request_cache_release(pool, cached);
    request_cache_drop_unused(pool);
    assert_int_equal(pool->request_count, 1);
    watcher_free(watcher);
    request_cache_drop_unused(pool);
    assert_int_equal(pool->request_count, 0);
    pool_stage_hang_up(stage, &client);
}

static void a_refused_watcher_takes_no_reference(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct cached_request *cached = open_request(pool);
    struct berth_error error = BERTH_ERROR_INIT;
    struct watcher *watcher;

    pool->rules.bounds.waiting = 0;
    assert_null(watcher_new(client.connection, 1, cached, NULL));
    assert_int_equal(cached->users, 1);
    pool->rules.bounds.waiting = 10;
    failing_allocator_start(1);
    watcher = watcher_new(client.connection, 1, cached, &error);
    assert_true(failing_allocator_stop());
    assert_null(watcher);
    assert_int_equal(error.code, BERTH_ERROR_MEMORY);
    assert_int_equal(cached->users, 1);
    assert_int_equal(client.connection->quota->waiting, 0);
    request_cache_release(pool, cached);
    pool_stage_hang_up(stage, &client);
}

/* A watcher that follows, and one that adopts, own more. */
static void all_that_a_watcher_owns_is_freed(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct watcher *follows = watcher_new(client.connection, 1, NULL, NULL);
    struct watcher *adopts = watcher_new(client.connection, 2, NULL, NULL);
    struct reader_process *process = vector_append(&adopts->facts.processes);
    int descriptor = dup(STDERR_FILENO);

    follows->follower.kinds = WIRE_NEWS_ALL;
    followers_add(pool->followers, &follows->follower);
    adopts->adopting = calloc(1, sizeof(*adopts->adopting));
    assert_non_null(adopts->adopting);
    *adopts->adopting = pool_stage_message(stage, "gpus=1");
    assert_non_null(process);
    *process = (struct reader_process){.descriptor = descriptor};
    pool_stage_hang_up(stage, &client);
    assert_int_equal(fcntl(descriptor, F_GETFD), -1);
    /* A follower that was forgotten is not answered. */
    followers_note(pool->followers, WIRE_NEWS_LOAD);
    followers_notify(pool->followers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_watcher_counts_as_waiting, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_user_has_a_limit_over_all_connections, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(a_connection_has_a_limit, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_watcher_keeps_its_request_open, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_refused_watcher_takes_no_reference, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(all_that_a_watcher_owns_is_freed, begin, pool_stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
