/* SPDX-License-Identifier: Apache-2.0
 *
 * berth submit: runs a command in the background. A detached process (setsid) makes the claim and
 * reports its id to the calling process, which prints the id and ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/claim.h"
#include "cli/connect.h"
#include "cli/exit_codes.h"
#include "cli/kept_commands.h"
#include "cli/output.h"
#include "cli/run/command_launch.h"
#include "cli/run/leased_command.h"
#include "cli/run/notify.h"
#include "cli/run/run.h"
#include "cli/run/state_files.h"

enum { REPORT_DESCRIPTOR = 3 };

/* The report from the job's process to the calling process, sent as one packet. */
struct job_report {
    uint64_t id; /* 0: failed, see error */
    struct berth_error error;
};

/* The best-effort replica that this job runs, if any. */
struct submitted_replica {
    uint32_t number;
    uint32_t count; /* 0: the job is not a best-effort replica */
};

/* The state of the job's process. */
struct submission {
    struct run_line *line;
    struct pool_connection connection;
    struct client_claim claim;
    struct notify notify;
    char *pool;
    struct state_files files; /* set if `reported` is true */
    bool reported;            /* the calling process has the id */
};

static int job_report_send(const struct job_report *report)
{
    ssize_t sent;

    do {
        sent = send(REPORT_DESCRIPTOR, report, sizeof(*report), MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    close(REPORT_DESCRIPTOR);
    return sent == sizeof(*report) ? 0 : BERTH_ERROR_CANCELLED;
}

/* Opens the log and redirects standard output and standard error to it. */
static int open_log(struct submission *submission, struct berth_error *error)
{
    int log = -1;
    int code = state_files_find(submission->pool, submission->claim.id, &submission->files, error);

    if (code == 0)
        code = state_files_create_log(&submission->files, &log, error);
    if (code < 0)
        return code;
    if (dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
        code = error_set_errno(error, errno, "cannot write to %s", submission->files.log);
    close(log);
    return code;
}

/* Opens the log and reports the claim's id to the calling process, once. */
static int report_id(struct submission *submission, struct berth_error *error)
{
    const struct job_report report = {.id = submission->claim.id};
    int code = submission->reported ? 0 : open_log(submission, error);

    if (code < 0 || submission->reported)
        return code;
    /* If the calling process was killed, the user does not know the id: cancel the claim. */
    if (job_report_send(&report) < 0)
        return error_set(error, BERTH_ERROR_CANCELLED,
                         "cannot submit the job: the calling process ended before it got the id");
    submission->reported = true;
    return 0;
}

static int handle_waiting(void *context, const struct wire_message *waiting,
                          struct berth_error *error)
{
    struct submission *submission = context;
    int code = report_id(submission, error);

    if (code == 0)
        notify_waiting(&submission->notify, &submission->claim, waiting);
    return code;
}

/* Makes the claim, reports its id, and waits until it is granted. */
static int claim_and_report(struct submission *submission, struct berth_error *error)
{
    const struct claim_facts facts = {
        .request = (struct request *)&submission->line->request.request,
        .hold = LEASE_HOLD_PROCESS,
        .argv = submission->line->argv,
        .inventory = submission->connection.address.inventory,
    };
    struct claim_listener listener = {.context = submission, .waiting = handle_waiting};
    int code = claim_init(&submission->claim, &facts, error);

    if (code == 0)
        code =
            notify_init(&submission->notify, &submission->line->notify, facts.request->name, error);
    listener.pause = notify_pause(&submission->notify);
    if (code == 0)
        code = state_files_pool(&submission->connection.session, &submission->pool, error);
    if (code == 0)
        code = claim_wait(&submission->claim, &submission->connection.session, &listener, error);
    if (code == 0)
        code = report_id(submission, error);
    if (code == 0) {
        kept_commands_add(&submission->connection.address, &submission->claim);
        notify_granted(&submission->notify, &submission->claim);
    }
    return code;
}

/* Makes the claim and runs the command. Returns the exit code, or a negative error code. */
static int claim_and_run(struct submission *submission, const struct submitted_replica *replica,
                         struct berth_error *error)
{
    struct command_launch launch = {
        .verb = verb_submit.name,
        .claim = &submission->claim,
        .argv = submission->line->argv,
        .options = &submission->line->request,
        .warns = true,
        .is_replica = replica->count > 0,
        .replica = replica->number,
        .replica_count = replica->count,
    };
    struct labelled_output *labels;
    int code = claim_and_report(submission, error);

    if (code < 0)
        return code;
    code = command_launch_init(&launch, error);
    if (code == 0)
        code = command_launch_make_labels(&launch, &labels, error);
    if (code == 0) {
        code = leased_command_run(&launch, labels, &submission->connection.session);
        code = leased_command_finish_labels(launch.verb, labels, code);
    }
    command_launch_finish(&launch);
    return code;
}

/* Writes the job's exit code and releases the lease. */
static void leave_exit_code(struct submission *submission, int exit_code)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (state_files_write_exit(&submission->files, exit_code, &error) < 0)
        run_fail(&verb_submit, &error);
    if (submission->claim.granted)
        leased_command_release(&submission->claim, &submission->connection.session, exit_code);
}

/* Runs the job's process. Returns its exit code. */
static int run_job(struct run_line *line, const struct submitted_replica *replica)
{
    struct submission submission = {.line = line};
    struct job_report report = {0};
    int code = connect_open_for_request(&submission.connection, &line->request, verb_submit.name,
                                        &report.error);
    int exit_code = code;

    if (code == 0) {
        exit_code = claim_and_run(&submission, replica, &report.error);
        if (exit_code < 0 && submission.reported)
            exit_code = run_fail(&verb_submit, &report.error);
        if (submission.reported)
            leave_exit_code(&submission, exit_code);
        state_files_finish(&submission.files);
        free(submission.pool);
        claim_finish(&submission.claim);
        connect_close(&submission.connection);
    }
    if (!submission.reported)
        job_report_send(&report);
    return exit_code < 0 ? EXIT_BERTH : exit_code;
}

/* Detaches from the caller's terminal and session and closes inherited descriptors. Keeps the
 * working directory and the environment. Returns true on success. */
static bool detach_from_caller(int report)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool good = nothing >= 0 && setsid() >= 0 && dup2(nothing, STDIN_FILENO) >= 0;

    signal(SIGHUP, SIG_IGN);
    /* Move the descriptor away first, in case it is REPORT_DESCRIPTOR: dup3 refuses equal numbers.
     */
    report = good ? fcntl(report, F_DUPFD_CLOEXEC, REPORT_DESCRIPTOR + 1) : -1;
    good = report >= 0 && dup3(report, REPORT_DESCRIPTOR, O_CLOEXEC) >= 0;
    return good && close_range(REPORT_DESCRIPTOR + 1, ~0U, 0) == 0;
}

/* Waits for the report and prints the id. Returns the exit code. */
static int wait_for_report(int from, pid_t job)
{
    struct job_report report;
    struct text out = {0};
    ssize_t got;
    int code;

    do {
        got = recv(from, &report, sizeof(report), 0);
    } while (got < 0 && errno == EINTR);
    if (got != sizeof(report)) {
        report = (struct job_report){0};
        error_set(&report.error, BERTH_ERROR_IO,
                  "cannot submit the job: its process ended unexpectedly");
    }
    if (report.id == 0) {
        waitpid(job, NULL, 0);
        return run_fail(&verb_submit, &report.error);
    }
    text_append_format(&out, "%" PRIu64 "\n", report.id);
    code = output_write(&out);
    text_finish(&out);
    return code;
}

/* Submits one job. Returns the exit code. */
static int submit_job(struct run_line *line, const struct submitted_replica *replica)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int ends[2];
    pid_t job;
    int code;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        error_set_errno(&error, errno, "cannot create a socket pair");
        return run_fail(&verb_submit, &error);
    }
    job = fork();
    if (job == 0) {
        close(ends[0]);
        _exit(detach_from_caller(ends[1]) ? run_job(line, replica) : EXIT_BERTH);
    }
    close(ends[1]);
    if (job < 0) {
        error_set_errno(&error, errno, "cannot create a process");
        code = run_fail(&verb_submit, &error);
    } else {
        code = wait_for_report(ends[0], job);
    }
    close(ends[0]);
    return code;
}

