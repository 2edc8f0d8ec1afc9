/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/privileges.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/user_names.h"
#include "base/text/quote.h"
#include "base/text/text.h"
#include "daemon/core/launcher.h"
#include "daemon/leases/pool.h"
#include "daemon/mps/mps_launch.h"
#include "daemon/mps/mps_query.h"
#include "daemon/mps/mps_rules.h"
#include "probe/probe.h"
#include "reader/reader.h"
#include "sandbox/sandbox.h"

/* These capabilities are among the first 32, the first word of a set. */
#define BIT(capability) (UINT32_C(1) << (capability))

#define SIGNALS BIT(CAP_KILL)
#define READING (BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH))
#define USERS   (BIT(CAP_SETUID) | BIT(CAP_SETGID))

/* ---- Becoming a user ---- */

int privileges_find_user(const char *name, struct privileges_user *ret_user,
                         struct berth_error *error)
{
    const struct passwd *entry;

    if (geteuid() != 0)
        return user_names_explain(error,
                                  error_set(error, BERTH_ERROR_INVALID,
                                            "--user: expected to be started by root, got user %ju",
                                            (uintmax_t)geteuid()));
    errno = 0;
    entry = getpwnam(name);
    /* Some databases set ENOENT or similar codes for an unknown user. */
    if (entry == NULL && (errno == EIO || errno == EMFILE || errno == ENFILE || errno == ENOMEM))
        return error_set_errno(error, errno, "cannot look up --user %s", quote(name).text);
    if (entry == NULL)
        return error_set(error, BERTH_ERROR_INVALID,
                         "--user: expected a user of this machine, got %s", quote(name).text);
    if (entry->pw_uid == 0)
        return error_set(error, BERTH_ERROR_INVALID,
                         "--user: expected another user than root, got %s", quote(name).text);
    *ret_user = (struct privileges_user){name, entry->pw_uid, entry->pw_gid};
    return 0;
}

struct capability_sets {
    uint32_t effective;
    uint32_t permitted;
};

static int read_capabilities(struct capability_sets *ret_sets)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capget, &header, data) < 0)
        return -1;
    *ret_sets = (struct capability_sets){data[0].effective, data[0].permitted};
    return 0;
}

/* Reduces this process to `kept`, and the programs that it starts to `passed`, which have no effect
 * in this process. */
static int set_capabilities(uint32_t kept, uint32_t passed)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{kept & ~passed, kept, passed}};

    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0UL, 0UL, 0UL) < 0 ||
        syscall(SYS_capset, &header, data) < 0)
        return -1;
    for (int i = 0; i < 32; i++) {
        if ((passed & BIT(i)) != 0 &&
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, (unsigned long)i, 0UL, 0UL) < 0)
            return -1;
    }
    return 0;
}

/* Removes all other capabilities from the bounding set: no program started from here gets them. */
static int bound_capabilities(uint32_t kept)
{
    for (int i = 0; prctl(PR_CAPBSET_READ, (unsigned long)i, 0UL, 0UL, 0UL) >= 0; i++) {
        if (i < 32 && (kept & BIT(i)) != 0)
            continue;
        if (prctl(PR_CAPBSET_DROP, (unsigned long)i, 0UL, 0UL, 0UL) < 0)
            return -1;
    }
    return 0;
}

static int change_user(const struct privileges_user *user)
{
    struct capability_sets sets;
    uint32_t kept;

    /* In a container, root may lack some. */
    if (read_capabilities(&sets) < 0)
        return -1;
    kept = sets.permitted & (SIGNALS | READING | USERS);
    if (initgroups(user->name, user->gid) < 0 || bound_capabilities(kept) < 0 ||
        prctl(PR_SET_KEEPCAPS, 1UL, 0UL, 0UL, 0UL) < 0 ||
        setresgid(user->gid, user->gid, user->gid) < 0 ||
        setresuid(user->uid, user->uid, user->uid) < 0 || set_capabilities(kept, 0) < 0 ||
        prctl(PR_SET_KEEPCAPS, 0UL, 0UL, 0UL, 0UL) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) < 0)
        return -1;
    sandbox_hide(); /* the change of the user may have undone it */
    if (read_capabilities(&sets) < 0)
        return -1;
    if (sets.permitted != kept) {
        errno = EPERM;
        return -1;
    }
    return 0;
}

int privileges_become(const struct privileges_user *user, struct berth_error *error)
{
    return change_user(user) < 0
               ? error_set_errno(error, errno, "cannot become --user %s", quote(user->name).text)
               : 0;
}

/* ---- The launcher ---- */

static void start_reader(const struct launcher_work *work)
{
    if (work->descriptor_count == 2)
        reader_spawn_program(work->descriptors[0], work->descriptors[1], NULL);
}

static void start_probe(const struct launcher_work *work)
{
    if (work->descriptor_count == 1)
        probe_spawn_program(work->descriptors[0], NULL);
}

