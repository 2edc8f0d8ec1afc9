/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment of the control program, and commands that it sends as a client.
 */
#include "support/unit.h"

#include "daemon/mps/mps_query.h"

#include "daemon/core/child_environment.h"
#include "support/daemons/mps_stage.h"

static const struct mps_site site = {.pipe = (char *)"/p", .log = (char *)"/l"};

static void check_environment(const struct device *device, const char *expected)
{
    const struct mps_target target = {.site = &site, .device = device, .socket = "/s"};
    struct child_environment variables = {0};
    struct text lines = {0};
    char *const *variable;

    mps_query_fill_environment(&target, &variables);
    assert_false(variables.failed);
    vector_for_each (variable, &variables.list)
        text_append_format(&lines, "%s\n", *variable);
    assert_string_equal(text_string(&lines), expected);
    text_finish(&lines);
    string_list_finish(&variables.list);
}

#define ALWAYS                       \
    "CUDA_DEVICE_ORDER=PCI_BUS_ID\n" \
    "CUDA_MPS_PIPE_DIRECTORY=/p\n"   \
    "CUDA_MPS_LOG_DIRECTORY=/l\n"    \
    "BERTH_SOCKET=/s\n"

static void the_environment_names_the_device(void **state)
{
    const struct device whole = {.id = {.vendor = VENDOR_NVIDIA, .index = 3, .mig = DEVICE_NO_MIG},
                                 .uuid = (char *)"GPU-3"};
    const struct device nameless = {
        .id = {.vendor = VENDOR_NVIDIA, .index = 3, .mig = DEVICE_NO_MIG}};

    (void)state;
    check_environment(&whole, "CUDA_VISIBLE_DEVICES=GPU-3\n" ALWAYS "BERTH_MPS=nvidia3\n");
    check_environment(&nameless, "CUDA_VISIBLE_DEVICES=3\n" ALWAYS "BERTH_MPS=nvidia3\n");
    /* A device that the pool does not have any more. */
    check_environment(NULL, ALWAYS);
}

/* ---- Commands ---- */

struct answer {
    bool is_there;
    bool is_good;
};

static struct answer answer;

static void take_answer(void *context, const struct runner_end *end)
{
    (void)context;
    answer = (struct answer){.is_there = true, .is_good = runner_succeeded(end)};
}

static bool has_answer(const struct mps_stage *stage)
{
    (void)stage;
    return answer.is_there;
}

static void send_command(struct mps_stage *stage, const char *command)
{
    struct mps_site place = mps_stage_site(stage, "site");
    const struct device device = {.id = {.vendor = VENDOR_NVIDIA, .mig = DEVICE_NO_MIG},
                                  .uuid = (char *)"GPU-0"};

    close(open("site/control", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    answer = (struct answer){0};
    assert_non_null(mps_query_start(stage->runner, &(struct mps_query){
                                                       .launcher = &stage->launcher,
                                                       .program = stage->program,
                                                       .target = {&place, &device, stage->socket},
                                                       .words = command,
                                                       .deadline = DURATION_SECOND,
                                                       .answered = take_answer,
                                                   }));
    mps_site_finish(&place);
}

static void a_command_is_the_programs_input(void **state)
{
    struct mps_stage *stage = *state;
    struct text content = {0};

    mps_script_write("client", "env >$directory/client_environment");
    send_command(stage, "quit -t 2\n");
    mps_stage_run(stage, has_answer);
    assert_true(answer.is_good);
    mps_script_read("commands", &content);
    assert_string_equal(text_string(&content), "quit -t 2\n");
    text_clear(&content);
    mps_script_read("client_environment", &content);
    assert_non_null(strstr(text_string(&content), "CUDA_VISIBLE_DEVICES=GPU-0\n"));
    assert_non_null(strstr(text_string(&content), "BERTH_MPS=nvidia0\n"));
    /* Only the control daemon has the mark by which it is found. */
    assert_null(strstr(text_string(&content), "BERTH_LEASE="));
    text_finish(&content);
}

static void refusals_and_silence_are_no_good_answers(void **state)
{
    struct mps_stage *stage = *state;

    mps_script_write("client", "exit 1");
    send_command(stage, "get_server_list\n");
    mps_stage_run(stage, has_answer);
    assert_false(answer.is_good);
    mps_script_write("client", MPS_SCRIPT_SERVES);
    send_command(stage, "get_server_list\n");
    mps_stage_skip(DURATION_SECOND);
    mps_stage_run(stage, has_answer);
    assert_false(answer.is_good);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, mps_stage_begin, mps_stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_names_the_device),
        TEST(a_command_is_the_programs_input),
        TEST(refusals_and_silence_are_no_good_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
