/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/mps/mps_process.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/text/text.h"
#include "support/daemons/mps_stage.h"
#include "support/daemons/waiting_child.h"

static void ignore(struct watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
}

static void init(struct mps_process *process, struct loop *loop)
{
    mps_process_init(process, loop);
    process->end.ready = process->line.ready = ignore;
    assert_false(mps_process_is_running(process));
}

/* Makes the process of a script, which waits. */
static void make(struct mps_stage *stage, struct mps_process *process, const char *script)
{
    struct mps_site site = mps_stage_site(stage, "site");

    mps_script_write("daemon", script);
    init(process, &stage->loop);
    assert_int_equal(mps_process_make(process,
                                      &(struct mps_process_order){
                                          .launcher = &stage->launcher,
                                          .program = stage->program,
                                          .base = stage->directory,
                                          .target = {&site, &stage->device, stage->socket},
                                          .mark = 4711,
                                      }),
                     0);
    mps_site_finish(&site);
    assert_true(mps_process_is_running(process));
    assert_true(process->end.descriptor >= 0 && process->line.descriptor >= 0);
}

static void wait_for(int descriptor)
{
    struct pollfd ready = {.fd = descriptor, .events = POLLIN};

    assert_int_equal(poll(&ready, 1, 30000), 1);
}

static void a_process_from_start_to_end(void **state)
{
    struct mps_stage *stage = *state;
    struct mps_process process;
    struct text words = {0};

    make(stage, &process, "echo enough; exit 3");
    mps_process_let_go(&process);
    wait_for(process.line.descriptor);
    assert_true(mps_process_has_begun(&process));
    assert_int_equal(process.line.descriptor, -1);
    wait_for(process.end.descriptor);
    assert_false(mps_process_is_running(&process));
    mps_process_ended(&process, &words);
    assert_string_equal(text_string(&words), "exit code 3: enough");
    assert_int_equal(process.end.descriptor, -1);
    mps_process_forget(&process);
    assert_int_equal(process.child.pid, 0);
    text_finish(&words);
}

static bool has_line(const struct text *content, const char *line)
{
    const char *found = strstr(text_string(content), line);

    return found != NULL && (found == content->bytes || found[-1] == '\n') &&
           found[strlen(line)] == '\n';
}

static void its_environment_has_its_mark(void **state)
{
    static const char *const wanted[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                                         "CUDA_VISIBLE_DEVICES=GPU-0", "BERTH_MPS=nvidia0",
                                         "BERTH_LEASE=4711"};
    struct mps_stage *stage = *state;
    struct mps_process process;
    struct text content = {0};

    make(stage, &process, "exit 0");
    mps_process_let_go(&process);
    wait_for(process.end.descriptor);
    mps_script_read("environment", &content);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        assert_true(has_line(&content, wanted[i]));
    assert_null(strstr(text_string(&content), "BERTH_SOURCE_ROOT="));
    text_finish(&content);
    mps_process_forget(&process);
}

static void it_is_undone(void **state)
{
    struct mps_stage *stage = *state;
    struct mps_process process;
    pid_t pid;

    make(stage, &process, MPS_SCRIPT_SERVES);
    pid = process.child.pid;
    mps_process_undo(&process);
    assert_false(mps_process_is_running(&process));
    assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
    assert_int_equal(mps_script_count("started", NULL), 0);
}

/* ---- Of an earlier daemon ---- */

struct confirmation {
    uint64_t written; /* start in the journal; 0: none */
    uint64_t found;   /* now; 0: no process has the pid */
    bool is_same;
};

static void its_start_tells_whether_it_is_the_same(void **state)
{
    static const struct confirmation rows[] = {
        {7, 7, true}, {7, 8, false}, {0, 8, true}, {7, 0, false}, {0, 0, false},
    };
    struct mps_stage *stage = *state;
    struct mps_process process;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pid_t pid = waiting_child_start();

        init(&process, &stage->loop);
        process.child.pid = pid;
        process.started = rows[i].written;
        assert_true(mps_process_take_over(&process));
        /* That is unknown yet. */
        assert_false(mps_process_is_running(&process));
        assert_int_equal(mps_process_confirm(&process, rows[i].found), rows[i].is_same);
        assert_int_equal(mps_process_is_running(&process), rows[i].is_same);
        if (rows[i].is_same)
            assert_int_equal(process.started, rows[i].found);
        else
            assert_int_equal(process.end.descriptor, -1);
        mps_process_forget(&process);
        waiting_child_end(pid);
    }
}

static void one_that_has_ended_is_not_taken_over(void **state)
{
    struct mps_stage *stage = *state;
    struct mps_process process;
    pid_t pid = waiting_child_start();

    waiting_child_end(pid);
    init(&process, &stage->loop);
    process.child.pid = pid;
    assert_false(mps_process_take_over(&process));
    assert_false(mps_process_is_running(&process));
    mps_process_forget(&process);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, mps_stage_begin, mps_stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_process_from_start_to_end),
        TEST(its_environment_has_its_mark),
        TEST(it_is_undone),
        TEST(its_start_tells_whether_it_is_the_same),
        TEST(one_that_has_ended_is_not_taken_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
