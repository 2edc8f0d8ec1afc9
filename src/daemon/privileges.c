/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/privileges.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/user_names.h"
#include "base/text/quote.h"
#include "base/text/text.h"
#include "daemon/listener.h"
#include "daemon/mps.h"

/* All capabilities that matter here are among the first 32, one word of a set. */
#define BIT(capability) (UINT32_C(1) << (capability))

/* What is kept, and what cannot be done without it. The environment and the descriptors in
 * /proc/PID are files that only their user may open, on top of what they say of a process. */
static const struct right {
    const char *key;
    uint32_t capabilities;
    const char *lack;
    bool is_private; /* programs that we start do not get it */
} rights[] = {
    {.key = "signals",
     .capabilities = BIT(CAP_KILL),
     .lack = "cannot signal other users' processes: CAP_KILL"},
    {.key = "sees",
     .capabilities = BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH),
     .lack = "cannot identify other users' processes: CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"},
    {.key = "mps",
     .capabilities = BIT(CAP_SETUID) | BIT(CAP_SETGID),
     .lack = "cannot run MPS for other users: CAP_SETUID and CAP_SETGID",
     .is_private = true},
};

/* ---- Whom to become ---- */

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
    /* Some databases say ENOENT and the like for a user that they do not have. */
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

/* ---- The directory ---- */

static int check_directory(const struct privileges_user *user, const char *path,
                           const struct stat *status, struct berth_error *error)
{
    if (!S_ISDIR(status->st_mode))
        return error_set(error, BERTH_ERROR_PERMISSION, "%s: expected a directory, got %s", path,
                         S_ISLNK(status->st_mode) ? "a symlink" : "something else");
    if (status->st_uid != 0 && status->st_uid != user->uid)
        return user_names_explain(
            error, error_set(error, BERTH_ERROR_PERMISSION,
                             "%s: expected a directory of root or of %s, got one of user %ju", path,
                             user->name, (uintmax_t)status->st_uid));
    if ((status->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return error_set(error, BERTH_ERROR_PERMISSION,
                         "%s: expected a directory that only its owner may write to, got mode %04o",
                         path, (unsigned)(status->st_mode & 07777));
    return 0;
}

/* Opens it, whatever it is, without following a symlink; makes it where nothing is. */
static int open_directory(const char *path, int *ret_directory, struct berth_error *error)
{
    const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    int directory = open(path, flags);

    if (directory < 0 && errno == ENOENT) {
        mode_t former = umask(S_IWGRP | S_IWOTH);
        bool made = mkdir(path, 0755) == 0;

        umask(former);
        if (made || errno == EEXIST)
            directory = open(path, flags);
    }
    if (directory < 0)
        return error_set_errno(error, errno, "cannot open %s", path);
    *ret_directory = directory;
    return 0;
}

static bool is_of_mps(const char *name)
{
    return strcmp(name, MPS_BASE) == 0;
}

/* Whether a daemon may have left it: the files beside the socket, logs, and the directory with
 * those of MPS. */
static bool is_left(const char *name, const char *stem)
{
    return strncmp(name, stem, strlen(stem)) == 0 || strncmp(name, "log", strlen("log")) == 0 ||
           is_of_mps(name);
}

/* Gives a file of root's to the user, or the directory of MPS, in which users have their own. A
 * file with a second name somewhere may be anything. */
static void give_file(const struct privileges_user *user, int directory, const char *name)
{
    struct stat status;
    int file = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (file < 0)
        return;
    /* What fails is told when it is needed. */
    if (fstat(file, &status) == 0 &&
        (is_of_mps(name) ? S_ISDIR(status.st_mode)
                         : S_ISREG(status.st_mode) && status.st_nlink == 1) &&
        status.st_uid == 0 && fchownat(file, "", user->uid, user->gid, AT_EMPTY_PATH) < 0) {
    }
    close(file);
}

/* Goes through what is in the directory: checks that nothing is anybody else's (`give` false), or
 * gives it to the user. */
static int go_through(const struct privileges_user *user, const char *path, const char *stem,
                      int directory, bool give, struct berth_error *error)
{
    int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = again < 0 ? NULL : fdopendir(again);
    const struct dirent *entry;
    int code = 0;

    if (entries == NULL) {
        code = error_set_errno(error, errno, "cannot read %s", path);
        if (again >= 0)
            close(again);
        return code;
    }
    while (code == 0 && (entry = readdir(entries)) != NULL) {
        bool mine = is_left(entry->d_name, stem);

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (give && mine)
            give_file(user, directory, entry->d_name);
        else if (!give && !mine)
            code = error_set(error, BERTH_ERROR_PERMISSION,
                             "%s: expected a directory with only the socket, to give it to %s, "
                             "got %s in it",
                             path, user->name, quote(entry->d_name).text);
    }
    closedir(entries);
    return code;
}

static int give_all(const struct privileges_user *user, const char *path, const char *stem,
                    struct berth_error *error)
{
    struct stat status;
    int directory = -1;
    int code = open_directory(path, &directory, error);

    if (code < 0)
        return code;
    if (fstat(directory, &status) < 0)
        code = error_set_errno(error, errno, "cannot read %s", path);
    if (code == 0)
        code = check_directory(user, path, &status, error);
    if (code == 0 && status.st_uid == 0)
        code = go_through(user, path, stem, directory, false, error);
    if (code == 0 && fchownat(directory, "", user->uid, user->gid, AT_EMPTY_PATH) < 0)
        code = error_set_errno(error, errno, "cannot give %s to %s", path, user->name);
    if (code == 0)
        code = go_through(user, path, stem, directory, true, error);
    close(directory);
    return code;
}

int privileges_give_directory(const struct privileges_user *user, const char *socket,
                              struct berth_error *error)
{
    struct text stem = {0}; /* of the socket and the files beside it */
    char *path = NULL;
    int code;

    listener_beside(socket, ".", &stem);
    if (!text_failed(&stem))
        path = strndup(socket, (size_t)(strrchr(socket, '/') - socket));
    if (path == NULL)
        code = error_set_memory(error);
    else
        code = give_all(user, *path == '\0' ? "/" : path, strrchr(stem.bytes, '/') + 1, error);
    free(path);
    text_finish(&stem);
    return code;
}

/* ---- Becoming ---- */

struct capability_sets {
    uint32_t effective;
    uint32_t permitted;
};

static int capabilities_read(struct capability_sets *ret_sets)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capget, &header, data) < 0)
        return -1;
    *ret_sets = (struct capability_sets){data[0].effective, data[0].permitted};
    return 0;
}

