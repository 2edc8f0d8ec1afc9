/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/core/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/temporary_directory.h"

static char *const no_variables[] = {NULL};

static struct child_end wait_for_end(const struct child *offspring)
{
    struct pollfd poller = {.fd = offspring->process, .events = POLLIN};
    struct child_end end = {0};

    assert_int_equal(poll(&poller, 1, 30000), 1);
    assert_true(child_reap(offspring, &end));
    return end;
}

/* Reads all of the output. The pipe does not block, and the child has ended. */
static void read_output(const struct child *offspring, char *output, size_t size)
{
    ssize_t length = read(offspring->output, output, size - 1);

    output[length < 0 ? 0 : length] = '\0';
}

static void close_child(struct child *offspring)
{
    close(offspring->process);
    close(offspring->output);
    close(offspring->report);
}

static struct child start_shell(const char *script, struct child_order order)
{
    char *const words[] = {(char *)"/bin/sh", (char *)"-c", (char *)script, NULL};
    struct child offspring;

    order.words = words;
    if (order.environment == NULL)
        order.environment = no_variables;
    assert_int_equal(child_start(&offspring, &order), 0);
    return offspring;
}

static void it_reports_output_and_exit_code(void **state)
{
    char *const variables[] = {(char *)"WORD=three", NULL};
    struct child offspring =
        start_shell("read a b; echo $a $b $WORD; exit 7",
                    (struct child_order){.input = "one two\n", .environment = variables});
    struct child_end end = wait_for_end(&offspring);
    char output[64];

    (void)state;
    assert_false(end.is_killed);
    assert_int_equal(end.failure, 0);
    assert_int_equal(end.number, 7);
    read_output(&offspring, output, sizeof(output));
    assert_string_equal(output, "one two three\n");
    close_child(&offspring);
}

/* It has no descriptor of its parent except the standard ones, and its files are private. */
static void it_inherits_nothing(void **state)
{
    int leaked = open("/dev/null", O_RDONLY);
    struct child offspring = start_shell(
        "umask; pwd; for n in 3 4 5 6 7 8 9; do test -e /proc/$$/fd/$n && echo $n; done; exit 0",
        (struct child_order){0});
    char output[64];

    (void)state;
    assert_int_equal(wait_for_end(&offspring).number, 0);
    read_output(&offspring, output, sizeof(output));
    assert_string_equal(output, "0077\n/\n");
    close_child(&offspring);
    close(leaked);
}

static void a_missing_program_is_reported(void **state)
{
    char *const words[] = {(char *)"/nonexistent/program", NULL};
    struct child offspring;
    struct child_end end;

    (void)state;
    assert_int_equal(
        child_start(&offspring, &(struct child_order){.words = words, .environment = no_variables}),
        0);
    end = wait_for_end(&offspring);
    assert_int_equal(end.failure, ENOENT);
    close_child(&offspring);
}

static void its_process_group_is_killed(void **state)
{
    struct child offspring = start_shell("sleep 1000 & wait", (struct child_order){0});
    struct pollfd pipe_end = {.fd = offspring.output, .events = POLLIN};
    struct child_end end;

    (void)state;
    assert_false(child_reap(&offspring, &end));
    child_kill(&offspring);
    end = wait_for_end(&offspring);
    assert_true(end.is_killed);
    assert_int_equal(end.number, SIGKILL);
    /* The output closes when its last process has ended. */
    assert_int_equal(poll(&pipe_end, 1, 30000), 1);
    assert_true((pipe_end.revents & POLLHUP) != 0);
    close_child(&offspring);
}

static void it_reads_from_a_descriptor_instead(void **state)
{
    int ends[2];
    struct child offspring;
    char output[16];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    offspring = start_shell("cat", (struct child_order){.connection = &ends[0]});
    close(ends[0]);
    assert_int_equal(write(ends[1], "hello", 5), 5);
    close(ends[1]);
    assert_int_equal(wait_for_end(&offspring).number, 0);
    read_output(&offspring, output, sizeof(output));
    assert_string_equal(output, "hello");
    close_child(&offspring);
}

static void it_waits_for_a_file(void **state)
{
    const char *directory = *state;
    char path[256];
    char script[300];
    struct child offspring;
    struct child_end end;
    int file;

    snprintf(path, sizeof(path), "%s/awaited", directory);
    snprintf(script, sizeof(script), "test -e %s", path);
    offspring = start_shell(script, (struct child_order){.awaited = path});
    file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    end = wait_for_end(&offspring);
    assert_int_equal(end.number, 0);
    close(file);
    close_child(&offspring);
}

static void undoing_leaves_nothing(void **state)
{
    struct child offspring = start_shell("sleep 1000", (struct child_order){0});
    pid_t pid = offspring.pid;

    (void)state;
    child_undo(&offspring);
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(errno, ESRCH);
    assert_int_equal(offspring.pid, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_reports_output_and_exit_code),
        cmocka_unit_test(it_inherits_nothing),
        cmocka_unit_test(a_missing_program_is_reported),
        cmocka_unit_test(its_process_group_is_killed),
        cmocka_unit_test(it_reads_from_a_descriptor_instead),
        cmocka_unit_test_setup_teardown(it_waits_for_a_file, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test(undoing_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
