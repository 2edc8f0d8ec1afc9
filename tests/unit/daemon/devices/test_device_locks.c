/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/devices/device_locks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text/quantity.h"

enum { SLOTS = 2, NOBODYS_UID = 65534 };

/* One pool with two devices, as its locks see it. */
struct locked_pool {
    struct device_locks *locks;
    bool leased[SLOTS];
    bool ending[SLOTS];
    bool blocked[SLOTS];
    bool wanted;
    uint32_t stranger_uid;   /* of the name's holder */
    bool stranger_on_device; /* a process of this holder is on each device */
    int answers;
    int changes;
    int holders; /* reported */
    struct device_lock_holder holder;
};

/* Two pools of the same devices in one loop. */
struct two_pools {
    struct loop loop;
    struct locked_pool pools[2];
    char scope[64];
};

static bool is_leased(void *context, uint32_t slot)
{
    return ((struct locked_pool *)context)->leased[slot];
}

static bool is_ending(void *context, uint32_t slot)
{
    return ((struct locked_pool *)context)->ending[slot];
}

static bool is_wanted(void *context)
{
    return ((struct locked_pool *)context)->wanted;
}

static bool is_used_by(void *context, uint32_t slot, uint32_t uid)
{
    const struct locked_pool *pool = context;

    (void)slot;
    assert_int_equal(uid, pool->stranger_uid);
    return pool->stranger_on_device;
}

static void unblock_slot(void *context, uint32_t slot)
{
    ((struct locked_pool *)context)->blocked[slot] = false;
}

static void block_slot(void *context, uint32_t slot)
{
    ((struct locked_pool *)context)->blocked[slot] = true;
}

static void note_holder(void *context, uint32_t slot, const struct device_lock_holder *holder)
{
    struct locked_pool *pool = context;

    (void)slot;
    pool->holders++;
    pool->holder = holder == NULL ? (struct device_lock_holder){0} : *holder;
}

static void count_answer(void *context)
{
    ((struct locked_pool *)context)->answers++;
}

static void count_change(void *context)
{
    ((struct locked_pool *)context)->changes++;
}

static void open_locks(struct two_pools *two, int number, bool keeps_all, uint32_t uid)
{
    struct locked_pool *pool = &two->pools[number];
    const struct device_locks_settings settings = {
        .loop = &two->loop,
        .scope = two->scope,
        .uid = uid,
        .keeps_all = keeps_all,
        .max = SLOTS,
        .events =
            {
                .context = pool,
                .is_leased = is_leased,
                .is_ending = is_ending,
                .is_wanted = is_wanted,
                .is_used_by = is_used_by,
                .unblock = unblock_slot,
                .block = block_slot,
                .holder_changed = note_holder,
                .answered = count_answer,
                .changed = count_change,
            },
    };

    assert_int_equal(device_locks_create(&pool->locks, &settings, NULL), 0);
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        const struct device device = {
            .id = {.vendor = VENDOR_NVIDIA, .index = slot, .mig = DEVICE_NO_MIG}};

        device_locks_add(pool->locks, slot, &device);
    }
}

static void end_loop(void *context)
{
    ((struct two_pools *)context)->loop.ended = true;
}

static void do_nothing(void *context)
{
    (void)context;
}

/* Waits for events, and handles them. */
static void run_turn(struct two_pools *two)
{
    two->loop.ended = false;
    loop_run(&two->loop, &(struct loop_turn){do_nothing, end_loop, two});
}

static int begin(void **state)
{
    struct two_pools *two = calloc(1, sizeof(*two));

    assert_non_null(two);
    assert_int_equal(loop_init(&two->loop, NULL), 0);
    snprintf(two->scope, sizeof(two->scope), "test-%d", (int)getpid());
    *state = two;
    return 0;
}

static int end(void **state)
{
    struct two_pools *two = *state;

    device_locks_destroy(two->pools[0].locks);
    device_locks_destroy(two->pools[1].locks);
    loop_finish(&two->loop);
    free(two);
    return 0;
}

static void a_leased_device_is_blocked_elsewhere(void **state)
{
    struct two_pools *two = *state;

    two->pools[0].leased[0] = true;
    two->pools[1].wanted = true;
    open_locks(two, 0, false, getuid());
    open_locks(two, 1, false, getuid());
    assert_true(two->pools[1].blocked[0]);
    assert_false(two->pools[1].blocked[1]);
    assert_true(device_locks_are_awaited(two->pools[1].locks));
    run_turn(two); /* the first pool answers */
    run_turn(two);
    assert_int_equal(two->pools[1].answers, 1);
    assert_false(device_locks_are_awaited(two->pools[1].locks));
}

