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
#include "launch/descendants.h"
#include "launch/spawn.h"

#define GRACE_BY_DEFAULT (10 * DURATION_SECOND)
/* What may have been missed is killed again after this. */
#define FORCE_AGAIN DURATION_SECOND

enum { CODE_OF_SIGNALS = 128 };

/* What reaches us instead of the commands. The stop signals are here so that we stop when the
 * commands do: one that catches them goes on, and so do we. */
static const int passed_on[] = {
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU,
};

enum copy_state {
    COPY_RUNS,
    COPY_CONTINUED, /* it runs again, since this turn */
    COPY_STOPPED,
    COPY_ENDED, /* its number is no longer its own */
};

struct copy {
    pid_t pid;
    enum copy_state state;
};

struct supervisor {
    struct signals_before before;
    bool was_subreaper;
    int descriptor;
    VECTOR_OF(struct copy);
    struct pid_list strangers; /* children that were ours before: somebody else's business */
    size_t living;             /* copies */
    bool has_children;         /* of ours, copies or what they left behind */
    bool has_failed;
    bool told_to_end; /* by a signal from outside */
    int exit_code;
    int64_t grace;
    bool stopping; /* everything, for good */
    bool clearing; /* what copies left behind, until another one starts */
    bool forced;
    int64_t force_at;
};

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * DURATION_SECOND + time.tv_nsec;
}

static int64_t after(int64_t time, int64_t duration)
{
    return duration > INT64_MAX - time ? INT64_MAX : time + duration;
}

/* Blocks what we want to hear of. With SIGCHLD ignored there would be no exit codes. */
static int take_signals(struct supervisor *supervisor, struct berth_error *error)
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (size_t i = 0; i < COUNT(passed_on); i++)
        sigaddset(&signals, passed_on[i]);
    supervisor->descriptor = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    if (supervisor->descriptor < 0)
        return error_set_errno(error, errno, "wanted a descriptor for signals");
    sigprocmask(SIG_BLOCK, &signals, &supervisor->before.mask);
    sigaction(SIGCHLD, &by_default, &supervisor->before.child_action);
    return 0;
}

/* Whoever execs us may have started others. */
static int note_strangers(struct supervisor *supervisor, struct berth_error *error)
{
    siginfo_t nothing;

    if (waitid(P_ALL, 0, &nothing, WEXITED | WNOHANG | WNOWAIT) < 0)
        return 0;
    if (descendants_list_children(&supervisor->strangers) < 0)
        return error_set_memory(error);
    return 0;
}

int supervisor_create(struct supervisor **ret_supervisor, struct berth_error *error)
{
    struct supervisor *supervisor = calloc(1, sizeof(*supervisor));
    int was_subreaper = 0;
    int code;

    if (supervisor == NULL)
        return error_set_memory(error);
    supervisor->grace = GRACE_BY_DEFAULT;
    supervisor->force_at = INT64_MAX;
    code = note_strangers(supervisor, error);
    if (code == 0)
        code = take_signals(supervisor, error);
    if (code < 0) {
        vector_finish(&supervisor->strangers);
        free(supervisor);
        return code;
    }
    prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    supervisor->was_subreaper = was_subreaper != 0;
    *ret_supervisor = supervisor;
    return 0;
}

void supervisor_destroy(struct supervisor *supervisor)
{
    struct signalfd_siginfo signal;

    if (supervisor == NULL)
        return;
    /* What came too late for the commands is not for us. */
    while (read(supervisor->descriptor, &signal, sizeof(signal)) > 0)
        ;
    close(supervisor->descriptor);
    prctl(PR_SET_CHILD_SUBREAPER, supervisor->was_subreaper, 0, 0, 0);
    signals_restore(&supervisor->before);
    vector_finish(&supervisor->strangers);
    vector_finish(supervisor);
    free(supervisor);
}

int supervisor_descriptor(const struct supervisor *supervisor)
{
    return supervisor->descriptor;
}

int supervisor_start(struct supervisor *supervisor, const struct launch_copy *copy,
                     struct berth_error *error)
{
    struct copy *place;
    int code;

    if (supervisor->stopping)
        return error_set(error, BERTH_ERROR_CANCELLED,
                         "wanted to start a command, found that all are being stopped");
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

static struct copy *find_copy(struct supervisor *supervisor, pid_t pid)
{
    struct copy *copy;

