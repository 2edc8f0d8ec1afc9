/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/mps/mps_site.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "model/mps_directories.h"
#include "model/request.h"

enum { ALICE = 1001, BOB = 1002, GROUP = 100 };

static const struct device_id nvidia1 = {.vendor = VENDOR_NVIDIA, .index = 1, .mig = DEVICE_NO_MIG};

static struct request request_of(uint32_t devices, const char *pipe, const char *log)
{
    return (struct request){
        .gpus = {.min = devices, .max = devices},
        .replicas = 1,
        .sharing = SHARING_MPS,
        .mps_pipe_dir = (char *)pipe,
        .mps_log_dir = (char *)log,
    };
}

static struct mps_site make_site(uint32_t uid, const struct request *request)
{
    struct mps_site site;

    assert_int_equal(mps_site_make(
                         &(struct mps_site_source){
                             .base = "/run/berth/mps",
                             .user = {.uid = uid, .gid = GROUP},
                             .request = request,
                             .device = nvidia1,
                         },
                         &site, NULL),
                     0);
    assert_int_equal(site.persona.uid, uid);
    assert_int_equal(site.persona.gid, GROUP);
    return site;
}

static void check_site(const struct request *request, const char *pipe, const char *log)
{
    struct mps_site site = make_site(ALICE, request);

    assert_string_equal(site.pipe, pipe);
    assert_string_equal(site.log, log);
    mps_site_finish(&site);
    assert_null(site.pipe);
}

static void directories_are_the_users_or_the_requests(void **state)
{
    struct request request = request_of(1, NULL, NULL);

    (void)state;
    check_site(&request, "/run/berth/mps/1001/nvidia1/pipe", "/run/berth/mps/1001/nvidia1/log");
    request = request_of(1, "/p", NULL);
    check_site(&request, "/p", "/run/berth/mps/1001/nvidia1/log");
    request = request_of(2, "/p", "/l");
    check_site(&request, "/p/nvidia1", "/l/nvidia1");
}

/* Parents of directories that a request names are not created. */
static void given_directories_are_noted(void **state)
{
    struct request request = request_of(1, "/p", NULL);
    struct mps_site site = make_site(ALICE, &request);

    (void)state;
    assert_true(site.is_pipe_given);
    assert_false(site.is_log_given);
    mps_site_finish(&site);
    request = request_of(2, "/p", "/l");
    site = make_site(ALICE, &request);
    assert_false(site.is_pipe_given);
    assert_false(site.is_log_given);
    mps_site_finish(&site);
}

static void paths_of_sockets_have_a_maximum(void **state)
{
    char path[MPS_DIRECTORY_MAX + 2] = "/";
    struct request request = request_of(1, path, NULL);
    const struct mps_site_source source = {
        .base = "/b", .user = {.uid = ALICE}, .request = &request, .device = nvidia1};
    struct berth_error error = BERTH_ERROR_INIT;
    struct mps_site site;

    (void)state;
    memset(path + 1, 'x', MPS_DIRECTORY_MAX - 1);
    assert_int_equal(mps_site_make(&source, &site, &error), 0);
    mps_site_finish(&site);
    memset(path + 1, 'x', MPS_DIRECTORY_MAX);
    assert_int_equal(mps_site_make(&source, &site, &error), BERTH_ERROR_RANGE);
    assert_non_null(strstr(error.message, ": expected at most 88 bytes, got 89"));
}

static void one_control_daemon_serves_one_user_in_one_place(void **state)
{
    const struct request plain = request_of(1, NULL, NULL);
    const struct request named = request_of(1, "/p", NULL);
    const struct request logged = request_of(1, NULL, "/l");
    struct mps_site site = make_site(ALICE, &plain);
    struct mps_site others[] = {make_site(ALICE, &plain), make_site(BOB, &plain),
                                make_site(ALICE, &named), make_site(ALICE, &logged)};

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_int_equal(mps_site_is_same(&site, &others[i]), i == 0);
        mps_site_finish(&others[i]);
    }
    /* A group matters only for a user that the user database lacks. */
    others[0] = make_site(ALICE, &plain);
    others[0].persona.gid = GROUP + 1;
    assert_true(mps_site_is_same(&site, &others[0]));
    mps_site_finish(&others[0]);
    mps_site_finish(&site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directories_are_the_users_or_the_requests),
        cmocka_unit_test(given_directories_are_noted),
        cmocka_unit_test(paths_of_sockets_have_a_maximum),
        cmocka_unit_test(one_control_daemon_serves_one_user_in_one_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
