/* SPDX-License-Identifier: Apache-2.0
 *
 * The path of a pool's history, and berth-recorder's life: a shell script takes its place.
 */
#include "support/unit.h"

#include "daemon/stream/recorder_process.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/count.h"
#include "base/system/file.h"
#include "base/text/text.h"
#include "model/machine/machine_report.h"
#include "spec/configuration/configuration.h"
#include "spec/configuration/history_file.h"
#include "support/temporary_directory.h"

static const char machine[] = "/run/berth/berth.sock";
static const char own[] = "/tmp/berth-1/berth.sock";

static void every_pool_has_its_place(void **state)
{
    static const struct {
        struct history_file_pool pool;
        const char *home;
        const char *state;
        const char *wanted;
    } rows[] = {
        {{machine, false, false}, "/root", "/root/x", "/var/lib/berth/history.db"},
        {{own, true, false}, "/home/a", NULL, "/home/a/.local/state/berth/history.db"},
        {{own, true, false}, "/home/a", "", "/home/a/.local/state/berth/history.db"},
        {{own, true, false}, "/home/a", "x", "/home/a/.local/state/berth/history.db"},
        {{own, true, false}, "/home/a", "/s", "/s/berth/history.db"},
        {{own, true, false}, "/", NULL, "/.local/state/berth/history.db"},
        {{own, true, false}, NULL, NULL, "/tmp/berth-1/berth.history"},
        {{own, true, false}, "", "", "/tmp/berth-1/berth.history"},
        {{own, true, true}, "/h", "/s", "/tmp/berth-1/berth.history"},
        {{machine, false, true}, "/h", "/s", "/run/berth/berth.history"},
        {{"/srv/x.sock", false, false}, "/h", "/s", "/srv/x.history"},
        {{"/srv/x", false, false}, "/h", "/s", "/srv/x.history"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct text path = {0};

        history_file_default(&rows[i].pool, rows[i].home, rows[i].state, &path);
        assert_string_equal(text_string(&path), rows[i].wanted);
        text_finish(&path);
    }
}

static void configuration_goes_before_the_default(void **state)
{
    const struct history_file_pool pool = {"/srv/x.sock", false, false};
    char *path;

    (void)state;
    assert_int_equal(history_file_find(&pool, &(struct configured_history){0}, &path, NULL), 0);
    assert_string_equal(path, "/srv/x.history");
    free(path);
    assert_int_equal(
        history_file_find(&pool, &(struct configured_history){.file = (char *)"/f"}, &path, NULL),
        0);
    assert_string_equal(path, "/f");
    free(path);
    assert_int_equal(
        history_file_find(&pool, &(struct configured_history){.is_off = true}, &path, NULL), 0);
    assert_null(path);
}

static void pauses_grow(void **state)
{
    int64_t last = 0;

    (void)state;
    assert_int_equal(recorder_process_restart_after(0), RECORDER_RESTART_FIRST);
    assert_int_equal(recorder_process_restart_after(1), RECORDER_RESTART_FIRST);
    assert_int_equal(recorder_process_restart_after(2), 2 * RECORDER_RESTART_FIRST);
    for (unsigned failures = 1; failures < 20; failures++) {
        assert_true(recorder_process_restart_after(failures) >= last);
        last = recorder_process_restart_after(failures);
    }
    assert_int_equal(last, RECORDER_RESTART_LAST);
    assert_int_equal(recorder_process_restart_after(UINT32_MAX), RECORDER_RESTART_LAST);
}

/* ---- A recorder that is a script ---- */

/* The daemon's side of one recorder. */
struct stage {
    void *directory; /* of the test, and the current one */
    struct loop loop;
    struct log log;
    struct pool_clock clock;
    struct recorder_process *recorder;
    struct timer timeout;
    struct timer hang_up; /* as a closed connection does: in a later turn */
    int connection;       /* -1: none */
    bool refuses;         /* memory for a connection is short */
    int connections;
    uint64_t written;
    int changes;
    bool (*is_done)(const struct stage *stage);
};

static bool open_connection(void *context, int descriptor)
{
    struct stage *stage = context;

    assert_int_equal(stage->connection, -1);
    if (stage->refuses)
        return false;
    stage->connection = descriptor;
    stage->connections++;
    return true;
}

static void shut_connection_down(void *context)
{
    struct stage *stage = context;

    shutdown(stage->connection, SHUT_RDWR);
    loop_set_timer(&stage->loop, &stage->hang_up, loop_now(&stage->loop));
}

static void close_connection(struct stage *stage)
{
    close(stage->connection);
    stage->connection = -1;
    recorder_process_hung_up(stage->recorder);
}

static void hang_up(struct timer *timer)
{
    close_connection(container_of(timer, struct stage, hang_up));
}

static void note_written(void *context, uint64_t count)
{
    struct stage *stage = context;

    stage->written = count;
}

static void note_problems(void *context)
{
    struct stage *stage = context;

    stage->changes++;
}

static void give_up(struct timer *timer)
{
    (void)timer;
    fail_msg("what the test waits for did not happen within 30 s");
}

static int begin(void **state)
{
    struct stage *stage = calloc(1, sizeof(*stage));

    if (stage == NULL || temporary_directory_enter(&stage->directory) < 0 ||
        loop_init(&stage->loop, NULL) < 0)
        return -1;
    log_init(&stage->log, &stage->loop, open("log", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), NULL);
    pool_clock_init(&stage->clock, &stage->loop);
    stage->connection = -1;
    stage->timeout.fire = give_up;
    stage->hang_up.fire = hang_up;
    *state = stage;
    return 0;
}

static int end(void **state)
{
    struct stage *stage = *state;
    int log = stage->log.descriptor;

    recorder_process_destroy(stage->recorder);
    loop_set_timer(&stage->loop, &stage->hang_up, LOOP_NEVER);
    if (stage->connection >= 0)
        close(stage->connection);
    log_finish(&stage->log);
    close(log);
    loop_finish(&stage->loop);
    temporary_directory_leave(&stage->directory);
    free(stage);
    return 0;
}

/* Writes the program, which runs in the root directory; its output is what it reports. */
static void write_program(const struct stage *stage, const char *script)
{
    FILE *file = fopen("new", "we");
    char self[256] = "";

    assert_non_null(file);
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    fprintf(file, "#!/bin/sh\nself='%s'\ncd %s\n%s\n", self, (const char *)stage->directory,
            script);
    assert_int_equal(fchmod(fileno(file), 0755), 0);
    assert_int_equal(fclose(file), 0);
    /* Another file: a program that runs cannot be written. */
    assert_int_equal(rename("new", "recorder"), 0);
}

static const struct recorder_order ordinary = {
    .file = "/f", .keep = 3 * DURATION_SECOND / 2, .size = 4096};

static void create(struct stage *stage, int64_t timeout, const struct recorder_order *order)
{
    char program[256];

    snprintf(program, sizeof(program), "%s/recorder", (const char *)stage->directory);
    assert_int_equal(recorder_process_create(&stage->recorder,
                                             &(struct recorder_process_settings){
                                                 .loop = &stage->loop,
                                                 .log = &stage->log,
                                                 .clock = &stage->clock,
                                                 .program = program,
                                                 .pool_name = "p",
                                                 .timeout = timeout,
                                                 .events =
                                                     {
                                                         .context = stage,
                                                         .connect = open_connection,
                                                         .disconnect = shut_connection_down,
                                                         .written = note_written,
                                                         .problems_changed = note_problems,
                                                     },
                                             },
                                             order, NULL),
                     0);
}

static void check_done(void *context)
{
    struct stage *stage = context;

    if (stage->is_done(stage))
        stage->loop.ended = true;
}

static void do_nothing(void *context)
{
    (void)context;
}

static void run_until(struct stage *stage, bool (*is_done)(const struct stage *stage))
{
    stage->is_done = is_done;
    stage->loop.ended = is_done(stage);
    loop_set_timer(&stage->loop, &stage->timeout, loop_now(&stage->loop) + 30 * DURATION_SECOND);
    if (!stage->loop.ended)
        loop_run(&stage->loop, &(struct loop_turn){do_nothing, check_done, stage});
    loop_set_timer(&stage->loop, &stage->timeout, LOOP_NEVER);
}

static bool has_written_3(const struct stage *stage)
{
    return stage->written == 3;
}

static bool has_written_4(const struct stage *stage)
{
    return stage->written == 4;
}

static bool has_problem(const struct stage *stage)
{
    return recorder_process_problems(stage->recorder)->count > 0;
}

static bool has_no_problem(const struct stage *stage)
{
    return !has_problem(stage);
}

static bool has_ended(const struct stage *stage)
{
    return access("ended", F_OK) == 0 && stage->connection < 0;
}

static bool is_started(const struct stage *stage)
{
    (void)stage;
    return access("started", F_OK) == 0;
}

static bool has_failed(const struct stage *stage)
{
    return has_problem(stage) &&
           strstr(recorder_process_problems(stage->recorder)->items[0].message, "exit code");
}

static const char *problem_of(const struct stage *stage)
{
    const struct problem_list *problems = recorder_process_problems(stage->recorder);

    assert_int_equal(problems->count, 1);
    return problems->items[0].message;
}

static void read_line(const char *path, char *line, int size)
{
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    assert_non_null(fgets(line, size, file));
    fclose(file);
}

/* Ends with its connection, which does not block: the shell cannot wait for it. */
#define STAY "\"$self\" --stay; : >ended\n"

static int stay(void)
{
    struct pollfd polled = {.fd = STDIN_FILENO};

    return poll(&polled, 1, 60000) == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void lease_starts_it(void **state)
{
    struct stage *stage = *state;
    char line[128];

    write_program(stage, "echo \"$@\" >words; echo known 3; " STAY);
    create(stage, DURATION_MINUTE, &ordinary);
    assert_true(list_is_empty(&stage->loop.timers));
    recorder_process_want(stage->recorder);
    recorder_process_want(stage->recorder);
    run_until(stage, has_written_3);
    assert_int_equal(stage->connections, 1);
    read_line("words", line, sizeof(line));
    assert_string_equal(line, "/f p 1.500000000 all 4096 programs\n");
    assert_true(has_no_problem(stage));
}

static void without_a_file_none_is_started(void **state)
{
    struct stage *stage = *state;

    create(stage, DURATION_MINUTE, &(struct recorder_order){0});
    recorder_process_want(stage->recorder);
    assert_null(recorder_process_file(stage->recorder));
    assert_true(list_is_empty(&stage->loop.timers));
}

static void faults_that_it_reports_are_problems(void **state)
{
    struct stage *stage = *state;
    int before;

    assert_int_equal(mkfifo("gate", 0600), 0);
    write_program(stage, "echo problem disk full; read line <gate; echo good; " STAY);
    create(stage, DURATION_MINUTE, &ordinary);
    recorder_process_want(stage->recorder);
    run_until(stage, has_problem);
    assert_string_equal(problem_of(stage), "disk full");
    before = stage->changes;
    close(open("gate", O_WRONLY | O_CLOEXEC));
    run_until(stage, has_no_problem);
    assert_int_equal(stage->changes, before + 1);
}

/* A user who locks and unlocks the file again and again must not fill the log. */
static void faults_that_come_and_go_do_not_fill_the_log(void **state)
{
    struct stage *stage = *state;
    struct text log = {0};
    size_t lines = 0;

    write_program(
        stage,
        "i=0\n"
        "while [ $i -lt 1000 ]; do echo problem locked; echo good; echo hm; i=$((i+1)); done\n"
        "echo known 3; " STAY);
    create(stage, DURATION_MINUTE, &ordinary);
    recorder_process_want(stage->recorder);
    run_until(stage, has_written_3);
    log_flush(&stage->log);
    assert_int_equal(file_read("log", 1 << 20, &log, NULL), 0);
    for (size_t i = 0; i < log.length; i++)
        lines += log.bytes[i] == '\n';
    assert_in_range(lines, 50, 70);
    text_finish(&log);
    assert_true(has_no_problem(stage));
}

static void one_that_ends_is_started_again(void **state)
{
    struct stage *stage = *state;

    write_program(stage, "echo problem of mine; exit 7");
    create(stage, DURATION_MINUTE, &ordinary);
    recorder_process_want(stage->recorder);
    run_until(stage, has_failed);
    assert_string_equal(problem_of(stage), "berth-recorder: ended with exit code 7: of mine; "
                                           "leases are not recorded");
    write_program(stage, "echo known 3; " STAY);
    run_until(stage, has_written_3);
    assert_true(stage->connections >= 2);
    /* It is well once it asks. */
    assert_true(has_problem(stage));
    recorder_process_asked(stage->recorder);
    assert_true(has_no_problem(stage));
}

static void one_that_cannot_be_started_is_a_problem(void **state)
{
    struct stage *stage = *state;

    create(stage, DURATION_MINUTE, &ordinary);
    recorder_process_want(stage->recorder);
    run_until(stage, has_problem);
    assert_string_equal(problem_of(stage), "berth-recorder: cannot be started: No such file or "
                                           "directory; leases are not recorded");
}

static void without_memory_for_a_connection_it_is_tried_again(void **state)
{
    struct stage *stage = *state;

    write_program(stage, "echo known 3; " STAY);
    create(stage, DURATION_MINUTE, &ordinary);
    stage->refuses = true;
    recorder_process_want(stage->recorder);
    run_until(stage, has_problem);
    assert_string_equal(problem_of(stage), "berth-recorder: cannot be started: Cannot allocate "
                                           "memory; leases are not recorded");
    stage->refuses = false;
    run_until(stage, has_written_3);
    assert_int_equal(stage->connections, 1);
}

static void one_that_does_not_ask_hangs(void **state)
{
    struct stage *stage = *state;

    write_program(stage, STAY);
    create(stage, DURATION_SECOND / 100, &ordinary);
    recorder_process_want(stage->recorder);
    run_until(stage, has_problem);
    assert_string_equal(problem_of(stage),
                        "berth-recorder: no progress within 10ms, perhaps because of the disk of "
                        "/f; leases are not recorded");
    recorder_process_asked(stage->recorder);
    assert_true(has_no_problem(stage));
    recorder_process_answered(stage->recorder);
    run_until(stage, has_problem);
}

static void another_order_restarts_it(void **state)
{
    struct stage *stage = *state;
    struct recorder_order order = ordinary;
    char line[128];

    write_program(stage, "echo \"$@\" >words; echo known 3; " STAY);
    create(stage, DURATION_MINUTE, &ordinary);
    recorder_process_want(stage->recorder);
    run_until(stage, has_written_3);
    write_program(stage, "echo \"$@\" >words; echo known 4; " STAY);
    order.file = "/g";
    order.shows_commands = true;
    recorder_process_set_order(stage->recorder, &order);
    run_until(stage, has_written_4);
    read_line("words", line, sizeof(line));
    assert_string_equal(line, "/g p 1.500000000 all 4096 commands\n");
    assert_string_equal(recorder_process_file(stage->recorder), "/g");
    /* Its end was no failure. */
    assert_true(has_no_problem(stage));
}

static void without_a_file_it_ends(void **state)
{
    struct stage *stage = *state;

    write_program(stage, "echo known 3; " STAY);
    create(stage, DURATION_MINUTE, &ordinary);
    recorder_process_want(stage->recorder);
    run_until(stage, has_written_3);
    recorder_process_set_order(stage->recorder, &(struct recorder_order){0});
    run_until(stage, has_ended);
    assert_int_equal(stage->connections, 1);
    assert_true(has_no_problem(stage));
}

static void its_end_is_awaited_before_a_restart(void **state)
{
    struct stage *stage = *state;

    write_program(stage, "echo known 3; " STAY);
    create(stage, DURATION_MINUTE, &ordinary);
    recorder_process_want(stage->recorder);
    run_until(stage, has_written_3);
    write_program(stage, "echo known 4; " STAY);
    close_connection(stage);
    run_until(stage, has_written_4);
    assert_int_equal(stage->connections, 2);
}

static void it_outlives_the_daemon(void **state)
{
    struct stage *stage = *state;
    char line[8] = "";
    int gate;

    assert_int_equal(mkfifo("gate", 0600), 0);
    gate = open("gate", O_RDWR | O_CLOEXEC);
    write_program(stage, ": >started; \"$self\" --stay; echo end >gate");
    create(stage, DURATION_MINUTE, &ordinary);
    recorder_process_want(stage->recorder);
    run_until(stage, is_started);
    recorder_process_destroy(stage->recorder);
    stage->recorder = NULL;
    close(stage->connection);
    stage->connection = -1;
    assert_int_equal(read(gate, line, sizeof(line)), 4);
    assert_string_equal(line, "end\n");
    close(gate);
}

#define STAGE_TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pool_has_its_place),
        cmocka_unit_test(configuration_goes_before_the_default),
        cmocka_unit_test(pauses_grow),
        STAGE_TEST(lease_starts_it),
        STAGE_TEST(without_a_file_none_is_started),
        STAGE_TEST(faults_that_it_reports_are_problems),
        STAGE_TEST(faults_that_come_and_go_do_not_fill_the_log),
        STAGE_TEST(one_that_ends_is_started_again),
        STAGE_TEST(one_that_cannot_be_started_is_a_problem),
        STAGE_TEST(without_memory_for_a_connection_it_is_tried_again),
        STAGE_TEST(one_that_does_not_ask_hangs),
        STAGE_TEST(another_order_restarts_it),
        STAGE_TEST(without_a_file_it_ends),
        STAGE_TEST(its_end_is_awaited_before_a_restart),
        STAGE_TEST(it_outlives_the_daemon),
    };

    if (argc == 2 && strcmp(argv[1], "--stay") == 0)
        return stay();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
