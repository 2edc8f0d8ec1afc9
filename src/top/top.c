/* SPDX-License-Identifier: Apache-2.0 */
#include "top/top.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "top/action.h"
#include "top/display.h"
#include "top/draw.h"
#include "view/follower.h"

/* Maximum number of claims that are fetched. The header shows the number of all. */
enum { CLAIMS_MAX = 5000 };

/* As many steps as a screen can show, each one column wide. */
enum { HISTORY_LENGTH = 600 };

/* How soon changes of leases and claims are shown. If devices are sampled less often than once a
 * second, changes follow that interval: the follower has one interval for all news. */
#define REFRESH_INTERVAL (DURATION_SECOND / 5)

/* How long the last line shows the result of an action. */
#define MESSAGE_TIME (15 * DURATION_SECOND)

struct top {
    struct follower follower;
    struct user_names users;
    struct load_history history;
    struct control control;
    struct action action;
    struct grid grid;
    int signals;            /* a signalfd */
    int ended_by;           /* the signal that ends the program; 0: none */
    bool quits;             /* the loop must end */
    bool dirty;             /* something has changed since the last drawing */
    bool redraw_all;        /* the next drawing must repaint all cells */
    int64_t since;          /* the start of the program, by clock_now() */
    unsigned message_count; /* the last control.message_count */
    int64_t message_time;   /* when the last message appeared, by clock_now() */
    int64_t seen_time;      /* the time of the view that the rows come from */
    int64_t paused_at;      /* the time that a paused screen shows */
};

/* ---- Drawing ---- */

static bool is_frozen(const struct top *top)
{
    return top->control.paused || follower_get_state(&top->follower) != FOLLOWER_LIVE;
}

/* Returns the daemon's time, or the time of the pause. */
static int64_t shown_time(const struct top *top)
{
    return top->control.paused ? top->paused_at : follower_time(&top->follower);
}

static const char *string_or_null(const struct text *text)
{
    return text->length == 0 ? NULL : text_string(text);
}

static int draw_screen(struct top *top, struct berth_error *error)
{
    const struct control *control = &top->control;
    struct top_picture picture = {
        .view = top->follower.has_view ? &top->follower.view : NULL,
        .address = &top->follower.address,
        .users = &top->users,
        .history = &top->history,
        .now = shown_time(top),
        .state = follower_get_state(&top->follower),
        .reason = top->follower.reason.message,
        .paused = control->paused,
        .help = control->mode == CONTROL_HELPING,
        .prompt = string_or_null(&control->prompt),
        .typing = control->mode == CONTROL_FILTERING,
        .message = string_or_null(&control->message),
        .message_style = control->message_style,
    };
    size_t width;
    size_t height;
    int code;

    display_measure(&width, &height);
    top->control.help_first = draw_help_first(control->help_first, height);
    picture.help_first = control->help_first;
    code = grid_start(&top->grid, width, height, display_is_unicode());
    if (code == 0)
        code = draw(&picture, &top->control.model, &top->grid);
    if (code < 0)
        return error_set_memory(error);
    display_show(&top->grid, top->redraw_all);
    top->dirty = top->redraw_all = false;
    return 0;
}

/* ---- Events ---- */

static int apply_view(struct top *top, int news, struct berth_error *error)
{
    const struct pool_view *view = &top->follower.view;
    int64_t step = load_history_step(&top->history, clock_now() - top->since);
    int code;

    top->dirty = true;
    if (!top->follower.has_view)
        return 0;
    top->seen_time = view->snapshot.time;
    code = control_update(&top->control, view, &top->users);
    if (code == 0 && (news & (WIRE_NEWS_LOAD | WIRE_NEWS_HELLO)) != 0)
        code = load_history_add(&top->history, step, view);
    return code < 0 ? error_set_memory(error) : 0;
}

static int follow_pool(struct top *top, struct berth_error *error)
{
    enum follower_state before = follower_get_state(&top->follower);
    int news;

    if (top->control.paused)
        return 0;
    news = follower_step(&top->follower, error);
    if (news < 0)
        return news;
    follower_forget_ended(&top->follower);
    /* Rows are indices into the view, which any step may have replaced. */
    if (news != 0 || before != follower_get_state(&top->follower) ||
        top->follower.view.snapshot.time != top->seen_time)
        return apply_view(top, news, error);
    return 0;
}

