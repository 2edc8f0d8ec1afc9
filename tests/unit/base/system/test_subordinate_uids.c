/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges of subordinate uids, and the users who own them.
 */
#include "support/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/subordinate_uids.h"
#include "support/temporary_directory.h"

static bool resolve(void *context, const char *name, uint32_t *ret_uid)
{
    (void)context;
    if (strcmp(name, "alice") != 0)
        return false;
    *ret_uid = 1000;
    return true;
}

static struct subordinate_uids parse(const char *text)
{
    struct subordinate_uids uids = {0};

    subordinate_uids_parse(&uids, (struct span){text, strlen(text)}, resolve, NULL);
    return uids;
}

static void owners(void **state)
{
    struct subordinate_uids uids = parse("alice:100000:65536\n"
                                         "1001:165536:65536 \n"
                                         "alice:4000000000:1");

    (void)state;
    assert_int_equal(uids.count, 3);
    assert_int_equal(subordinate_uids_owner(&uids, 99999), 99999);
    assert_int_equal(subordinate_uids_owner(&uids, 100000), 1000);
    assert_int_equal(subordinate_uids_owner(&uids, 165535), 1000);
    assert_int_equal(subordinate_uids_owner(&uids, 165536), 1001);
    assert_int_equal(subordinate_uids_owner(&uids, 231072), 231072);
    assert_int_equal(subordinate_uids_owner(&uids, 4000000000), 1000);
    assert_int_equal(subordinate_uids_owner(&uids, 1000), 1000);
    assert_int_equal(subordinate_uids_owner(&uids, 0), 0);
    subordinate_uids_finish(&uids);
}

/* The uids of an unknown user belong together, but to no known uid. */
static void unknown_owners(void **state)
{
    struct subordinate_uids uids = parse("nobody-here:1:5\nsomebody:4:10\nalice:3:2\n");

    (void)state;
    assert_int_equal(uids.count, 3);
    assert_int_equal(subordinate_uids_owner(&uids, 2), 2);
    assert_int_equal(subordinate_uids_owner(&uids, 3), 1000);
    assert_int_equal(uids.items[0].owner, SUBORDINATE_NO_OWNER);
    assert_ptr_equal(subordinate_uids_find(&uids, 2), &uids.items[0]);
    assert_ptr_equal(subordinate_uids_find(&uids, 3), &uids.items[2]);
    assert_ptr_equal(subordinate_uids_find(&uids, 5), &uids.items[0]);
    assert_ptr_equal(subordinate_uids_find(&uids, 13), &uids.items[1]);
    assert_null(subordinate_uids_find(&uids, 14));
    subordinate_uids_finish(&uids);
}

static void invalid_lines(void **state)
{
    struct subordinate_uids uids = parse("\n"
                                         "# alice:1:2\n"
                                         "alice\n"
                                         "alice:1\n"
                                         "alice:1:0\n"
                                         "alice:1:2:3\n"
                                         "alice:-1:2\n"
                                         "alice:x:2\n"
                                         "alice:4294967295:2\n"
                                         "alice:1:18446744073709551616\n"
                                         ":1:2\n"
                                         "alice:500000:10\n");

    (void)state;
    assert_int_equal(uids.count, 1);
    assert_int_equal(subordinate_uids_owner(&uids, 500009), 1000);
    subordinate_uids_finish(&uids);
}

/* Writes the file with a time of its own. */
static void write_file(const char *text, time_t changed)
{
    const struct timespec times[2] = {{.tv_sec = changed}, {.tv_sec = changed}};
    FILE *file = fopen("subuid", "w");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(utimensat(AT_FDCWD, "subuid", times, 0), 0);
}

static void a_file_that_changes(void **state)
{
    struct subordinate_uids uids = {0};

    (void)state;
    subordinate_uids_refresh(&uids, "subuid");
    assert_int_equal(subordinate_uids_owner(&uids, 100000), 100000);
    write_file("7:100000:10\n", 1000);
    subordinate_uids_refresh(&uids, "subuid");
    assert_int_equal(subordinate_uids_owner(&uids, 100000), 7);
    write_file("8:100000:10\n", 2000);
    subordinate_uids_refresh(&uids, "subuid");
    assert_int_equal(subordinate_uids_owner(&uids, 100000), 8);
    assert_int_equal(remove("subuid"), 0);
    subordinate_uids_refresh(&uids, "subuid");
    assert_int_equal(subordinate_uids_owner(&uids, 100000), 100000);
    subordinate_uids_finish(&uids);
}

static void ranges_without_names(void **state)
{
    struct subordinate_uids uids = {0};

    (void)state;
    write_file("nobody-here:100000:10\n7:200000:10\n", 1000);
    subordinate_uids_refresh_ranges(&uids, "subuid");
    assert_int_equal(subordinate_uids_owner(&uids, 100009), 100000);
    assert_int_equal(subordinate_uids_owner(&uids, 200009), 200000);
    assert_int_equal(subordinate_uids_owner(&uids, 7), 7);
    assert_int_equal(subordinate_uids_find(&uids, 200000)->last, 200009);
    assert_null(subordinate_uids_find(&uids, 200010));
    subordinate_uids_finish(&uids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners),
        cmocka_unit_test(unknown_owners),
        cmocka_unit_test(invalid_lines),
        cmocka_unit_test_setup_teardown(a_file_that_changes, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test_setup_teardown(ranges_without_names, temporary_directory_enter,
                                        temporary_directory_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
