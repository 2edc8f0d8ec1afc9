/* SPDX-License-Identifier: Apache-2.0 */
#include "base/newborn.h"

#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

enum { DESCRIPTORS_MOST = 65536 }; /* closed one by one where the kernel cannot close all at once */

void newborn_reset_signals(void)
{
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int i = 1; i < NSIG; i++)
        sigaction(i, &standard, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void newborn_close_from(int first)
{
    struct rlimit limit = {0};

    if (close_range((unsigned)first, ~0U, 0) == 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    for (int i = first; i < DESCRIPTORS_MOST && (rlim_t)i < limit.rlim_cur; i++)
        close(i);
}