static void an_ended_lease_lets_the_other_pool_have_it(void **state)
{
    struct two_pools *two = *state;

    two->pools[0].leased[0] = true;
    two->pools[1].wanted = true;
    open_locks(two, 0, false, getuid());
    open_locks(two, 1, false, getuid());
    run_turn(two);
    run_turn(two);
    two->pools[0].leased[0] = false;
    device_locks_update(two->pools[0].locks);
    while (two->pools[1].blocked[0])
        run_turn(two);
    assert_int_equal(two->pools[1].changes, 1);
    assert_false(two->pools[0].blocked[0]); /* nothing waits there */
}

/* The second pool asks for a device whose lease in the first pool has just ended. */
static void ask_about_ending_lease(struct two_pools *two)
{
    two->pools[0].leased[0] = two->pools[0].ending[0] = true;
    two->pools[1].wanted = true;
    open_locks(two, 0, false, getuid());
    open_locks(two, 1, false, getuid());
    run_turn(two); /* the first pool is asked */
    assert_true(device_locks_are_awaited(two->pools[1].locks));
    assert_true(two->pools[1].blocked[0]);
}

static void await_answer(struct two_pools *two)
{
    while (device_locks_are_awaited(two->pools[1].locks))
        run_turn(two);
    assert_int_equal(two->pools[1].answers, 1);
}

static void an_answer_waits_for_the_end_of_a_lease(void **state)
{
    struct two_pools *two = *state;

    ask_about_ending_lease(two);
    two->pools[0].leased[0] = two->pools[0].ending[0] = false;
    device_locks_update(two->pools[0].locks);
    await_answer(two);
    assert_false(two->pools[1].blocked[0]);
}

static void a_process_that_is_left_is_an_answer(void **state)
{
    struct two_pools *two = *state;

    ask_about_ending_lease(two);
    two->pools[0].ending[0] = false;
    device_locks_update(two->pools[0].locks);
    await_answer(two);
    assert_true(two->pools[1].blocked[0]);
}

static void the_end_of_a_lease_is_not_waited_for_long(void **state)
{
    struct two_pools *two = *state;

    ask_about_ending_lease(two);
    await_answer(two);
    assert_true(two->pools[1].blocked[0]);
    /* Once it has ended after all, the device changes hands. */
    two->pools[0].leased[0] = two->pools[0].ending[0] = false;
    device_locks_update(two->pools[0].locks);
    while (two->pools[1].blocked[0])
        run_turn(two);
}

/* ---- Pools that take turns ---- */

struct moment {
    struct timer timer;
    bool is_over;
};

static void end_moment(struct timer *timer)
{
    container_of(timer, struct moment, timer)->is_over = true;
}

/* Handles events for this time. */
static void run_for(struct two_pools *two, int64_t duration)
{
    struct moment moment = {.timer.fire = end_moment};

    loop_set_timer(&two->loop, &moment.timer, loop_now(&two->loop) + duration);
    while (!moment.is_over)
        run_turn(two);
}

/* A pool has a device whose lease has just ended, and the other asks for it. */
static void ask_from_ending(struct two_pools *two, int holder)
{
    struct locked_pool *pool = &two->pools[holder];
    struct locked_pool *other = &two->pools[1 - holder];

    pool->leased[0] = pool->ending[0] = true;
    other->wanted = true;
    pool->wanted = false;
    other->answers = 0;
    assert_true(device_locks_are_unsettled(other->locks));
}

/* Ends the search that the other pool waits for. */
static void end_search(struct two_pools *two, int holder)
{
    struct locked_pool *pool = &two->pools[holder];

    pool->leased[0] = pool->ending[0] = false;
    device_locks_update(pool->locks);
}

static void open_both(struct two_pools *two)
{
    two->pools[0].leased[0] = true;
    open_locks(two, 0, false, getuid());
    open_locks(two, 1, false, getuid());
}

/* The time for an earlier question is not the time for the next one. */
static void each_question_has_its_time(void **state)
{
    struct two_pools *two = *state;
    int64_t asked_at;

    open_both(two);
    ask_from_ending(two, 0);
    run_for(two, 500 * DURATION_SECOND / 1000);
    end_search(two, 0);
    await_answer(two);
    assert_false(two->pools[1].blocked[0]);
    asked_at = loop_now(&two->loop);
    ask_from_ending(two, 1);
    while (device_locks_are_awaited(two->pools[0].locks))
        run_turn(two);
    assert_true(loop_now(&two->loop) - asked_at >= 700 * DURATION_SECOND / 1000);
}

/* Pools that need some time for each answer, as on a busy machine, wait for each other as often as
 * they like. */
static void time_for_the_name_is_not_charged(void **state)
{
    struct two_pools *two = *state;

    open_both(two);
    for (int i = 0; i < 16; i++) {
        int asker = 1 - i % 2;

        ask_from_ending(two, i % 2);
        run_for(two, 200 * DURATION_SECOND / 1000);
        end_search(two, i % 2);
        while (device_locks_are_awaited(two->pools[asker].locks))
            run_turn(two);
        assert_false(two->pools[asker].blocked[0]);
    }
}

/* ---- The machine's daemon ---- */