static const char *command_target(struct control_command command)
{
    return command.type == WIRE_STOP ? "lease" : "claim";
}

/* Shows why a command failed. A refusal by the daemon already names the lease. */
static void show_failure(struct top *top, struct control_command command,
                         const struct berth_error *error)
{
    if (strncmp(error->message, "cannot ", strlen("cannot ")) == 0)
        control_show_message(&top->control, STYLE_BAD, "%s", error->message);
    else
        control_show_message(&top->control, STYLE_BAD, "cannot end %s %" PRIu64 ": %s",
                             command_target(command), command.id, error->message);
}

static void begin_command(struct top *top)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct control_command command = top->control.command;

    if (top->action.command.type != 0) {
        control_show_message(&top->control, STYLE_WARNING,
                             "%s %" PRIu64 ": still waiting for the daemon",
                             command_target(top->action.command), top->action.command.id);
        return;
    }
    if (action_begin(&top->action, &top->follower.address, command, &error) < 0)
        show_failure(top, command, &error);
    else
        control_show_message(&top->control, STYLE_PLAIN, "%s %" PRIu64 ": waiting for the daemon",
                             command_target(command), command.id);
}

static void continue_command(struct top *top)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct control_command command = top->action.command;
    int code = action_step(&top->action, &error);

    if (code == ACTION_PENDING)
        return;
    top->dirty = true;
    if (code < 0)
        show_failure(top, command, &error);
    else
        control_show_message(&top->control, STYLE_GOOD, "%s %" PRIu64 " is %s",
                             command_target(command), command.id,
                             command.type == WIRE_STOP ? "being ended" : "cancelled");
}

/* Lets the pending SIGTSTP stop the program. In an orphaned process group the kernel drops it. */
static void suspend_self(struct top *top)
{
    sigset_t only;

    sigemptyset(&only);
    sigaddset(&only, SIGTSTP);
    display_suspend();
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    sigprocmask(SIG_BLOCK, &only, NULL);
    display_resume();
    top->dirty = top->redraw_all = true;
}

/* Handles all keys that were pressed. Returns 0 or an error. */
static int press_keys(struct top *top, struct berth_error *error)
{
    struct control_key key;

    while (!top->quits && display_next_key(&key)) {
        /* Before the first view, the only action is to quit. */
        int result = top->follower.has_view ? control_press(&top->control, key, &top->follower.view,
                                                            &top->users, (uint32_t)geteuid())
                     : key.kind == CONTROL_INTERRUPT || key.character == 'q' ? CONTROL_RESULT_QUIT
                                                                             : CONTROL_RESULT_NONE;

        top->dirty = true;
        if (result < 0)
            return error_set_memory(error);
        if (result == CONTROL_RESULT_QUIT)
            top->quits = true;
        if (result == CONTROL_RESULT_QUIT && key.kind == CONTROL_INTERRUPT)
            top->ended_by = SIGINT;
        /* As the terminal does: stop the whole process group. */
        if (result == CONTROL_RESULT_SUSPEND && kill(0, SIGTSTP) == 0)
            suspend_self(top);
        if (result == CONTROL_RESULT_REDRAW)
            top->redraw_all = true;
        if (result == CONTROL_RESULT_PAUSE)
            top->paused_at = follower_time(&top->follower);
        if (result == CONTROL_RESULT_EXECUTE)
            begin_command(top);
    }
    return 0;
}

static void read_signals(struct top *top)
{
    struct signalfd_siginfo heard;

    while (read(top->signals, &heard, sizeof(heard)) == sizeof(heard)) {
        switch (heard.ssi_signo) {
        case SIGWINCH:
        case SIGCONT:
            top->dirty = top->redraw_all = true;
            break;
        case SIGTSTP:
            raise(SIGTSTP);
            suspend_self(top);
            break;
        default:
            top->ended_by = (int)heard.ssi_signo;
            top->quits = true;
        }
    }
}

/* ---- The loop ---- */

