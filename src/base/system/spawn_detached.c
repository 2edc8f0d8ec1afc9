/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/spawn_detached.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/string_list.h"
#include "base/system/child_setup.h"
#include "base/system/unintercepted.h"
#include "base/text/text.h"

enum {
    STACKS = 2,
    STACK_SIZE = 64 * 1024,
    STANDARD = 4, /* descriptors that the program gets */
};

static const char pid_variable[] = "LISTEN_PID=";

/* The data of the new processes, which share the caller's memory while the caller waits. */
struct detached_launch {
    const struct detached_program *detached;
    char **environment;
    struct string_list absolute; /* variables whose paths were made absolute */
    char pid[sizeof(pid_variable) + 20];
    unsigned char *stacks[STACKS]; /* the upper end of each */
    int nothing;                   /* /dev/null */
    int failure;                   /* an errno */
};

/* Returns whether the names include that of NAME=VALUE. */
static bool is_variable_listed(const char *entry, const char *const *names)
{
    size_t length = strcspn(entry, "=");

    for (; names != NULL && *names != NULL; names++) {
        if (strncmp(entry, *names, length) == 0 && (*names)[length] == '\0')
            return true;
    }
    return false;
}

/* Returns whether one of the other entries sets the same variable. */
static bool is_variable_replaced(const char *entry, char *const *others)
{
    size_t length = strcspn(entry, "=") + 1;

    for (; others != NULL && *others != NULL; others++) {
        if (strncmp(entry, *others, length) == 0)
            return true;
    }
    return false;
}

/* Returns NAME=PATH with an absolute path: the entry itself when it needs no change, or NULL
 * without memory. */
static char *make_path_absolute(struct detached_launch *launch, char *entry)
{
    const char *path = entry + strcspn(entry, "=");
    char *directory;
    struct text made = {0};
    int code;

    if (*path == '\0' || path[1] == '\0' || path[1] == '/')
        return entry;
    path++;
    directory = getcwd(NULL, 0);
    if (directory == NULL)
        return errno == ENOMEM ? NULL : entry;
    text_append_bytes(&made, entry, (size_t)(path - entry));
    text_append_format(&made, "%s/%s", directory, path);
    free(directory);
    code = text_failed(&made) ? BERTH_ERROR_MEMORY
                              : string_list_append(&launch->absolute, text_string(&made));
    text_finish(&made);
    return code < 0 ? NULL : launch->absolute.items[launch->absolute.count - 1];
}

/* Makes the program's environment. Its entries point into the caller's environment and into
 * `launch`. */
static int make_environment(struct detached_launch *launch)
{
    static char listening[] = "LISTEN_FDS=1";
    static char listening_name[] = "LISTEN_FDNAMES=" DETACHED_LISTENER;
    const struct detached_program *detached = launch->detached;
    size_t count = 0;
    size_t added = 0;
    size_t kept = 0;

    while (environ != NULL && environ[count] != NULL)
        count++;
    while (detached->added != NULL && detached->added[added] != NULL)
        added++;
    launch->environment = calloc(count + added + 4, sizeof(*launch->environment));
    if (launch->environment == NULL)
        return BERTH_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        char *entry = environ[i];

        if (is_variable_listed(entry, detached->dropped) ||
            is_variable_replaced(entry, detached->added))
            continue;
        if (is_variable_listed(entry, detached->paths))
            entry = make_path_absolute(launch, entry);
        if (entry == NULL)
            return BERTH_ERROR_MEMORY;
        launch->environment[kept++] = entry;
    }
    for (size_t i = 0; i < added; i++)
        launch->environment[kept++] = detached->added[i];
    if (detached->listening >= 0) {
        launch->environment[kept++] = listening;
        launch->environment[kept++] = listening_name;
        launch->environment[kept] = launch->pid;
    }
    return 0;
}

/* The functions up to leave_session() run in the new processes. They use only system calls, because
 * another thread of the caller may hold any lock. */

static void write_pid_variable(char *pid)
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

/* Puts the descriptors at 0 to 3. They may already have such numbers, when the caller was started
 * without standard input, output or error. So they are moved above 3 first. */
static bool place_descriptors(const struct detached_launch *launch)
{
    const struct detached_program *detached = launch->detached;
    int given[STANDARD] = {detached->input, detached->output, detached->log, detached->listening};
    int count = detached->listening < 0 ? STANDARD - 1 : STANDARD;

    for (int i = 0; i < count; i++) {
        given[i] = fcntl(given[i] < 0 ? launch->nothing : given[i], F_DUPFD_CLOEXEC, STANDARD);
        if (given[i] < 0)
            return false;
    }
    for (int i = 0; i < count; i++) {
        if (dup2(given[i], i) < 0)
            return false;
    }
    child_setup_close_from(count);
    return true;
}

static int exec_program(void *context)
{
    struct detached_launch *launch = context;

    bool placed = launch->detached->here || chdir("/") == 0;

    if (!launch->detached->here)
        umask(S_IRWXG | S_IRWXO);
    if (placed && place_descriptors(launch)) {
        write_pid_variable(launch->pid);
        child_setup_reset_signals();
        execve(launch->detached->program, launch->detached->arguments, launch->environment);
    }
    launch->failure = errno;
    return 1;
}

/* Runs `function` in a new process on `stack`, and returns after its exec or its end. The process
 * sends no signal when it ends, so a wait() elsewhere in the caller does not find it. */
static pid_t clone_with_shared_memory(int (*function)(void *), unsigned char *stack,
                                      struct detached_launch *launch)
{
    return unintercepted_clone(function, stack, CLONE_VM | CLONE_VFORK, launch);
}

static void reap_child(pid_t process)
{
    while (waitpid(process, NULL, __WCLONE) < 0 && errno == EINTR)
        continue;
}

/* Runs in the intermediate process, which leads the new session and ends at once. So the program
 * cannot get a terminal, and is not the caller's child. */
static int leave_session(void *context)
{
    struct detached_launch *launch = context;
    pid_t program;

    setsid();
    program = clone_with_shared_memory(exec_program, launch->stacks[1], launch);
    if (program < 0)
        launch->failure = errno;
    else if (launch->failure != 0)
        reap_child(program);
    return 0;
}

/* Starts the processes with all signals blocked: handlers must not run in them, because they share
 * the caller's memory. */
static void run_launch(struct detached_launch *launch)
{
    sigset_t all;
    sigset_t before;
    pid_t between;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    between = clone_with_shared_memory(leave_session, launch->stacks[0], launch);
    if (between < 0)
        launch->failure = errno;
    else
        reap_child(between);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int spawn_detached(const struct detached_program *detached, struct berth_error *error)
{
    struct detached_launch launch = {.detached = detached};
    unsigned char *stacks = malloc(STACKS * (size_t)STACK_SIZE);
    int code = 0;

    launch.nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (stacks == NULL || make_environment(&launch) < 0) {
        code = error_set_memory(error);
    } else if (launch.nothing < 0) {
        code = error_set_errno(error, errno, "cannot open /dev/null");
    } else {
        launch.stacks[0] = stacks + STACK_SIZE;
        launch.stacks[1] = stacks + 2 * (size_t)STACK_SIZE;
        run_launch(&launch);
        if (launch.failure != 0)
            code = error_set_errno(error, launch.failure, "cannot start %s", detached->program);
    }
    if (launch.nothing >= 0)
        close(launch.nothing);
    string_list_finish(&launch.absolute);
    free(launch.environment);
    free(stacks);
    return code;
}
