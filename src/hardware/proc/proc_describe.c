/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/proc/device_users.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/system/container.h"
#include "base/system/process_container.h"
#include "base/system/process_status.h"
#include "base/text/span.h"
#include "base/text/utf8.h"
#include "codec/device_tags.h"
#include "hardware/proc/proc_ancestors.h"
#include "model/lease_mark.h"

enum {
    STATUS_MAX = 16384,
    STAT_MAX = 1024 * 1024, /* a line for each CPU comes first */
    GROUPS_MAX = 65536,
    ENVIRONMENT_MAX = 1024 * 1024,
    UTF8_MAX = 4,
};

#define NANOSECONDS INT64_C(1000000000)
#define SECONDS_MAX ((uint64_t)(INT64_MAX / 4 / NANOSECONDS))

static struct span find_line(const struct text *status, const char *key)
{
    return process_status_find((struct span){text_string(status), status->length}, key);
}

/* Returns the effective uid, the second of four. It is the one that ps and top show. */
static struct optional_number effective_uid(struct span uids)
{
    const char *blank = uids.length == 0 ? NULL : memchr(uids.bytes, '\t', uids.length);
    const char *end = uids.bytes + uids.length;
    uint64_t uid = 0;

    if (blank == NULL || blank + 1 == end || blank[1] < '0' || blank[1] > '9')
        return (struct optional_number){0};
    for (blank++; blank < end && *blank >= '0' && *blank <= '9' && uid <= UINT32_MAX; blank++)
        uid = uid * 10 + (uint64_t)(*blank - '0');
    if ((blank < end && *blank != '\t') || uid > UINT32_MAX)
        return (struct optional_number){0};
    return optional_number_of(uid);
}

/* Returns a copy of the bytes as one printable line, with blanks for zero bytes. NULL if memory ran
 * out. */
static char *plain_text(struct span bytes)
{
    struct text text = {0};
    size_t at = 0;

    while (bytes.length > 0 && bytes.bytes[bytes.length - 1] == '\0')
        bytes.length--;
    text_append(&text, "");
    while (at < bytes.length && text.length <= PROCESS_TEXT_MAX) {
        uint32_t character;

        at += utf8_decode_inert(bytes.bytes + at, bytes.length - at, &character);
        utf8_append(&text, bytes.bytes[at - 1] == '\0' ? ' ' : character);
    }
    if (text.length > PROCESS_TEXT_MAX) {
        text.length = utf8_boundary(text.bytes, PROCESS_TEXT_MAX);
        text.bytes[text.length] = '\0';
    }
    return text_detach(&text);
}

static int describe_command(const struct sysroot *root, struct span name,
                            struct device_process *process)
{
    struct text words = {0};
    struct span command;
    char *plain;

    /* Read a little more than is kept, so that it can be cut between two characters. */
    if (sysroot_read_text(root, PROCESS_TEXT_MAX + UTF8_MAX, &words, "/proc/%llu/cmdline",
                          (unsigned long long)process->pid) == -ENOMEM)
        return BERTH_ERROR_MEMORY;
    command = (struct span){text_string(&words), words.length};
    /* A kernel process, or one that has ended, has no command line. */
    plain = plain_text(*command.bytes == '\0' ? name : command);
    text_finish(&words);
    if (plain == NULL)
        return BERTH_ERROR_MEMORY;
    free(process->command);
    process->command = *plain == '\0' ? NULL : plain;
    if (*plain == '\0')
        free(plain);
    return 0;
}

/* Appends the container that /proc/WHO/cgroup names. */
static int find_container(const struct sysroot *root, const char *who, struct text *out)
{
    struct text groups = {0};
    int code = sysroot_read_text(root, GROUPS_MAX, &groups, "/proc/%s/cgroup", who);

    if (code == 0)
        container_find(text_string(&groups), groups.length, out);
    text_finish(&groups);
    return code == -ENOMEM || text_failed(out) ? BERTH_ERROR_MEMORY : 0;
}

/* Sets the container. If berth itself runs in one, that container is not reported for the processes
 * in it. */
static int describe_container(const struct sysroot *root, struct device_process *process)
{
    struct text container = {0}, ours = {0};
    char who[24];
    int code;

    snprintf(who, sizeof(who), "%llu", (unsigned long long)process->pid);
    code = find_container(root, who, &container);
    if (code == 0 && container.length > 0)
        code = find_container(root, "self", &ours);
    if (code == 0) {
        bool is_ours = strcmp(text_string(&container), text_string(&ours)) == 0;

        free(process->container);
        process->container = is_ours ? NULL : text_detach(&container);
    }
    text_finish(&container);
    text_finish(&ours);
    return code;
}

/* Sets the owner of the process's container. A recorded process has none: it does not run on this
 * machine. */
static void describe_owner(const struct sysroot *root, struct device_process *process)
{
    uint32_t uid;

    process->owner = (struct optional_number){0};
    if (!root->recorded && process->pid <= INT32_MAX &&
        process_container_owner((pid_t)process->pid, &uid))
        process->owner = optional_number_of(uid);
}

