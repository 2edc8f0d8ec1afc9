/* SPDX-License-Identifier: Apache-2.0
 *
 * Labelled output, with pipes at both ends and no other process.
 */
#include "support/unit.h"

#include "launch/labelled_output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/text/text.h"
#include "support/assert_error.h"
#include "support/temporary_directory.h"

enum { COPIES_MAX = 12, OUTPUT = 0, ERROR = 1, PIPE_ROOM = 65536 };

/* The readers and writers of one test. */
struct scene {
    struct labelled_output *labels;
    int heard[2];                /* read ends of output and error; -1: closed */
    int spoken[2];               /* write ends of both; -1: none */
    int commands[COPIES_MAX][2]; /* the commands' ends; -1: closed */
    struct text said[2];
};

static void shut(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

/* Begins with open sinks. */
static void begin(struct scene *scene, uint32_t copies, uint32_t numbers)
{
    const struct labelled_output_options facts = {copies, numbers, scene->spoken[OUTPUT],
                                                  scene->spoken[ERROR]};
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(labelled_output_create(&facts, &scene->labels, &error), 0);
    for (uint32_t i = 0; i < COPIES_MAX; i++)
        scene->commands[i][OUTPUT] = scene->commands[i][ERROR] = -1;
    for (uint32_t i = 0; i < copies; i++) {
        struct launch_copy copy = {0};

        assert_int_equal(labelled_output_open_pipes(scene->labels, i, &copy, &error), 0);
        assert_true(copy.output == 0 || copy.output > STDERR_FILENO);
        if (copy.output > 0)
            scene->commands[i][OUTPUT] = fcntl(copy.output, F_DUPFD_CLOEXEC, 0);
        if (copy.error > 0)
            scene->commands[i][ERROR] = fcntl(copy.error, F_DUPFD_CLOEXEC, 0);
        labelled_output_close_child_ends(scene->labels);
    }
}

/* Opens a scene with a pipe for each sink. */
static struct scene scene_open(uint32_t copies, uint32_t numbers)
{
    struct scene scene = {0};

    for (size_t i = 0; i < 2; i++) {
        int ends[2];

        assert_int_equal(pipe(ends), 0);
        assert_true(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
        scene.heard[i] = ends[0];
        scene.spoken[i] = ends[1];
    }
    begin(&scene, copies, numbers);
    return scene;
}

static void speak_bytes(struct scene *scene, uint32_t copy, int stream, const char *bytes,
                        size_t length)
{
    assert_int_equal(write(scene->commands[copy][stream], bytes, length), length);
}

static void speak(struct scene *scene, uint32_t copy, int stream, const char *words)
{
    speak_bytes(scene, copy, stream, words, strlen(words));
}

/* Processes output until nothing is left to do now. Returns the number of rounds. */
static size_t turn(struct scene *scene)
{
    struct pollfd *polls = calloc(labelled_output_poll_max(scene->labels), sizeof(*polls));
    size_t turns = 0;
    size_t count;

    assert_non_null(polls);
    count = labelled_output_fill_poll(scene->labels, polls);
    while (poll(polls, count, 0) > 0) {
        labelled_output_process(scene->labels, polls);
        count = labelled_output_fill_poll(scene->labels, polls);
        assert_true(++turns < 100000);
    }
    free(polls);
    return turns;
}

/* Reads the output so far. */
static void hear(struct scene *scene)
{
    char bytes[4096];

    for (size_t i = 0; i < 2; i++) {
        ssize_t length;

        while (scene->heard[i] >= 0 && (length = read(scene->heard[i], bytes, sizeof(bytes))) > 0)
            text_append_bytes(&scene->said[i], bytes, (size_t)length);
    }
}

static void check_heard(struct scene *scene, const char *output, const char *error)
{
    const char *const wanted[] = {output, error};

    turn(scene);
    hear(scene);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(text_string(&scene->said[i]), wanted[i]);
        assert_int_equal(scene->said[i].length, strlen(wanted[i]));
        text_clear(&scene->said[i]);
    }
}

static void scene_close(struct scene *scene)
{
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(labelled_output_finish(scene->labels, &error), 0);
    assert_string_equal(error.message, "");
    for (size_t i = 0; i < COPIES_MAX; i++) {
        shut(&scene->commands[i][OUTPUT]);
        shut(&scene->commands[i][ERROR]);
    }
    for (size_t i = 0; i < 2; i++) {
        shut(&scene->heard[i]);
        shut(&scene->spoken[i]);
        text_finish(&scene->said[i]);
    }
}

static void lines_have_numbers(void **state)
{
    struct scene scene = scene_open(12, 12);

    (void)state;
    speak(&scene, 3, OUTPUT, "three\n");
    check_heard(&scene, " 3: three\n", "");
    speak(&scene, 11, ERROR, "eleven\n");
    check_heard(&scene, "", "11: eleven\n");
    speak(&scene, 0, OUTPUT, "\n\nb\n");
    check_heard(&scene, " 0: \n 0: \n 0: b\n", "");
    scene_close(&scene);
}

static void numbers_are_as_wide_as_the_widest(void **state)
{
    static const struct {
        uint32_t numbers;
        const char *line;
    } cases[] = {{1, "0: x\n"},    {10, "0: x\n"},    {11, " 0: x\n"},
                 {100, " 0: x\n"}, {101, "  0: x\n"}, {1000000, "     0: x\n"}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct scene scene = scene_open(1, cases[i].numbers);

        speak(&scene, 0, OUTPUT, "x\n");
        check_heard(&scene, cases[i].line, "");
        scene_close(&scene);
    }
}

static void only_whole_lines_appear(void **state)
{
    struct scene scene = scene_open(2, 2);

    (void)state;
    speak(&scene, 0, OUTPUT, "one");
    check_heard(&scene, "", "");
    speak(&scene, 1, OUTPUT, "other\nano");
    check_heard(&scene, "1: other\n", "");
    speak(&scene, 0, OUTPUT, " line\n");
    check_heard(&scene, "0: one line\n", "");
    /* The last line gets a newline. */
    shut(&scene.commands[1][OUTPUT]);
    check_heard(&scene, "1: ano\n", "");
    speak(&scene, 0, OUTPUT, "end");
    labelled_output_drain_pipes(scene.labels, false);
    check_heard(&scene, "0: end\n", "");
    scene_close(&scene);
}

static void zero_bytes_pass(void **state)
{
    struct scene scene = scene_open(1, 1);

    (void)state;
    speak_bytes(&scene, 0, OUTPUT, "a\0b\n\0\n", 6);
    turn(&scene);
    hear(&scene);
    assert_int_equal(scene.said[OUTPUT].length, 12);
    assert_memory_equal(scene.said[OUTPUT].bytes, "0: a\0b\n0: \0\n", 12);
    scene_close(&scene);
}

/* Writes a line of this length in the pieces that a pipe allows, and checks how many lines come
 * out. */
static void check_long_line(size_t length)
{
    struct scene scene = scene_open(1, 1);
    struct text wanted = {0};

    for (size_t done = 0; done < length;) {
        char part[1000];
        size_t size = length - done < sizeof(part) ? length - done : sizeof(part);

        memset(part, 'x', size);
        speak_bytes(&scene, 0, OUTPUT, part, size);
        turn(&scene);
        hear(&scene);
        done += size;
    }
    speak(&scene, 0, OUTPUT, "\ny\n");
    turn(&scene);
    hear(&scene);
    do {
        size_t size = length < LABELLED_LINE_MAX ? length : LABELLED_LINE_MAX;

        text_append(&wanted, "0: ");
        text_append_repeated(&wanted, 'x', size);
        text_append(&wanted, "\n");
        length -= size;
    } while (length > 0);
    text_append(&wanted, "0: y\n");
    turn(&scene);
    hear(&scene);
    assert_int_equal(scene.said[OUTPUT].length, wanted.length);
    assert_string_equal(text_string(&scene.said[OUTPUT]), text_string(&wanted));
    text_finish(&wanted);
    scene_close(&scene);
}

static void long_lines_are_broken(void **state)
{
    (void)state;
    check_long_line(0);
    check_long_line(LABELLED_LINE_MAX - 1);
    check_long_line(LABELLED_LINE_MAX);
    check_long_line(LABELLED_LINE_MAX + 1);
    check_long_line(3 * LABELLED_LINE_MAX);
    check_long_line(3 * LABELLED_LINE_MAX + 7);
}

/* Writes until the pipe is full. Returns the number of bytes. */
static size_t fill(int descriptor)
{
    static const char line[] = "123456789\n";
    size_t total = 0;
    ssize_t length;

    assert_int_equal(fcntl(descriptor, F_SETFL, O_NONBLOCK), 0);
    while ((length = write(descriptor, line, sizeof(line) - 1)) > 0)
        total += (size_t)length;
    assert_int_equal(fcntl(descriptor, F_SETFL, 0), 0);
    return total;
}

static void who_does_not_read_slows_down_who_writes(void **state)
{
    struct scene scene = scene_open(2, 2);
    size_t written = 0;
    size_t part;

    (void)state;
    while ((part = fill(scene.commands[0][OUTPUT])) > 0) {
        written += part;
        turn(&scene);
        assert_true(written < 16 * PIPE_ROOM);
    }
    /* Nothing can be done until the reader reads, but the other streams are served. */
    assert_int_equal(turn(&scene), 0);
    speak(&scene, 1, ERROR, "alive\n");
    turn(&scene);
    hear(&scene);
    assert_string_equal(text_string(&scene.said[ERROR]), "1: alive\n");
    /* After reading, all output arrives. */
    for (size_t before = 0; before < scene.said[OUTPUT].length;) {
        before = scene.said[OUTPUT].length;
        turn(&scene);
        hear(&scene);
    }
    assert_int_equal(scene.said[OUTPUT].length, written / 10 * 13);
    for (size_t i = 0; i < scene.said[OUTPUT].length; i += 13)
        assert_memory_equal(scene.said[OUTPUT].bytes + i, "0: 123456789\n", 13);
    scene_close(&scene);
}

/* A reader that never catches up does not make memory grow or block the other streams. */
static void a_slow_reader_gets_all_in_the_end(void **state)
{
    struct scene scene = scene_open(3, 3);
    size_t written[3] = {0};
    size_t counted[3] = {0};
    char bytes[512];

    (void)state;
    for (size_t i = 0; i < 5000; i++) {
        ssize_t length;

        written[i % 3] += fill(scene.commands[i % 3][OUTPUT]) / 10;
        turn(&scene);
        length = read(scene.heard[OUTPUT], bytes, sizeof(bytes));
        if (length > 0)
            text_append_bytes(&scene.said[OUTPUT], bytes, (size_t)length);
    }
    labelled_output_drain_pipes(scene.labels, false);
    for (size_t before = 0; before < scene.said[OUTPUT].length;) {
        before = scene.said[OUTPUT].length;
        turn(&scene);
        hear(&scene);
    }
    for (size_t i = 0; i < scene.said[OUTPUT].length; i += 13) {
        const char *line = scene.said[OUTPUT].bytes + i;

        assert_memory_equal(line + 1, ": 123456789\n", 12);
        counted[line[0] - '0']++;
    }
    for (size_t i = 0; i < COUNT(written); i++) {
        assert_int_equal(counted[i], written[i]);
        assert_true(written[i] > PIPE_ROOM / 10);
    }
    scene_close(&scene);
}

static void who_writes_finds_out_that_nobody_reads(void **state)
{
    struct scene scene = scene_open(2, 2);

    (void)state;
    shut(&scene.heard[OUTPUT]);
    speak(&scene, 0, OUTPUT, "for nobody\n");
    turn(&scene);
    signal(SIGPIPE, SIG_IGN);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(write(scene.commands[i][OUTPUT], "x\n", 2), -1);
        assert_int_equal(errno, EPIPE);
    }
    signal(SIGPIPE, SIG_DFL);
    speak(&scene, 1, ERROR, "heard\n");
    turn(&scene);
    hear(&scene);
    assert_string_equal(text_string(&scene.said[ERROR]), "1: heard\n");
    scene_close(&scene);
}

