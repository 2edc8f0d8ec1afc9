/* SPDX-License-Identifier: Apache-2.0
 *
 * The test plays the reader: the functions of src/reader/reader.c that tell what it does.
 */
#include "support/unit.h"

#include "daemon/processes/reader_progress.h"

#include "base/text/quantity.h"

#define MS    (DURATION_SECOND / 1000)
#define START (1000 * DURATION_SECOND)
#define LOOK  (20 * MS)
#define LIMIT (20 * MS)

static struct reader_touch played_touch;
static enum reader_activity played_activity;
static int64_t played_processor;

struct reader_touch reader_touch(const struct reader *reader)
{
    (void)reader;
    return played_touch;
}

enum reader_activity reader_activity(const struct reader *reader)
{
    (void)reader;
    return played_activity;
}

int64_t reader_processor_time(const struct reader *reader)
{
    (void)reader;
    return played_processor;
}

struct stage {
    struct reader_progress progress;
    int64_t now;
};

static struct stage stage;

static int begin(void **state)
{
    (void)state;
    played_touch = (struct reader_touch){.count = 7};
    played_activity = READER_RUNS;
    played_processor = 3 * DURATION_SECOND; /* of earlier requests */
    stage.now = START;
    reader_progress_begin(&stage.progress, NULL, stage.now);
    return 0;
}

/* Looks after the usual time. */
static enum reader_verdict look(void)
{
    stage.now += LOOK;
    return reader_progress_look(&stage.progress, NULL, LIMIT, stage.now);
}

static void begin_access(pid_t pid)
{
    played_touch.pid = pid;
    played_touch.count++;
}

static int64_t spent(void)
{
    return reader_progress_spent(&stage.progress, NULL, stage.now);
}

static int64_t waited(void)
{
    return reader_progress_waited(&stage.progress, NULL, stage.now);
}

static void an_access_that_suspends_it_is_a_stall(void **state)
{
    (void)state;
    begin_access(4711);
    played_activity = READER_SUSPENDED;
    assert_int_equal(look(), READER_GOES_ON); /* it was not in this access before */
    assert_int_equal(look(), READER_STALLS);
    assert_int_equal(stage.progress.touch.pid, 4711);
    assert_true(reader_progress_is_same(&stage.progress, NULL));
    begin_access(4711);
    assert_false(reader_progress_is_same(&stage.progress, NULL));
    assert_int_equal(spent(), 2 * LOOK);
}

static void another_access_in_time_is_progress(void **state)
{
    (void)state;
    played_activity = READER_SUSPENDED;
    for (int i = 0; i < 10; i++) {
        begin_access(4711);
        assert_int_equal(look(), READER_GOES_ON);
    }
    assert_int_equal(reader_progress_accesses(&stage.progress, NULL), 10);
    /* But the processes together have taken this time. */
    assert_int_equal(spent(), 10 * LOOK);
    assert_int_equal(waited(), 10 * LOOK);
}

static void time_in_the_queue_for_a_cpu_does_not_count(void **state)
{
    (void)state;
    begin_access(4711);
    for (int i = 0; i < 40; i++)
        assert_int_equal(look(), READER_GOES_ON);
    assert_int_equal(spent(), 0);
    played_processor += 3 * MS;
    assert_int_equal(spent(), 3 * MS);
    assert_int_equal(waited(), 3 * MS);
}

/* It has nothing to do, or waits for the daemon. */
static void sleep_outside_of_an_access_does_not_count(void **state)
{
    (void)state;
    played_activity = READER_SUSPENDED;
    for (int i = 0; i < 5; i++)
        assert_int_equal(look(), READER_GOES_ON);
    assert_int_equal(waited(), 0);
}

static void a_stopped_reader_blames_no_process(void **state)
{
    enum reader_verdict verdict = READER_GOES_ON;
    int looks = 0;

    (void)state;
    begin_access(4711);
    played_activity = READER_STOPPED;
    while (verdict == READER_GOES_ON && looks < 100) {
        verdict = look();
        looks++;
    }
    assert_int_equal(verdict, READER_LOST);
    assert_true(looks * LOOK >= DURATION_SECOND);
    assert_int_equal(spent(), 0);
    assert_int_equal(waited(), looks * LOOK);
}

static void the_time_since_the_last_look_counts(void **state)
{
    (void)state;
    begin_access(4711);
    played_activity = READER_SUSPENDED;
    look();
    stage.now += 9 * MS;
    assert_int_equal(spent(), LOOK + 9 * MS);
    assert_int_equal(spent(), LOOK + 9 * MS);
}

#define TEST(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_access_that_suspends_it_is_a_stall),
        TEST(another_access_in_time_is_progress),
        TEST(time_in_the_queue_for_a_cpu_does_not_count),
        TEST(sleep_outside_of_an_access_does_not_count),
        TEST(a_stopped_reader_blames_no_process),
        TEST(the_time_since_the_last_look_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
