/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/child_setup.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/system/unintercepted.h"

enum { DESCRIPTORS_MAX = 65536 }; /* closed one by one when the kernel has no close_range */

void child_setup_reset_signals(void)
{
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int i = 1; i < NSIG; i++)
        unintercepted_sigaction(i, &standard, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void child_setup_close_from(int first)
{
    struct rlimit limit = {0};

    if (close_range((unsigned)first, ~0U, 0) == 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    for (int i = first; i < DESCRIPTORS_MAX && (rlim_t)i < limit.rlim_cur; i++)
        close(i);
}

/* Moves a descriptor above those that will be replaced. It may be one of them, when the caller was
 * started without standard input, output or error. */
static int move_descriptor_above(int descriptor, int above)
{
    return fcntl(descriptor, F_DUPFD_CLOEXEC, above + 1);
}

int child_setup_descriptors(int input, int output, int *kept)
{
    enum { KEPT = STDERR_FILENO + 1 };

    output = move_descriptor_above(output, KEPT);
    *kept = move_descriptor_above(*kept, KEPT);
    input =
        input >= 0 ? move_descriptor_above(input, KEPT) : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (output < 0 || *kept < 0 || input < 0 ||
        (input == STDIN_FILENO ? fcntl(input, F_SETFD, 0) : dup2(input, STDIN_FILENO)) < 0 ||
        dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0 ||
        dup3(*kept, KEPT, O_CLOEXEC) < 0)
        return -1;
    *kept = KEPT;
    child_setup_close_from(KEPT + 1);
    return 0;
}
