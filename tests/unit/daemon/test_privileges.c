/* SPDX-License-Identifier: Apache-2.0
 *
 * What cannot be undone runs in a child, which reports by its exit code.
 */
#include "support/unit.h"

#include "daemon/privileges.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "daemon/leases/pool.h"
#include "support/daemons/pool_stage.h"

enum { SERVICE_USER = 64980 };

#define BIT(capability) (UINT32_C(1) << (capability))
#define READING         (BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH))
#define USERS           (BIT(CAP_SETUID) | BIT(CAP_SETGID))

static const struct privileges_user service = {"service", SERVICE_USER, SERVICE_USER};

static void skip_unless_root(void)
{
    if (geteuid() != 0) {
        print_message("skip: needs root for capabilities\n");
        skip();
    }
}

/* Returns the exit code of `work` in a child. */
static int run_in_child(int (*work)(void))
{
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(work());
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

struct sets {
    uint32_t effective;
    uint32_t permitted;
    uint32_t inheritable;
};

static struct sets read_sets(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    syscall(SYS_capget, &header, data);
    return (struct sets){data[0].effective, data[0].permitted, data[0].inheritable};
}

/* Returns the first word of the set that this call of prctl() reads. */
static uint32_t read_bits(int call, unsigned long argument, bool is_argument_first)
{
    uint32_t bits = 0;

    for (unsigned long i = 0; i < 32; i++) {
        if ((is_argument_first ? prctl(call, argument, i, 0UL, 0UL)
                               : prctl(call, i, 0UL, 0UL, 0UL)) == 1)
            bits |= BIT(i);
    }
    return bits;
}

/* ---- Finding the user ---- */

static void assert_not_found(const char *name, const char *text)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct privileges_user user;

    assert_int_equal(privileges_find_user(name, &user, &error), BERTH_ERROR_INVALID);
    if (strstr(error.message, text) == NULL)
        fail_msg("expected a message with '%s', got: %s", text, error.message);
}

static void only_root_names_a_user(void **state)
{
    (void)state;
    if (geteuid() == 0) {
        print_message("skip: root may name a user\n");
        skip();
    }
    assert_not_found("root", "--user: expected to be started by root, got ");
}

static void users_are_found_by_name(void **state)
{
    const struct passwd *found;
    struct privileges_user user;

    (void)state;
    skip_unless_root();
    assert_not_found("no-such-user", "--user: expected a user of this machine, got");
    assert_not_found("root", "--user: expected another user than root, got");
    assert_int_equal(privileges_find_user("nobody", &user, NULL), 0);
    found = getpwnam("nobody");
    assert_non_null(found);
    assert_int_equal(user.uid, found->pw_uid);
    assert_int_equal(user.gid, found->pw_gid);
}

/* ---- Becoming the user ---- */

/* Every way back to root's rights is closed. */
static int become(void)
{
    uint32_t had = read_sets().permitted & (BIT(CAP_KILL) | READING | USERS);
    struct sets sets;

    if (privileges_become(&service, NULL) < 0)
        return 1;
    sets = read_sets();
    if (getuid() != SERVICE_USER || geteuid() != SERVICE_USER || getegid() != SERVICE_USER)
        return 2;
    if (sets.permitted != had || sets.effective != had || sets.inheritable != 0)
        return 3;
    if (read_bits(PR_CAPBSET_READ, 0, false) != had ||
        read_bits(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, true) != 0)
        return 4;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0UL, 0UL, 0UL, 0UL) != 1 || prctl(PR_GET_DUMPABLE) != 0)
        return 5;
    return getgroups(0, NULL) > 1 ? 6 : 0; /* root's groups are gone */
}

static void the_user_keeps_few_rights(void **state)
{
    (void)state;
    skip_unless_root();
    assert_int_equal(run_in_child(become), 0);
}

static void others_cannot_become_a_user(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    if (geteuid() == 0) {
        print_message("skip: root can become a user\n");
        skip();
    }
    assert_int_equal(privileges_become(&service, &error), BERTH_ERROR_PERMISSION);
    assert_non_null(strstr(error.message, "cannot become --user"));
}

/* ---- The launcher ---- */

static struct pool_stage *stage;

/* Returns 0 if the launcher has these rights, those of readers only to pass them on. */
static int check_launcher(pid_t launcher, uint32_t expected)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, launcher};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capget, &header, data) < 0 || data[0].permitted != expected)
        return 6;
    if (data[0].inheritable != (expected & READING))
        return 7;
    return data[0].effective != (expected & ~READING) ? 8 : 0;
}

