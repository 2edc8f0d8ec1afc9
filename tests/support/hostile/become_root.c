// SPDX-License-Identifier: Apache-2.0
/* A setuid program that becomes root fully, as sudo and su do, and then runs a command.
 *
 *     become-root COMMAND [ARGUMENT ...]
 *
 * The tests install a copy that belongs to root, with the setuid bit. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: become-root COMMAND [ARGUMENT ...]\n");
        return 2;
    }
    if (setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0)
        execvp(argv[1], argv + 1);
    fprintf(stderr, "become-root: %s\n", strerror(errno));
    return 1;
}
