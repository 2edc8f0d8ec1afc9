/* SPDX-License-Identifier: Apache-2.0
 *
 * A child changes its priority, and tells the result by its exit code.
 */
#include "support/unit.h"

#include "daemon/core/priority.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OFFSET = 20 }; /* exit codes are not negative */

static int run_in_child(int nice, void (*change)(void))
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        if (setpriority(PRIO_PROCESS, 0, nice) < 0)
            _exit(99);
        change();
        _exit(getpriority(PRIO_PROCESS, 0) + OFFSET);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) - OFFSET;
}

static void it_is_raised_where_that_is_allowed(void **state)
{
    (void)state;
    if (run_in_child(-1, priority_reset) != 0) {
        print_message("skip: this process may not raise its priority\n");
        skip();
    }
    assert_int_equal(run_in_child(0, priority_raise), PRIORITY_NICE);
    assert_int_equal(run_in_child(-10, priority_raise), -10);
}

static void without_the_right_it_stays(void **state)
{
    int nice = getpriority(PRIO_PROCESS, 0);

    (void)state;
    if (geteuid() == 0) {
        print_message("skip: root has the right\n");
        skip();
    }
    assert_int_equal(run_in_child(nice, priority_raise), nice);
}

/* A lower priority than the normal one is the user's wish. */
static void a_low_one_is_not_reset(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(15, priority_reset), 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_raised_where_that_is_allowed),
        cmocka_unit_test(without_the_right_it_stays),
        cmocka_unit_test(a_low_one_is_not_reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