/* Returns 0 if the daemon has CAP_KILL alone, and its launcher exists. */
static int start_launcher(bool mps, uint32_t expected)
{
    struct pool *pool = &stage->pool;
    int code;

    if (privileges_become(&service, NULL) < 0)
        return 1;
    expected &= read_sets().permitted;
    if (privileges_start_launcher(pool, mps, NULL) < 0)
        return 2;
    if ((read_sets().permitted & ~BIT(CAP_KILL)) != 0 || read_sets().inheritable != 0)
        return 3;
    if (pool->privileges.launcher != expected || (pool->launcher.socket < 0) != (expected == 0))
        return 4;
    if (privileges_may_become_others(pool) != ((expected & USERS) == USERS))
        return 5;
    code = expected == 0 ? 0 : check_launcher(pool->launcher.pid, expected);
    privileges_stop_launcher(pool);
    return code;
}

static int start_without_mps(void)
{
    return start_launcher(false, READING);
}

static int start_with_mps(void)
{
    return start_launcher(true, READING | USERS);
}

static void the_launcher_has_the_rights_of_helpers(void **state)
{
    stage = *state;
    skip_unless_root();
    assert_int_equal(run_in_child(start_without_mps), 0);
    assert_int_equal(run_in_child(start_with_mps), 0);
}

static void a_daemon_of_root_has_no_launcher(void **state)
{
    stage = *state;
    skip_unless_root();
    assert_int_equal(privileges_start_launcher(&stage->pool, true, NULL), 0);
    assert_int_equal(stage->pool.launcher.socket, -1);
    assert_true(privileges_may_become_others(&stage->pool));
}

static void an_ordinary_user_needs_no_launcher(void **state)
{
    stage = *state;
    if (geteuid() == 0) {
        print_message("skip: root has rights\n");
        skip();
    }
    assert_int_equal(privileges_start_launcher(&stage->pool, true, NULL), 0);
    assert_int_equal(stage->pool.launcher.socket, -1);
    assert_int_equal(stage->pool.privileges.daemon, 0);
    assert_false(privileges_may_become_others(&stage->pool));
}

/* ---- The log ---- */

static void missing_rights_are_logged(void **state)
{
    struct pool *pool;

    stage = *state;
    pool = &stage->pool;
    pool->rules.mps = true;
    privileges_log(pool);
    assert_string_equal(
        pool_stage_log(stage),
        "rights uid=500 signals=own sees=own mps=own missing=\"cannot signal other users' "
        "processes: CAP_KILL; cannot identify other users' processes: CAP_SYS_PTRACE and "
        "CAP_DAC_READ_SEARCH; cannot run MPS for other users: CAP_SETUID and CAP_SETGID\"\n");
    pool->rules.mps = false;
    pool->privileges = (struct privileges){.daemon = BIT(CAP_KILL), .launcher = READING};
    privileges_log(pool);
    assert_string_equal(pool_stage_log(stage),
                        "rights uid=500 signals=everybody sees=everybody mps=own\n");
    pool->privileges = (struct privileges){0};
    pool->settings.own = true;
    privileges_log(pool);
    assert_string_equal(pool_stage_log(stage), "rights uid=500 signals=own sees=own mps=own\n");
}

static void assert_problem(size_t place, const char *message)
{
    const struct problem_list *problems = &stage->pool.problems;

    assert_true(place < problems->count);
    assert_string_equal(problems->items[place].backend, PROBLEM_OF_RIGHTS);
    assert_string_equal(problems->items[place].message, message);
}

static void missing_rights_are_problems(void **state)
{
    struct pool *pool;

    stage = *state;
    pool = &stage->pool;
    pool->rules.mps = true;
    machine_report_add_problem(&pool->problems, "journal", "damaged");
    privileges_note_problems(pool);
    assert_int_equal(pool->problems.count, 4);
    assert_problem(1, "the daemon cannot signal other users' processes (missing: CAP_KILL)");
    assert_problem(2, "the daemon cannot identify other users' processes (missing: CAP_SYS_PTRACE "
                      "and CAP_DAC_READ_SEARCH)");
    assert_problem(3, "the daemon cannot run MPS for other users (missing: CAP_SETUID and "
                      "CAP_SETGID)");
    pool->privileges = (struct privileges){.daemon = BIT(CAP_KILL), .launcher = READING};
    privileges_note_problems(pool);
    assert_int_equal(pool->problems.count, 2);
    pool->rules.mps = false;
    privileges_note_problems(pool);
    assert_int_equal(pool->problems.count, 1);
    pool->privileges = (struct privileges){0};
    pool->settings.own = true;
    privileges_note_problems(pool);
    assert_int_equal(pool->problems.count, 1);
}

#define STAGE_TEST(test) cmocka_unit_test_setup_teardown(test, pool_stage_begin, pool_stage_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_root_names_a_user),
        cmocka_unit_test(users_are_found_by_name),
        cmocka_unit_test(the_user_keeps_few_rights),
        cmocka_unit_test(others_cannot_become_a_user),
        STAGE_TEST(the_launcher_has_the_rights_of_helpers),
        STAGE_TEST(a_daemon_of_root_has_no_launcher),
        STAGE_TEST(an_ordinary_user_needs_no_launcher),
        STAGE_TEST(missing_rights_are_logged),
        STAGE_TEST(missing_rights_are_problems),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
