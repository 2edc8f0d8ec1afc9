/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/core/become_user.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A uid that no user database knows, and its group. */
enum { NOBODYS_UID = 3999999, NOBODYS_GID = 3999998 };

/* Exit codes of the child. */
enum { FINE, FAILED, WRONG_USER, HAS_CAPABILITIES, HAS_A_WAY_BACK, HAS_GROUPS };

static int judge_child(const struct user_identity *persona)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    const char *home;

    if (become_user_apply(persona, &home) != 0)
        return FAILED;
    if (getuid() != persona->uid || geteuid() != persona->uid)
        return WRONG_USER;
    if (persona->uid != 0 && (syscall(SYS_capget, &header, data) < 0 || data[0].permitted != 0 ||
                              data[0].effective != 0))
        return HAS_CAPABILITIES;
    if (persona->uid != 0 && (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || setuid(0) == 0))
        return HAS_A_WAY_BACK;
    return persona->uid == NOBODYS_UID && (getgid() != NOBODYS_GID || getgroups(0, NULL) != 0)
               ? HAS_GROUPS
               : FINE;
}

/* Runs in a child, because nothing can be taken back. */
static int judge(const struct user_identity *persona)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(judge_child(persona));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void the_own_user_keeps_its_uid(void **state)
{
    const struct user_identity persona = {.uid = geteuid(), .gid = getegid()};

    (void)state;
    assert_false(become_user_is_other(&persona));
    assert_int_equal(judge(&persona), FINE);
}

static void root_becomes_a_user_without_a_way_back(void **state)
{
    const struct user_identity persona = {.uid = NOBODYS_UID, .gid = NOBODYS_GID};

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_true(become_user_is_other(&persona));
    assert_int_equal(judge(&persona), FINE);
}

static void a_user_without_any_group_is_refused(void **state)
{
    const struct user_identity persona = {.uid = NOBODYS_UID, .gid = USER_IDENTITY_NO_GROUP};
    const char *home;

    (void)state;
    assert_true(become_user_is_other(&persona));
    assert_int_equal(become_user_apply(&persona, &home), ESRCH);
}

/* The kernel takes it for "no change". */
static void the_number_of_no_user_is_refused(void **state)
{
    const struct user_identity persona = {.uid = UINT32_MAX, .gid = NOBODYS_GID};

    (void)state;
    assert_int_equal(judge(&persona), FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_own_user_keeps_its_uid),
        cmocka_unit_test(root_becomes_a_user_without_a_way_back),
        cmocka_unit_test(a_user_without_any_group_is_refused),
        cmocka_unit_test(the_number_of_no_user_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
