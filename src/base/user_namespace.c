/* SPDX-License-Identifier: Apache-2.0 */
#include "base/user_namespace.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MOST = 33 }; /* the kernel allows no more within each other */

static bool is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* Goes up from the namespace, whose descriptor it takes, to the one right below ours. */
static bool find_owner(int descriptor, const struct stat *ours, uint32_t *ret_uid)
{
    bool is_below = false;
    struct stat above;
    uid_t uid;

    for (int depth = 0; depth < DEPTH_MOST && !is_below; depth++) {
        int parent = ioctl(descriptor, NS_GET_PARENT);

        if (parent < 0)
            break;
        is_below = fstat(parent, &above) == 0 && is_same(&above, ours);
        if (is_below) {
            close(parent);
            break;
        }
        close(descriptor);
        descriptor = parent;
    }
    is_below = is_below && ioctl(descriptor, NS_GET_OWNER_UID, &uid) == 0;
    close(descriptor);
    if (is_below)
        *ret_uid = uid;
    return is_below;
}

bool user_namespace_owner(pid_t pid, uint32_t *ret_uid)
{
    struct stat ours, its;
    char path[64];
    int descriptor;

    snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    /* Most are in ours: that is known without opening anything. */
    if (pid <= 0 || stat(path, &its) < 0 || stat("/proc/self/ns/user", &ours) < 0 ||
        is_same(&its, &ours))
        return false;
    descriptor = open(path, O_RDONLY | O_CLOEXEC);
    return descriptor >= 0 && find_owner(descriptor, &ours, ret_uid);
}
