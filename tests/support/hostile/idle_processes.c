// SPDX-License-Identifier: Apache-2.0
/* Many processes that do nothing.
 *
 *     idle-processes COUNT
 *
 * They share the memory of their parent, so that one costs little more than its kernel stack. The
 * program prints "ready" when all of them exist, and ends and reaps them when its input ends. They
 * also end with the program, however that ends. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const size_t STACK = 8192;

static int stay_idle(void *parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == *(const pid_t *)parent)
        pause();
    return 0;
}

int main(int argc, char **argv)
{
    long count = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    if (count < 1) {
        fprintf(stderr, "usage: idle-processes COUNT\n");
        return 2;
    }
    pid_t self = getpid();
    char *stacks = mmap(NULL, STACK * (size_t)count, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED || setpgid(0, 0) != 0 || signal(SIGCHLD, SIG_IGN) == SIG_ERR) {
        fprintf(stderr, "idle-processes: %s\n", strerror(errno));
        return 1;
    }
    long made = 0;
    while (made < count &&
           clone(stay_idle, stacks + STACK * (size_t)(made + 1), CLONE_VM | SIGCHLD, &self) > 0)
        made++;
    if (made < count)
        fprintf(stderr, "idle-processes: %ld of %ld processes: %s\n", made, count, strerror(errno));
    else
        puts("ready");
    fflush(stdout);
    char byte;
    while (made == count && (read(STDIN_FILENO, &byte, 1) > 0 || errno == EINTR))
        errno = 0;
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    return made == count ? 0 : 1;
}
