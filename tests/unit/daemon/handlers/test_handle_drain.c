/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include <string.h>

#include "daemon/handlers/handle.h"
#include "daemon/leases/device_drain.h"
#include "support/daemons/pool_stage.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"

static int begin(void **state)
{
    *state = pool_stage_make(&(struct pool_stage_settings){
        .devices = "nvidia0,nvidia1", .parts = pool_stage_all, .part_count = POOL_STAGE_ALL});
    return 0;
}

/* Sends a message that names these devices. */
static void change(const struct stage_client *client, enum wire_type type, const char *ids,
                   const char *reason)
{
    struct wire_message message = {
        .type = type, .number = 9, .text = reason == NULL ? NULL : copy_of(reason)};

    if (*ids != '\0')
        assert_int_equal(device_id_list_parse(&message.device_ids, ids, NULL), 0);
    (type == WIRE_DRAIN ? handle_drain : handle_undrain)(client->connection, &message);
    wire_message_finish(&message);
}

static bool is_drained(const struct pool_stage *stage, uint32_t slot)
{
    struct slot_view view;

    engine_get_slot(stage->pool.engine, slot, &view);
    return (view.blocks & BLOCK_DRAINED) != 0;
}

static void the_owner_drains_devices(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client owner = pool_stage_connect(stage, STAGE_OWNER);

    change(&owner, WIRE_DRAIN, "nvidia1,nvidia0", "dust");
    assert_sent(&owner, WIRE_DONE);
    assert_true(is_drained(stage, 0) && is_drained(stage, 1));
    assert_string_equal(device_drain_of(&stage->pool, 0)->reason, "dust");
    assert_int_equal(device_drain_of(&stage->pool, 0)->uid.value, STAGE_OWNER);
    change(&owner, WIRE_UNDRAIN, "nvidia0", NULL);
    assert_sent(&owner, WIRE_DONE);
    assert_false(is_drained(stage, 0));
    assert_true(is_drained(stage, 1));
    pool_stage_hang_up(stage, &owner);
}

static void root_and_admins_drain_devices(void **state)
{
    struct pool_stage *stage = *state;
    uint32_t *admin = vector_append(&stage->pool.rules.admins.users);
    struct stage_client root = pool_stage_connect(stage, 0);
    struct stage_client other = pool_stage_connect(stage, STAGE_OTHER);

    assert_non_null(admin);
    *admin = STAGE_OTHER;
    change(&root, WIRE_DRAIN, "nvidia0", NULL);
    assert_sent(&root, WIRE_DONE);
    change(&other, WIRE_UNDRAIN, "nvidia0", NULL);
    assert_sent(&other, WIRE_DONE);
    assert_false(is_drained(stage, 0));
    pool_stage_hang_up(stage, &root);
    pool_stage_hang_up(stage, &other);
}

/* A user must not take devices away from others, nor give back what an administrator drained. */
static void other_users_change_nothing(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client user = pool_stage_connect(stage, STAGE_USER);

    change(&user, WIRE_DRAIN, "nvidia0", NULL);
    assert_refused(&user, BERTH_ERROR_PERMISSION,
                   "only root, the pool's owner and its admins may drain devices");
    assert_false(is_drained(stage, 0));
    assert_int_equal(device_drain_set(&stage->pool, 0, NULL, (struct optional_number){0}, NULL), 0);
    change(&user, WIRE_UNDRAIN, "nvidia0", NULL);
    assert_refused(&user, BERTH_ERROR_PERMISSION,
                   "only root, the pool's owner and its admins may drain devices");
    assert_true(is_drained(stage, 0));
    pool_stage_hang_up(stage, &user);
}

static void a_message_with_an_unknown_device_changes_nothing(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client owner = pool_stage_connect(stage, STAGE_OWNER);

    change(&owner, WIRE_DRAIN, "nvidia0,nvidia7", NULL);
    assert_refused(&owner, BERTH_ERROR_NOT_FOUND, "no device named nvidia7 in this pool");
    assert_false(is_drained(stage, 0));
    change(&owner, WIRE_DRAIN, "", NULL);
    assert_refused(&owner, BERTH_ERROR_INVALID, "cannot change devices: the message names none");
    pool_stage_hang_up(stage, &owner);
}

/* All devices of a message come back together: a claim gets the best of them, not the first. */
static void devices_come_back_together(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client owner = pool_stage_connect(stage, STAGE_OWNER);
    struct stage_client user = pool_stage_connect(stage, STAGE_USER);
    struct wire_message message;

    change(&owner, WIRE_DRAIN, "nvidia0,nvidia1", NULL);
    assert_sent(&owner, WIRE_DONE);
    pool_stage_claim(stage,
                     &(struct stage_claim){.words = "gpus=1", .connection = user.connection});
    change(&owner, WIRE_UNDRAIN, "nvidia1,nvidia0", NULL);
    engine_events_settle(&stage->pool);
    assert_message(&user, WIRE_GRANTED, &message);
    assert_int_equal(message.devices.items[0].id.index, 0);
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &owner);
    pool_stage_hang_up(stage, &user);
}

static void without_memory_the_client_learns_it(void **state)
{
    struct pool_stage *stage = *state;
    struct stage_client owner = pool_stage_connect(stage, STAGE_OWNER);
    struct wire_message message = {.type = WIRE_DRAIN, .number = 9, .text = copy_of("dust")};

    assert_int_equal(device_id_list_parse(&message.device_ids, "nvidia0", NULL), 0);
    /* From here on there is memory for answers. */
    change(&owner, WIRE_DRAIN, "nvidia7", NULL);
    assert_sent(&owner, WIRE_REFUSED);
    failing_allocator_start(1);
    handle_drain(owner.connection, &message);
    assert_true(failing_allocator_stop());
    assert_refused(&owner, BERTH_ERROR_MEMORY, "out of memory");
    assert_false(is_drained(stage, 0));
    wire_message_finish(&message);
    pool_stage_hang_up(stage, &owner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_owner_drains_devices, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(root_and_admins_drain_devices, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(other_users_change_nothing, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(a_message_with_an_unknown_device_changes_nothing, begin,
                                        pool_stage_end),
        cmocka_unit_test_setup_teardown(devices_come_back_together, begin, pool_stage_end),
        cmocka_unit_test_setup_teardown(without_memory_the_client_learns_it, begin, pool_stage_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
