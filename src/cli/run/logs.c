/* SPDX-License-Identifier: Apache-2.0
 *
 * berth logs: prints the output of a submitted job, and follows it with --follow.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/clock.h"
#include "base/system/file.h"
#include "base/text/quantity.h"
#include "cli/connect.h"
#include "cli/exit_codes.h"
#include "cli/ids.h"
#include "cli/output.h"
#include "cli/run/state_files.h"
#include "cli/verbs.h"
#include "spec/option_types.h"

struct logs_options {
    bool follow;
};

static const struct option logs_rows[] = {
    {.name = "follow",
     .letter = 'f',
     .help = "keep printing new output until the job ends",
     .offset = offsetof(struct logs_options, follow),
     .parse = option_type_flag},
};

static const struct option_set logs_option_set = {
    .heading = "Options",
    .options = logs_rows,
    .count = COUNT(logs_rows),
};

static const struct option_set *const logs_sets[] = {&logs_option_set, &connect_option_set, NULL};

/* How long to wait for the exit file after the end of a job, and how often to check for it. */
#define EXIT_FILE_TIMEOUT  (5 * DURATION_SECOND)
#define EXIT_FILE_INTERVAL 10 /* milliseconds */

/* A log that is followed. */
struct following {
    int log;
    int changes; /* inotify */
    struct session *session;
    struct wire_message question; /* WIRE_WATCH */
    const struct state_files *files;
    bool over;          /* the lease has ended, or the daemon does not know the job */
    int64_t give_up_at; /* if over: when to stop waiting for the exit file */
};

static int print_bytes(const char *bytes, size_t length, struct berth_error *error)
{
    int number = file_write(STDOUT_FILENO, bytes, length);

    if (number == 0)
        return 0;
    error_set_errno(error, number, "cannot write standard output");
    return error->code = BERTH_ERROR_IO;
}

/* Prints the log from the current position to its end. */
static int print_new_output(int log, struct berth_error *error)
{
    char bytes[65536];
    ssize_t got;

    while ((got = read(log, bytes, sizeof(bytes))) != 0) {
        int code = 0;

        if (got > 0)
            code = print_bytes(bytes, (size_t)got, error);
        else if (errno != EINTR)
            code = error_set_errno(error, errno, "cannot read the log");
        if (code < 0)
            return code;
    }
    return 0;
}

/* Subscribes to the end of the job. Subscribes again whenever the connection is lost. */
static int subscribe_end(struct following *following, struct berth_error *error)
{
    struct session *session = following->session;
    int code = 0;

    do {
        if (session->socket < 0)
            code = session_reconnect(session, error);
        if (code < 0)
            return code;
        following->question.number = session_next_number(session);
        code = session_send(session, &following->question, error);
    } while (code == BERTH_ERROR_IO && session->socket < 0 && !session->closed);
    return code;
}

/* Returns the time since the log was last written. */
static int64_t time_since_write(const struct following *following)
{
    struct stat status;

    if (fstat(following->log, &status) < 0)
        return INT64_MAX;
    return clock_read(CLOCK_REALTIME) -
           (status.st_mtim.tv_sec * DURATION_SECOND + status.st_mtim.tv_nsec);
}

/* Returns how long to wait for the exit file: 0 if the job's process died, or if the job seems to
 * have ended long ago. */
static int64_t choose_timeout(const struct following *following, const struct wire_message *answer)
{
    bool is_late = answer->type == WIRE_REFUSED && time_since_write(following) > EXIT_FILE_TIMEOUT;

    return is_late || answer->end == LEASE_END_DIED ? 0 : EXIT_FILE_TIMEOUT;
}

/* Handles the messages that have arrived from the daemon. */
static int receive_messages(struct following *following, struct berth_error *error)
{
    struct session *session = following->session;
    struct wire_message message;
    int code;

    while ((code = session_receive(session, 0, &message, error)) == SESSION_MESSAGE) {
        /* WIRE_ENDED, or WIRE_REFUSED: the job ended long ago. */
        if (message.number == following->question.number && !following->over) {
            following->over = true;
            following->give_up_at = clock_after(clock_now(), choose_timeout(following, &message));
        }
        wire_message_finish(&message);
    }
    if (code == BERTH_ERROR_IO && !session->closed)
        code = subscribe_end(following, error);
    return code;
}

