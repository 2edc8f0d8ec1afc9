/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sandbox_domain.h"

#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From linux/landlock.h, whose older versions lack some members. */
struct ruleset {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

#define QUERY_VERSION (1U << 0)
#define FS_EXECUTE    (UINT64_C(1) << 0)
#define SCOPE_SOCKETS (UINT64_C(1) << 0) /* abstract Unix sockets */
#define SCOPE_SIGNALS (UINT64_C(1) << 1)

/* These numbers are the same on all architectures but alpha. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self  446
#endif

enum { VERSION_OF_SCOPES = 6 };

void sandbox_domain_enter(void)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0UL, QUERY_VERSION);
    /* A ruleset must handle at least one kind of access. No rule allows any, so no file can be
     * executed. Executable memory is not affected, so libraries can be loaded. */
    const struct ruleset ruleset = {
        .handled_access_fs = FS_EXECUTE,
        .scoped = version >= VERSION_OF_SCOPES ? SCOPE_SOCKETS | SCOPE_SIGNALS : 0,
    };
    int file = -1;

    if (version > 0 && prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) == 0)
        file = (int)syscall(SYS_landlock_create_ruleset, &ruleset, sizeof(ruleset), 0U);
    if (file < 0)
        return;
    /* After a failure, only the filter of system calls protects other processes. */
    syscall(SYS_landlock_restrict_self, file, 0U);
    close(file);
}