/* Returns when the machine was booted, in nanoseconds since 1970; 0: unknown. */
static int64_t boot_time(const struct sysroot *root)
{
    struct text content = {0};
    uint64_t seconds = 0;
    struct span line;

    if (!root->recorded)
        return clock_read(CLOCK_REALTIME) - clock_read(CLOCK_BOOTTIME);
    if (sysroot_read_text(root, STAT_MAX, &content, "/proc/stat") == 0) {
        struct span rest = {text_string(&content), content.length};

        while (span_read_line(&rest, &line)) {
            if (span_skip_prefix(&line, "btime ") && !span_read_number(&line, &seconds))
                seconds = 0;
        }
    }
    text_finish(&content);
    return seconds > SECONDS_MAX ? 0 : (int64_t)seconds * NANOSECONDS;
}

/* Returns when the process started, in nanoseconds since 1970; 0: unknown. Field 22 of
 * /proc/PID/stat is in clock ticks since boot. Field 2 may contain any character, but it ends with
 * the line's last closing bracket. */
static int64_t start_time(const struct sysroot *root, uint64_t pid)
{
    enum { NAME = 2, START = 22 };
    long hertz = sysconf(_SC_CLK_TCK);
    struct text content = {0};
    int64_t boot = boot_time(root);
    const char *field;
    uint64_t ticks;
    struct span rest;

    if (boot == 0 || hertz <= 0 ||
        sysroot_read_text(root, STATUS_MAX, &content, "/proc/%llu/stat", (unsigned long long)pid) <
            0) {
        text_finish(&content);
        return 0;
    }
    field = strrchr(text_string(&content), ')');
    for (int i = NAME; field != NULL && i < START; i++)
        field = strchr(field + 1, ' ');
    rest = (struct span){field == NULL ? "" : field + 1, field == NULL ? 0 : strlen(field + 1)};
    if (!span_read_number(&rest, &ticks) || ticks / (uint64_t)hertz > SECONDS_MAX)
        boot = ticks = 0;
    text_finish(&content);
    return boot + (int64_t)(ticks / (uint64_t)hertz) * NANOSECONDS +
           (int64_t)(ticks % (uint64_t)hertz) * (NANOSECONDS / hertz);
}

/* Reads the lease that the process's environment names, if the environment is readable. */
static int describe_lease(const struct sysroot *root, struct device_process *process)
{
    struct text environment = {0};
    int code = sysroot_read_text(root, ENVIRONMENT_MAX, &environment, "/proc/%llu/environ",
                                 (unsigned long long)process->pid);
    struct lease_mark mark = {0};

    if (code == 0 && environment.length > 0)
        mark = lease_mark_read(environment.bytes, environment.length);
    free(process->said_socket);
    process->said_socket = NULL;
    process->said_lease = 0;
    if (mark.lease != 0 && mark.socket != NULL && strlen(mark.socket) <= PROCESS_TEXT_MAX) {
        process->said_lease = mark.lease;
        process->said_socket = strdup(mark.socket);
        code = process->said_socket == NULL ? -ENOMEM : 0;
    }
    text_finish(&environment);
    return code == -ENOMEM ? BERTH_ERROR_MEMORY : 0;
}

static uint64_t parent_of(const struct text *status)
{
    return (uint64_t)process_status_parent((struct span){text_string(status), status->length});
}

static int copy_name(struct span name, struct device_process *process)
{
    char *plain = plain_text(name);

    if (plain == NULL)
        return BERTH_ERROR_MEMORY;
    free(process->command);
    process->command = plain;
    return 0;
}

/* Adds the facts that the process can withhold. They come last, because the reads may block for
 * long, or for ever. */
static int ask_process(const struct sysroot *root, const struct text *status,
                       struct device_process *process)
{
    process->started = start_time(root, process->pid);
    describe_owner(root, process);
    if (describe_lease(root, process) < 0 ||
        describe_command(root, find_line(status, "Name"), process) < 0)
        return BERTH_ERROR_MEMORY;
    return 0;
}

int proc_describe_process(const struct sysroot *root, const struct proc_watch *watch,
                          struct ancestor_budget *budget, struct device_process *process,
                          struct berth_error *error)
{
    struct text status = {0};
    int code;

    proc_watch_touch(watch, process->pid);
    code = sysroot_read_text(root, STATUS_MAX, &status, "/proc/%llu/status",
                             (unsigned long long)process->pid);
    if (code == -ENOMEM)
        code = error_set_memory(error);
    else if (code < 0)
        code = error_set(error, BERTH_ERROR_NOT_FOUND, "no process %llu",
                         (unsigned long long)process->pid);
    else {
        process->uid = effective_uid(find_line(&status, "Uid"));
        code = describe_container(root, process);
        if (code == 0)
            code =
                proc_ancestors_find(root, watch, budget, parent_of(&status), clock_now(), process);
        proc_watch_touch(watch, process->pid);
        if (code == 0)
            code = process->undecided ? copy_name(find_line(&status, "Name"), process)
                                      : ask_process(root, &status, process);
        if (code < 0)
            error_set_memory(error);
    }
    proc_watch_leave(watch);
    text_finish(&status);
    return code;
}