/* Sleeps until the log or the job's state may have changed. */
static int wait_for_change(struct following *following, struct berth_error *error)
{
    char events[4096];
    struct pollfd waiting[] = {
        {.fd = following->changes, .events = POLLIN},
        {.fd = following->session->socket, .events = POLLIN},
    };

    if (poll(waiting, COUNT(waiting), following->over ? EXIT_FILE_INTERVAL : -1) < 0)
        return errno == EINTR ? 0 : error_set_errno(error, errno, "cannot wait for new output");
    if (waiting[0].revents != 0 && read(following->changes, events, sizeof(events)) < 0 &&
        errno != EAGAIN)
        return error_set_errno(error, errno, "cannot follow the log");
    return waiting[1].revents != 0 ? receive_messages(following, error) : 0;
}

/* Returns true if the log is complete: the job's process writes the exit file after its last
 * output, unless it was killed. */
static bool is_complete(const struct following *following)
{
    return following->over &&
           (access(following->files->exit, F_OK) == 0 || clock_now() >= following->give_up_at);
}

static int follow_log(struct session *session, uint64_t id, const struct state_files *files,
                      int log, struct berth_error *error)
{
    struct following following = {
        .log = log,
        .changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
        .session = session,
        .question = {.type = WIRE_WATCH, .id = id},
        .files = files,
    };
    int code;

    if (following.changes < 0 || inotify_add_watch(following.changes, files->log, IN_MODIFY) < 0) {
        code = error_set_errno(error, errno, "cannot watch %s", files->log);
    } else {
        code = subscribe_end(&following, error);
        while (code == 0) {
            /* Check before printing, so that output written before the end is not missed. */
            bool over = is_complete(&following);

            code = print_new_output(log, error);
            if (over)
                break;
            if (code == 0)
                code = wait_for_change(&following, error);
        }
    }
    if (following.changes >= 0)
        close(following.changes);
    return code;
}

/* Prints the log, and follows it if `following` is set. */
static int print_log(struct session *session, uint64_t id, const struct state_files *files,
                     bool following, struct berth_error *error)
{
    int log = open(files->log, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int code;

    if (log < 0 && errno == ENOENT)
        return error_set(error, BERTH_ERROR_NOT_FOUND,
                         "job %" PRIu64 " has no log (only jobs of 'berth submit' have one)", id);
    if (log < 0)
        return error_set_errno(error, errno, "cannot open %s", files->log);
    code = following ? follow_log(session, id, files, log, error) : print_new_output(log, error);
    close(log);
    return code;
}

static int print_job_log(const char *inventory, uint64_t id, bool following,
                         struct berth_error *error)
{
    struct state_files files = {0};
    struct pool_connection connection;
    char *pool = NULL;
    int code = connect_open(&connection, inventory, error);

    if (code < 0)
        return code;
    code = state_files_pool(&connection.session, &pool, error);
    if (code == 0)
        code = state_files_find(pool, id, &files, error);
    if (code == 0)
        code = print_log(&connection.session, id, &files, following, error);
    state_files_finish(&files);
    free(pool);
    connect_close(&connection);
    return code;
}

static int run_logs_verb(int argc, char **argv)
{
    struct logs_options options = {0};
    struct connect_options where = {0};
    const struct option_binding bindings[] = {
        {&logs_option_set, &options},
        {&connect_option_set, &where},
    };
    struct berth_error error = BERTH_ERROR_INIT;
    uint64_t id = 0;
    int operand;
    int code;

    if (!verb_begin_operands(&verb_logs, bindings, COUNT(bindings), argc, argv, &operand, &code))
        return code;
    if (argc - operand != 1)
        code = error_set(&error, BERTH_ERROR_INVALID, "expected one id, got %d", argc - operand);
    else
        code = id_parse(argv[operand], &id, &error);
    if (code == 0)
        code = print_job_log(where.inventory, id, options.follow, &error);
    if (code == 0)
        return EXIT_GOOD;
    error_wrap(&error, code, "%s", verb_logs.name);
    return output_refusal(&error);
}

const struct verb verb_logs = {
    .name = "logs",
    .usage = "[options] ID",
    .summary = "print the output of a submitted job",
    .description = "Prints the output and standard error of a job of 'berth submit', from the "
                   "beginning.",
    .examples = "berth logs 12\n"
                "berth logs -f 12\n",
    .sets = logs_sets,
    .operand = OPERAND_JOB,
    .run = run_logs_verb,
};
