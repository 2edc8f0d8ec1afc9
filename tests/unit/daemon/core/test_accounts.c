/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/core/accounts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/quantity.h"
#include "support/temporary_directory.h"

enum { ALICE = 1000, BOB = 1001, OWNER = 500, FIRST = 100000, COUNT_OF_RANGE = 65536 };

struct stage {
    struct loop loop;
    struct accounts accounts;
    struct timer timeout;
    int changes;
};

static void count_change(void *context)
{
    struct stage *stage = context;

    stage->changes++;
    stage->loop.ended = true;
}

static void give_up(struct timer *timer)
{
    (void)timer;
    fail_msg("no change was reported within 30 s");
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void open_stage(struct stage *stage, const char *path)
{
    *stage = (struct stage){.timeout.fire = give_up};
    write_file("passwd", "root:x:0:0:::\nalice:x:1000:1000:::\nbob:x:1001:1001:::\n");
    assert_int_equal(loop_init(&stage->loop, NULL), 0);
    accounts_init(&stage->accounts, &(struct accounts_settings){
                                        .loop = &stage->loop,
                                        .path = path,
                                        .users_path = "passwd",
                                        .pool_owner = OWNER,
                                        .changed = count_change,
                                        .context = stage,
                                    });
    accounts_read(&stage->accounts);
}

static void close_stage(struct stage *stage)
{
    accounts_finish(&stage->accounts);
    loop_finish(&stage->loop);
}

static void a_subordinate_uid_counts_as_its_owner(void **state)
{
    struct stage stage;

    (void)state;
    write_file("subuid", "alice:100000:65536\n1001:165536:65536\nnobody-knows:231072:65536\n");
    open_stage(&stage, "subuid");
    assert_int_equal(accounts_find(&stage.accounts, FIRST), ALICE);
    assert_int_equal(accounts_find(&stage.accounts, FIRST + COUNT_OF_RANGE - 1), ALICE);
    assert_int_equal(accounts_find(&stage.accounts, FIRST + COUNT_OF_RANGE), BOB);
    assert_int_equal(accounts_find(&stage.accounts, FIRST - 1), FIRST - 1);
    assert_int_equal(accounts_find(&stage.accounts, ALICE), ALICE);
    close_stage(&stage);
}

/* Root and the owner have no limits. No container gets that by a range, nor more than the limits of
 * one user. */
static void nobody_becomes_unlimited(void **state)
{
    struct stage stage;

    (void)state;
    write_file("subuid", "0:100000:65536\n500:165536:65536\nalice:0:1000\n");
    open_stage(&stage, "subuid");
    assert_int_equal(accounts_find(&stage.accounts, FIRST), FIRST);
    assert_int_equal(accounts_find(&stage.accounts, FIRST + 7), FIRST);
    assert_int_equal(accounts_find(&stage.accounts, FIRST + COUNT_OF_RANGE - 1), FIRST);
    assert_int_equal(accounts_find(&stage.accounts, FIRST + COUNT_OF_RANGE + 9),
                     FIRST + COUNT_OF_RANGE);
    assert_int_equal(accounts_find(&stage.accounts, FIRST + 2 * COUNT_OF_RANGE),
                     FIRST + 2 * COUNT_OF_RANGE);
    assert_int_equal(accounts_find(&stage.accounts, 0), 0);
    assert_int_equal(accounts_find(&stage.accounts, OWNER), OWNER);
    assert_int_equal(accounts_find(&stage.accounts, 999), ALICE);
    close_stage(&stage);
}

/* Names of a name service, which is not asked. */
static void a_range_of_an_unknown_name_is_one_user(void **state)
{
    struct stage stage;

    (void)state;
    write_file("subuid", "ann@corp:100000:65536\nben@corp:165536:65536\n");
    open_stage(&stage, "subuid");
    assert_int_equal(accounts_find(&stage.accounts, FIRST), FIRST);
    assert_int_equal(accounts_find(&stage.accounts, FIRST + 77), FIRST);
    assert_int_equal(accounts_find(&stage.accounts, FIRST + COUNT_OF_RANGE + 77),
                     FIRST + COUNT_OF_RANGE);
    /* No uid of the range has rights of another one. */
    assert_int_equal(subordinate_uids_owner(&stage.accounts.ranges, FIRST + 77), FIRST + 77);
    close_stage(&stage);
}

/* A range that covers users by mistake, or lets a container have one of them (LXD). */
static void users_within_such_a_range_count_as_themselves(void **state)
{
    struct stage stage;

    (void)state;
    write_file("subuid", "root:1:65535\nann@corp:0:100000\nroot:1001:1\n");
    open_stage(&stage, "subuid");
    assert_int_equal(accounts_find(&stage.accounts, ALICE), ALICE);
    assert_int_equal(accounts_find(&stage.accounts, BOB), BOB);
    assert_int_equal(accounts_find(&stage.accounts, 0), 0);
    assert_int_equal(accounts_find(&stage.accounts, 2000), 1);
    /* This range begins with root. */
    assert_int_equal(accounts_find(&stage.accounts, 70000), 70000);
    close_stage(&stage);
}

static void without_a_file_each_uid_counts_as_itself(void **state)
{
    struct stage stage;

    (void)state;
    open_stage(&stage, "missing");
    assert_int_equal(accounts_find(&stage.accounts, FIRST), FIRST);
    close_stage(&stage);
    open_stage(&stage, NULL);
    assert_int_equal(accounts_find(&stage.accounts, FIRST), FIRST);
    close_stage(&stage);
    open_stage(&stage, "no/such/directory/subuid");
    assert_int_equal(accounts_find(&stage.accounts, FIRST), FIRST);
    close_stage(&stage);
}

static void do_nothing(void *context)
{
    (void)context;
}

static void await_change(struct stage *stage)
{
    stage->loop.ended = false;
    loop_set_timer(&stage->loop, &stage->timeout, loop_now(&stage->loop) + 30 * DURATION_SECOND);
    loop_run(&stage->loop, &(struct loop_turn){do_nothing, do_nothing, NULL});
    loop_set_timer(&stage->loop, &stage->timeout, LOOP_NEVER);
}

/* Changes in quick succession are reported together, however the file is written. */
static void changes_are_noticed(void **state)
{
    struct stage stage;

    (void)state;
    open_stage(&stage, "./subuid");
    write_file("other", "");
    for (int i = 0; i < 100; i++)
        write_file("subuid", "alice:100000:65536\n");
    await_change(&stage);
    assert_int_equal(stage.changes, 1);
    accounts_read(&stage.accounts);
    assert_int_equal(accounts_find(&stage.accounts, FIRST), ALICE);
    write_file("subuid+", "1001:100000:65536\n");
    assert_int_equal(rename("subuid+", "subuid"), 0);
    await_change(&stage);
    accounts_read(&stage.accounts);
    assert_int_equal(accounts_find(&stage.accounts, FIRST), BOB);
    assert_int_equal(unlink("subuid"), 0);
    await_change(&stage);
    accounts_read(&stage.accounts);
    assert_int_equal(accounts_find(&stage.accounts, FIRST), FIRST);
    assert_int_equal(stage.changes, 3);
    close_stage(&stage);
}

static void a_change_behind_a_symlink_is_noticed(void **state)
{
    struct stage stage;

    (void)state;
    assert_int_equal(mkdir("etc", 0700), 0);
    assert_int_equal(mkdir("other", 0700), 0);
    write_file("etc/real", "alice:100000:65536\n");
    write_file("other/real", "1001:100000:65536\n");
    assert_int_equal(symlink("etc/real", "subuid"), 0);
    open_stage(&stage, "subuid");
    assert_int_equal(accounts_find(&stage.accounts, FIRST), ALICE);
    write_file("etc/real+", "1001:100000:65536\n");
    assert_int_equal(rename("etc/real+", "etc/real"), 0);
    await_change(&stage);
    accounts_read(&stage.accounts);
    assert_int_equal(accounts_find(&stage.accounts, FIRST), BOB);
    /* The symlink changes, then its new target. */
    assert_int_equal(symlink("other/real", "subuid+"), 0);
    assert_int_equal(rename("subuid+", "subuid"), 0);
    await_change(&stage);
    accounts_read(&stage.accounts);
    write_file("other/real", "alice:100000:65536\n");
    await_change(&stage);
    accounts_read(&stage.accounts);
    assert_int_equal(accounts_find(&stage.accounts, FIRST), ALICE);
    /* No longer watched. */
    write_file("etc/real", "");
    assert_false(list_is_linked(&stage.accounts.settle.in_loop));
    close_stage(&stage);
}

#define IN_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, temporary_directory_enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(a_subordinate_uid_counts_as_its_owner),
        IN_DIRECTORY(nobody_becomes_unlimited),
        IN_DIRECTORY(a_range_of_an_unknown_name_is_one_user),
        IN_DIRECTORY(users_within_such_a_range_count_as_themselves),
        IN_DIRECTORY(without_a_file_each_uid_counts_as_itself),
        IN_DIRECTORY(changes_are_noticed),
        IN_DIRECTORY(a_change_behind_a_symlink_is_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
