/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/supervise.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/process_stat.h"
#include "base/text/quantity.h"
#include "base/vector.h"
#include "launch/supervise_internal.h"

#define GRACE_BY_DEFAULT (10 * DURATION_SECOND)
/* Interval of repeated SIGKILLs, in case a process was missed. */
#define FORCE_AGAIN DURATION_SECOND

enum { CODE_OF_SIGNALS = 128 };

/* The signals that are forwarded to the commands. The stop signals are among them, so that the
 * supervisor stops only if the commands do: a command may catch them and continue. */
static const int passed_on[] = {
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU,
};

enum copy_state {
    COPY_RUNS,
    COPY_CONTINUED, /* it continued during this call of read_signals() */
    COPY_STOPPED,
    COPY_ENDED, /* its pid may be reused */
};

struct supervised_copy {
    pid_t pid;
    enum copy_state state;
};

struct launch_supervisor {
    struct signals_before before;
    bool was_subreaper;
    int descriptor;
    VECTOR_OF(struct supervised_copy);
    struct pid_list earlier_children; /* of this process; they are left alone */
    size_t living;                    /* running copies */
    bool has_children;                /* copies, or orphaned descendants of copies */
    bool has_failed;
    bool must_end; /* a signal requested the end */
    int exit_code;
    int64_t grace;
    bool stopping; /* all copies are being stopped */
    bool clearing; /* leftover descendants are being ended; a new copy resets this */
    bool forced;
    int64_t force_at;
};

static int64_t monotonic_now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * DURATION_SECOND + time.tv_nsec;
}

static int64_t add_time(int64_t time, int64_t duration)
{
    return duration > INT64_MAX - time ? INT64_MAX : time + duration;
}

/* Blocks the forwarded signals. Sets SIGCHLD to its default, because ignoring it loses exit codes.
 */
static int block_signals(struct launch_supervisor *supervisor, struct berth_error *error)
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (size_t i = 0; i < COUNT(passed_on); i++)
        sigaddset(&signals, passed_on[i]);
    supervisor->descriptor = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    if (supervisor->descriptor < 0)
        return error_set_errno(error, errno, "cannot create a descriptor for signals");
    sigprocmask(SIG_BLOCK, &signals, &supervisor->before.mask);
    sigaction(SIGCHLD, &by_default, &supervisor->before.child_action);
    return 0;
}

/* Records existing children: this process may have started some before its exec. */
static int record_earlier_children(struct launch_supervisor *supervisor, struct berth_error *error)
{
    siginfo_t nothing;

    if (waitid(P_ALL, 0, &nothing, WEXITED | WNOHANG | WNOWAIT) < 0)
        return 0;
    if (descendants_list_children(&supervisor->earlier_children) < 0)
        return error_set_memory(error);
    return 0;
}

int launch_supervisor_create(struct launch_supervisor **ret_supervisor, struct berth_error *error)
{
    struct launch_supervisor *supervisor = calloc(1, sizeof(*supervisor));
    int was_subreaper = 0;
    int code;

    if (supervisor == NULL)
        return error_set_memory(error);
    supervisor->grace = GRACE_BY_DEFAULT;
    supervisor->force_at = INT64_MAX;
    code = record_earlier_children(supervisor, error);
    if (code == 0)
        code = block_signals(supervisor, error);
    if (code < 0) {
        vector_finish(&supervisor->earlier_children);
        free(supervisor);
        return code;
    }
    prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    supervisor->was_subreaper = was_subreaper != 0;
    *ret_supervisor = supervisor;
    return 0;
}

void launch_supervisor_destroy(struct launch_supervisor *supervisor)
{
    struct signalfd_siginfo signal;

    if (supervisor == NULL)
        return;
    /* Drop signals that came too late for the commands. */
    while (read(supervisor->descriptor, &signal, sizeof(signal)) > 0)
        ;
    close(supervisor->descriptor);
    prctl(PR_SET_CHILD_SUBREAPER, supervisor->was_subreaper, 0, 0, 0);
    spawn_restore_signals(&supervisor->before);
    vector_finish(&supervisor->earlier_children);
    vector_finish(supervisor);
    free(supervisor);
}

