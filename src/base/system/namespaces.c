/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/namespaces.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 33 }; /* the kernel allows no more user namespaces within each other */

struct namespace_path {
    char text[64];
};

static struct namespace_path path_of(pid_t pid, const char *kind)
{
    struct namespace_path path;

    snprintf(path.text, sizeof(path.text), "/proc/%d/ns/%s", (int)pid, kind);
    return path;
}

static bool find_ours(const char *kind, struct stat *ret_ours)
{
    struct namespace_path path;

    snprintf(path.text, sizeof(path.text), "/proc/self/ns/%s", kind);
    return stat(path.text, ret_ours) == 0;
}

static bool is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* Whether the process is in another namespace of this kind than we are. Most are in ours, which is
 * known without opening anything. */
static bool is_other(pid_t pid, const char *kind, struct stat *ret_ours)
{
    struct stat its;

    return pid > 0 && stat(path_of(pid, kind).text, &its) == 0 && find_ours(kind, ret_ours) &&
           !is_same(&its, ret_ours);
}

/* Goes up from the user namespace, whose descriptor it takes, to the one right below ours. */
static bool find_owner(int descriptor, const struct stat *ours, uint32_t *ret_uid)
{
    bool is_below = false;
    uid_t uid;

    for (int depth = 0; depth < DEPTH_MAX && !is_below; depth++) {
        int above = ioctl(descriptor, NS_GET_PARENT);
        struct stat status;

        if (above < 0)
            break;
        is_below = fstat(above, &status) == 0 && is_same(&status, ours);
        close(is_below ? above : descriptor);
        descriptor = is_below ? descriptor : above;
    }
    is_below = is_below && ioctl(descriptor, NS_GET_OWNER_UID, &uid) == 0;
    close(descriptor);
    if (is_below)
        *ret_uid = uid;
    return is_below;
}

bool user_namespace_owner(pid_t pid, uint32_t *ret_uid)
{
    struct stat ours;
    int descriptor = -1;

    if (is_other(pid, "user", &ours))
        descriptor = open(path_of(pid, "user").text, O_RDONLY | O_CLOEXEC);
    return descriptor >= 0 && find_owner(descriptor, &ours, ret_uid);
}

bool pid_namespace_is_other(pid_t pid)
{
    struct stat ours;

    return is_other(pid, "pid", &ours);
}

bool pid_namespace_is_roots(pid_t pid)
{
    int descriptor = -1;
    int user = -1;
    struct stat ours, its;
    bool is_roots;

    if (pid_namespace_is_other(pid))
        descriptor = open(path_of(pid, "pid").text, O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) {
        user = ioctl(descriptor, NS_GET_USERNS);
        close(descriptor);
    }
    is_roots =
        user >= 0 && fstat(user, &its) == 0 && find_ours("user", &ours) && is_same(&its, &ours);
    if (user >= 0)
        close(user);
    return is_roots;
}
