/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/mps/mps_rules.h"

#include <errno.h>
#include <pwd.h>

#include "daemon/core/become_user.h"

enum { UNKNOWN_USER = 54321 };

static char *const no_variables[] = {NULL};

static const struct mps_rules rules = {.base = "/run/berth/mps"};
static const struct mps_rules named = {.program = "/opt/mps", .base = "/run/berth/mps"};

static struct mps_rules_order order_of(const char *program, char *const *environment)
{
    return (struct mps_rules_order){
        .program = program,
        .base = "/run/berth/mps",
        .uid = 1000,
        .gid = 1000,
        .environment = environment,
    };
}

static void the_control_program_is_allowed(void **state)
{
    static char *const variables[] = {
        (char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        (char *)"CUDA_MPS_PIPE_DIRECTORY=/run/berth/mps/1000/nvidia0/pipe",
        (char *)"BERTH_LEASE=17",
        NULL,
    };
    struct mps_rules_order order = order_of("/usr/bin/nvidia-cuda-mps-control", variables);

    (void)state;
    assert_int_equal(mps_rules_check(&rules, &order), 0);
    order.base = NULL;
    assert_int_equal(mps_rules_check(&rules, &order), 0);
    order.program = "/opt/mps";
    assert_int_equal(mps_rules_check(&named, &order), 0);
}

static void other_programs_are_not(void **state)
{
    struct mps_rules_order order = order_of("/bin/sh", no_variables);

    (void)state;
    assert_int_equal(mps_rules_check(&rules, &order), EPERM);
    assert_int_equal(mps_rules_check(&named, &order), EPERM);
    /* The configured program replaces the usual ones. */
    order.program = "/usr/bin/nvidia-cuda-mps-control";
    assert_int_equal(mps_rules_check(&named, &order), EPERM);
    order.program = "/tmp/nvidia-cuda-mps-control";
    assert_int_equal(mps_rules_check(&rules, &order), EPERM);
    /* A daemon without a launcher has no rules. */
    assert_int_equal(mps_rules_check(NULL, &order), 0);
}

static void root_is_not_allowed(void **state)
{
    struct mps_rules_order order = order_of("/usr/bin/nvidia-cuda-mps-control", no_variables);

    (void)state;
    order.uid = 0;
    assert_int_equal(mps_rules_check(&rules, &order), EPERM);
    order = order_of("/usr/bin/nvidia-cuda-mps-control", no_variables);
    order.gid = 0;
    assert_int_equal(mps_rules_check(&rules, &order), EPERM);
}

/* The kernel takes these numbers for "no change". */
static void no_user_is_not_allowed(void **state)
{
    struct mps_rules_order order = order_of("/usr/bin/nvidia-cuda-mps-control", no_variables);

    (void)state;
    order.uid = UINT32_MAX;
    assert_int_equal(mps_rules_check(&rules, &order), EPERM);
    order = order_of("/usr/bin/nvidia-cuda-mps-control", no_variables);
    order.uid = UNKNOWN_USER;
    order.gid = UINT32_MAX;
    assert_int_equal(mps_rules_check(&rules, &order), EPERM);
}

static void users_of_the_database_get_its_groups(void **state)
{
    struct mps_rules_order order = order_of("/usr/bin/nvidia-cuda-mps-control", no_variables);
    const struct passwd *known = getpwnam("nobody");

    (void)state;
    if (known == NULL) {
        print_message("skip: needs the user nobody\n");
        skip();
    }
    order.uid = known->pw_uid;
    order.gid = 42;
    assert_int_equal(mps_rules_check(&rules, &order), 0);
    order.gid = USER_IDENTITY_NO_GROUP;
    assert_int_equal(mps_rules_check(&rules, &order), 0);
}

/* shadow, disk, docker. */
static void unknown_users_are_not_in_system_groups(void **state)
{
    static const struct {
        uint32_t gid;
        int wanted;
    } cases[] = {{1, EPERM},   {42, EPERM}, {99, EPERM}, {100, 0},   {101, EPERM},
                 {999, EPERM}, {1000, 0},   {65534, 0},  {231072, 0}};
    struct mps_rules_order order = order_of("/usr/bin/nvidia-cuda-mps-control", no_variables);

    (void)state;
    order.uid = UNKNOWN_USER;
    assert_null(getpwuid(UNKNOWN_USER));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        order.gid = cases[i].gid;
        assert_int_equal(mps_rules_check(&rules, &order), cases[i].wanted);
    }
}

static void arguments_are_not_allowed(void **state)
{
    char *const none[] = {NULL};
    char *const some[] = {(char *)"-d", NULL};
    struct mps_rules_order order = order_of("/usr/bin/nvidia-cuda-mps-control", no_variables);

    (void)state;
    order.arguments = none;
    assert_int_equal(mps_rules_check(&rules, &order), 0);
    order.arguments = some;
    assert_int_equal(mps_rules_check(&rules, &order), EPERM);
}

static void other_directories_are_not_allowed(void **state)
{
    struct mps_rules_order order = order_of("/usr/bin/nvidia-cuda-mps-control", no_variables);

    (void)state;
    order.base = "/etc";
    assert_int_equal(mps_rules_check(&rules, &order), EPERM);
}

static void variables_of_the_loader_are_not_allowed(void **state)
{
    static const char *const variables[] = {
        "LD_PRELOAD=/tmp/evil.so",
        "LD_LIBRARY_PATH=/tmp",
        "PATH=/tmp",
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin:/tmp",
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin ",
        "CUDA_MPS=1",
        "GCONV_PATH=/tmp",
        "",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        char *const environment[] = {(char *)variables[i], NULL};
        struct mps_rules_order order = order_of("/usr/bin/nvidia-cuda-mps-control", environment);

        assert_int_equal(mps_rules_check(&rules, &order), EPERM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_control_program_is_allowed),
        cmocka_unit_test(other_programs_are_not),
        cmocka_unit_test(root_is_not_allowed),
        cmocka_unit_test(no_user_is_not_allowed),
        cmocka_unit_test(users_of_the_database_get_its_groups),
        cmocka_unit_test(unknown_users_are_not_in_system_groups),
        cmocka_unit_test(arguments_are_not_allowed),
        cmocka_unit_test(other_directories_are_not_allowed),
        cmocka_unit_test(variables_of_the_loader_are_not_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