/* Those that are for us alone. */
static uint32_t private_rights(void)
{
    uint32_t set = 0;

    for (size_t i = 0; i < COUNT(rights); i++)
        set |= rights[i].is_private ? rights[i].capabilities : 0;
    return set;
}

/* Nothing but `kept` for us, and nothing but `passed` of it for what we start. */
static int capabilities_set(uint32_t kept, uint32_t passed)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{kept, kept, passed}};

    if (syscall(SYS_capset, &header, data) < 0)
        return -1;
    for (int i = 0; i < 32; i++) {
        if ((passed & BIT(i)) != 0 &&
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, (unsigned long)i, 0UL, 0UL) < 0)
            return -1;
    }
    return 0;
}

/* What no program that we start can get any more. */
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

/* Those of the rights to be kept that are in the set. */
static uint32_t rights_in(uint32_t set)
{
    uint32_t kept = 0;

    for (size_t i = 0; i < COUNT(rights); i++)
        kept |= set & rights[i].capabilities;
    return kept;
}

static int drop(const struct privileges_user *user)
{
    struct capability_sets sets;
    uint32_t kept;

    /* In a container root may lack some. */
    if (capabilities_read(&sets) < 0)
        return -1;
    kept = rights_in(sets.permitted);
    if (initgroups(user->name, user->gid) < 0 || bound_capabilities(kept) < 0 ||
        prctl(PR_SET_KEEPCAPS, 1UL, 0UL, 0UL, 0UL) < 0 ||
        setresgid(user->gid, user->gid, user->gid) < 0 ||
        setresuid(user->uid, user->uid, user->uid) < 0 ||
        capabilities_set(kept, kept & ~private_rights()) < 0 ||
        prctl(PR_SET_KEEPCAPS, 0UL, 0UL, 0UL, 0UL) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) < 0)
        return -1;
    if (capabilities_read(&sets) < 0)
        return -1;
    /* That there is no way back is worth trying, where nothing was kept that is one. */
    if (sets.permitted != kept || ((kept & BIT(CAP_SETUID)) == 0 && setresuid(0, 0, 0) == 0)) {
        errno = EPERM;
        return -1;
    }
    return 0;
}

int privileges_become(const struct privileges_user *user, struct berth_error *error)
{
    return drop(user) < 0
               ? error_set_errno(error, errno, "cannot become --user %s", quote(user->name).text)
               : 0;
}

void privileges_keep_private(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    /* What is not inheritable is not ambient either. What root starts has all anyway. */
    if (syscall(SYS_capget, &header, data) < 0 || (data[0].inheritable & private_rights()) == 0)
        return;
    data[0].inheritable &= ~private_rights();
    syscall(SYS_capset, &header, data);
}

bool privileges_may_become_others(void)
{
    const uint32_t wanted = BIT(CAP_SETUID) | BIT(CAP_SETGID);
    struct capability_sets sets;

    return capabilities_read(&sets) == 0 && (sets.effective & wanted) == wanted;
}

int privileges_give_up(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    return prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) < 0 ||
                   syscall(SYS_capset, &header, data) < 0
               ? -1
               : 0;
}

/* ---- Saying so ---- */

void privileges_say(struct pool *pool)
{
    struct capability_sets sets = {0};
    struct text missing = {0};

    /* Where nothing can be known, nothing is promised. */
    if (capabilities_read(&sets) < 0)
        sets.effective = 0;
    log_begin(&pool->log, pool_now(pool), "rights");
    log_number(&pool->log, "uid", pool->owner);
    for (size_t i = 0; i < COUNT(rights); i++) {
        bool has = (sets.effective & rights[i].capabilities) == rights[i].capabilities;

        text_append(log_value(&pool->log, rights[i].key), has ? "everybody" : "own");
        if (!has)
            text_append_format(&missing, "%s%s", missing.length > 0 ? "; " : "", rights[i].lack);
    }
    /* A user's own daemon needs none. */
    if (!pool->settings.own && missing.length > 0)
        log_text(&pool->log, "missing", text_string(&missing));
    log_end(&pool->log);
    text_finish(&missing);
}
