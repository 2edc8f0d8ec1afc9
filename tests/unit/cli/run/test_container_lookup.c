/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "cli/run/container_lookup.h"

#include "base/count.h"

#define ONE   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "0123fedcba9876543210fedcba9876543210fedcba9876543210fedcba987654"

#define NONE(wanted) \
    "no running container has the id " wanted " ('podman ps' and 'docker ps' list ids)"

static struct container_process processes[] = {
    {.pid = 12, .parent = 11, .started = 12, .container = (char *)ONE},
    {.pid = 11, .parent = 10, .started = 11, .container = (char *)ONE}, /* its parent is the shim */
    {.pid = 15,
     .parent = 14,
     .started = 15,
     .container = (char *)ONE}, /* joined the container later */
    {.pid = 21, .parent = 1, .started = 21, .container = (char *)OTHER},
    {.pid = 22, .parent = 1, .started = 21, .container = (char *)OTHER},
    {.pid = 31,
     .parent = 12,
     .started = 31,
     .container = (char *)"web"}, /* inside another container */
    {.pid = 41, .parent = 1, .started = 41, .container = (char *)"0123"},
    {.pid = 51, .parent = 51, .started = 51, .container = (char *)"loop"},
};

static const struct container_process_list list = {.items = processes, .count = COUNT(processes)};

static void the_first_process_is_found(void **state)
{
    static const struct {
        const char *wanted;
        pid_t pid;
    } cases[] = {
        {ONE, 11},     {"01234", 11}, {"0123456789ab", 11}, {OTHER, 21},
        {"0123f", 21}, {"web", 31},   {"0123", 41}, /* an exact name wins */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        pid_t pid = 0;

        assert_int_equal(container_lookup_choose(&list, cases[i].wanted, &pid, NULL), 0);
        assert_int_equal(pid, cases[i].pid);
    }
}

static void what_is_not_there_or_not_clear_is_refused(void **state)
{
    static const struct {
        const char *wanted;
        const char *message;
    } cases[] = {
        {"we", NONE("'we'")},
        {"", NONE("''")},
        {"0123456789abd", NONE("'0123456789abd'")},
        {"loop", "cannot find the first process of container loop"},
    };
    const struct container_process_list without_name = {.items = processes, .count = 5};
    struct berth_error error = BERTH_ERROR_INIT;
    pid_t pid = 7;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(container_lookup_choose(&list, cases[i].wanted, &pid, &error),
                         BERTH_ERROR_NOT_FOUND);
        assert_string_equal(error.message, cases[i].message);
    }
    assert_int_equal(container_lookup_choose(&without_name, "0123", &pid, &error),
                     BERTH_ERROR_NOT_FOUND);
    assert_string_equal(error.message, "several containers have ids that begin with "
                                       "'0123': 0123456789ab, 0123fedcba98");
    assert_int_equal(container_lookup_choose(&without_name, "012", &pid, &error),
                     BERTH_ERROR_NOT_FOUND);
    assert_int_equal(pid, 7);
}

static void this_machine_is_looked_through(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    pid_t pid;

    (void)state;
    assert_int_equal(container_lookup_first_process("no such machine", &pid, &error),
                     BERTH_ERROR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_process_is_found),
        cmocka_unit_test(what_is_not_there_or_not_clear_is_refused),
        cmocka_unit_test(this_machine_is_looked_through),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
