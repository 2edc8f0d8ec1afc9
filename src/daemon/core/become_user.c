/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/become_user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

bool become_user_is_other(const struct user_identity *persona)
{
    return persona->uid != geteuid();
}

/* Removes the daemon's protection from the out-of-memory killer, which users' programs must not
 * have. */
static void reset_oom_adjustment(void)
{
    static const char default_adjustment[] = "0";
    int file = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    char first = '\0';

    if (file < 0)
        return;
    /* A failure is harmless: only the choice of the out-of-memory killer differs. */
    if (read(file, &first, 1) == 1 && first == '-' &&
        pwrite(file, default_adjustment, strlen(default_adjustment), 0) < 0) {
    }
    close(file);
}

static int change_credentials(const struct user_identity *persona, const struct passwd *entry)
{
    gid_t group = entry != NULL ? entry->pw_gid : persona->gid;

    /* For the kernel, this uid means "no change". */
    if (persona->uid == UINT32_MAX || (entry == NULL && persona->gid == USER_IDENTITY_NO_GROUP))
        return ESRCH;
    if ((entry != NULL ? initgroups(entry->pw_name, group) : setgroups(0, NULL)) < 0 ||
        setresgid(group, group, group) < 0 ||
        setresuid(persona->uid, persona->uid, persona->uid) < 0)
        return errno;
    return 0;
}

/* Returns 0, or -1 with errno. */
static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    return prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) < 0 ||
                   syscall(SYS_capset, &header, data) < 0
               ? -1
               : 0;
}

int become_user_apply(const struct user_identity *persona, const char **ret_home)
{
    const struct passwd *entry = getpwuid(persona->uid);
    bool is_other = become_user_is_other(persona);
    int number = 0;

    reset_oom_adjustment();
    if (is_other)
        number = change_credentials(persona, entry);
    /* A helper of root for root keeps its capabilities. */
    if (number == 0 && (is_other || persona->uid != 0) && drop_capabilities() < 0)
        number = errno;
    if (number == 0)
        *ret_home = entry == NULL ? NULL : entry->pw_dir;
    return number;
}
