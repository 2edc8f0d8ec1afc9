/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/notify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/clock.h"
#include "base/system/spawn_detached.h"
#include "base/text/quantity.h"
#include "base/text/utf8.h"
#include "spec/option_types.h"

#define AFTER_DEFAULT DURATION_MINUTE
#define SOON          DURATION_MINUTE
#define PAUSE_MIN     (DURATION_SECOND / 10)
#define PAUSE_MAX     (10 * DURATION_SECOND)

static const struct option notify_rows[] = {
    {.name = "notify",
     .argument = "CMD",
     .help = "run CMD after a wait of a minute or more",
     .offset = offsetof(struct notify_options, command),
     .parse = option_type_string},
};

const struct option_set notify_option_set = {
    .heading = "Waiting",
    .options = notify_rows,
    .count = COUNT(notify_rows),
};

/* The contents of one notification. */
struct notify_event {
    const char *kind;
    uint64_t id; /* 0: none */
    int64_t waited;
    struct text devices; /* nvidia0,nvidia1 */
    struct text line;    /* human-readable */
};

static void finish_event(struct notify_event *event)
{
    text_finish(&event->devices);
    text_finish(&event->line);
}

int notify_init(struct notify *notify, const struct notify_options *options, const char *name,
                struct berth_error *error)
{
    const char *after = getenv("BERTH_NOTIFY_AFTER");

    *notify = (struct notify){.command = options->command, .name = name, .after = AFTER_DEFAULT};
    if (after == NULL || *after == '\0')
        return 0;
    if (quantity_parse_duration(after, &notify->after, error) < 0)
        return error_wrap(error, BERTH_ERROR_INVALID, "BERTH_NOTIFY_AFTER");
    return 0;
}

int64_t notify_pause(const struct notify *notify)
{
    if (notify->command == NULL)
        return 0;
    if (notify->after < PAUSE_MIN)
        return PAUSE_MIN;
    return notify->after > PAUSE_MAX ? PAUSE_MAX : notify->after;
}

/* Adds NAME=VALUE. Returns 0 or BERTH_ERROR_MEMORY. */
static int add_variable(struct string_list *list, const char *name, const char *value)
{
    struct text entry = {0};
    int code;

    text_append_format(&entry, "%s=%s", name, value);
    code = text_failed(&entry) ? BERTH_ERROR_MEMORY : string_list_append(list, text_string(&entry));
    text_finish(&entry);
    return code;
}

static int add_number(struct string_list *list, const char *name, uint64_t number)
{
    char digits[24] = "";

    if (number > 0)
        snprintf(digits, sizeof(digits), "%" PRIu64, number);
    return add_variable(list, name, digits);
}

/* Makes the variables that are added to the command's environment, ended by NULL. */
static int make_variables(const struct notify *notify, const struct notify_event *event,
                          struct string_list *list)
{
    char seconds[24];

    snprintf(seconds, sizeof(seconds), "%" PRId64, event->waited / DURATION_SECOND);
    if (text_failed(&event->line) || text_failed(&event->devices) ||
        add_variable(list, "BERTH_EVENT", event->kind) < 0 ||
        add_number(list, "BERTH_ID", event->id) < 0 ||
        add_variable(list, "BERTH_WAITED_S", seconds) < 0 ||
        add_variable(list, "BERTH_NAME", notify->name == NULL ? "" : notify->name) < 0 ||
        add_variable(list, "BERTH_DEVICES", text_string(&event->devices)) < 0 ||
        add_variable(list, "BERTH_MESSAGE", text_string(&event->line)) < 0 ||
        vector_append(list) == NULL)
        return BERTH_ERROR_MEMORY;
    return 0;
}