static void the_machines_daemon_keeps_free_devices(void **state)
{
    struct two_pools *two = *state;
    struct device_lock_holder holder;

    open_locks(two, 0, true, getuid());
    two->pools[1].wanted = true;
    open_locks(two, 1, false, getuid());
    run_turn(two);
    run_turn(two);
    assert_true(two->pools[1].blocked[0]);
    assert_true(two->pools[1].blocked[1]);
    assert_true(device_locks_find_holder(two->pools[1].locks, 0, &holder));
    assert_true(holder.is_known);
    assert_int_equal(holder.pid, getpid());
    assert_int_equal(holder.uid, getuid());
}

/* Takes the names as an ordinary user: names of root always block. Returns the user's uid. */
static uint32_t open_locks_of_stranger(struct two_pools *two)
{
    uint32_t uid = getuid() == 0 ? NOBODYS_UID : getuid();

    two->pools[0].leased[0] = two->pools[0].leased[1] = true;
    assert_int_equal(seteuid(uid), 0);
    open_locks(two, 0, false, uid);
    assert_int_equal(seteuid(getuid()), 0);
    return uid;
}

/* The machine's daemon of another uid finds the names taken. */
static void a_strangers_name_blocks_only_with_a_process_on_the_device(void **state)
{
    struct two_pools *two = *state;
    uint32_t uid = open_locks_of_stranger(two);

    two->pools[1].stranger_uid = uid;
    open_locks(two, 1, true, uid + 1);
    assert_false(two->pools[1].blocked[0]);
    assert_false(two->pools[1].holder.blocks);
    assert_false(device_locks_are_unsettled(two->pools[1].locks));
    two->pools[1].stranger_on_device = true;
    device_locks_update(two->pools[1].locks);
    assert_true(two->pools[1].blocked[0]);
    two->pools[1].stranger_on_device = false;
    device_locks_update(two->pools[1].locks);
    assert_false(two->pools[1].blocked[0]);
}

/* Listens on the name of a device. */
static int take_name(const struct two_pools *two, int slot)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "berth/%s/nvidia%d",
                          two->scope, slot);

    assert_int_equal(bind(listener, (struct sockaddr *)&address,
                          offsetof(struct sockaddr_un, sun_path) + 1 + (socklen_t)length),
                     0);
    assert_int_equal(listen(listener, 1), 0);
    return listener;
}

static void a_holder_that_hangs_up_stays_the_holder(void **state)
{
    struct two_pools *two = *state;
    int listener = take_name(two, 0);
    int asker;

    two->pools[1].stranger_uid = getuid();
    open_locks(two, 1, true, getuid() + 1);
    assert_int_equal(two->pools[1].holders, 1);
    for (int i = 0; i < 3; i++) {
        asker = accept(listener, NULL, NULL);
        close(asker);
        run_turn(two); /* the connection's end */
        run_turn(two); /* it connects again */
        assert_int_equal(two->pools[1].holders, 1);
        assert_int_equal(two->pools[1].holder.pid, getpid());
    }
    close(listener);
    while (device_locks_find_holder(two->pools[1].locks, 0, &two->pools[1].holder))
        run_turn(two);
    assert_int_equal(two->pools[1].holders, 2);
}

static void names_of_an_ended_daemon_are_taken(void **state)
{
    struct two_pools *two = *state;

    two->pools[0].leased[0] = two->pools[0].leased[1] = true;
    open_locks(two, 0, false, getuid());
    open_locks(two, 1, true, getuid());
    assert_true(two->pools[1].blocked[0]);
    device_locks_destroy(two->pools[0].locks);
    two->pools[0].locks = NULL;
    while (two->pools[1].blocked[0] || two->pools[1].blocked[1])
        run_turn(two);
    assert_false(device_locks_find_holder(two->pools[1].locks, 0, &two->pools[1].holder));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_leased_device_is_blocked_elsewhere, begin, end),
        cmocka_unit_test_setup_teardown(an_ended_lease_lets_the_other_pool_have_it, begin, end),
        cmocka_unit_test_setup_teardown(an_answer_waits_for_the_end_of_a_lease, begin, end),
        cmocka_unit_test_setup_teardown(a_process_that_is_left_is_an_answer, begin, end),
        cmocka_unit_test_setup_teardown(the_end_of_a_lease_is_not_waited_for_long, begin, end),
        cmocka_unit_test_setup_teardown(each_question_has_its_time, begin, end),
        cmocka_unit_test_setup_teardown(time_for_the_name_is_not_charged, begin, end),
        cmocka_unit_test_setup_teardown(the_machines_daemon_keeps_free_devices, begin, end),
        cmocka_unit_test_setup_teardown(a_strangers_name_blocks_only_with_a_process_on_the_device,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_holder_that_hangs_up_stays_the_holder, begin, end),
        cmocka_unit_test_setup_teardown(names_of_an_ended_daemon_are_taken, begin, end),
    };

    return cmocka_run_group_tests_name("device_locks", tests, NULL, NULL);
}
