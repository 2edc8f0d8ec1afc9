/* SPDX-License-Identifier: Apache-2.0
 *
 * Real processes that have real device files open, in a mount namespace with an artificial
 * /dev/dri.
 */
#include "support/unit.h"

#include "hardware/proc/device_users.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define RENDER "/dev/dri/renderD128"

/* /dev/full: every user may open it, and it is harmless. */
#define FULL makedev(1, 7)
#define ZERO makedev(1, 5)

enum { WENT_WELL, CANNOT, WRONG };

static bool enter_namespace(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/dev", "tmpfs", 0, NULL) == 0 && mkdir("/dev/dri", 0755) == 0;
}

/* Starts a process in its own namespace that has a file with this name open: a device with this
 * number, or an ordinary file for 0. Returns its pid once the file is open, or -1. */
static pid_t start_with(dev_t number)
{
    int ready[2];
    char byte;
    pid_t pid;

    if (pipe(ready) < 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!enter_namespace() ||
            mknod(RENDER, (number == 0 ? S_IFREG : S_IFCHR) | 0666, number) < 0 ||
            open(RENDER, O_RDWR) < 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    if (pid > 0 && read(ready[0], &byte, 1) != 1)
        pid = -1;
    close(ready[0]);
    return pid;
}

static const struct device_process *find(const struct findings *findings, pid_t pid)
{
    struct device_finding *found;

    vector_for_each (found, &findings->found) {
        const struct device_process *process =
            device_process_find(&found->device->processes, (uint64_t)pid);

        if (process != NULL)
            return process;
    }
    return NULL;
}

static int scan(pid_t same, pid_t other, pid_t file)
{
    struct sysroot root = {.prefix = (char *)""};
    struct findings findings = {0};
    struct device_users *uses;
    int outcome = WRONG;

    if (device_users_create(&uses, NULL) == 0 &&
        device_users_scan(uses, &root, NULL, &findings, NULL) == 0 && findings.found.count == 1 &&
        find(&findings, getpid()) != NULL && !find(&findings, getpid())->memory.known &&
        find(&findings, same) != NULL && find(&findings, other) == NULL &&
        find(&findings, file) == NULL)
        outcome = WENT_WELL;
    findings_finish(&findings);
    device_users_destroy(uses);
    return outcome;
}

static int try_in_namespace(void)
{
    pid_t children[3] = {0};
    int outcome = CANNOT;

    if (!enter_namespace() || mknod(RENDER, S_IFCHR | 0666, FULL) < 0)
        return CANNOT;
    children[0] = start_with(FULL);
    children[1] = start_with(ZERO);
    children[2] = start_with(0);
    if (children[0] > 0 && children[1] > 0 && children[2] > 0 && open(RENDER, O_RDWR) >= 0)
        outcome = scan(children[0], children[1], children[2]);
    for (size_t i = 0; i < 3; i++) {
        if (children[i] > 0) {
            kill(children[i], SIGKILL);
            waitpid(children[i], NULL, 0);
        }
    }
    return outcome;
}

static void only_who_has_our_device_open_uses_it(void **state)
{
    int status;
    pid_t child;

    (void)state;
    if (geteuid() != 0) {
        print_message("skip: needs root for a mount namespace\n");
        skip();
    }
    fflush(NULL);
    child = fork();
    if (child == 0)
        exit(try_in_namespace());
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT) {
        print_message("skip: needs a mount namespace and device files, got none\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), WENT_WELL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_who_has_our_device_open_uses_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
