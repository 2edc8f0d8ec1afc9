/* SPDX-License-Identifier: Apache-2.0
 *
 * berth-reader: the program that reads /proc for the daemon.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "proc_reader/proc_reader.h"
#include "sandbox/sandbox.h"

/* The pidfds of an answer stay open until the daemon reads them. */
enum { DESCRIPTORS_MAX = 8192 };

enum { EXIT_USAGE = 2, EXIT_BERTH = 125 };

static const char usage[] =
    "usage: berth-reader\n"
    "\n"
    "Reads facts of processes for the daemon of berth, which starts it with a socket\n"
    "as standard input.\n";

static int print_information(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return fflush(stdout) == 0 ? 0 : EXIT_BERTH;
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("berth-reader %s\n", BERTH_VERSION);
        return fflush(stdout) == 0 ? 0 : EXIT_BERTH;
    }
    fputs("berth-reader: expected no arguments, got some (see berth-reader --help)\n", stderr);
    return EXIT_USAGE;
}

static bool is_socket(int descriptor)
{
    int type;
    socklen_t size = sizeof(type);

    return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

static void raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= DESCRIPTORS_MAX)
        return;
    limit.rlim_cur = limit.rlim_max < DESCRIPTORS_MAX ? limit.rlim_max : DESCRIPTORS_MAX;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Reads /proc for the parent until it closes the socket. */
static int run_reader(struct proc_files *files, struct berth_error *error)
{
    int code;

    files->directory = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (files->directory < 0)
        return error_set_errno(error, errno, "cannot open /proc");
    /* Tests can behave like an older kernel. */
    files->is_old_kernel = getenv("BERTH_READER_OLD_KERNEL") != NULL || proc_reader_is_old_kernel();
    raise_limit();
    code = sandbox_enter(SANDBOX_PROC, error);
    return code < 0 ? code : proc_reader_run(STDIN_FILENO, files, error);
}

int main(int argc, char **argv)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct proc_files files = {0};
    void *progress;

    sandbox_hide();
    if (argc > 1)
        return print_information(argc, argv);
    progress = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, STDOUT_FILENO, 0);
    if (!is_socket(STDIN_FILENO) || progress == MAP_FAILED) {
        fputs("berth-reader: expected a socket as standard input and a file as standard output; "
              "the daemon starts this program itself\n",
              stderr);
        return EXIT_USAGE;
    }
    close(STDOUT_FILENO);
    files.progress = progress;
    if (run_reader(&files, &error) == 0)
        return 0;
    fprintf(stderr, "berth-reader: %s\n", error.message);
    return EXIT_BERTH;
}
