/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/system/namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOMEBODY = 71001 };

static bool write_file(const char *path, const char *text)
{
    int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    bool is_written = write(descriptor, text, strlen(text)) == (ssize_t)strlen(text);

    close(descriptor);
    return is_written;
}

/* Enters a new user namespace, where the user keeps the uid: a user without a uid there could not
 * create the next one. */
static bool go_deeper(void)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    char map[64];

    if (unshare(CLONE_NEWUSER) < 0)
        return false;
    snprintf(map, sizeof(map), "%u %u 1", (unsigned int)uid, (unsigned int)uid);
    if (!write_file("/proc/self/uid_map", map) || !write_file("/proc/self/setgroups", "deny"))
        return false;
    snprintf(map, sizeof(map), "%u %u 1", (unsigned int)gid, (unsigned int)gid);
    return write_file("/proc/self/gid_map", map);
}

/* Starts a child of this user in `depth` nested user namespaces, which waits to be killed. Returns
 * 0 when the kernel does not allow that here. */
static pid_t start_child(uid_t uid, int depth)
{
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        if (uid != geteuid() && (setgid(uid) < 0 || setuid(uid) < 0))
            _exit(1);
        prctl(PR_SET_DUMPABLE, 1); /* otherwise root owns its files in /proc */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < depth; i++) {
            if (!go_deeper())
                _exit(1);
        }
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1) {
        waitpid(pid, NULL, 0);
        pid = 0;
    }
    close(ready[0]);
    return pid;
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void assert_owner(uid_t uid, int depth)
{
    pid_t pid = start_child(uid, depth);
    uint32_t owner = 7;
    bool is_known;

    if (pid == 0) {
        print_message("skip: no user namespaces here\n");
        skip();
    }
    is_known = namespace_user_owner(pid, &owner);
    end_child(pid);
    assert_true(is_known);
    assert_int_equal(owner, uid);
}

static void a_user_namespace_belongs_to_its_creator(void **state)
{
    (void)state;
    assert_owner(geteuid(), 1);
}

static void the_outermost_of_nested_namespaces_counts(void **state)
{
    (void)state;
    assert_owner(geteuid(), 3);
}

static void another_users_namespace_belongs_to_that_user(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skip: only root can become another user\n");
        skip();
    }
    assert_owner(SOMEBODY, 1);
    assert_owner(SOMEBODY, 2);
}

static void our_own_namespace_has_no_owner_to_name(void **state)
{
    pid_t pid = start_child(geteuid(), 0);
    uint32_t owner = 7;

    (void)state;
    assert_true(pid > 0);
    assert_false(namespace_user_owner(pid, &owner));
    end_child(pid);
    assert_false(namespace_user_owner(pid, &owner));
    assert_false(namespace_user_owner(getpid(), &owner));
    assert_false(namespace_user_owner(0, &owner));
    assert_false(namespace_user_owner(-1, &owner));
    assert_int_equal(owner, 7);
}

/* A process within a namespace does not see the owners of the outer ones. */
static void an_outer_namespaces_owner_is_unknown(void **state)
{
    pid_t outside = getpid();
    pid_t child = fork();
    int status;

    (void)state;
    if (child == 0) {
        uint32_t owner;

        if (unshare(CLONE_NEWUSER) < 0)
            _exit(2);
        _exit(namespace_user_owner(outside, &owner) ? 1 : 0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2) {
        print_message("skip: no user namespaces here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Starts a child in its own pid namespace. The child and its parent wait to be killed. Returns the
 * child's pid outside, or 0 when that is not permitted. */
static pid_t start_with_pids(int user_namespace, pid_t *ret_parent)
{
    int ready[2];
    pid_t child = 0;
    pid_t parent;

    assert_int_equal(pipe(ready), 0);
    parent = fork();
    if (parent == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        child = unshare(user_namespace | CLONE_NEWPID) < 0 ? -1 : fork();
        if (child != 0 && (child < 0 || write(ready[1], &child, sizeof(child)) != sizeof(child)))
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    if (read(ready[0], &child, sizeof(child)) != sizeof(child))
        child = 0;
    close(ready[0]);
    *ret_parent = parent;
    return child;
}

static void a_pid_namespace_belongs_to_its_creator(void **state)
{
    const struct {
        int user_namespace;
        bool is_roots;
    } cases[] = {{0, true}, {CLONE_NEWUSER, false}};

    (void)state;
    assert_false(namespace_pid_is_other(getpid()));
    assert_false(namespace_pid_is_owned_by_root(getpid()));
    for (size_t i = 0; i < 2; i++) {
        bool is_other, is_roots;
        pid_t parent;
        pid_t pid = start_with_pids(cases[i].user_namespace, &parent);

        is_other = namespace_pid_is_other(pid);
        is_roots = namespace_pid_is_owned_by_root(pid);
        if (pid != 0)
            kill(pid, SIGKILL);
        end_child(parent);
        if (pid == 0) {
            print_message("skip: no pid namespaces here\n");
            skip();
        }
        assert_true(is_other);
        assert_int_equal(is_roots, cases[i].is_roots);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_namespace_belongs_to_its_creator),
        cmocka_unit_test(the_outermost_of_nested_namespaces_counts),
        cmocka_unit_test(another_users_namespace_belongs_to_that_user),
        cmocka_unit_test(our_own_namespace_has_no_owner_to_name),
        cmocka_unit_test(an_outer_namespaces_owner_is_unknown),
        cmocka_unit_test(a_pid_namespace_belongs_to_its_creator),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
