/* SPDX-License-Identifier: Apache-2.0
 *
 * Which command lines an answer has. A user must never see the arguments of another user's program,
 * whatever runs out of memory.
 */
#include "support/unit.h"

#include "daemon/leases/visible_commands.h"

#include <string.h>

#include "support/daemons/pool_stage.h"
#include "support/failing_allocator.h"

#define SECRET "/usr/bin/train --token=12345"

/* An answer with everything that has a command line, each once of STAGE_USER and once of
 * STAGE_OTHER. */
struct answer {
    struct device_process processes[4];
    struct device device;
    struct slot_info slot;
    struct lease_info leases[2];
    struct claim_info claims[2];
    struct ended_lease ended[2];
    struct lease_info past[2];
    struct wire_message message;
};

static void fill_answer(struct answer *answer)
{
    static const uint32_t users[] = {STAGE_USER, STAGE_OTHER};

    *answer = (struct answer){0};
    for (size_t i = 0; i < COUNT(users); i++) {
        answer->processes[i] = (struct device_process){
            .pid = i, .uid = optional_number_of(users[i]), .command = (char *)SECRET};
        answer->leases[i] = (struct lease_info){.uid = users[i], .command = (char *)SECRET};
        answer->claims[i] = (struct claim_info){.uid = users[i], .command = (char *)SECRET};
        answer->past[i] = (struct lease_info){.uid = users[i], .command = (char *)SECRET};
        answer->ended[i] = (struct ended_lease){.lease = &answer->past[i]};
    }
    /* One in a container of STAGE_USER's, and one of which nothing is known. */
    answer->processes[2] = (struct device_process){.uid = optional_number_of(100000),
                                                   .owner = optional_number_of(STAGE_USER),
                                                   .command = (char *)SECRET};
    answer->processes[3] = (struct device_process){.command = (char *)SECRET};
    answer->device.processes.items = answer->processes;
    answer->device.processes.count = COUNT(answer->processes);
    answer->slot.device = &answer->device;
    answer->message.snapshot.slots.items = &answer->slot;
    answer->message.snapshot.slots.count = 1;
    answer->message.snapshot.leases.items = answer->leases;
    answer->message.snapshot.leases.count = 2;
    answer->message.snapshot.claims.items = answer->claims;
    answer->message.snapshot.claims.count = 2;
    answer->message.ended.items = answer->ended;
    answer->message.ended.count = 2;
}

static int begin(void **state)
{
    struct pool_stage *stage = pool_stage_make(&(struct pool_stage_settings){0});

    *state = stage;
    return 0;
}

static void limit_for(struct pool_stage *stage, uint32_t uid, struct answer *answer,
                      struct visible_commands *visible)
{
    struct stage_client client = pool_stage_connect(stage, uid);

    fill_answer(answer);
    visible_commands_init(visible, client.connection);
    for (size_t i = 0; i < COUNT(answer->processes); i++)
        assert_int_equal(visible_commands_limit_process(visible, &answer->processes[i]), 0);
    assert_int_equal(visible_commands_limit(visible, &answer->message, NULL), 0);
    pool_stage_hang_up(stage, &client);
}

#define assert_commands(answer, of_user, of_other)                                    \
    do {                                                                              \
        const struct device_process *shown_ = (answer)->slot.device->processes.items; \
        assert_string_equal(shown_[0].command, of_user);                              \
        assert_string_equal(shown_[1].command, of_other);                             \
        assert_string_equal((answer)->leases[0].command, of_user);                    \
        assert_string_equal((answer)->leases[1].command, of_other);                   \
        assert_string_equal((answer)->claims[0].command, of_user);                    \
        assert_string_equal((answer)->claims[1].command, of_other);                   \
        assert_string_equal((answer)->ended[0].lease->command, of_user);              \
        assert_string_equal((answer)->ended[1].lease->command, of_other);             \
    } while (0)

