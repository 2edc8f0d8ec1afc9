/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of short leases.
 */
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/quantity.h"
#include "model/request.h"
#include "record/short_leases.h"

enum { ALONE = 3, MANY = 1000 };
#define MINUTE_BEGINS (INT64_C(29891520) * DURATION_MINUTE)
#define MILLISECOND   (DURATION_SECOND / 1000)

/* A lease of some milliseconds that ended this many milliseconds after the minute's start. */
static struct ended_lease make_ended(uint64_t id, uint32_t uid, const char *name, int64_t end,
                                     int64_t held)
{
    struct ended_lease ended = {.lease = calloc(1, sizeof(*ended.lease)),
                                .end = LEASE_END_RELEASED,
                                .time = MINUTE_BEGINS + end * MILLISECOND};
    struct device_id *device;

    assert_non_null(ended.lease);
    ended.lease->id = id;
    ended.lease->uid = uid;
    ended.lease->name = name == NULL ? NULL : strdup(name);
    ended.lease->command = strdup("python train.py");
    ended.lease->granted = ended.time - held * MILLISECOND;
    ended.lease->since = ended.lease->granted - 2 * MILLISECOND;
    ended.lease->sharing = SHARING_EXCLUSIVE;
    device = vector_append(&ended.lease->devices);
    assert_non_null(device);
    assert_int_equal(device_id_parse(id % 2 == 0 ? "nvidia0" : "nvidia1", device, NULL), 0);
    return ended;
}

/* Adds the lease; returns whether it is in a sum. */
static bool add(struct short_leases *all, struct ended_lease ended)
{
    bool is_summed = short_leases_add(all, &ended);

    if (!is_summed)
        pool_info_finish_ended(&ended);
    return is_summed;
}

static int describe(void *context, const struct short_lease_sum *sum, struct berth_error *error)
{
    struct text *out = context;
    const struct lease_info *first = sum->first.lease;

    (void)error;
    text_append_format(out, "%llu %s %zu devices: %llu leases %llu ms %llu ms share %u; ",
                       (unsigned long long)first->id, first->name == NULL ? "-" : first->name,
                       first->devices.count, (unsigned long long)sum->leases,
                       (unsigned long long)(sum->held_time / MILLISECOND),
                       (unsigned long long)(sum->waited_time / MILLISECOND),
                       short_leases_share(sum));
    return 0;
}

static void check_changed(const struct short_leases *all, const char *wanted)
{
    struct text found = {0};

    assert_int_equal(short_leases_each_changed(all, describe, &found, NULL), 0);
    assert_string_equal(text_string(&found), wanted);
    text_finish(&found);
}

static struct short_leases init(size_t bytes_max)
{
    struct short_leases all;

    assert_int_equal(short_leases_init(&all, ALONE, bytes_max, NULL), 0);
    return all;
}

static void the_first_of_each_minute_stay_alone(void **state)
{
    struct short_leases all = init(1 << 20);

    (void)state;
    for (uint64_t id = 0; id < 2 * ALONE; id += 2)
        assert_false(add(&all, make_ended(id, 1, "a", 100, 10)));
    assert_true(add(&all, make_ended(10, 1, "a", 200, 10)));
    assert_true(add(&all, make_ended(12, 1, "a", 300, 30)));
    /* Long leases are never summed, and other users are counted on their own. */
    assert_false(add(&all, make_ended(13, 1, "a", 400, 1000)));
    assert_false(add(&all, make_ended(14, 2, "a", 400, 10)));
    /* Other names and other devices are other sums. */
    assert_true(add(&all, make_ended(16, 1, NULL, 400, 10)));
    assert_true(add(&all, make_ended(17, 1, "a", 500, 10)));
    check_changed(&all, "10 a 1 devices: 2 leases 40 ms 4 ms share 1000000; "
                        "16 - 1 devices: 1 leases 10 ms 2 ms share 1000000; "
                        "17 a 1 devices: 1 leases 10 ms 2 ms share 1000000; ");
    short_leases_written(&all, MINUTE_BEGINS + DURATION_SECOND);
    check_changed(&all, "");
    /* A sum grows until its minute is over. */
    assert_true(add(&all, make_ended(18, 1, "a", 600, 10)));
    check_changed(&all, "10 a 1 devices: 3 leases 50 ms 6 ms share 1000000; ");
    assert_false(add(&all, make_ended(20, 1, "a", 60100, 10)));
    short_leases_written(&all, MINUTE_BEGINS + 3 * DURATION_MINUTE);
    assert_int_equal(all.users.count, 0);
    assert_int_equal(all.bytes, 0);
    short_leases_finish(&all);
}

static void many_names_are_one_sum(void **state)
{
    struct short_leases all = init(1 << 20);
    struct text found = {0};
    char rest[128];

    (void)state;
    for (uint64_t id = 0; id < MANY; id++) {
        char name[32];

        snprintf(name, sizeof(name), "name %llu", (unsigned long long)id);
        assert_int_equal(add(&all, make_ended(id, 1, name, 100 + (int64_t)id, 10)), id >= ALONE);
    }
    assert_int_equal(short_leases_each_changed(&all, describe, &found, NULL), 0);
    /* Two devices were used, one at a time: on average each lease had half of both. */
    snprintf(rest, sizeof(rest), "%d - 2 devices: %d leases %d ms %d ms share 500000; ",
             ALONE + SHORT_LEASES_SUMS, MANY - ALONE - SHORT_LEASES_SUMS,
             10 * (MANY - ALONE - SHORT_LEASES_SUMS), 2 * (MANY - ALONE - SHORT_LEASES_SUMS));
    assert_non_null(strstr(text_string(&found), rest));
    text_finish(&found);
    short_leases_finish(&all);
}

static void memory_is_bounded(void **state)
{
    struct short_leases all = init(4096);
    size_t alone = 0;

    (void)state;
    for (uint64_t id = 0; id < MANY; id++)
        alone += !add(&all, make_ended(id, (uint32_t)id / 10, "a", 100, 10));
    assert_true(all.bytes <= 4096);
    /* The others are recorded on their own, within the backlog's bound. */
    assert_true(alone > (size_t)MANY / 10 * ALONE);
    short_leases_finish(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_of_each_minute_stay_alone),
        cmocka_unit_test(many_names_are_one_sum),
        cmocka_unit_test(memory_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
