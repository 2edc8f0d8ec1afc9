/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/leases/request_cache.h"

#include <stdio.h>

#include "support/daemons/pool_stage.h"
#include "support/engine/engines.h"
#include "support/failing_allocator.h"

/* The unused requests that stay open. */
enum { KEPT = 32 };

static int begin(void **state)
{
    *state = pool_stage_make(&(struct pool_stage_settings){0});
    return 0;
}

static int end(void **state)
{
    pool_stage_release_requests(*state);
    return pool_stage_end(state);
}

static struct cached_request *open_by(struct pool *pool, const char *words,
                                      const struct requester *requester)
{
    struct cached_request *cached = NULL;
    struct berth_error error = BERTH_ERROR_INIT;
    struct world_asking asking;

    asking_init(&asking, words);
    if (request_cache_open(pool, &asking.what, requester, &cached, &error) < 0)
        fail_msg("%s: %s", words, error.message);
    asking_finish(&asking);
    return cached;
}

static struct cached_request *open_words(struct pool *pool, const char *words)
{
    return open_by(pool, words, &(struct requester){.uid = STAGE_USER});
}

static void equal_requests_are_one(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct cached_request *first = open_words(pool, "gpus=2 time=10s");
    struct cached_request *second = open_words(pool, "time=10s gpus=2");

    assert_ptr_equal(first, second);
    assert_int_equal(first->users, 2);
    assert_ptr_not_equal(open_words(pool, "gpus=3 time=10s"), first);
    assert_contains(pool_stage_journal(stage), "request 1");
    request_cache_release(pool, first);
    assert_int_equal(second->users, 1);
    assert_int_equal(pool->unused_request_count, 0);
}

/* How long a claim waits matters to the claim, not to its request. */
static void the_wait_is_no_part_of_the_request(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const struct requester user = {.uid = STAGE_USER};
    struct cached_request *one;
    struct cached_request *other;
    struct request request;

    request_init(&request);
    assert_int_equal(request_cache_open(pool, &request, &user, &one, NULL), 0);
    request.wait = optional_number_of(5);
    assert_int_equal(request_cache_open(pool, &request, &user, &other, NULL), 0);
    assert_ptr_equal(one, other);
    request.wait.known = false;
    request.nonblock = true;
    assert_int_equal(request_cache_open(pool, &request, &user, &other, NULL), 0);
    assert_ptr_equal(one, other);
    assert_false(engine_request_what(one->request)->nonblock);
    request_finish(&request);
}

/* A request that was shared by mistake would give one user another user's rights. */
static void requests_of_other_requesters_are_not_shared(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    const uint32_t groups[] = {7, 8};
    struct device_id ids[] = {id_of("nvidia0"), id_of("nvidia1")};
    const struct device_id_list none = {0};
    const struct device_id_list one = {.items = ids, .count = 1};
    const struct device_id_list other = {.items = &ids[1], .count = 1};
    const struct device_id_list both = {.items = ids, .count = 2};
    const struct job *lease =
        pool_stage_claim(stage, &(struct stage_claim){.uid = STAGE_USER, .words = "gpus=2"});
    const struct requester requesters[] = {
        {.uid = STAGE_USER},
        {.uid = STAGE_OTHER},
        {.uid = STAGE_USER, .groups = groups, .group_count = 1},
        {.uid = STAGE_USER, .groups = &groups[1], .group_count = 1},
        {.uid = STAGE_USER, .groups = groups, .group_count = 2},
        {.uid = STAGE_USER, .mask = &none},
        {.uid = STAGE_USER, .mask = &one},
        {.uid = STAGE_USER, .mask = &other},
        {.uid = STAGE_USER, .mask = &both},
        {.uid = STAGE_USER, .parent = lease->by_lease.id},
    };
    struct cached_request *opened[COUNT(requesters)];

    for (size_t i = 0; i < COUNT(requesters); i++) {
        opened[i] = open_by(pool, "gpus=1", &requesters[i]);
        for (size_t earlier = 0; earlier < i; earlier++)
            assert_ptr_not_equal(opened[i], opened[earlier]);
    }
    for (size_t i = 0; i < COUNT(requesters); i++)
        assert_ptr_equal(open_by(pool, "gpus=1", &requesters[i]), opened[i]);
}

static struct cached_request *open_numbered(struct pool *pool, unsigned number)
{
    char words[32];