/* Makes a file in memory with the line, for the command's standard input. Returns -1 on failure. */
static int make_input(const struct notify_event *event)
{
    int descriptor = memfd_create("berth-message", MFD_CLOEXEC);
    const char *line = text_string(&event->line);

    if (descriptor < 0)
        return -1;
    if (write(descriptor, line, event->line.length) != (ssize_t)event->line.length ||
        write(descriptor, "\n", 1) != 1 || lseek(descriptor, 0, SEEK_SET) != 0) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

/* Runs the user's command. Does not wait for it, and ignores its failure: the claim continues. */
static void run_command(const struct notify *notify, const struct notify_event *event)
{
    char *const arguments[] = {(char *)"sh", (char *)"-c", (char *)notify->command, NULL};
    struct string_list variables = {0};
    struct detached_program detached = {
        .program = "/bin/sh",
        .arguments = arguments,
        .output = STDERR_FILENO,
        .log = STDERR_FILENO,
        .listening = -1,
        .here = true,
    };

    if (make_variables(notify, event, &variables) == 0) {
        detached.input = make_input(event);
        detached.added = variables.items;
        spawn_detached(&detached, NULL);
        if (detached.input >= 0)
            close(detached.input);
    }
    string_list_finish(&variables);
}

/* Returns true if standard error is a terminal and printing there does not stop this process, as it
 * can stop a background job (TOSTOP). */
static bool may_print(void)
{
    struct termios settings;
    pid_t group;

    if (isatty(STDERR_FILENO) != 1)
        return false;
    group = tcgetpgrp(STDERR_FILENO);
    if (group < 0 || group == getpgrp())
        return true;
    return tcgetattr(STDERR_FILENO, &settings) == 0 && (settings.c_lflag & TOSTOP) == 0;
}

static void print_line(const struct notify_event *event)
{
    struct text line = {0};

    text_append_format(&line, "%s\n", text_string(&event->line));
    /* Ignore a failure to write: the claim continues. */
    if (!text_failed(&event->line) && !text_failed(&line) && may_print() &&
        write(STDERR_FILENO, line.bytes, line.length) < 0)
        text_clear(&line);
    text_finish(&line);
}

static void send_event(struct notify *notify, const struct notify_event *event)
{
    notify->is_sent = true;
    if (notify->command != NULL)
        run_command(notify, event);
    else
        print_line(event);
}

static bool is_due(const struct notify *notify, int64_t waited)
{
    return !notify->is_sent && waited >= notify->after;
}

void notify_waiting(struct notify *notify, const struct client_claim *claim,
                    const struct wire_message *waiting)
{
    struct notify_event event = {
        .kind = "soon", .id = claim->id, .waited = clock_now() - claim->requested_at};
    struct optional_number estimate = waiting->estimate;

    if (notify->command == NULL || !is_due(notify, event.waited) || !estimate.known ||
        estimate.value > SOON)
        return;
    text_append_format(&event.line, "berth: claim %" PRIu64 " starts in about %s (waited %s)",
                       claim->id, quantity_format_duration((int64_t)estimate.value).text,
                       quantity_format_duration(event.waited).text);
    send_event(notify, &event);
    finish_event(&event);
}

static void append_devices(const struct device_list *devices, const char *between, struct text *out)
{
    const struct device *device;

    vector_for_each (device, devices) {
        if (device != devices->items)
            text_append(out, between);
        device_id_append(device->id, out);
    }
}

void notify_granted(struct notify *notify, const struct client_claim *claim)
{
    struct notify_event event = {
        .kind = "granted", .id = claim->id, .waited = clock_now() - claim->requested_at};

    if (!is_due(notify, event.waited))
        return;
    append_devices(&claim->grant.devices, ",", &event.devices);
    text_append(&event.line, "berth: granted ");
    append_devices(&claim->grant.devices, ", ", &event.line);
    text_append_format(&event.line, " after %s (lease %" PRIu64 ")",
                       quantity_format_duration(event.waited).text, claim->id);
    send_event(notify, &event);
    finish_event(&event);
}

void notify_possible(struct notify *notify, int64_t waited)
{
    struct notify_event event = {.kind = "granted", .waited = waited};

    if (!is_due(notify, waited))
        return;
    text_append_format(&event.line, "berth: the request can be granted now (waited %s)",
                       quantity_format_duration(waited).text);
    send_event(notify, &event);
    finish_event(&event);
}
