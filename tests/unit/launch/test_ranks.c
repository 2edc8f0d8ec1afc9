/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "launch/ranks.h"

#include "base/count.h"
#include "base/text/text.h"
#include "support/engine/machines.h"

/* Appends the ids of the devices. */
static void append_ids(const struct device *devices, size_t count, struct text *out)
{
    for (size_t i = 0; i < count; i++)
        text_append_format(out, "%s%s", i == 0 ? "" : ",", device_id_format(devices[i].id).text);
}

/* Describes one copy: "RANK/WORLD LOCAL/LOCAL_WORLD GROUP sees DEVICES near DEVICES". */
static void describe(const struct rank_plan *plan, uint32_t number, struct text *out)
{
    struct rank_copy copy = rank_plan_copy(plan, number);

    if (plan->ranks)
        text_append_format(out, "%u/%u %u/%u %u", copy.rank.rank, copy.rank.world_size,
                           copy.rank.local_rank, copy.rank.local_world_size, copy.rank.group_rank);
    else
        text_append_format(out, "replica %u", copy.replica);
    text_append(out, " sees ");
    append_ids(copy.devices, copy.device_count, out);
    text_append(out, " near ");
    append_ids(copy.near, copy.near_count, out);
    if (plan->ranks)
        assert_int_equal(copy.replica, copy.rank.group_rank);
}

static void copies_are_told_who_they_are(void **state)
{
    static const struct {
        const char *devices;
        uint32_t replicas;
        uint32_t each;
        bool ranks;
        bool only_own;
        const char *copies[9];
    } cases[] = {
        {"nvidia0", 1, 1, false, false, {"replica 0 sees nvidia0 near nvidia0"}},
        {"nvidia0,nvidia1",
         1,
         2,
         false,
         false,
         {"replica 0 sees nvidia0,nvidia1 near nvidia0,nvidia1"}},
        {"nvidia0,nvidia1",
         2,
         1,
         false,
         true,
         {"replica 0 sees nvidia0 near nvidia0", "replica 1 sees nvidia1 near nvidia1"}},
        {"nvidia0", 1, 1, true, false, {"0/1 0/1 0 sees nvidia0 near nvidia0"}},
        /* Sparse and of two vendors, in the order of the grant. */
        {"nvidia5,amd0,nvidia2",
         1,
         3,
         true,
         false,
         {"0/3 0/3 0 sees nvidia5,amd0,nvidia2 near nvidia5",
          "1/3 1/3 0 sees nvidia5,amd0,nvidia2 near amd0",
          "2/3 2/3 0 sees nvidia5,amd0,nvidia2 near nvidia2"}},
        {"nvidia0,nvidia3,nvidia4,nvidia7",
         2,
         2,
         true,
         false,
         {"0/4 0/2 0 sees nvidia0,nvidia3 near nvidia0",
          "1/4 1/2 0 sees nvidia0,nvidia3 near nvidia3",
          "2/4 0/2 1 sees nvidia4,nvidia7 near nvidia4",
          "3/4 1/2 1 sees nvidia4,nvidia7 near nvidia7"}},
        {"nvidia0,nvidia3,nvidia4,nvidia7",
         2,
         2,
         true,
         true,
         {"0/4 0/2 0 sees nvidia0 near nvidia0", "1/4 1/2 0 sees nvidia3 near nvidia3",
          "2/4 0/2 1 sees nvidia4 near nvidia4", "3/4 1/2 1 sees nvidia7 near nvidia7"}},
        /* The same request, elastic, with fewer granted. */
        {"nvidia0,nvidia3",
         2,
         1,
         true,
         false,
         {"0/2 0/1 0 sees nvidia0 near nvidia0", "1/2 0/1 1 sees nvidia3 near nvidia3"}},
        {"nvidia0.1,nvidia0.2",
         1,
         2,
         true,
         true,
         {"0/2 0/2 0 sees nvidia0.1 near nvidia0.1", "1/2 1/2 0 sees nvidia0.2 near nvidia0.2"}},
        /* On the CPU. */
        {"", 1, 1, false, false, {"replica 0 sees  near "}},
        {"",
         2,
         2,
         true,
         true,
         {"0/4 0/2 0 sees  near ", "1/4 1/2 0 sees  near ", "2/4 0/2 1 sees  near ",
          "3/4 1/2 1 sees  near "}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct machine machine = {0};
        struct rank_plan plan = {
            .replicas = cases[i].replicas,
            .each = cases[i].each,
            .ranks = cases[i].ranks,
            .only_own = cases[i].only_own,
        };
        uint32_t number = 0;

        machine_add_ids(&machine, cases[i].devices);
        plan.devices = machine.devices.items;
        for (; cases[i].copies[number] != NULL; number++) {
            struct text said = {0};

            describe(&plan, number, &said);
            assert_string_equal(text_string(&said), cases[i].copies[number]);
            text_finish(&said);
        }
        assert_int_equal(rank_plan_copies(&plan), number);
        machine_finish(&machine);
    }
}

static void ranks_are_told_where_they_meet(void **state)
{
    const struct rank_plan plan = {
        .replicas = 1,
        .each = 2,
        .ranks = true,
        .port = 29501,
        .backend = "gloo",
        .interface = "eth0",
    };
    struct rank_copy copy = rank_plan_copy(&plan, 1);

    (void)state;
    assert_string_equal(copy.rank.address, "127.0.0.1");
    assert_int_equal(copy.rank.port, 29501);
    assert_string_equal(copy.rank.backend, "gloo");
    assert_string_equal(copy.rank.interface, "eth0");
}

/* No machine has so many devices, but a request may name such numbers. */
static void very_many_are_counted(void **state)
{
    const struct rank_plan plan = {.replicas = 1000000, .each = 1000000, .ranks = true};

    (void)state;
    assert_int_equal(rank_plan_copies(&plan), UINT64_C(1000000000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_told_who_they_are),
        cmocka_unit_test(ranks_are_told_where_they_meet),
        cmocka_unit_test(very_many_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
