/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/leased_command.h"

#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "cli/exit_codes.h"
#include "cli/output.h"

#define BETWEEN_CALLS (1 * DURATION_SECOND)
/* Every so many calls, the first among them, the user's own daemon is started where none runs. Not
 * every time: waiting for one that does not come up keeps us from the commands. */
#define CALLS_PER_START 10
/* How long a command may go on after we know that its lease is no more. */
#define GRACE (10 * DURATION_SECOND)
/* How long the last answer is waited for. */
#define RELEASE_MAX (2 * DURATION_SECOND)

/* What is polled. */
enum { POLL_SUPERVISOR, POLL_DAEMON, POLL_LABELS };

struct poll_list {
    VECTOR_OF(struct pollfd);
};

struct job {
    struct job_copies copies;
    const struct launch *launch; /* NULL: they run under no lease of ours */
    bool warns;
    struct poll_list polls;
    struct claim *claim; /* NULL: none */
    struct session *session;
    struct launch_supervisor *supervisor;
    int64_t next_call; /* while the session is not connected */
    unsigned calls;
    enum lease_end end; /* why the lease ends; 0: it does not */
    int failure;        /* an exit code of berth's own; 0: none */
};

static void stop_by(struct job *job, enum lease_end end, int64_t force_at)
{
    if (job->end == 0)
        job->end = end;
    launch_supervisor_stop(job->supervisor, force_at);
}

void job_describe_warning(const struct wire_message *warning, struct text *out)
{
    /* In whole seconds, the one that has begun among them: 5m, not 4m59s. */
    uint64_t seconds =
        warning->duration / DURATION_SECOND + (warning->duration % DURATION_SECOND != 0);
    int64_t left =
        seconds > INT64_MAX / DURATION_SECOND ? INT64_MAX : (int64_t)seconds * DURATION_SECOND;
    struct quantity_text in = quantity_format_duration(left);

    if (warning->end == LEASE_END_EXPIRED)
        text_append_format(out,
                           "berth: the time limit ends lease %" PRIu64 " in %s ('berth extend "
                           "%" PRIu64 " 1h' moves it)\n",
                           warning->id, in.text, warning->id);
    else if (warning->end == LEASE_END_IDLE && left == 0)
        text_append_format(out,
                           "berth: lease %" PRIu64 " does not use its devices, which others could "
                           "have\n",
                           warning->id);
    else if (warning->end == LEASE_END_IDLE)
        text_append_format(out,
                           "berth: lease %" PRIu64 " does not use its devices and will be taken "
                           "back in %s\n",
                           warning->id, in.text);
    else
        text_append_format(out, "berth: lease %" PRIu64 " will end in %s: %s\n", warning->id,
                           in.text, pool_info_describe_end(warning->end));
}

static void warn(const struct job *job, const struct wire_message *warning)
{
    struct text line = {0};

    if (!job->warns)
        return;
    job_describe_warning(warning, &line);
    if (!text_failed(&line))
        fputs(text_string(&line), stderr);
    text_finish(&line);
}

static void parse(struct job *job, const struct wire_message *message)
{
    bool answer = message->number == job->claim->question.number;

    if (message->type == WIRE_WARNING && message->id == job->claim->id)
        warn(job, message);
    else if (message->type == WIRE_NOTICE && message->id == job->claim->id)
        stop_by(job, message->end, clock_after(clock_now(), (int64_t)message->duration));
    else if (message->type == WIRE_REFUSED && answer)
        /* The pool has no such lease any more: somebody else may have the devices. */
        stop_by(job, LEASE_END_REVOKED, clock_after(clock_now(), GRACE));
}

/* Whether the daemon is away. */
static bool is_alone(const struct job *job)
{
    return job->claim != NULL && job->session->socket < 0;
}

/* Takes in all that the daemon has said. */
static void listen_to_daemon(struct job *job)
{
    struct wire_message message;

    while (session_receive(job->session, 0, &message, NULL) == SESSION_MESSAGE) {
        parse(job, &message);
        wire_message_finish(&message);
    }
    if (is_alone(job)) {
        job->calls = 0;
        job->next_call = clock_after(clock_now(), BETWEEN_CALLS);
    }
}

/* Tries to reach the daemon that was away, and tells it of our lease. */
static void call_again(struct job *job)
{
    enum dial_how how = job->calls++ % CALLS_PER_START == 0 ? DIAL_START : DIAL_ONLY;

    job->next_call = clock_after(clock_now(), BETWEEN_CALLS);
    if (session_try_again(job->session, how, NULL) == 0)
        claim_resume(job->claim, job->session, NULL);
}

static int poll_timeout(const struct job *job)
{
    int64_t next = launch_supervisor_next_time(job->supervisor);
    int64_t left;

    if (is_alone(job) && job->next_call < next)
        next = job->next_call;
    if (next == INT64_MAX)
        return -1;
    left = next - clock_now();
    if (left <= 0)
        return 0;
    left = left / (DURATION_SECOND / 1000) + 1;
    return left > INT_MAX ? INT_MAX : (int)left;
}

static void turn(struct job *job)
{
    struct labelled_output *labels = job->copies.labels;
    struct pollfd *polls = job->polls.items;
    size_t count = POLL_LABELS;

    polls[POLL_SUPERVISOR] =
        (struct pollfd){.fd = launch_supervisor_descriptor(job->supervisor), .events = POLLIN};
    polls[POLL_DAEMON] =
        (struct pollfd){.fd = job->claim != NULL ? job->session->socket : -1, .events = POLLIN};
    if (labels != NULL)
        count += labelled_output_fill_poll(labels, polls + POLL_LABELS);
    poll(polls, count, poll_timeout(job));
    /* What was printed before all stopped is seen before we stop. */
    if (labels != NULL)
        labelled_output_process(labels, polls + POLL_LABELS);
    launch_supervisor_dispatch(job->supervisor);
    if (job->claim != NULL && polls[POLL_DAEMON].revents != 0)
        listen_to_daemon(job);
    if (is_alone(job) && clock_now() >= job->next_call)
        call_again(job);
}

