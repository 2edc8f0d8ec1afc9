/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/pidfd_info.h"

#include <sys/ioctl.h>

_Static_assert(sizeof(struct pidfd_record) == 64, "as the kernel's struct pidfd_info began");

#define CREDENTIALS (UINT64_C(1) << 1)
#define EXIT        (UINT64_C(1) << 3)

bool pidfd_info_read(int process, struct pidfd_facts *ret_facts)
{
    struct pidfd_record record = {.mask = CREDENTIALS};

    if (ioctl(process, PIDFD_INFO_REQUEST, &record) < 0 || (record.mask & CREDENTIALS) == 0)
        return false;
    *ret_facts = (struct pidfd_facts){
        .parent = (pid_t)record.parent,
        .real_uid = record.real_uid,
        .effective_uid = record.effective_uid,
        .saved_uid = record.saved_uid,
        .real_gid = record.real_gid,
    };
    return true;
}

bool pidfd_info_read_status(int process, int *ret_status)
{
    struct pidfd_record record = {.mask = EXIT};

    if (ioctl(process, PIDFD_INFO_REQUEST, &record) < 0 || (record.mask & EXIT) == 0)
        return false;
    *ret_status = record.exit_code;
    return true;
}
