// SPDX-License-Identifier: Apache-2.0
/* A process with much memory that calls exec.
 *
 *     large-exec MIB
 *
 * It fills its memory, prints "ready", waits for a line of input, and becomes `sleep 1000`. The
 * kernel frees the memory within execve and keeps exec_update_lock of the process meanwhile: about
 * 75 ms per GiB. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    size_t size = argc == 2 ? (size_t)strtol(argv[1], NULL, 10) << 20 : 0;
    if (size == 0) {
        fprintf(stderr, "usage: large-exec MIB\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // Small pages take the kernel longer to free.
    if (memory == MAP_FAILED || madvise(memory, size, MADV_NOHUGEPAGE) != 0 ||
        madvise(memory, size, MADV_POPULATE_WRITE) != 0) {
        fprintf(stderr, "large-exec: cannot allocate memory: %s\n", strerror(errno));
        return 1;
    }
    puts("ready");
    fflush(stdout);
    char byte;
    if (read(STDIN_FILENO, &byte, 1) == 1)
        execlp("sleep", "sleep", "1000", (char *)NULL);
    return 1;
}
