/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/namespaces.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 33 }; /* the kernel's limit for nested user namespaces */

struct namespace_path {
    char text[64];
};

static struct namespace_path format_path(pid_t pid, const char *kind)
{
    struct namespace_path path;

    snprintf(path.text, sizeof(path.text), "/proc/%d/ns/%s", (int)pid, kind);
    return path;
}

static bool stat_our_namespace(const char *kind, struct stat *ret_ours)
{
    struct namespace_path path;

    snprintf(path.text, sizeof(path.text), "/proc/self/ns/%s", kind);
    return stat(path.text, ret_ours) == 0;
}

static bool is_same_namespace(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* Returns whether the process and the caller are in different namespaces of this kind. The common
 * case, the same namespace, needs no open(). */
static bool is_in_other_namespace(pid_t pid, const char *kind, struct stat *ret_ours)
{
    struct stat its;

    return pid > 0 && stat(format_path(pid, kind).text, &its) == 0 &&
           stat_our_namespace(kind, ret_ours) && !is_same_namespace(&its, ret_ours);
}

/* Goes up from the user namespace `descriptor` to the one right below the caller's, and finds its
 * owner. Closes the descriptor. */
static bool find_owner(int descriptor, const struct stat *ours, uint32_t *ret_uid)
{
    bool is_below = false;
    uid_t uid;

    for (int depth = 0; depth < DEPTH_MAX && !is_below; depth++) {
        int above = ioctl(descriptor, NS_GET_PARENT);
        struct stat status;

        if (above < 0)
            break;
        is_below = fstat(above, &status) == 0 && is_same_namespace(&status, ours);
        close(is_below ? above : descriptor);
        descriptor = is_below ? descriptor : above;
    }
    is_below = is_below && ioctl(descriptor, NS_GET_OWNER_UID, &uid) == 0;
    close(descriptor);
    if (is_below)
        *ret_uid = uid;
    return is_below;
}

bool namespace_user_owner(pid_t pid, uint32_t *ret_uid)
{
    struct stat ours;
    int descriptor = -1;

    if (is_in_other_namespace(pid, "user", &ours))
        descriptor = open(format_path(pid, "user").text, O_RDONLY | O_CLOEXEC);
    return descriptor >= 0 && find_owner(descriptor, &ours, ret_uid);
}

bool namespace_pid_is_other(pid_t pid)
{
    struct stat ours;

    return is_in_other_namespace(pid, "pid", &ours);
}

bool namespace_pid_is_owned_by_root(pid_t pid)
{
    int descriptor = -1;
    int user = -1;
    struct stat ours, its;
    bool is_roots;

    if (namespace_pid_is_other(pid))
        descriptor = open(format_path(pid, "pid").text, O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) {
        user = ioctl(descriptor, NS_GET_USERNS);
        close(descriptor);
    }
    is_roots = user >= 0 && fstat(user, &its) == 0 && stat_our_namespace("user", &ours) &&
               is_same_namespace(&its, &ours);
    if (user >= 0)
        close(user);
    return is_roots;
}