static int fail(const char *verb, struct berth_error *error)
{
    error_wrap(error, error->code, "%s", verb);
    return output_refusal(error);
}

/* Starts one copy. Returns 0, or an exit code having said what failed. */
static int start_copy(struct job *job, uint32_t number)
{
    const struct job_copies *copies = &job->copies;
    struct berth_error error = BERTH_ERROR_INIT;
    struct launch_copy streams = {0};
    uint32_t label = job->launch == NULL ? number : launch_label(job->launch, number);
    int code;

    if (copies->labels != NULL &&
        labelled_output_open_pipes(copies->labels, label, &streams, &error) < 0)
        return fail(copies->verb, &error);
    code = copies->start(copies->context, job->supervisor, number, &streams);
    if (copies->labels != NULL)
        labelled_output_close_child_ends(copies->labels);
    return code;
}

/* Starts one copy after the other. When one cannot be started, the others are stopped. */
static void start(struct job *job)
{
    for (uint32_t number = 0; number < job->copies.count && job->failure == 0; number++)
        job->failure = start_copy(job, number);
    if (job->failure != 0)
        launch_supervisor_stop(job->supervisor, clock_after(clock_now(), GRACE));
}

static int exit_code_of(const struct job *job)
{
    if (job->failure != 0)
        return job->failure;
    if (job->end != 0)
        return exit_code_of_end(job->end);
    return launch_supervisor_exit_code(job->supervisor);
}

/* Makes room for all that is polled. */
static int prepare_polls(struct job *job, struct berth_error *error)
{
    const struct labelled_output *labels = job->copies.labels;
    size_t max = POLL_LABELS + (labels == NULL ? 0 : labelled_output_poll_max(labels));

    return vector_reserve(&job->polls, max) < 0 ? error_set_memory(error) : 0;
}

/* Runs what was started to its end. */
static void watch(struct job *job)
{
    bool is_told;

    while (!launch_supervisor_is_done(job->supervisor))
        turn(job);
    is_told = job->end != 0 || launch_supervisor_must_end(job->supervisor);
    if (job->copies.labels != NULL)
        labelled_output_drain_pipes(job->copies.labels, is_told);
    /* What failed may have been ended with the lease, if that was faster than its notice. */
    if (job->claim != NULL && launch_supervisor_exit_code(job->supervisor) != EXIT_GOOD)
        listen_to_daemon(job);
}

static int run(struct job *job)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code = prepare_polls(job, &error);

    if (code == 0)
        code = launch_supervisor_create(&job->supervisor, &error);
    if (code < 0) {
        code = fail(job->copies.verb, &error);
    } else {
        start(job);
        watch(job);
        code = exit_code_of(job);
        launch_supervisor_destroy(job->supervisor);
    }
    vector_finish(&job->polls);
    return code;
}

int job_run_copies(const struct job_copies *copies)
{
    struct job job = {.copies = *copies};

    return run(&job);
}

/* A start of job_copies: one copy of a launch with its environment. */
static int start_prepared(const void *context, struct launch_supervisor *supervisor,
                          uint32_t number, const struct launch_copy *streams)
{
    const struct launch *launch = context;
    struct launch_copy copy = *streams;
    struct berth_error error = BERTH_ERROR_INIT;
    struct prepared prepared;
    int code = 0;

    if (launch_prepare(launch, number, &prepared, &error) < 0)
        return launch_fail(launch, &error);
    copy.arguments = launch->words;
    copy.environment = prepared.environment.items;
    copy.cpus = prepared.is_pinned ? &prepared.cpus : NULL;
    if (launch_supervisor_start(supervisor, &copy, &error) < 0)
        code = launch_fail_start(launch, &error);
    prepared_finish(&prepared);
    return code;
}

int job_run(const struct launch *launch, struct labelled_output *labels, struct session *session)
{
    struct job job = {
        .copies =
            {
                .verb = launch->verb,
                .count = launch_copies(launch),
                .labels = labels,
                .context = launch,
                .start = start_prepared,
            },
        .launch = launch,
        .warns = launch->warns,
        .claim = launch->claim,
        .session = session,
    };

    return run(&job);
}

int job_finish_labels(const char *verb, struct labelled_output *labels, int exit_code)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code;

    if (labelled_output_finish(labels, &error) == 0)
        return exit_code;
    code = fail(verb, &error);
    return exit_code == EXIT_GOOD ? code : exit_code;
}

void job_release(const struct claim *claim, struct session *session, int exit_code)
{
    struct wire_message release = {
        .type = WIRE_RELEASE,
        .id = claim->id,
        .exit_code = {.known = true, .value = (uint64_t)exit_code},
    };
    int64_t deadline = clock_after(clock_now(), RELEASE_MAX);
    struct wire_message message;
    bool answered = false;

    if (session->socket < 0)
        return;
    release.number = session_number(session);
    if (session_send(session, &release, NULL) < 0)
        return;
    while (!answered && clock_now() < deadline &&
           session_receive(session, deadline - clock_now(), &message, NULL) == SESSION_MESSAGE) {
        answered = message.number == release.number;
        wire_message_finish(&message);
    }
}
