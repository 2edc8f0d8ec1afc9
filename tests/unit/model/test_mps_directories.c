/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "model/mps_directories.h"

static struct request asking(const char *pipe, const char *log, uint32_t max, uint32_t replicas)
{
    struct request request;

    request_init(&request);
    request.sharing = SHARING_MPS;
    request.gpus.max = max;
    request.replicas = replicas;
    request.mps_pipe_dir = pipe == NULL ? NULL : strdup(pipe);
    request.mps_log_dir = log == NULL ? NULL : strdup(log);
    return request;
}

static void check_directories(struct request request, const char *pipe, const char *log)
{
    struct mps_directory_source place = {.root = "/run/berth/mps/7", .request = &request};
    struct text found_pipe = {0};
    struct text found_log = {0};

    mps_directories(&place, (struct device_id){VENDOR_NVIDIA, 3, DEVICE_NO_MIG}, &found_pipe,
                    &found_log);
    assert_string_equal(text_string(&found_pipe), pipe);
    assert_string_equal(text_string(&found_log), log);
    text_finish(&found_pipe);
    text_finish(&found_log);
    request_finish(&request);
}

static void directories_are_the_pools_or_those_named(void **state)
{
    (void)state;
    check_directories(asking(NULL, NULL, 1, 1), "/run/berth/mps/7/nvidia3/pipe",
                      "/run/berth/mps/7/nvidia3/log");
    check_directories(asking("/p", "/l", 1, 1), "/p", "/l");
    check_directories(asking("/p", NULL, 1, 1), "/p", "/run/berth/mps/7/nvidia3/log");
    check_directories(asking("/p", "/l", 2, 1), "/p/nvidia3", "/l/nvidia3");
    check_directories(asking(NULL, "/l", 1, 2), "/run/berth/mps/7/nvidia3/pipe", "/l/nvidia3");
}

static void a_request_that_may_get_more_is_not_for_a_single_device(void **state)
{
    struct request one = asking(NULL, NULL, 1, 1);
    struct request elastic = asking(NULL, NULL, 2, 1);
    struct request replicas = asking(NULL, NULL, 1, 2);
    struct request all = asking(NULL, NULL, 1, 1);

    (void)state;
    all.gpus.all = true;
    assert_true(mps_directories_single_device(&one));
    assert_false(mps_directories_single_device(&elastic));
    assert_false(mps_directories_single_device(&replicas));
    assert_false(mps_directories_single_device(&all));
}

static void check_together(struct request one, struct request other, bool expected)
{
    assert_int_equal(mps_directories_are_same(&one, &other), expected);
    assert_int_equal(mps_directories_are_same(&other, &one), expected);
    request_finish(&one);
    request_finish(&other);
}

static void only_the_same_directories_go_together(void **state)
{
    (void)state;
    check_together(asking(NULL, NULL, 1, 1), asking(NULL, NULL, 2, 3), true);
    check_together(asking("/p", "/l", 1, 1), asking("/p", "/l", 1, 1), true);
    check_together(asking("/p", "/l", 2, 1), asking("/p", "/l", 1, 2), true);
    check_together(asking("/p", "/l", 1, 1), asking("/p", "/l", 2, 1), false);
    check_together(asking("/p", NULL, 1, 1), asking("/p", NULL, 2, 1), false);
    check_together(asking("/p", "/l", 1, 1), asking("/p", "/m", 1, 1), false);
    check_together(asking("/p", "/l", 1, 1), asking("/q", "/l", 1, 1), false);
    check_together(asking("/p", "/l", 1, 1), asking("/p", NULL, 1, 1), false);
    check_together(asking(NULL, NULL, 1, 1), asking("/p", NULL, 1, 1), false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directories_are_the_pools_or_those_named),
        cmocka_unit_test(a_request_that_may_get_more_is_not_for_a_single_device),
        cmocka_unit_test(only_the_same_directories_go_together),
    };

    return cmocka_run_group_tests_name("model_mps", tests, NULL, NULL);
}