static const struct launcher_entry entries[LAUNCHER_PROGRAMS] = {
    [LAUNCHER_READER] = {.start = start_reader},
    [LAUNCHER_PROBE] = {.start = start_probe},
    [LAUNCHER_MPS_CONTROL] = {.run = mps_launch_run},
    [LAUNCHER_MPS_QUERY] = {.run = mps_query_run},
};

/* Runs in the launcher's process. Returns 0 or an errno. */
static int prepare_launcher(void *context)
{
    struct pool *pool = context;
    uint32_t kept = pool->privileges.launcher;

    pool->launcher_entries[LAUNCHER_MPS_CONTROL].context = &pool->mps_rules;
    pool->launcher_entries[LAUNCHER_MPS_QUERY].context = &pool->mps_rules;
    return set_capabilities(kept, kept & READING) < 0 ? errno : 0;
}

static void launcher_is_ready(struct watch *watch, uint32_t events)
{
    struct pool *pool = container_of(watch, struct pool, launcher_watch);

    (void)events;
    if (!launcher_has_ended(&pool->launcher))
        return;
    log_line(&pool->log, pool_clock_now(&pool->clock), "launcher", "what=lost");
    pool->is_launcher_lost = true;
    pool->loop.ended = true;
}

static int open_launcher(struct pool *pool, struct berth_error *error)
{
    int code = launcher_begin(&pool->launcher, prepare_launcher, pool, error);

    if (code < 0)
        return code;
    pool->launcher_watch = (struct watch){
        .descriptor = pool->launcher.socket,
        .ready = launcher_is_ready,
    };
    return loop_add(&pool->loop, &pool->launcher_watch, EPOLLIN, error);
}

int privileges_start_launcher(struct pool *pool, bool mps, struct berth_error *error)
{
    struct capability_sets sets;
    int code = 0;

    memcpy(pool->launcher_entries, entries, sizeof(entries));
    launcher_init(&pool->launcher, pool->launcher_entries);
    if (read_capabilities(&sets) < 0)
        return error_set_errno(error, errno, "cannot read the capabilities");
    pool->privileges = (struct privileges){
        .daemon = sets.effective & SIGNALS,
        .launcher = sets.permitted & (READING | (mps ? USERS : 0)),
    };
    if (geteuid() == 0)
        return 0;
    if (pool->privileges.launcher != 0)
        code = open_launcher(pool, error);
    if (code == 0 && set_capabilities(sets.permitted & SIGNALS, 0) < 0)
        code = error_set_errno(error, errno, "cannot give up capabilities");
    return code;
}

void privileges_stop_launcher(struct pool *pool)
{
    launcher_finish(&pool->launcher);
}

bool privileges_may_become_others(const struct pool *pool)
{
    return (pool->privileges.launcher & USERS) == USERS;
}

/* ---- The log and the problems ---- */

enum { RIGHTS = 3 };

/* A right over the processes of all users. */
struct right {
    const char *key; /* in the log */
    bool is_had;
    bool is_needed;
    const char *lack;
    const char *capabilities;
};

static void list_rights(const struct pool *pool, struct right rights[RIGHTS])
{
    const struct privileges *has = &pool->privileges;
    /* A user's own daemon needs none. */
    bool is_needed = !pool->settings.own;

    rights[0] = (struct right){"signals", (has->daemon & SIGNALS) == SIGNALS, is_needed,
                               "cannot signal other users' processes", "CAP_KILL"};
    rights[1] = (struct right){"sees", (has->launcher & READING) == READING, is_needed,
                               "cannot identify other users' processes",
                               "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"};
    rights[2] =
        (struct right){"mps", privileges_may_become_others(pool), is_needed && pool->rules.mps,
                       "cannot run MPS for other users", "CAP_SETUID and CAP_SETGID"};
}

void privileges_log(struct pool *pool)
{
    struct right rights[RIGHTS];
    struct text missing = {0};

    list_rights(pool, rights);
    log_begin(&pool->log, pool_clock_now(&pool->clock), "rights");
    log_number(&pool->log, "uid", pool->owner);
    for (size_t i = 0; i < RIGHTS; i++) {
        text_append(log_value(&pool->log, rights[i].key), rights[i].is_had ? "everybody" : "own");
        if (!rights[i].is_had && rights[i].is_needed)
            text_append_format(&missing, "%s%s: %s", missing.length > 0 ? "; " : "", rights[i].lack,
                               rights[i].capabilities);
    }
    if (missing.length > 0)
        log_text(&pool->log, "missing", text_string(&missing));
    log_end(&pool->log);
    text_finish(&missing);
}

void privileges_note_problems(struct pool *pool)
{
    struct right rights[RIGHTS];

    list_rights(pool, rights);
    machine_report_drop_problems(&pool->problems, PROBLEM_OF_RIGHTS);
    for (size_t i = 0; i < RIGHTS; i++) {
        if (!rights[i].is_had && rights[i].is_needed)
            machine_report_add_problem(&pool->problems, PROBLEM_OF_RIGHTS,
                                       "the daemon %s (missing: %s)", rights[i].lack,
                                       rights[i].capabilities);
    }
}
