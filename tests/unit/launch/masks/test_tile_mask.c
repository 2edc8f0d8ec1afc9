/* SPDX-License-Identifier: Apache-2.0 */
#include "support/programs/launch_environments.h"

#include "launch/masks/tile_mask.h"

#include "base/count.h"

/* Three cards: 2 tiles, 1 tile, 4 tiles. Flat, these are 0 and 1, 2, 3 to 6. */
static const uint32_t tiles[] = {2, 1, 4};
static const struct tiles_position places[] = {{0, 0}, {1, 2}, {2, 3}};

/* The tiles that a mask leaves of each card, as bits. */
struct row {
    const char *affinity;
    const char *hierarchy;
    uint32_t left[3];
};

static void masks_are_read_as_level_zero_does(void **state)
{
    static const struct row rows[] = {
        {NULL, NULL, {3, 1, 15}},
        {"", NULL, {3, 1, 15}},
        {" ", NULL, {3, 1, 15}},
        {"default", NULL, {3, 1, 15}},
        {"0", NULL, {1, 0, 0}},
        {"0,1", NULL, {3, 0, 0}},
        {"2", NULL, {0, 1, 0}},
        {"6,3", NULL, {0, 0, 9}},
        {"7,1", NULL, {2, 0, 0}},
        {"99999", NULL, {0, 0, 0}},
        {"5,5,1", NULL, {2, 0, 4}},
        {" 1 ,\t2", NULL, {2, 1, 0}},
        /* A tile has no tiles. */
        {"0.0,2", NULL, {0, 1, 0}},
        {"x,0", NULL, {0, 0, 0}},
        {"0,-1,2", NULL, {1, 0, 0}},
        {"0,,2", NULL, {1, 0, 0}},
        {"GPU-1,2", NULL, {0, 1, 0}},
        {"99999999999999999999,0", NULL, {0, 0, 0}},
        {"2", "FLAT", {0, 1, 0}},
        {"2", "COMBINED", {0, 1, 0}},
        {"2", "", {0, 1, 0}},
        {"2", "composite", {0, 1, 0}},
        {"2", "COMPOSITE", {0, 0, 15}},
        {NULL, "COMPOSITE", {3, 1, 15}},
        {"0,2", "COMPOSITE", {3, 0, 15}},
        {"2.3,0.1,2.0", "COMPOSITE", {2, 0, 9}},
        {"2.0,2", "COMPOSITE", {0, 0, 15}},
        {"1.0", "COMPOSITE", {0, 1, 0}},
        {"1.1,0.2,2.4", "COMPOSITE", {0, 0, 0}},
        {"3,7.0,1", "COMPOSITE", {0, 1, 0}},
        {"0.,1", "COMPOSITE", {0, 0, 0}},
        {"0.1.2,1", "COMPOSITE", {0, 0, 0}},
        {"99999", "COMPOSITE", {0, 0, 0}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct tile_mask mask = tile_mask_read(rows[i].affinity, rows[i].hierarchy);

        for (size_t card = 0; card < COUNT(tiles); card++) {
            uint32_t left = tile_mask_visible(&mask, places[card], tiles[card]);

            if (left != rows[i].left[card])
                fail_msg("row %zu left %#x of card %zu", i, left, card);
        }
    }
}

static void a_card_of_the_most_tiles(void **state)
{
    struct tile_mask mask = tile_mask_read(NULL, NULL);
    struct tiles_position last = {UINT32_MAX, UINT32_MAX};
    struct text out = {0};

    (void)state;
    assert_int_equal(tile_mask_visible(&mask, places[0], DEVICE_TILES_MAX), 0xffff);
    tile_mask_append(&mask, last, DEVICE_TILES_MAX, 0x8001, &out);
    assert_string_equal(text_string(&out), "4294967295,4294967310");
    mask = tile_mask_read("0", NULL);
    assert_int_equal(tile_mask_visible(&mask, last, DEVICE_TILES_MAX), 0);
    text_finish(&out);
}

/* ---- The masks of a lease ---- */

/* Checks the mask that a lease of the first and third card gets under an inherited mask. */
static void check_lease(const char *affinity, const char *hierarchy, const char *wanted)
{
    struct launched launched = leased("intel2,intel0", INTEL);
    struct text entries[2] = {0};
    const char *inherited[3] = {NULL};
    size_t count = 0;

    for (size_t i = 0; i < COUNT(tiles); i++) {
        struct device_id id = {VENDOR_INTEL, (uint32_t)i, DEVICE_NO_MIG};
        size_t slot = device_list_find(&launched.machine.devices, id);

        if (slot == launched.machine.devices.count)
            continue;
        launched.machine.devices.items[slot].tiles = optional_number_of(tiles[i]);
        launched.machine.devices.items[slot].ordinal = optional_number_of(places[i].ordinal);
        launched.machine.devices.items[slot].first_tile = optional_number_of(places[i].first_tile);
    }
    if (affinity != NULL) {
        text_append_format(&entries[0], "ZE_AFFINITY_MASK=%s", affinity);
        inherited[count++] = text_string(&entries[0]);
    }
    if (hierarchy != NULL) {
        text_append_format(&entries[1], "ZE_FLAT_DEVICE_HIERARCHY=%s", hierarchy);
        inherited[count++] = text_string(&entries[1]);
    }
    launch(&launched, inherited);
    check_value(&launched, "ZE_AFFINITY_MASK", wanted);
    check_value(&launched, "ZE_FLAT_DEVICE_HIERARCHY", hierarchy);
    launched_finish(&launched);
    for (size_t i = 0; i < COUNT(entries); i++)
        text_finish(&entries[i]);
}

static void a_lease_has_the_tiles_that_were_left(void **state)
{
    (void)state;
    check_lease(NULL, NULL, "3,4,5,6,0,1");
    check_lease("", "FLAT", "3,4,5,6,0,1");
    check_lease("0,1,3,4,5,6", "COMBINED", "3,4,5,6,0,1");
    check_lease("1,6,4", NULL, "4,6,1");
    check_lease(NULL, "COMPOSITE", "2,0");
    check_lease("0,2", "COMPOSITE", "2,0");
    check_lease("0.1,2.3,2.1", "COMPOSITE", "2.1,2.3,0.1");
    check_lease("0.0,2", "COMPOSITE", "2,0.0");
    check_lease("0.0,0.1,2", "COMPOSITE", "2,0");
    /* The mask names no tile of the card, so it was not made for this host. */
    check_lease("99999", NULL, "3,4,5,6,0,1");
    check_lease("0", NULL, "3,4,5,6,0");
}

static void what_the_daemon_did_not_say_is_the_index(void **state)
{
    struct launched launched = leased("intel4,intel1", INTEL);

    (void)state;
    launch(&launched, nothing);
    check_value(&launched, "ZE_AFFINITY_MASK", "4,1");
    /* An impossible number of tiles is ignored. */
    machine_device(&launched.machine, "intel4")->tiles = optional_number_of(UINT32_MAX);
    machine_device(&launched.machine, "intel1")->first_tile = optional_number_of(UINT64_MAX);
    launch(&launched, nothing);
    check_value(&launched, "ZE_AFFINITY_MASK", "4,1");
    launched_finish(&launched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_are_read_as_level_zero_does),
        cmocka_unit_test(a_card_of_the_most_tiles),
        cmocka_unit_test(a_lease_has_the_tiles_that_were_left),
        cmocka_unit_test(what_the_daemon_did_not_say_is_the_index),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
