/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "model/machine/tiles.h"

#include "support/engine/machines.h"

static void unknown_counts_as_one(void **state)
{
    struct device device = {0};

    (void)state;
    assert_int_equal(tiles_count(&device), 1);
    device.tiles = optional_number_of(2);
    assert_int_equal(tiles_count(&device), 2);
    device.tiles = optional_number_of(DEVICE_TILES_MAX);
    assert_int_equal(tiles_count(&device), DEVICE_TILES_MAX);
    device.tiles = optional_number_of(DEVICE_TILES_MAX + 1);
    assert_int_equal(tiles_count(&device), 1);
    device.tiles = optional_number_of(0);
    assert_int_equal(tiles_count(&device), 1);
}

static void check_place(const struct machine *machine, const char *id, uint32_t ordinal,
                        uint32_t first_tile)
{
    struct device_id wanted;
    struct tiles_position place;

    assert_int_equal(device_id_parse(id, &wanted, NULL), 0);
    place = tiles_find_position(machine, device_list_find(&machine->devices, wanted));
    assert_int_equal(place.ordinal, ordinal);
    assert_int_equal(place.first_tile, first_tile);
}

static void those_of_the_host_are_counted_by_their_indices(void **state)
{
    struct machine machine = {0};

    (void)state;
    machine_add_ids(&machine, "intel7,nvidia0,intel0,intel2,amd1");
    machine_device(&machine, "intel0")->tiles = optional_number_of(2);
    machine_device(&machine, "intel7")->tiles = optional_number_of(4);
    check_place(&machine, "intel0", 0, 0);
    check_place(&machine, "intel2", 1, 2);
    check_place(&machine, "intel7", 2, 3);
    machine_device(&machine, "intel0")->host = 1;
    check_place(&machine, "intel0", 0, 0);
    check_place(&machine, "intel7", 1, 1);
    machine_finish(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_counts_as_one),
        cmocka_unit_test(those_of_the_host_are_counted_by_their_indices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