int launch_supervisor_descriptor(const struct launch_supervisor *supervisor)
{
    return supervisor->descriptor;
}

int launch_supervisor_start(struct launch_supervisor *supervisor, const struct launch_copy *copy,
                            struct berth_error *error)
{
    struct supervised_copy *place;
    int code;

    if (supervisor->stopping)
        return error_set(error, BERTH_ERROR_CANCELLED,
                         "cannot start the command: all commands are being stopped");
    place = vector_append(supervisor);
    if (place == NULL)
        return error_set_memory(error);
    code = spawn(copy, &supervisor->before, &place->pid, error);
    if (code < 0) {
        supervisor->count--;
        return code;
    }
    supervisor->living++;
    supervisor->has_children = true;
    if (supervisor->clearing) {
        supervisor->clearing = false;
        supervisor->forced = false;
        supervisor->force_at = INT64_MAX;
    }
    return 0;
}

static struct supervised_copy *find_copy(struct launch_supervisor *supervisor, pid_t pid)
{
    struct supervised_copy *copy;

    vector_for_each (copy, supervisor) {
        if (copy->pid == pid && copy->state != COPY_ENDED)
            return copy;
    }
    return NULL;
}

static void record_exit(struct launch_supervisor *supervisor, struct supervised_copy *copy,
                        const siginfo_t *event)
{
    int code = event->si_status;

    if (event->si_code != CLD_EXITED)
        code += CODE_OF_SIGNALS;
    copy->state = COPY_ENDED;
    supervisor->living--;
    if (code == 0 || supervisor->has_failed)
        return;
    supervisor->has_failed = true;
    supervisor->exit_code = code;
}

static void record_child_event(struct launch_supervisor *supervisor, const siginfo_t *event)
{
    struct supervised_copy *copy = find_copy(supervisor, event->si_pid);
    bool is_end = event->si_code == CLD_EXITED || event->si_code == CLD_KILLED ||
                  event->si_code == CLD_DUMPED;

    if (copy == NULL && is_end)
        launch_pid_list_remove(&supervisor->earlier_children, event->si_pid);
    else if (copy == NULL)
        return;
    else if (is_end)
        record_exit(supervisor, copy, event);
    else if (event->si_code == CLD_STOPPED || event->si_code == CLD_TRAPPED)
        copy->state = COPY_STOPPED;
    else
        copy->state = COPY_CONTINUED;
}

/* Handles all state changes of children. */
static void reap_children(struct launch_supervisor *supervisor)
{
    const int what = WEXITED | WSTOPPED | WCONTINUED | WNOHANG;
    siginfo_t event;

    for (;;) {
        event.si_pid = 0;
        if (waitid(P_ALL, 0, &event, what) < 0) {
            supervisor->has_children = false;
            return;
        }
        if (event.si_pid == 0)
            break;
        record_child_event(supervisor, &event);
    }
    supervisor->has_children = supervisor->living > 0 || supervisor->earlier_children.count == 0 ||
                               descendants_signal(0, &supervisor->earlier_children) > 0;
}

/* Returns true if the signal must be forwarded, because the commands did not get it themselves. */
static bool is_for_copies(struct launch_supervisor *supervisor,
                          const struct signalfd_siginfo *signal)
{
    /* The terminal signals its whole foreground group, but sends SIGHUP only to the session leader.
     */
    if (signal->ssi_code == SI_KERNEL)
        return signal->ssi_signo == SIGHUP && getsid(0) == getpid();
    /* A command that calls kill(0) signals its process group, which includes all commands. */
    return find_copy(supervisor, (pid_t)signal->ssi_pid) == NULL;
}

static void forward_signal(struct launch_supervisor *supervisor, int signal)
{
    const struct supervised_copy *copy;

    vector_for_each (copy, supervisor) {
        bool has_it = signal == SIGCONT && copy->state == COPY_CONTINUED;

        if (copy->state != COPY_ENDED && !has_it)
            kill(copy->pid, signal);
    }
}

static bool ends_process(int signal)
{
    return signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM;
}