/* Submits one job, or a job for each best-effort replica. Returns the exit code. */
static int submit_jobs(struct run_line *line)
{
    struct request *request = &line->request.request;
    struct submitted_replica replica = {0};
    int code = EXIT_GOOD;

    if (!run_line_is_best_effort(line))
        return submit_job(line, &replica);
    replica.count = request->replicas;
    request->replicas = 1;
    request->scheduling = SCHEDULING_UNSAID;
    for (; replica.number < replica.count && code == EXIT_GOOD; replica.number++)
        code = submit_job(line, &replica);
    return code;
}

/* Refuses the field or_cpu of a spec file: a job on the CPU has no claim and so no id. */
static int refuse_cpu(void)
{
    struct berth_error error = BERTH_ERROR_INIT;

    error_set(&error, BERTH_ERROR_INVALID,
              "or_cpu in the spec file: a submitted job cannot run on the CPU; use 'berth run'");
    return run_fail(&verb_submit, &error);
}

static int run_submit_verb(int argc, char **argv)
{
    struct run_line line;
    int code;

    if (run_line_parse(&verb_submit, &line, argc, argv, &code))
        code = line.request.request.or_cpu ? refuse_cpu() : submit_jobs(&line);
    run_line_finish(&line);
    return code;
}

static const struct option_set *const submit_sets[] = {
    &request_device_set,
    &request_replica_set,
    &request_sharing_set,
    &request_mps_set,
    &request_queue_set,
    &request_waiting_set,
    &notify_option_set,
    &request_command_set,
    &request_mask_set,
    &request_job_file_set,
    NULL,
};

const struct verb verb_submit = {
    .name = "submit",
    .usage = "[request] [--] COMMAND [ARGUMENT...]",
    .summary = "run a command in the background and print its id",
    .description =
        "Works like 'berth run', but prints the id and returns as soon as the claim is in the "
        "queue. The command keeps running after you log out. 'berth logs ID' prints its output, "
        "'berth wait ID' waits for its end and returns its exit code, 'berth cancel ID' (queued) "
        "or 'berth release ID' (running) ends it. With best-effort scheduling, each replica is a "
        "job with an id of its own.",
    .examples = "berth submit -n 2 python train.py\n"
                "berth wait $(berth submit -n 1 ./eval.sh)\n",
    .sets = submit_sets,
    .operand = OPERAND_COMMAND,
    .run = run_submit_verb,
};
