/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/system/namespaces.h"
#include "base/system/process_stat.h"
#include "base/text/quantity.h"
#include "model/lease_mark.h"

enum { ENVIRONMENT_MAX = 1024 * 1024, CHUNK = 64 * 1024 };

/* Fields of /proc/PID/stat, and flags in one of them. */
enum { FLAGS = 9, STARTED = 22, ENVIRONMENT_END = 51 };
enum { NEVER_BECAME_A_PROGRAM = 0x00000040, OF_THE_KERNEL = 0x00200000 };

/* One that is its runtime's for longer was made to be started later. */
#define CONTAINER_BEGINS_FOR (5 * DURATION_SECOND)

static int read_environment(pid_t pid, struct text *out)
{
    char path[64];
    char chunk[CHUNK];
    ssize_t got;
    int descriptor;

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return -1;
    text_clear(out);
    do {
        got = read(descriptor, chunk, sizeof(chunk));
        text_append_bytes(out, chunk, got > 0 ? (size_t)got : 0);
    } while (out->length < ENVIRONMENT_MAX &&
             (got == (ssize_t)sizeof(chunk) || (got < 0 && errno == EINTR)));
    close(descriptor);
    return text_failed(out) ? -1 : 0;
}

/* Whether a process whose environment reads as empty only has none yet: so it is for a moment in
 * the midst of an exec. Threads of the kernel and the dead have none ever. */
static bool is_starting(pid_t pid)
{
    char buffer[1024];
    const char *fields = process_stat_fields(pid, buffer, sizeof(buffer));

    return fields != NULL && !process_stat_has_ended(fields) &&
           (process_stat_number(fields, FLAGS) & OF_THE_KERNEL) == 0 &&
           process_stat_number(fields, ENVIRONMENT_END) == 0;
}

/* The lease of this pool that an environment names; 0: none. */
static uint64_t said_lease(const struct pool *pool, const struct text *environment)
{
    struct lease_mark mark = lease_mark_read(environment->bytes, environment->length);
    bool ours = mark.socket != NULL && strcmp(mark.socket, pool->settings.socket) == 0;

    return ours ? mark.lease : 0;
}

uint64_t mark_said_lease(struct pool *pool, pid_t pid)
{
    return read_environment(pid, &pool->key) < 0 ? 0 : said_lease(pool, &pool->key);
}

enum mark mark_read(struct pool *pool, pid_t pid, int *tries, uint64_t *ret_lease)
{
    const struct timespec moment = {.tv_nsec = 20 * 1000};
    struct text *environment = &pool->key;
    bool is_last = false;

    for (;;) {
        if (read_environment(pid, environment) < 0)
            return MARK_UNREADABLE;
        if (environment->length > 0)
            break;
        if (is_last)
            return MARK_UNREADABLE;
        /* It may have got one since. */
        is_last = !is_starting(pid);
        if (!is_last && *tries <= 0)
            return MARK_LATER;
        if (!is_last) {
            --*tries;
            nanosleep(&moment, NULL);
        }
    }
    *ret_lease = said_lease(pool, environment);
    return *ret_lease != 0 ? MARK_LEASE : MARK_NONE;
}

bool mark_may_follow(pid_t pid, uint64_t since)
{
    char buffer[1024];
    const char *fields = process_stat_fields(pid, buffer, sizeof(buffer));

    return fields != NULL && !process_stat_has_ended(fields) &&
           (process_stat_number(fields, FLAGS) & NEVER_BECAME_A_PROGRAM) != 0 &&
           process_stat_number(fields, STARTED) >= since &&
           process_stat_age(fields) < CONTAINER_BEGINS_FOR && namespace_pid_is_other(pid);
}