static void a_user_sees_own_commands_only(void **state)
{
    struct pool_stage *stage = *state;
    struct visible_commands visible;
    struct answer answer;

    limit_for(stage, STAGE_USER, &answer, &visible);
    assert_commands(&answer, SECRET, "train");
    assert_string_equal(answer.slot.device->processes.items[2].command, SECRET);
    assert_string_equal(answer.slot.device->processes.items[3].command, "train");
    /* The pool's own records are unchanged; the caller has copied the processes. */
    assert_string_equal(answer.past[1].command, SECRET);
    visible_commands_finish(&visible);
}

static void the_owner_root_and_admins_see_all(void **state)
{
    struct pool_stage *stage = *state;
    uint32_t *admin = vector_append(&stage->pool.rules.admins.users);
    const uint32_t users[] = {0, STAGE_OWNER, STAGE_OTHER};

    assert_non_null(admin);
    *admin = STAGE_OTHER;
    for (size_t i = 0; i < COUNT(users); i++) {
        struct visible_commands visible;
        struct answer answer;

        limit_for(stage, users[i], &answer, &visible);
        assert_commands(&answer, SECRET, SECRET);
        visible_commands_finish(&visible);
    }
}

static void the_configuration_decides(void **state)
{
    struct pool_stage *stage = *state;
    struct pool *pool = &stage->pool;
    struct visible_commands visible;
    struct answer answer;

    pool->rules.show_commands = SHOW_COMMANDS_ALL;
    limit_for(stage, STAGE_USER, &answer, &visible);
    assert_commands(&answer, SECRET, SECRET);
    visible_commands_finish(&visible);
    pool->rules.show_commands = SHOW_COMMANDS_DEFAULT;
    pool->settings.own = true;
    limit_for(stage, STAGE_USER, &answer, &visible);
    assert_commands(&answer, SECRET, SECRET);
    visible_commands_finish(&visible);
    pool->rules.show_commands = SHOW_COMMANDS_OWNER;
    limit_for(stage, STAGE_USER, &answer, &visible);
    assert_commands(&answer, SECRET, "train");
    visible_commands_finish(&visible);
}

static void a_missing_command_stays_missing(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    struct visible_commands visible;
    struct answer answer;

    fill_answer(&answer);
    answer.leases[1].command = answer.claims[1].command = answer.past[1].command = NULL;
    for (size_t i = 0; i < COUNT(answer.processes); i++)
        answer.processes[i].command = NULL;
    visible_commands_init(&visible, client.connection);
    assert_int_equal(visible_commands_limit(&visible, &answer.message, NULL), 0);
    assert_null(answer.leases[1].command);
    assert_null(answer.claims[1].command);
    assert_ptr_equal(answer.ended[1].lease, &answer.past[1]);
    assert_ptr_equal(answer.slot.device, &answer.device);
    visible_commands_finish(&visible);
    pool_stage_hang_up(stage, &client);
}

/* An answer that is limited in part must not be sent. */
static void without_memory_it_fails(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client client = pool_stage_connect(stage, STAGE_USER);
    bool was_refused = true;

    for (unsigned long n = 1; was_refused; n++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct visible_commands visible;
        struct answer answer;
        int code;

        fill_answer(&answer);
        visible_commands_init(&visible, client.connection);
        failing_allocator_start(n);
        code = visible_commands_limit(&visible, &answer.message, &error);
        was_refused = failing_allocator_stop();
        assert_int_equal(code, was_refused ? BERTH_ERROR_MEMORY : 0);
        assert_int_equal(error.code, code);
        /* The pool's own facts are unchanged. */
        for (size_t i = 0; i < COUNT(answer.processes); i++)
            assert_string_equal(answer.processes[i].command, SECRET);
        assert_string_equal(answer.past[1].command, SECRET);
        visible_commands_finish(&visible);
    }
    pool_stage_hang_up(stage, &client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_user_sees_own_commands_only, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(the_owner_root_and_admins_see_all, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(the_configuration_decides, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_missing_command_stays_missing, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(without_memory_it_fails, begin, pool_stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
