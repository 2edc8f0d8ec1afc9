/* SPDX-License-Identifier: Apache-2.0
 *
 * berth-recorder: records leases in the history file. Only berthd starts it.
 *
 *     berth-recorder FILE POOL KEEP all|owner SIZE commands|programs
 *
 * Standard input is the connection to the daemon. Problems are reported on standard output.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "record/recorder.h"
#include "record/short_leases.h"

enum { EXIT_WRONG = 2, EXIT_FAILED = 125 };

static bool is_socket(int descriptor)
{
    int type = 0;
    socklen_t length = sizeof(type);

    return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0 &&
           type == SOCK_SEQPACKET;
}

static bool is_one_of(const char *word, const char *one, const char *other)
{
    return strcmp(word, one) == 0 || strcmp(word, other) == 0;
}

/* Tests that compare many short leases with their records set BERTH_RECORDER_ALONE. */
static int read_alone_max(struct recorder_settings *settings, struct berth_error *error)
{
    const char *given = getenv("BERTH_RECORDER_ALONE");
    uint64_t number;

    if (given == NULL || *given == '\0')
        return 0;
    if (quantity_parse_number(given, 0, UINT32_MAX, &number, error) < 0)
        return error_wrap(error, error->code, "BERTH_RECORDER_ALONE");
    settings->alone_max = (uint32_t)number;
    return 0;
}

static int read_settings(int argc, char **argv, struct recorder_settings *settings,
                         struct berth_error *error)
{
    if (argc != 7 || argv[1][0] != '/' || !is_one_of(argv[4], "all", "owner") ||
        !is_one_of(argv[6], "commands", "programs") || !is_socket(STDIN_FILENO)) {
        fprintf(stderr, "berth-recorder: only berthd can start this program\n");
        return -1;
    }
    *settings = (struct recorder_settings){
        .file = argv[1],
        .pool = argv[2],
        .readers = strcmp(argv[4], "all") == 0 ? HISTORY_FOR_ALL : HISTORY_FOR_OWNER,
        .shows_commands = strcmp(argv[6], "commands") == 0,
        .alone_max = SHORT_LEASES_ALONE,
        .connection = STDIN_FILENO,
        .problems = STDOUT_FILENO,
    };
    if (quantity_parse_duration(argv[3], &settings->keep, error) == 0 &&
        quantity_parse_number(argv[5], 0, INT64_MAX, &settings->size, error) == 0 &&
        read_alone_max(settings, error) == 0)
        return 0;
    fprintf(stderr, "berth-recorder: %s\n", error->message);
    return -1;
}

int main(int argc, char **argv)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct recorder_settings settings;

    /* Hide the memory from other programs of the same user, such as a driver's worker. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (read_settings(argc, argv, &settings, &error) < 0)
        return EXIT_WRONG;
    signal(SIGPIPE, SIG_IGN);
    /* Signals to the daemon's process group or terminal must not end the recorder: it ends after
     * the daemon, when the connection closes. */
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
    if (recorder_run(&settings, &error) == 0)
        return 0;
    fprintf(stderr, "problem %s\n", error.message);
    return EXIT_FAILED;
}