/* Clears the message after MESSAGE_TIME. */
static void expire_message(struct top *top)
{
    struct control *control = &top->control;

    if (top->message_count != control->message_count) {
        top->message_count = control->message_count;
        top->message_time = clock_now();
    } else if (control->message.length > 0 && clock_now() - top->message_time >= MESSAGE_TIME) {
        text_clear(&control->message);
        top->dirty = true;
    }
}

/* Returns the time until the next event without input, in nanoseconds. */
static int64_t time_to_wait(const struct top *top)
{
    int64_t wait = INT64_MAX;
    int64_t left;

    if (!top->control.paused)
        wait = follower_next_timeout(&top->follower);
    if (!is_frozen(top)) {
        /* The next second of the clock. */
        left = DURATION_SECOND - shown_time(top) % DURATION_SECOND;
        wait = left < wait ? left : wait;
    }
    if (top->action.command.type != 0) {
        left = top->action.deadline - clock_now();
        left = left < 0 ? 0 : left;
        wait = left < wait ? left : wait;
    }
    return wait;
}

static int run_once(struct top *top, struct berth_error *error)
{
    struct pollfd waited[] = {
        {.fd = STDIN_FILENO, .events = POLLIN},
        {.fd = top->signals, .events = POLLIN},
        {.fd = top->control.paused ? -1 : follower_descriptor(&top->follower), .events = POLLIN},
        {.fd = action_descriptor(&top->action), .events = POLLIN},
    };
    int64_t wait = time_to_wait(top);
    int64_t second = shown_time(top) / DURATION_SECOND;
    struct timespec time = {wait / DURATION_SECOND, wait % DURATION_SECOND};
    int code;

    if (ppoll(waited, COUNT(waited), wait == INT64_MAX ? NULL : &time, NULL) < 0 && errno != EINTR)
        return error_set_errno(error, errno, "cannot wait for input");
    /* Check this before a signal stops the program: after that, the input may be for another
     * program. */
    if ((waited[0].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0 ||
        ((waited[0].revents & POLLIN) != 0 && display_is_gone()))
        top->quits = true;
    read_signals(top);
    continue_command(top);
    code = top->quits ? 0 : follow_pool(top, error);
    if (code == 0 && !top->quits)
        code = press_keys(top, error);
    expire_message(top);
    if (code == 0 && !top->quits && (top->dirty || shown_time(top) / DURATION_SECOND != second))
        code = draw_screen(top, error);
    return code;
}

/* Blocks the signals and returns a signalfd that reads them, or -1. */
static int open_signals(sigset_t *ret_before)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
    struct sigaction action;
    sigset_t heard;

    sigemptyset(&heard);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        /* A signal that the parent ignored (nohup) stays ignored. */
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&heard, numbers[i]);
    }
    sigprocmask(SIG_BLOCK, &heard, ret_before);
    return signalfd(-1, &heard, SFD_NONBLOCK | SFD_CLOEXEC);
}

static int run_loop(struct top *top, struct berth_error *error)
{
    int code = display_open(error);

    top->dirty = true;
    while (code == 0 && !top->quits)
        code = run_once(top, error);
    display_close();
    return code;
}

static void finish_top(struct top *top)
{
    action_cancel(&top->action);
    follower_close(&top->follower);
    control_finish(&top->control);
    load_history_finish(&top->history);
    user_names_finish(&top->users);
    grid_finish(&top->grid);
    close(top->signals);
}

int top_run(const struct top_settings *settings, struct berth_error *error)
{
    const struct follower_settings following = {
        .inventory = settings->inventory,
        .kinds = WIRE_NEWS_ALL,
        .interval = settings->interval <= DURATION_SECOND ? REFRESH_INTERVAL : settings->interval,
        .claims_max = CLAIMS_MAX,
    };
    struct top top = {
        .history = {.length = HISTORY_LENGTH, .interval = settings->interval},
        .since = clock_now(),
    };
    sigset_t before;
    int code;

    code = display_check(error);
    if (code == 0)
        code = follower_open(&top.follower, &following, error);
    if (code < 0)
        return code;
    top.signals = open_signals(&before);
    if (top.signals < 0)
        code = error_set_errno(error, errno, "cannot create a descriptor for signals");
    control_init(&top.control, settings->column, settings->filter);
    if (code == 0)
        code = run_loop(&top, error);
    finish_top(&top);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return code < 0 ? code : top.ended_by;
}