    snprintf(words, sizeof(words), "time=%us", number + 1);
    return open_words(pool, words);
}

static void the_latest_unused_requests_stay_open(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    for (unsigned i = 0; i < KEPT + 1; i++)
        request_cache_release(pool, open_numbered(pool, i));
    assert_int_equal(pool->unused_request_count, KEPT);
    assert_contains(pool_stage_journal(stage), "forgotten request 1\n");
    /* The second one is the oldest now, and is used again. */
    request_cache_release(pool, open_numbered(pool, 1));
    assert_string_equal(pool_stage_journal(stage), "");
    request_cache_release(pool, open_numbered(pool, KEPT + 1));
    assert_contains(pool_stage_journal(stage), "forgotten request 3\n");
    request_cache_release(pool, open_numbered(pool, 1));
    assert_string_equal(pool_stage_journal(stage), "");
    request_cache_drop_unused(pool);
    assert_int_equal(pool->unused_request_count, 0);
    assert_int_equal(pool->request_count, 0);
    assert_true(list_is_empty(&pool->unused_requests));
    assert_contains(pool_stage_journal(stage), "forgotten request 2\n");
    request_cache_release(pool, open_numbered(pool, 1));
    assert_contains_not(pool_stage_journal(stage), "request 2 ");
}

static void a_request_in_use_is_not_dropped(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct cached_request *used = open_words(pool, "gpus=2");

    request_cache_drop_unused(pool);
    assert_ptr_equal(open_words(pool, "gpus=2"), used);
    request_cache_release(pool, used);
    request_cache_release(pool, used);
    assert_int_equal(pool->unused_request_count, 1);
    request_cache_release(pool, NULL);
    assert_int_equal(pool->unused_request_count, 1);
}

static void an_invalid_request_leaves_nothing(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct cached_request *cached;
    struct berth_error error = BERTH_ERROR_INIT;
    struct world_asking asking;

    asking_init(&asking, "gpus=1 share=500");
    assert_int_equal(
        request_cache_open(pool, &asking.what, &(struct requester){0}, &cached, &error),
        BERTH_ERROR_INVALID);
    asking_finish(&asking);
    assert_true(error.message[0] != '\0');
    assert_string_equal(pool_stage_journal(stage), "");
    request_cache_release(pool, open_words(pool, "gpus=1"));
}

static int open_and_close(void *context)
{
    struct pool *pool = context;
    struct request request;
    struct cached_request *cached;
    int code;

    request_init(&request);
    code =
        request_cache_open(pool, &request, &(struct requester){.uid = STAGE_USER}, &cached, NULL);
    if (code == 0)
        request_cache_release(pool, cached);
    request_cache_drop_unused(pool);
    return code;
}

static void it_survives_a_lack_of_memory(void **state)
{
    struct pool_stage *stage = *state;

    /* The journal's text is another matter: without it the daemon restarts. */
    stage->pool.journaling = false;
    text_finish(&stage->pool.key);
    assert_true(failing_allocator_try_all(open_and_close, &stage->pool) >= 2);
    assert_false(stage->pool.lost);
}

static size_t longest_chain(const struct id_map *map)
{
    size_t longest = 0;

    for (size_t i = 0; i <= map->mask; i++) {
        size_t length = 0;

        for (const struct id_link *link = map->buckets[i]; link != NULL; link = link->next)
            length++;
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* Many users with different requests must not make each claim slower. */
static void ten_thousand_requests_are_found_quickly(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;

    pool->journaling = false;
    for (unsigned i = 0; i < 10000; i++)
        open_numbered(pool, i);
    assert_in_range(longest_chain(&pool->requests), 1, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equal_requests_are_one, begin, end),
        cmocka_unit_test_setup_teardown(the_wait_is_no_part_of_the_request, begin, end),
        cmocka_unit_test_setup_teardown(requests_of_other_requesters_are_not_shared, begin, end),
        cmocka_unit_test_setup_teardown(the_latest_unused_requests_stay_open, begin, end),
        cmocka_unit_test_setup_teardown(a_request_in_use_is_not_dropped, begin, end),
        cmocka_unit_test_setup_teardown(an_invalid_request_leaves_nothing, begin, end),
        cmocka_unit_test_setup_teardown(it_survives_a_lack_of_memory, begin, end),
        cmocka_unit_test_setup_teardown(ten_thousand_requests_are_found_quickly, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
