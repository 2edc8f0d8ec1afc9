/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/system/child_setup.h"
#include "base/text/quantity.h"
#include "base/text/text.h"
#include "daemon/core/priority.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

enum { EXIT_NOT_EXECUTED = 127 };

/* Waits a second at most. */
static void await_file(const char *path)
{
    enum { TRIES = 500 };
    const struct timespec moment = {.tv_nsec = 2 * 1000 * 1000};

    for (int i = 0; i < TRIES && access(path, F_OK) < 0; i++)
        nanosleep(&moment, NULL);
}

/* The kernel then kills the child when its parent, the daemon, dies. A change of the user resets
 * this. */
static void die_with_parent(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    /* A parent that died before sends no signal. */
    if (getppid() != parent)
        _exit(EXIT_NOT_EXECUTED);
}

/* Gives the program the right to signal all users' processes, if the daemon has it. */
static void pass_on_signals(void)
{
    const uint32_t set = UINT32_C(1) << CAP_KILL;
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capget, &header, data) < 0 || (data[0].permitted & set) == 0)
        return;
    data[0].inheritable = set;
    /* On failure the program has no capability. */
    if (syscall(SYS_capset, &header, data) < 0 ||
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, (unsigned long)CAP_KILL, 0UL, 0UL) < 0)
        return;
}

/* Writes the errno for the daemon and ends the process. */
static _Noreturn void report_failure(int report, int number)
{
    while (write(report, &number, sizeof(number)) < 0 && errno == EINTR)
        ;
    _exit(EXIT_NOT_EXECUTED);
}

/* Sets the process up for the program. Returns 0 or an errno. */
static int prepare_child(int input, int output, int *report)
{
    setsid();
    umask(S_IRWXG | S_IRWXO);
    if (chdir("/") < 0 || child_setup_descriptors(input, output, report) < 0)
        return errno;
    child_setup_reset_signals();
    return 0;
}

/* Executes the program. Returns an errno. */
static int execute_program(const struct child_order *order, pid_t parent)
{
    if (!order->outlives)
        die_with_parent(parent);
    priority_reset();
    if (order->may_signal)
        pass_on_signals();
    if (order->awaited != NULL)
        await_file(order->awaited);
    execve(order->words[0], order->words, order->environment);
    return errno;
}

/* ---- By the launcher ---- */

/* The order as words; child_read_work() reads them. */
static void encode_order(const struct child_order *order, struct text *bytes)
{
    size_t count = 0;

    while (order->words[count] != NULL)
        count++;
    launcher_append_number(bytes, order->persona.uid);
    launcher_append_number(bytes, order->persona.gid);
    launcher_append_number(bytes, order->outlives);
    launcher_append_word(bytes, order->awaited == NULL ? "" : order->awaited);
    launcher_append_number(bytes, count);
    for (char *const *word = order->words; *word != NULL; word++)
        launcher_append_word(bytes, *word);
    for (char *const *variable = order->environment; *variable != NULL; variable++)
        launcher_append_word(bytes, *variable);
}

enum { WORD_UID, WORD_GID, WORD_OUTLIVES, WORD_AWAITED, WORD_COUNT, WORDS_FIXED };

static int read_number(const struct child_work *work, size_t index, uint64_t max,
                       uint64_t *ret_number)
{
    return quantity_parse_number(work->strings.items[index], 0, max, ret_number, NULL) < 0 ? EINVAL
                                                                                           : 0;
}

/* Returns a list that ends with NULL. */
static char **copy_items(char **items, size_t count)
{
    char **copy = calloc(count + 1, sizeof(*copy));

    if (copy != NULL && count > 0)
        memcpy(copy, items, count * sizeof(*copy));
    return copy;
}

int child_read_work(const struct launcher_work *work, struct child_work *ret_work)
{
    struct child_work read = {.work = work};
    uint64_t uid;
    uint64_t gid;
    uint64_t outlives;
    uint64_t count;
    int number = launcher_read_words(work, &read.strings);

    *ret_work = read;
    if (number == 0 && (read.strings.count < WORDS_FIXED || work->descriptor_count != 3))
        number = EINVAL;
    if (number == 0)
        number = read_number(&read, WORD_UID, UINT32_MAX, &uid);
    if (number == 0)
        number = read_number(&read, WORD_GID, UINT32_MAX, &gid);
    if (number == 0)
        number = read_number(&read, WORD_OUTLIVES, 1, &outlives);
    if (number == 0)
        number = read_number(&read, WORD_COUNT, read.strings.count - WORDS_FIXED, &count);
    if (number == 0 && count == 0)
        number = EINVAL;
    if (number != 0)
        return number;
    read.order = (struct child_order){
        .words = copy_items(read.strings.items + WORDS_FIXED, count),
        .environment = copy_items(read.strings.items + WORDS_FIXED + count,
                                  read.strings.count - WORDS_FIXED - count),
        .persona = {.uid = (uint32_t)uid, .gid = (uint32_t)gid},
        .outlives = outlives != 0,
        .awaited =
            *read.strings.items[WORD_AWAITED] == '\0' ? NULL : read.strings.items[WORD_AWAITED],
    };
    *ret_work = read;
    return read.order.words == NULL || read.order.environment == NULL ? ENOMEM : 0;
}

