/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/processes/signal_right.h"

#include "daemon/core/pidfd.h"

bool signal_right_covers(const struct signal_right *right, uint32_t uid)
{
    const struct subordinate_range *range;

    if (right->uid == 0 || right->uid == uid)
        return true;
    if (right->ranges == NULL)
        return false;
    vector_for_each (range, right->ranges) {
        if (range->owner == right->uid && uid >= range->first && uid <= range->last)
            return true;
    }
    return false;
}

/* The process may still change its user between the check and the signal. No system call does both,
 * so a gap of a few microseconds remains. */
bool signal_right_use(const struct signal_right *right, pid_t pid, int descriptor, int number,
                      uint32_t *ret_uid)
{
    uint32_t uid;

    /* The user is unknown if the process has ended, or if the kernel is older than 6.13 and /proc
     * hides the process (hidepid). Then the user that the reader found counts. */
    if (right->uid != 0 && pidfd_find_user(descriptor, pid, &uid) &&
        !signal_right_covers(right, uid)) {
        *ret_uid = uid;
        return false;
    }
    pidfd_signal(descriptor, number);
    return true;
}