static void read_signals(struct launch_supervisor *supervisor)
{
    struct signalfd_siginfo signal;
    struct supervised_copy *copy;

    vector_for_each (copy, supervisor) {
        if (copy->state == COPY_CONTINUED)
            copy->state = COPY_RUNS;
    }
    while (read(supervisor->descriptor, &signal, sizeof(signal)) == sizeof(signal)) {
        /* Handle children first: they may have reacted to the same signal. */
        reap_children(supervisor);
        if (ends_process((int)signal.ssi_signo))
            supervisor->must_end = true;
        if (signal.ssi_signo != SIGCHLD && is_for_copies(supervisor, &signal))
            forward_signal(supervisor, (int)signal.ssi_signo);
    }
    reap_children(supervisor);
}

/* Sends SIGTERM, and SIGCONT because a stopped process handles SIGTERM only after it continues. */
static void terminate_all(const struct launch_supervisor *supervisor)
{
    descendants_signal(SIGTERM, &supervisor->earlier_children);
    descendants_signal(SIGCONT, &supervisor->earlier_children);
}

/* Schedules SIGKILL for this time, unless an earlier time is set. */
static void schedule_kill(struct launch_supervisor *supervisor, int64_t at)
{
    if (at >= supervisor->force_at)
        return;
    supervisor->force_at = at;
}

void launch_supervisor_stop(struct launch_supervisor *supervisor, int64_t force_at)
{
    bool is_news = !supervisor->stopping;

    supervisor->stopping = true;
    schedule_kill(supervisor, force_at);
    if (is_news && supervisor->has_children)
        terminate_all(supervisor);
}

void launch_supervisor_set_grace(struct launch_supervisor *supervisor, int64_t nanoseconds)
{
    supervisor->grace = nanoseconds;
}

/* Returns true if this process is a job of a shell: the shell notices when the process stops, and
 * can continue it. */
static bool is_job(void)
{
    pid_t parent = getppid();

    return parent > 0 && getsid(parent) == getsid(0);
}

/* Returns true if the process is still stopped. It may have continued since the stop was reported,
 * and a supervisor that stops then is never continued. */
static bool is_stopped(pid_t pid)
{
    char buffer[1024];
    const char *fields = process_stat_fields(pid, buffer, sizeof(buffer));

    return fields == NULL || process_stat_state(fields) == 'T' || process_stat_state(fields) == 't';
}

static bool all_stopped(const struct launch_supervisor *supervisor)
{
    const struct supervised_copy *copy;

    vector_for_each (copy, supervisor) {
        if (copy->state == COPY_ENDED)
            continue;
        if (copy->state != COPY_STOPPED || !is_stopped(copy->pid))
            return false;
    }
    return supervisor->living > 0;
}

void launch_supervisor_dispatch(struct launch_supervisor *supervisor)
{
    read_signals(supervisor);
    if (supervisor->has_failed && supervisor->living > 0 && !supervisor->stopping)
        launch_supervisor_stop(supervisor, add_time(monotonic_now(), supervisor->grace));
    if (supervisor->living == 0 && supervisor->has_children && !supervisor->stopping &&
        !supervisor->clearing) {
        supervisor->clearing = true;
        schedule_kill(supervisor, add_time(monotonic_now(), supervisor->grace));
        terminate_all(supervisor);
    }
    if (supervisor->has_children && monotonic_now() >= supervisor->force_at) {
        supervisor->forced = true;
        descendants_signal(SIGKILL, &supervisor->earlier_children);
    }
    if (!supervisor->stopping && all_stopped(supervisor) && is_job())
        kill(getpid(), SIGSTOP);
}

bool launch_supervisor_must_end(const struct launch_supervisor *supervisor)
{
    return supervisor->must_end;
}

int64_t launch_supervisor_next_time(const struct launch_supervisor *supervisor)
{
    if (!supervisor->has_children)
        return INT64_MAX;
    return supervisor->forced ? add_time(monotonic_now(), FORCE_AGAIN) : supervisor->force_at;
}

bool launch_supervisor_is_done(const struct launch_supervisor *supervisor)
{
    return !supervisor->has_children;
}

int launch_supervisor_exit_code(const struct launch_supervisor *supervisor)
{
    return supervisor->exit_code;
}