/* Output and errors to one pipe share a queue, so that their lines do not mix. */
static void one_place_for_both(void **state)
{
    struct scene scene = {0};
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_true(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    scene.heard[OUTPUT] = ends[0];
    scene.heard[ERROR] = -1;
    scene.spoken[OUTPUT] = ends[1];
    scene.spoken[ERROR] = fcntl(ends[1], F_DUPFD, 0);
    begin(&scene, 1, 1);
    fill(scene.commands[0][OUTPUT]);
    turn(&scene);
    fill(scene.commands[0][OUTPUT]);
    fill(scene.commands[0][ERROR]);
    for (int i = 0; i < 100; i++) {
        turn(&scene);
        hear(&scene);
    }
    for (size_t i = 0; i < scene.said[OUTPUT].length; i += 13)
        assert_memory_equal(scene.said[OUTPUT].bytes + i, "0: 123456789\n", 13);
    assert_true(scene.said[OUTPUT].length > 2 * PIPE_ROOM);
    scene_close(&scene);
}

static void files_and_sockets_will_do(void **state)
{
    struct scene scene = {.heard = {-1, -1}};
    int ends[2];

    (void)state;
    scene.spoken[OUTPUT] = open("log", O_RDWR | O_CREAT | O_APPEND, 0600);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_true(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    scene.heard[ERROR] = ends[0];
    scene.spoken[ERROR] = ends[1];
    begin(&scene, 1, 1);
    speak(&scene, 0, OUTPUT, "to a file\n");
    speak(&scene, 0, ERROR, "to a socket\n");
    turn(&scene);
    scene.heard[OUTPUT] = open("log", O_RDONLY | O_CLOEXEC);
    check_heard(&scene, "0: to a file\n", "0: to a socket\n");
    /* A socket without a reader is like a pipe. */
    shut(&scene.heard[ERROR]);
    speak(&scene, 0, ERROR, "for nobody\n");
    turn(&scene);
    scene_close(&scene);
}

static void what_is_closed_stays_closed(void **state)
{
    struct scene scene = {.heard = {-1, -1}, .spoken = {-1, -1}};

    (void)state;
    begin(&scene, 1, 1);
    assert_int_equal(scene.commands[0][OUTPUT], -1);
    assert_int_equal(scene.commands[0][ERROR], -1);
    assert_int_equal(turn(&scene), 0);
    scene_close(&scene);
}

/* With standard output closed, its number may be that of a socket to the daemon. */
static void what_is_not_inherited_is_not_written_to(void **state)
{
    struct scene scene = {.heard = {-1, -1}, .spoken = {-1, -1}};
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    scene.heard[OUTPUT] = ends[0];
    scene.spoken[OUTPUT] = ends[1];
    begin(&scene, 1, 1);
    assert_int_equal(scene.commands[0][OUTPUT], -1);
    scene_close(&scene);
}

static void a_full_disk_is_told(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct scene scene = {.heard = {-1, -1}, .spoken = {-1, -1}};

    (void)state;
    scene.spoken[OUTPUT] = open("/dev/full", O_WRONLY);
    assert_true(scene.spoken[OUTPUT] >= 0);
    begin(&scene, 1, 1);
    speak(&scene, 0, OUTPUT, "lost\n");
    turn(&scene);
    assert_fails(labelled_output_finish(scene.labels, &error), BERTH_ERROR_IO, &error,
                 "cannot write labelled output: No space left on device");
    scene.labels = NULL;
    scene_close(&scene);
}

/* Another process that holds a pipe and keeps writing does not delay the end. */
static void what_is_left_is_collected(void **state)
{
    struct scene scene = scene_open(1, 1);
    size_t length = fill(scene.commands[0][OUTPUT]);

    (void)state;
    labelled_output_drain_pipes(scene.labels, false);
    for (int i = 0; i < 10; i++) {
        turn(&scene);
        hear(&scene);
    }
    assert_int_equal(scene.said[OUTPUT].length, length / 10 * 13);
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(write(scene.commands[0][OUTPUT], "x", 1), -1);
    signal(SIGPIPE, SIG_DFL);
    scene_close(&scene);
}

/* In a hurry, the output for a reader that does not read is dropped after a few seconds. */
static void a_hurry_ends(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct scene scene = scene_open(1, 1);

    (void)state;
    fill(scene.spoken[OUTPUT]);
    speak(&scene, 0, OUTPUT, "late\n");
    turn(&scene);
    labelled_output_drain_pipes(scene.labels, true);
    assert_fails(labelled_output_finish(scene.labels, &error), BERTH_ERROR_IO, &error,
                 "cannot write labelled output: Connection timed out");
    scene.labels = NULL;
    scene_close(&scene);
}

/* Descriptors that other processes share must keep blocking. */
static void inherited_descriptors_are_as_before(void **state)
{
    struct scene scene = scene_open(1, 1);

    (void)state;
    speak(&scene, 0, OUTPUT, "x\n");
    check_heard(&scene, "0: x\n", "");
    assert_int_equal(fcntl(scene.spoken[OUTPUT], F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fcntl(scene.commands[0][OUTPUT], F_GETFL) & O_NONBLOCK, 0);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_have_numbers),
        cmocka_unit_test(numbers_are_as_wide_as_the_widest),
        cmocka_unit_test(only_whole_lines_appear),
        cmocka_unit_test(zero_bytes_pass),
        cmocka_unit_test(long_lines_are_broken),
        cmocka_unit_test(who_does_not_read_slows_down_who_writes),
        cmocka_unit_test(a_slow_reader_gets_all_in_the_end),
        cmocka_unit_test(who_writes_finds_out_that_nobody_reads),
        cmocka_unit_test(one_place_for_both),
        cmocka_unit_test_setup_teardown(files_and_sockets_will_do, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test(what_is_closed_stays_closed),
        cmocka_unit_test(what_is_not_inherited_is_not_written_to),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(what_is_left_is_collected),
        cmocka_unit_test(a_hurry_ends),
        cmocka_unit_test(inherited_descriptors_are_as_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
