/* SPDX-License-Identifier: Apache-2.0
 *
 * berth-recorder: records leases in the history file. Only berthd starts it.
 *
 *     berth-recorder FILE POOL KEEP all|owner
 *
 * Standard input is the connection to the daemon. Problems are reported on standard output.
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

/* Drops the capabilities inherited from the daemon, except for root: writing a file needs none. */
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
        fprintf(stderr, "berth-recorder: only berthd can start this program\n");
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
    /* Signals to the daemon's process group or terminal must not end the recorder: it ends after
     * the daemon, when the connection closes. */
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    drop_rights();
    fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
    if (recorder_run(&settings, &error) == 0)
        return 0;
    fprintf(stderr, "problem %s\n", error.message);
    return EXIT_FAILED;
}
