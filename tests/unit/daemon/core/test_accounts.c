/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/core/accounts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static bool find_name(void *context, const char *name, uint32_t *ret_uid)
{
    (void)context;
    *ret_uid = ALICE;
    return strcmp(name, "alice") == 0;
}

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
    assert_int_equal(loop_init(&stage->loop, NULL), 0);
    accounts_init(&stage->accounts, &(struct accounts_settings){
                                        .loop = &stage->loop,
                                        .path = path,
                                        .pool_owner = OWNER,
                                        .changed = count_change,
                                        .context = stage,
                                    });
    accounts_read(&stage->accounts, find_name, NULL);
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
    assert_int_equal(accounts_find(&stage.accounts, 231072), 231072);
    assert_int_equal(accounts_find(&stage.accounts, ALICE), ALICE);
    close_stage(&stage);
}

/* Root and the owner have no limits. No container gets that by a range. */
static void nobody_becomes_unlimited(void **state)
{
    struct stage stage;

    (void)state;
    write_file("subuid", "0:100000:65536\n500:165536:65536\nalice:0:2000\n");
    open_stage(&stage, "subuid");
    assert_int_equal(accounts_find(&stage.accounts, FIRST), FIRST);
    assert_int_equal(accounts_find(&stage.accounts, FIRST + COUNT_OF_RANGE),
                     FIRST + COUNT_OF_RANGE);
    assert_int_equal(accounts_find(&stage.accounts, 0), 0);
    assert_int_equal(accounts_find(&stage.accounts, OWNER), OWNER);
    assert_int_equal(accounts_find(&stage.accounts, BOB), ALICE);
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
    accounts_read(&stage.accounts, find_name, NULL);
    assert_int_equal(accounts_find(&stage.accounts, FIRST), ALICE);
    write_file("subuid+", "1001:100000:65536\n");
    assert_int_equal(rename("subuid+", "subuid"), 0);
    await_change(&stage);
    accounts_read(&stage.accounts, find_name, NULL);
    assert_int_equal(accounts_find(&stage.accounts, FIRST), BOB);
    assert_int_equal(unlink("subuid"), 0);
    await_change(&stage);
    accounts_read(&stage.accounts, find_name, NULL);
    assert_int_equal(accounts_find(&stage.accounts, FIRST), FIRST);
    assert_int_equal(stage.changes, 3);
    close_stage(&stage);
}

#define IN_DIRECTORY(test) \
    cmocka_unit_test_setup_teardown(test, temporary_directory_enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(a_subordinate_uid_counts_as_its_owner),
        IN_DIRECTORY(nobody_becomes_unlimited),
        IN_DIRECTORY(without_a_file_each_uid_counts_as_itself),
        IN_DIRECTORY(changes_are_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