_Noreturn void child_execute(const struct child_work *work, int failure)
{
    const int *descriptors = work->work->descriptors;
    int report = descriptors[2];
    const char *home;

    if (work->work->descriptor_count != 3)
        _exit(EXIT_NOT_EXECUTED);
    if (failure == 0)
        failure = prepare_child(descriptors[0], descriptors[1], &report);
    if (failure == 0)
        failure = become_user_apply(&work->order.persona, &home);
    if (failure == 0)
        failure = execute_program(&work->order, work->work->daemon);
    report_failure(report, failure);
}

/* ---- Starting ---- */

static int open_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return 0;
}

static void close_pipe(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

void child_kill(const struct child *offspring)
{
    kill(-offspring->pid, SIGKILL);
    /* The child may not have created its group yet. */
    kill(offspring->pid, SIGKILL);
}

/* Blocks for a moment only, because the child has just started. */
static void kill_and_reap(const struct child *offspring)
{
    child_kill(offspring);
    while (waitpid(offspring->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void child_undo(struct child *offspring)
{
    kill_and_reap(offspring);
    close(offspring->process);
    close(offspring->output);
    close(offspring->report);
    *offspring = (struct child){0};
}

/* Forks: vfork() would wait for the disk with the program. Returns 0 or an errno. */
static int fork_child(struct child *made, const struct child_order *order, int input, int output,
                      int report)
{
    pid_t parent = getpid();
    int number;

    made->pid = fork();
    if (made->pid == 0) {
        number = prepare_child(input, output, &report);
        if (number == 0)
            number = execute_program(order, parent);
        report_failure(report, number);
    }
    if (made->pid < 0)
        return errno;
    made->process = (int)syscall(SYS_pidfd_open, made->pid, 0);
    if (made->process >= 0)
        return 0;
    number = errno;
    kill_and_reap(made);
    return number;
}

/* Makes the launcher fork. Returns 0 or an errno. */
static int launch_child(struct child *made, const struct child_order *order, int input, int output,
                        int report)
{
    int descriptors[] = {input, output, report};
    struct text bytes = {0};
    int nothing = -1;
    int number = 0;

    if (input < 0) {
        nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        number = nothing < 0 ? errno : 0;
        descriptors[0] = nothing;
    }
    encode_order(order, &bytes);
    if (number == 0)
        number = launcher_fork(order->launcher, order->program, &bytes, descriptors, 3, &made->pid,
                               &made->process);
    text_finish(&bytes);
    if (nothing >= 0)
        close(nothing);
    return number;
}

/* Opens a pipe with the text in it; -1: none. Returns 0 or an errno. */
static int open_input(const char *text, int *ret_input)
{
    int ends[2];
    bool is_whole;

    *ret_input = -1;
    if (text == NULL)
        return 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    /* An empty pipe has room for a page. */
    is_whole = write(ends[1], text, strlen(text)) == (ssize_t)strlen(text);
    close(ends[1]);
    if (!is_whole) {
        close(ends[0]);
        return EIO;
    }
    *ret_input = ends[0];
    return 0;
}

static int start_with(struct child *offspring, const struct child_order *order, int input,
                      const int output[2], const int report[2])
{
    struct child made = {0};
    int number = order->launcher != NULL ? launch_child(&made, order, input, output[1], report[1])
                                         : fork_child(&made, order, input, output[1], report[1]);

    if (number != 0)
        return number;
    close(output[1]);
    close(report[1]);
    made.output = output[0];
    made.report = report[0];
    *offspring = made;
    return 0;
}

int child_start(struct child *offspring, const struct child_order *order)
{
    int output[2];
    int report[2];
    int input;
    int number = open_pipe(output);

    if (number != 0)
        return number;
    number = open_pipe(report);
    if (number != 0) {
        close_pipe(output);
        return number;
    }
    number = open_input(order->input, &input);
    if (number == 0)
        number = start_with(offspring, order,
                            order->connection == NULL ? input : *order->connection, output, report);
    if (input >= 0)
        close(input);
    if (number != 0) {
        close_pipe(output);
        close_pipe(report);
    }
    return number;
}

bool child_reap(const struct child *offspring, struct child_end *ret_end)
{
    siginfo_t info = {0};
    int failure;

    if (waitid((idtype_t)P_PIDFD, (id_t)offspring->process, &info, WEXITED | WNOHANG) < 0 ||
        info.si_pid == 0)
        return false;
    *ret_end = (struct child_end){
        .is_killed = info.si_code != CLD_EXITED,
        .number = info.si_status,
    };
    if (read(offspring->report, &failure, sizeof(failure)) == sizeof(failure))
        ret_end->failure = failure;
    return true;
}
