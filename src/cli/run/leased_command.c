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

#define RECONNECT_INTERVAL (1 * DURATION_SECOND)
/* The first of this many attempts also starts a private daemon if none runs. Not every attempt
 * does, because waiting for a daemon that does not start blocks the supervision. */
#define RECONNECTS_PER_START 10
/* Time between SIGTERM and SIGKILL if the lease no longer exists, or a copy cannot be started. */
#define GRACE (10 * DURATION_SECOND)
/* Timeout for the answer to WIRE_RELEASE. */
#define RELEASE_TIMEOUT (2 * DURATION_SECOND)

/* Positions in the list of polled descriptors. */
enum { POLL_SUPERVISOR, POLL_DAEMON, POLL_LABELS };

struct poll_list {
    VECTOR_OF(struct pollfd);
};

struct leased_command {
    struct command_copies copies;
    const struct command_launch *launch; /* NULL: the copies run without a lease */
    bool warns;
    struct poll_list polls;
    struct client_claim *claim; /* NULL: none */
    struct session *session;
    struct launch_supervisor *supervisor;
    int64_t next_reconnect; /* while the session is not connected */
    unsigned reconnects;
    enum lease_end end; /* why the lease ends; 0: it does not end */
    int failure;        /* exit code of an error of berth; 0: none */
};

static void stop_command(struct leased_command *command, enum lease_end end, int64_t force_at)
{
    if (command->end == 0)
        command->end = end;
    launch_supervisor_stop(command->supervisor, force_at);
}

