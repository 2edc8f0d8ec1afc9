/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "sandbox/sandbox_domain.h"
#include "sandbox/sandbox_filter.h"

/* The numbers of the first 64 capabilities fit into both words of a set; there are 41. */
enum { CAPABILITIES_MAX = 64 };

/* The environment and the descriptors in /proc/PID may be opened by the process's user only. The
 * kernel requires both capabilities for others. Both are in the first word of a set. */
#define PROC_CAPABILITIES (UINT32_C(1) << CAP_SYS_PTRACE | UINT32_C(1) << CAP_DAC_READ_SEARCH)

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

static bool is_filtered __attribute__((unused)); /* sanitizers read it */

#ifdef __SANITIZE_ADDRESS__
/* LeakSanitizer calls this at the end of the process, before it looks for leaks, for which a child
 * traces the process. So a hidden process must become visible first. A process with a filter cannot
 * be traced, so it does not look for leaks. */
__attribute__((visibility("default"))) int
sandbox_has_no_leak_check(void) __asm__("__lsan_is_turned_off");

int sandbox_has_no_leak_check(void)
{
    if (!is_filtered)
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    return is_filtered;
}
#endif

void sandbox_hide(void)
{
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* Keeps those of `kept` that this process has. They take effect at once, or only in a child. */
static int keep_capabilities(uint32_t kept, bool in_effect)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    /* The bounding set shrinks only for a process that has CAP_SETPCAP. no_new_privs and the filter
     * keep others from gaining capabilities by starting a program. */
    for (int i = 0; i < CAPABILITIES_MAX; i++)
        prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capget, &header, data) < 0)
        return -errno;
    kept &= data[0].permitted;
    data[0] = (struct __user_cap_data_struct){in_effect ? kept : 0, kept, 0};
    data[1] = (struct __user_cap_data_struct){0};
    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static int forbid_new_privileges(void)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int sandbox_enter_supervisor(struct berth_error *error)
{
    int code;

    sandbox_hide();
    code = keep_capabilities(PROC_CAPABILITIES, false);
    if (code == 0)
        code = forbid_new_privileges();
    return code == 0 ? 0 : error_set_errno(error, -code, "cannot give up capabilities");
}

int sandbox_enter(enum sandbox_profile profile, struct berth_error *error)
{
    int code;

    sandbox_hide();
    code = keep_capabilities(profile == SANDBOX_PROC ? PROC_CAPABILITIES : 0, true);
    if (code < 0)
        return error_set_errno(error, -code, "cannot give up capabilities");
    if (profile == SANDBOX_DRIVER)
        sandbox_domain_enter();
    code = sandbox_filter_load(profile);
    is_filtered = code == 0;
    if (code == 0)
        return 0;
    if (keep_capabilities(0, false) < 0)
        _exit(EXIT_FAILURE); /* only a bug in the kernel leads here */
    return error_set_errno(error, -code, "cannot restrict system calls");
}
