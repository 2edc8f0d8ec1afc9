/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/persona.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "daemon/privileges.h"

bool persona_is_other(const struct persona *persona)
{
    return persona->uid != geteuid();
}

/* The kernel is to spare us before others, but not what is run for others. */
static void be_as_expendable_as_others(void)
{
    static const char default_adjustment[] = "0";
    int file = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    char first = '\0';

    if (file < 0)
        return;
    /* Where it fails, it is the site's own doing. */
    if (read(file, &first, 1) == 1 && first == '-' &&
        pwrite(file, default_adjustment, strlen(default_adjustment), 0) < 0) {
    }
    close(file);
}

static int change(const struct persona *persona, const struct passwd *entry)
{
    gid_t group = entry != NULL ? entry->pw_gid : persona->gid;

    if (entry == NULL && persona->gid == PERSONA_NO_GROUP)
        return ESRCH;
    if ((entry != NULL ? initgroups(entry->pw_name, group) : setgroups(0, NULL)) < 0 ||
        setresgid(group, group, group) < 0 ||
        setresuid(persona->uid, persona->uid, persona->uid) < 0)
        return errno;
    return 0;
}

int persona_become(const struct persona *persona, const char **ret_home)
{
    const struct passwd *entry = getpwuid(persona->uid);
    bool is_other = persona_is_other(persona);
    int number = 0;

    be_as_expendable_as_others();
    if (is_other)
        number = change(persona, entry);
    /* Nothing is taken from root by giving it what it has. */
    if (number == 0 && (is_other || persona->uid != 0) && privileges_give_up() < 0)
        number = errno;
    if (number == 0)
        *ret_home = entry == NULL ? NULL : entry->pw_dir;
    return number;
}
