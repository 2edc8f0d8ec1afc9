/* SPDX-License-Identifier: Apache-2.0
 *
 * berth-probe: reads the hardware for berth. It is a separate process, so that a driver call that
 * hangs or a library that crashes does not affect berth.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hardware/supervisor/supervisor.h"
#include "hardware/sysfs/sysroot.h"
#include "hardware/vendors.h"
#include "sandbox/sandbox.h"

enum { EXIT_USAGE = 2, EXIT_BERTH = 125 };

static const char usage[] =
    "usage: berth-probe\n"
    "\n"
    "Reads the GPUs of this machine for berth. berth starts it, with a socket as\n"
    "standard input. To see the GPUs, run 'berth devices'.\n";

static int print_information(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return fflush(stdout) == 0 ? 0 : EXIT_BERTH;
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("berth-probe %s\n", BERTH_VERSION);
        return fflush(stdout) == 0 ? 0 : EXIT_BERTH;
    }
    fputs("berth-probe: expected no arguments, got some (see berth-probe --help)\n", stderr);
    return EXIT_USAGE;
}

static bool is_socket(int descriptor)
{
    int type;
    socklen_t size = sizeof(type);

    return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

int main(int argc, char **argv)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct sysroot root = {0};
    int code;

    sandbox_hide();
    if (argc > 1)
        return print_information(argc, argv);
    if (!is_socket(STDIN_FILENO)) {
        fputs("berth-probe: expected a socket as standard input; berth starts this program itself. "
              "To see the devices, run 'berth devices'\n",
              stderr);
        return EXIT_USAGE;
    }
    signal(SIGPIPE, SIG_IGN);
    code = sandbox_enter_supervisor(&error);
    if (code == 0)
        code = sysroot_init(&root, &error);
    if (code == 0)
        code = supervisor_run(STDIN_FILENO, &root, vendor_tables, &error);
    sysroot_finish(&root);
    if (code == 0)
        return 0;
    fprintf(stderr, "berth-probe: %s\n", error.message);
    return EXIT_BERTH;
}