    vector_for_each (copy, supervisor) {
        if (copy->pid == pid && copy->state != COPY_ENDED)
            return copy;
    }
    return NULL;
}

static void note_end(struct supervisor *supervisor, struct copy *copy, const siginfo_t *news)
{
    int code = news->si_status;

    if (news->si_code != CLD_EXITED)
        code += CODE_OF_SIGNALS;
    copy->state = COPY_ENDED;
    supervisor->living--;
    if (code == 0 || supervisor->has_failed)
        return;
    supervisor->has_failed = true;
    supervisor->exit_code = code;
}

static void note_news(struct supervisor *supervisor, const siginfo_t *news)
{
    struct copy *copy = find_copy(supervisor, news->si_pid);
    bool is_end =
        news->si_code == CLD_EXITED || news->si_code == CLD_KILLED || news->si_code == CLD_DUMPED;

    if (copy == NULL && is_end)
        pid_list_remove(&supervisor->strangers, news->si_pid);
    else if (copy == NULL)
        return;
    else if (is_end)
        note_end(supervisor, copy, news);
    else if (news->si_code == CLD_STOPPED || news->si_code == CLD_TRAPPED)
        copy->state = COPY_STOPPED;
    else
        copy->state = COPY_CONTINUED;
}

/* Takes note of all that children did. */
static void hear_children(struct supervisor *supervisor)
{
    const int what = WEXITED | WSTOPPED | WCONTINUED | WNOHANG;
    siginfo_t news;

    for (;;) {
        news.si_pid = 0;
        if (waitid(P_ALL, 0, &news, what) < 0) {
            supervisor->has_children = false;
            return;
        }
        if (news.si_pid == 0)
            break;
        note_news(supervisor, &news);
    }
    supervisor->has_children = supervisor->living > 0 || supervisor->strangers.count == 0 ||
                               descendants_signal(0, &supervisor->strangers) > 0;
}

/* Whether the commands did not get this signal by themselves. */
static bool is_for_copies(struct supervisor *supervisor, const struct signalfd_siginfo *signal)
{
    /* From the terminal to its foreground group; but it hangs up on the session's leader alone. */
    if (signal->ssi_code == SI_KERNEL)
        return signal->ssi_signo == SIGHUP && getsid(0) == getpid();
    /* A command that says `kill 0` means its group, where it is itself. */
    return find_copy(supervisor, (pid_t)signal->ssi_pid) == NULL;
}

static void pass_on(struct supervisor *supervisor, int signal)
{
    const struct copy *copy;

    vector_for_each (copy, supervisor) {
        bool has_it = signal == SIGCONT && copy->state == COPY_CONTINUED;

        if (copy->state != COPY_ENDED && !has_it)
            kill(copy->pid, signal);
    }
}

static bool is_to_end(int signal)
{
    return signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM;
}

static void hear_signals(struct supervisor *supervisor)
{
    struct signalfd_siginfo signal;
    struct copy *copy;

    vector_for_each (copy, supervisor) {
        if (copy->state == COPY_CONTINUED)
            copy->state = COPY_RUNS;
    }
    while (read(supervisor->descriptor, &signal, sizeof(signal)) == sizeof(signal)) {
        /* Children first: what they did may be the answer to the same signal. */
        hear_children(supervisor);
        if (is_to_end((int)signal.ssi_signo))
            supervisor->told_to_end = true;
        if (signal.ssi_signo != SIGCHLD && is_for_copies(supervisor, &signal))
            pass_on(supervisor, (int)signal.ssi_signo);
    }
    hear_children(supervisor);
}

/* Stopped processes see SIGTERM once they go on. */
static void ask_to_end(const struct supervisor *supervisor)
{
    descendants_signal(SIGTERM, &supervisor->strangers);
    descendants_signal(SIGCONT, &supervisor->strangers);
}

/* Sees to it that force is used by then. */
static void bring_force(struct supervisor *supervisor, int64_t at)
{
    if (at >= supervisor->force_at)
        return;
    supervisor->force_at = at;
}

void supervisor_stop(struct supervisor *supervisor, int64_t force_at)
{
    bool is_news = !supervisor->stopping;

    supervisor->stopping = true;
    bring_force(supervisor, force_at);
    if (is_news && supervisor->has_children)
        ask_to_end(supervisor);
}

void supervisor_set_grace(struct supervisor *supervisor, int64_t nanoseconds)
{
    supervisor->grace = nanoseconds;
}

/* Whether somebody could notice that we stopped, and let us go on: the shell whose job we are. */
static bool is_job(void)
{
    pid_t parent = getppid();

    return parent > 0 && getsid(parent) == getsid(0);
}

/* Whether the process is stopped now, as far as can be seen: it may have gone on since that was
 * told, and who stops then is never woken. */
static bool is_stopped(pid_t pid)
{
    char buffer[1024];
    const char *fields = process_stat_fields(pid, buffer, sizeof(buffer));

    return fields == NULL || process_stat_state(fields) == 'T' || process_stat_state(fields) == 't';
}

static bool all_stopped(const struct supervisor *supervisor)
{
    const struct copy *copy;

    vector_for_each (copy, supervisor) {
        if (copy->state == COPY_ENDED)
            continue;
        if (copy->state != COPY_STOPPED || !is_stopped(copy->pid))
            return false;
    }
    return supervisor->living > 0;
}

void supervisor_turn(struct supervisor *supervisor)
{
    hear_signals(supervisor);
    if (supervisor->has_failed && supervisor->living > 0 && !supervisor->stopping)
        supervisor_stop(supervisor, after(now(), supervisor->grace));
    if (supervisor->living == 0 && supervisor->has_children && !supervisor->stopping &&
        !supervisor->clearing) {
        supervisor->clearing = true;
        bring_force(supervisor, after(now(), supervisor->grace));
        ask_to_end(supervisor);
    }
    if (supervisor->has_children && now() >= supervisor->force_at) {
        supervisor->forced = true;
        descendants_signal(SIGKILL, &supervisor->strangers);
    }
    if (!supervisor->stopping && all_stopped(supervisor) && is_job())
        kill(getpid(), SIGSTOP);
}

bool supervisor_was_told_to_end(const struct supervisor *supervisor)
{
    return supervisor->told_to_end;
}

int64_t supervisor_next_time(const struct supervisor *supervisor)
{
    if (!supervisor->has_children)
        return INT64_MAX;
    return supervisor->forced ? after(now(), FORCE_AGAIN) : supervisor->force_at;
}

bool supervisor_is_done(const struct supervisor *supervisor)
{
    return !supervisor->has_children;
}

int supervisor_exit_code(const struct supervisor *supervisor)
{
    return supervisor->exit_code;
}