void leased_command_describe_warning(const struct wire_message *warning, struct text *out)
{
    /* Round up to whole seconds: 5m, not 4m59s. */
    uint64_t seconds =
        warning->duration / DURATION_SECOND + (warning->duration % DURATION_SECOND != 0);
    int64_t left =
        seconds > INT64_MAX / DURATION_SECOND ? INT64_MAX : (int64_t)seconds * DURATION_SECOND;
    struct quantity_text in = quantity_format_duration(left);

    if (warning->end == LEASE_END_EXPIRED)
        text_append_format(out,
                           "berth: lease %" PRIu64 " reaches its time limit in %s (to extend it: "
                           "berth extend %" PRIu64 " 1h)\n",
                           warning->id, in.text, warning->id);
    else if (warning->end == LEASE_END_IDLE && left == 0)
        text_append_format(out,
                           "berth: lease %" PRIu64
                           " does not use its devices; other jobs could use "
                           "them\n",
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

static void print_warning(const struct leased_command *command, const struct wire_message *warning)
{
    struct text line = {0};

    if (!command->warns)
        return;
    leased_command_describe_warning(warning, &line);
    if (!text_failed(&line))
        fputs(text_string(&line), stderr);
    text_finish(&line);
}

static void handle_message(struct leased_command *command, const struct wire_message *message)
{
    bool answer = message->number == command->claim->question.number;

    if (message->type == WIRE_WARNING && message->id == command->claim->id)
        print_warning(command, message);
    else if (message->type == WIRE_NOTICE && message->id == command->claim->id)
        stop_command(command, message->end, clock_after(clock_now(), (int64_t)message->duration));
    else if (message->type == WIRE_REFUSED && answer)
        /* The lease no longer exists, and the devices may belong to another job. */
        stop_command(command, LEASE_END_REVOKED, clock_after(clock_now(), GRACE));
}

/* Returns true if the connection to the daemon is lost. */
static bool is_disconnected(const struct leased_command *command)
{
    return command->claim != NULL && command->session->socket < 0;
}

/* Handles all messages that have arrived from the daemon. */
static void receive_messages(struct leased_command *command)
{
    struct wire_message message;

    while (session_receive(command->session, 0, &message, NULL) == SESSION_MESSAGE) {
        handle_message(command, &message);
        wire_message_finish(&message);
    }
    if (is_disconnected(command)) {
        command->reconnects = 0;
        command->next_reconnect = clock_after(clock_now(), RECONNECT_INTERVAL);
    }
}

/* Tries to connect to the daemon again, and resumes the lease. */
static void try_reconnect(struct leased_command *command)
{
    enum dial_mode how = command->reconnects++ % RECONNECTS_PER_START == 0 ? DIAL_START : DIAL_ONLY;

    command->next_reconnect = clock_after(clock_now(), RECONNECT_INTERVAL);
    if (session_try_reconnect(command->session, how, NULL) == 0)
        claim_resume(command->claim, command->session, NULL);
}

static int poll_timeout(const struct leased_command *command)
{
    int64_t next = launch_supervisor_next_time(command->supervisor);
    int64_t left;

    if (is_disconnected(command) && command->next_reconnect < next)
        next = command->next_reconnect;
    if (next == INT64_MAX)
        return -1;
    left = next - clock_now();
    if (left <= 0)
        return 0;
    left = left / (DURATION_SECOND / 1000) + 1;
    return left > INT_MAX ? INT_MAX : (int)left;
}

static void poll_events(struct leased_command *command)
{
    struct labelled_output *labels = command->copies.labels;
    struct pollfd *polls = command->polls.items;
    size_t count = POLL_LABELS;

    polls[POLL_SUPERVISOR] =
        (struct pollfd){.fd = launch_supervisor_descriptor(command->supervisor), .events = POLLIN};
    polls[POLL_DAEMON] = (struct pollfd){
        .fd = command->claim != NULL ? command->session->socket : -1, .events = POLLIN};
    if (labels != NULL)
        count += labelled_output_fill_poll(labels, polls + POLL_LABELS);
    poll(polls, count, poll_timeout(command));
    /* Read the output first, so that the last output of a command that has ended is not lost. */
    if (labels != NULL)
        labelled_output_process(labels, polls + POLL_LABELS);
    launch_supervisor_dispatch(command->supervisor);
    if (command->claim != NULL && polls[POLL_DAEMON].revents != 0)
        receive_messages(command);
    if (is_disconnected(command) && clock_now() >= command->next_reconnect)
        try_reconnect(command);
}

static int fail_verb(const char *verb, struct berth_error *error)
{
    error_wrap(error, error->code, "%s", verb);
    return output_refusal(error);
}

/* Starts one copy. Returns 0, or prints the error and returns an exit code. */
static int start_copy(struct leased_command *command, uint32_t number)
{
    const struct command_copies *copies = &command->copies;
    struct berth_error error = BERTH_ERROR_INIT;
    struct launch_copy streams = {0};
    uint32_t label =
        command->launch == NULL ? number : command_launch_label(command->launch, number);
    int code;

    if (copies->labels != NULL &&
        labelled_output_open_pipes(copies->labels, label, &streams, &error) < 0)
        return fail_verb(copies->verb, &error);
    code = copies->start(copies->context, command->supervisor, number, &streams);
    if (copies->labels != NULL)
        labelled_output_close_child_ends(copies->labels);
    return code;
}

/* Starts all copies. If one cannot be started, stops the others. */
static void start_copies(struct leased_command *command)
{
    for (uint32_t number = 0; number < command->copies.count && command->failure == 0; number++)
        command->failure = start_copy(command, number);
    if (command->failure != 0)
        launch_supervisor_stop(command->supervisor, clock_after(clock_now(), GRACE));
}

static int find_exit_code(const struct leased_command *command)
{
    if (command->failure != 0)
        return command->failure;
    if (command->end != 0)
        return exit_code_of_end(command->end);
    return launch_supervisor_exit_code(command->supervisor);
}

/* Reserves memory for the polled descriptors. */
static int prepare_polls(struct leased_command *command, struct berth_error *error)
{
    const struct labelled_output *labels = command->copies.labels;
    size_t max = POLL_LABELS + (labels == NULL ? 0 : labelled_output_poll_max(labels));

    return vector_reserve(&command->polls, max) < 0 ? error_set_memory(error) : 0;
}

/* Supervises the copies until all have ended. */
static void wait_for_end(struct leased_command *command)
{
    bool is_ending;

    while (!launch_supervisor_is_done(command->supervisor))
        poll_events(command);
    is_ending = command->end != 0 || launch_supervisor_must_end(command->supervisor);
    if (command->copies.labels != NULL)
        labelled_output_drain_pipes(command->copies.labels, is_ending);
    /* A copy that failed may have been killed at the end of the lease before the notice arrived. */
    if (command->claim != NULL && launch_supervisor_exit_code(command->supervisor) != EXIT_GOOD)
        receive_messages(command);
}

static int run_to_end(struct leased_command *command)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code = prepare_polls(command, &error);

    if (code == 0)
        code = launch_supervisor_create(&command->supervisor, &error);
    if (code < 0) {
        code = fail_verb(command->copies.verb, &error);
    } else {
        start_copies(command);
        wait_for_end(command);
        code = find_exit_code(command);
        launch_supervisor_destroy(command->supervisor);
    }
    vector_finish(&command->polls);
    return code;
}

int leased_command_run_copies(const struct command_copies *copies)
{
    struct leased_command command = {.copies = *copies};

    return run_to_end(&command);
}

/* Implements command_copies.start: starts one copy of a launch with its environment. */
static int start_prepared(const void *context, struct launch_supervisor *supervisor,
                          uint32_t number, const struct launch_copy *streams)
{
    const struct command_launch *launch = context;
    struct launch_copy copy = *streams;
    struct berth_error error = BERTH_ERROR_INIT;
    struct prepared_copy prepared;
    int code = 0;

    if (command_launch_prepare(launch, number, &prepared, &error) < 0)
        return command_launch_fail(launch, &error);
    copy.arguments = launch->argv;
    copy.environment = prepared.environment.items;
    copy.cpus = prepared.is_pinned ? &prepared.cpus : NULL;
    if (launch_supervisor_start(supervisor, &copy, &error) < 0)
        code = command_launch_fail_start(launch, &error);
    command_launch_finish_copy(&prepared);
    return code;
}

int leased_command_run(const struct command_launch *launch, struct labelled_output *labels,
                       struct session *session)
{
    struct leased_command command = {
        .copies =
            {
                .verb = launch->verb,
                .count = command_launch_copies(launch),
                .labels = labels,
                .context = launch,
                .start = start_prepared,
            },
        .launch = launch,
        .warns = launch->warns,
        .claim = launch->claim,
        .session = session,
    };

    return run_to_end(&command);
}

int leased_command_finish_labels(const char *verb, struct labelled_output *labels, int exit_code)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code;

    if (labelled_output_finish(labels, &error) == 0)
        return exit_code;
    code = fail_verb(verb, &error);
    return exit_code == EXIT_GOOD ? code : exit_code;
}

void leased_command_release(const struct client_claim *claim, struct session *session,
                            int exit_code)
{
    struct wire_message release = {
        .type = WIRE_RELEASE,
        .id = claim->id,
        .exit_code = {.known = true, .value = (uint64_t)exit_code},
    };
    int64_t deadline = clock_after(clock_now(), RELEASE_TIMEOUT);
    struct wire_message message;
    bool answered = false;

    if (session->socket < 0)
        return;
    release.number = session_next_number(session);
    if (session_send(session, &release, NULL) < 0)
        return;
    while (!answered && clock_now() < deadline &&
           session_receive(session, deadline - clock_now(), &message, NULL) == SESSION_MESSAGE) {
        answered = message.number == release.number;
        wire_message_finish(&message);
    }
}
