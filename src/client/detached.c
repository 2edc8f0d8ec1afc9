/* SPDX-License-Identifier: Apache-2.0 */
#include "client/detached.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"

enum {
    STACKS = 2,
    STACK_SIZE = 64 * 1024,
    STANDARD = 4,            /* descriptors that the program starts with */
    DESCRIPTORS_MOST = 65536 /* closed one by one where the kernel cannot close all at once */
};

/* Not inherited: what hides devices, what says that a process belongs to a lease, and what the
 * service manager says to one process only. */
static const char *const dropped[] = {
    "BERTH_CDI_DEVICES",
    "BERTH_CPUS",
    "BERTH_DEVICES",
    "BERTH_DEVICE_NODES",
    "BERTH_INVENTORY",
    "BERTH_LEASE",
    "BERTH_REPLICA",
    "BERTH_SOCKET",
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "HIP_VISIBLE_DEVICES",
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "NOTIFY_SOCKET",
    "NVIDIA_VISIBLE_DEVICES",
    "ONEAPI_DEVICE_SELECTOR",
    "ROCR_VISIBLE_DEVICES",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "ZE_AFFINITY_MASK",
    "ZE_ENABLE_PCI_ID_DEVICE_ORDER",
    "ZE_FLAT_DEVICE_HIERARCHY",
};

static const char pid_variable[] = "LISTEN_PID=";

/* All that the new processes need; they run in our memory while we wait. */
struct launch {
    const struct detached *detached;
    char **environment;
    char pid[sizeof(pid_variable) + 20];
    unsigned char *stacks[STACKS]; /* their upper ends */
    int nothing;                   /* /dev/null */
    int failure;                   /* an errno */
};

static bool is_dropped(const char *entry)
{
    size_t length = strcspn(entry, "=");

    for (size_t i = 0; i < COUNT(dropped); i++) {
        if (strncmp(entry, dropped[i], length) == 0 && dropped[i][length] == '\0')
            return true;
    }
    return false;
}

/* Points into ours. */
static char **make_environment(char *pid)
{
    static char listening[] = "LISTEN_FDS=1";
    size_t count = 0;
    size_t kept = 0;
    char **made;

    while (environ != NULL && environ[count] != NULL)
        count++;
    made = calloc(count + 3, sizeof(*made));
    if (made == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (!is_dropped(environ[i]))
            made[kept++] = environ[i];
    }
    made[kept++] = listening;
    made[kept] = pid;
    return made;
}

/* Only system calls from here on: another thread of ours may hold any lock. */

static void write_pid(char *pid)
{
    char digits[20];
    size_t count = 0;
    size_t length = sizeof(pid_variable) - 1;

    for (uintmax_t rest = (uintmax_t)getpid(); rest > 0; rest /= 10)
        digits[count++] = (char)('0' + rest % 10);
    memcpy(pid, pid_variable, length);
    while (count > 0)
        pid[length++] = digits[--count];
    pid[length] = '\0';
}

static void reset_signals(void)
{
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int i = 1; i < NSIG; i++)
        sigaction(i, &standard, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_the_rest(void)
{
    struct rlimit limit = {0};

    if (close_range(STANDARD, ~0U, 0) == 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    for (int i = STANDARD; i < DESCRIPTORS_MOST && (rlim_t)i < limit.rlim_cur; i++)
        close(i);
}

/* Ours may be among 0 to 3 themselves when we were started without some of these, so they are moved
 * out of the way first. */
static bool place_descriptors(const struct launch *launch)
{
    int given[STANDARD] = {launch->nothing, launch->detached->output, launch->detached->log,
                           launch->detached->listening};

    for (int i = 0; i < STANDARD; i++) {
        given[i] = fcntl(given[i], F_DUPFD_CLOEXEC, STANDARD);
        if (given[i] < 0)
            return false;
    }
    for (int i = 0; i < STANDARD; i++) {
        if (dup2(given[i], i) < 0)
            return false;
    }
    close_the_rest();
    return true;
}

static int become_program(void *context)
{
    struct launch *launch = context;

    umask(S_IRWXG | S_IRWXO);
    if (chdir("/") == 0 && place_descriptors(launch)) {
        write_pid(launch->pid);
        reset_signals();
        execve(launch->detached->program, launch->detached->arguments, launch->environment);
    }
    launch->failure = errno;
    return 1;
}

/* Runs `function` in a new process on `stack` until it is a program or has ended. Without a signal
 * to tell its parent of its end, which is that nobody but us can wait for it. */
static pid_t borrow_memory(int (*function)(void *), unsigned char *stack, struct launch *launch)
{
    return clone(function, stack, CLONE_VM | CLONE_VFORK, launch);
}

static void wait_for(pid_t process)
{
    while (waitpid(process, NULL, __WCLONE) < 0 && errno == EINTR)
        continue;
}

/* The process between, which leads the new session and ends at once: the program cannot get a
 * terminal, and is nobody's child. */
static int leave_session(void *context)
{
    struct launch *launch = context;
    pid_t program;

    setsid();
    program = borrow_memory(become_program, launch->stacks[1], launch);
    if (program < 0)
        launch->failure = errno;
    else if (launch->failure != 0)
        wait_for(program);
    return 0;
}

/* Our handlers must not run in the new processes, which use our memory. */
static void run(struct launch *launch)
{
    sigset_t all;
    sigset_t before;
    pid_t between;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    between = borrow_memory(leave_session, launch->stacks[0], launch);
    if (between < 0)
        launch->failure = errno;
    else
        wait_for(between);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int detached_start(const struct detached *detached, struct berth_error *error)
{
    struct launch launch = {.detached = detached};
    unsigned char *stacks = malloc(STACKS * (size_t)STACK_SIZE);
    int code = 0;

    launch.environment = make_environment(launch.pid);
    launch.nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (stacks == NULL || launch.environment == NULL) {
        code = error_set_memory(error);
    } else if (launch.nothing < 0) {
        code = error_set_errno(error, errno, "/dev/null");
    } else {
        launch.stacks[0] = stacks + STACK_SIZE;
        launch.stacks[1] = stacks + 2 * (size_t)STACK_SIZE;
        run(&launch);
        if (launch.failure != 0)
            code = error_set_errno(error, launch.failure, "%s: cannot start the daemon",
                                   detached->program);
    }
    if (launch.nothing >= 0)
        close(launch.nothing);
    free(launch.environment);
    free(stacks);
    return code;
}
