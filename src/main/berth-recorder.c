/* SPDX-License-Identifier: Apache-2.0
 *
 * berth-recorder: writes down the leases of the daemon that starts it.
 *
 *     berth-recorder FILE POOL KEEP all|owner
 *
 * Its connection to the daemon is standard input, what it says of itself goes to standard output.
 * Nobody else starts it.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text/quantity.h"
#include "record/recorder.h"

enum { EXIT_WRONG = 2, EXIT_FAILED = 125 };

/* What the daemon may do to the processes of others is nothing that writing a file needs. */
static void drop_rights(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};

    if (geteuid() == 0)
        return;
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    syscall(SYS_capset, &header, none);
}

static bool is_socket(int descriptor)
{
    int type = 0;
    socklen_t length = sizeof(type);

    return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0 &&
           type == SOCK_SEQPACKET;
}

static int read_settings(int argc, char **argv, struct recorder_settings *settings,
                         struct berth_error *error)
{
    if (argc != 5 || argv[1][0] != '/' ||
        (strcmp(argv[4], "all") != 0 && strcmp(argv[4], "owner") != 0) ||
        !is_socket(STDIN_FILENO)) {
        fprintf(stderr, "berth-recorder: expected to be started by berthd, got something else\n");
        return -1;
    }
    *settings = (struct recorder_settings){
        .file = argv[1],
        .pool = argv[2],
        .readers = strcmp(argv[4], "all") == 0 ? HISTORY_FOR_ALL : HISTORY_FOR_OWNER,
        .connection = STDIN_FILENO,
        .problems = STDOUT_FILENO,
    };
    if (quantity_parse_duration(argv[3], &settings->keep, error) == 0)
        return 0;
    fprintf(stderr, "berth-recorder: %s\n", error->message);
    return -1;
}

int main(int argc, char **argv)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct recorder_settings settings;

    if (read_settings(argc, argv, &settings, &error) < 0)
        return EXIT_WRONG;
    signal(SIGPIPE, SIG_IGN);
    /* Whoever ends the daemon's group or terminal does not mean us: we end when it has. */
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    drop_rights();
    fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
    if (recorder_run(&settings, &error) == 0)
        return 0;
    fprintf(stderr, "problem %s\n", error.message);
    return EXIT_FAILED;
}
