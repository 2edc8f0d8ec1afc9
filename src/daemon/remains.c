/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/remains.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/namespaces.h"
#include "base/process_container.h"
#include "base/process_stat.h"
#include "daemon/process.h"
#include "model/lease_mark.h"

enum {
    ENVIRONMENT_MOST = 1024 * 1024,
    CHUNK = 64 * 1024,
    FEW = 1024,          /* numbers that are tried one by one rather than listed */
    WATCHED_MOST = 512,  /* at once; descriptors are everybody's */
    TRIES_OF_LOOK = 250, /* to read what is just being started, in all */
};

struct remnant {
    struct watch watch;
    struct remains *remains;
    struct list_link in_remains;
    pid_t pid;
};

struct remains {
    struct pool *pool;
    struct id_list leases;
    pid_t root; /* that is of them without saying so; 0: none */
    struct list processes;
    void (*gone)(struct guard *guard);
    struct guard *guard;
    size_t count;
    bool is_more; /* than are watched */
    int signal;   /* that was sent last; 0: none */
    int tries;    /* that are left in this look */
    bool recent;  /* it is only about processes that started a moment ago */
};

/* ---- Whether a process is of the leases ---- */

static bool has_lease(const struct id_list *leases, uint64_t id)
{
    for (size_t i = 0; i < leases->count; i++) {
        if (leases->items[i] == id)
            return true;
    }
    return false;
}

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
    } while (out->length < ENVIRONMENT_MOST &&
             (got == (ssize_t)sizeof(chunk) || (got < 0 && errno == EINTR)));
    close(descriptor);
    return text_failed(out) ? -1 : 0;
}

/* Whether a process whose environment reads as empty only has none yet: so it is for a moment in
 * the midst of an exec. Threads of the kernel and the dead have none ever. */
static bool is_starting(pid_t pid)
{
    enum { FLAGS = 9, ENVIRONMENT_END = 51, OF_THE_KERNEL = 0x00200000 };
    char buffer[1024];
    const char *fields = process_stat_fields(pid, buffer, sizeof(buffer));

    return fields != NULL && !process_stat_has_ended(fields) &&
           (process_stat_number(fields, FLAGS) & OF_THE_KERNEL) == 0 &&
           process_stat_number(fields, ENVIRONMENT_END) == 0;
}

/* What a client of ours starts will be marked once it is the command, and so may what begins a
 * container: its runtime has it become the command with other variables than its own. */
static void remember_stranger(struct pool *pool, pid_t pid)
{
    if (id_map_find(&pool->clients, (uint64_t)process_stat_parent(pid)) == NULL &&
        !pid_namespace_is_other(pid))
        strangers_add(&pool->strangers, pid);
}

/* The lease of this pool that an environment names; 0: none. */
static uint64_t said_lease(const struct pool *pool, const struct text *environment)
{
    struct lease_mark mark = lease_mark_read(environment->bytes, environment->length);
    bool ours = mark.socket != NULL && strcmp(mark.socket, pool->settings.socket) == 0;

    return ours ? mark.lease : 0;
}

uint64_t remains_said_lease(struct pool *pool, pid_t pid)
{
    return read_environment(pid, &pool->key) < 0 ? 0 : said_lease(pool, &pool->key);
}

/* Reads what marks it, waiting for one that is just being started. */
static bool has_mark(struct remains *remains, pid_t pid)
{
    const struct timespec moment = {.tv_nsec = 20 * 1000};
    struct text *environment = &remains->pool->key;
    bool is_last = false;

    for (;;) {
        if (read_environment(pid, environment) < 0)
            return false;
        if (environment->length > 0) {
            uint64_t lease = said_lease(remains->pool, environment);

            if (lease == 0 && remains->recent)
                remember_stranger(remains->pool, pid);
            return lease != 0 && has_lease(&remains->leases, lease);
        }
        if (is_last || remains->tries == 0)
            return false;
        /* It may have got one since. */
        is_last = !is_starting(pid);
        if (!is_last) {
            remains->tries--;
            nanosleep(&moment, NULL);
        }
    }
}

/* Whether the process has the uid, or root's. */
static bool has_uid(pid_t pid, uint32_t wanted)
{
    struct number_list groups = {0};
    struct stat status;
    char path[64];
    uint32_t uid;
    bool is_known;

    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    if (stat(path, &status) < 0)
        return false;
    /* Of one that may not be dumped, the files are root's. */
    if (status.st_uid != 0)
        return status.st_uid == wanted;
    is_known = process_credentials(pid, &uid, &groups) == 0;
    vector_finish(&groups);
    return is_known && (uid == 0 || uid == wanted);
}

/* Whether it is in a container of this user, or of root: there are uids of their own there. */
static bool has_owner(pid_t pid, uint32_t wanted)
{
    uint32_t owner;

    return process_container_owner(pid, &owner) && (owner == 0 || owner == wanted);
}

/* Whether the process may be of the lease's user, or of root: anybody can put a lease's id into an
 * environment. Root's leases may run what they like as whom they like. There may be many processes
 * and leases, so what is asked of each is the least that decides it. */
static bool is_of_user(const struct remains *remains, pid_t pid)
{
    uint32_t wanted = remains->guard->job->holder->uid;

    return wanted == 0 || has_uid(pid, wanted) || has_owner(pid, wanted);
}

static bool has_process(const struct remains *remains, pid_t pid)
{
    list_for_each (link, &remains->processes) {
        if (container_of(link, struct remnant, in_remains)->pid == pid)
            return true;
    }
    return false;
}

/* ---- Watching ---- */

static void remnant_free(struct pool *pool, struct remnant *remnant)
{
    loop_remove(&pool->loop, &remnant->watch);
    close(remnant->watch.descriptor);
    list_remove(&remnant->in_remains);
    remnant->remains->count--;
    free(remnant);
}

static void remnant_ended(struct watch *watch, uint32_t events)
{
    struct remnant *remnant = container_of(watch, struct remnant, watch);
    struct remains *remains = remnant->remains;

    (void)events;
    remnant_free(remains->pool, remnant);
    if (!list_is_empty(&remains->processes))
        return;
    remains_refresh(remains->pool, remains);
    if (list_is_empty(&remains->processes))
        remains->gone(remains->guard);
}

static bool add_process(struct remains *remains, int descriptor, pid_t pid)
{
    struct remnant *remnant = calloc(1, sizeof(*remnant));

    if (remnant == NULL) {
        close(descriptor);
        return false;
    }
    *remnant = (struct remnant){
        .watch = {.descriptor = descriptor, .ready = remnant_ended},
        .remains = remains,
        .pid = pid,
    };
    if (loop_add(&remains->pool->loop, &remnant->watch, EPOLLIN, NULL) < 0) {
        close(descriptor);
        free(remnant);
        return false;
    }
    list_append(&remains->processes, &remnant->in_remains);
    remains->count++;
    return true;
}

/* Whether it talks to us without claiming within a lease: it has none in its environment, and there
 * may be thousands; or it has, and is asking for its end. */
static bool is_plain_client(const struct pool *pool, pid_t pid)
{
    const struct id_link *link = id_map_find(&pool->clients, (uint64_t)pid);
    const struct connection *connection;

    if (link == NULL)
        return false;
    connection = container_of(link, struct connection, by_pid);
    return list_is_empty(&connection->jobs) ||
           container_of(list_first(&connection->jobs), struct job, in_connection)->holder->parent ==
               0;
}

/* Whether the process is one of them, and new; it is added then. */
static bool consider(struct remains *remains, pid_t pid, bool only_children)
{
    struct pool *pool = remains->pool;
    int descriptor;
    bool mine;

    if (pid == pool->pid || has_process(remains, pid) ||
        (!only_children && is_plain_client(pool, pid)))
        return false;
    if (!only_children && remains->recent && strangers_has(&pool->strangers, pid))
        return false;
    descriptor = process_open(pid, 0);
    if (descriptor < 0) {
        if (remains->recent)
            strangers_add(&pool->strangers, pid);
        return false;
    }
    mine = pid == remains->root ||
           (only_children ? has_process(remains, process_stat_parent(pid))
                          : is_of_user(remains, pid) && has_mark(remains, pid));
    if (!mine || process_has_ended(descriptor)) {
        close(descriptor);
        return false;
    }
    /* Its end has not begun before: whoever starts more and more would never be through. */
    if (remains->signal == SIGKILL || remains->count >= WATCHED_MOST)
        process_signal(descriptor, remains->signal);
    if (remains->count >= WATCHED_MOST) {
        remains->is_more = true;
        close(descriptor);
        return false;
    }
    return add_process(remains, descriptor, pid);
}

/* ---- Where to look ---- */

static pid_t newest_process(void)
{
    char buffer[128];
    int descriptor = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    ssize_t length = descriptor < 0 ? -1 : read(descriptor, buffer, sizeof(buffer) - 1);
    const char *last;

    if (descriptor >= 0)
        close(descriptor);
    if (length <= 0)
        return 0;
    buffer[length] = '\0';
    last = strrchr(buffer, ' ');
    return last == NULL ? 0 : (pid_t)strtol(last + 1, NULL, 10);
}

/* Whether the number was given out from `after` up to `newest`; numbers start anew at the end. */
static bool is_between(pid_t pid, pid_t after, pid_t newest)
{
    if (after == 0 || newest == 0)
        return true;
    return newest >= after ? pid > after && pid <= newest : pid > after || pid <= newest;
}

static bool look_at_all(struct remains *remains, pid_t after, pid_t newest, bool only_children)
{
    DIR *directory = opendir("/proc");
    const struct dirent *entry;
    bool added = false;

    if (directory == NULL)
        return false;
    while ((entry = readdir(directory)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 0 && is_between(pid, after, newest))
            added = consider(remains, pid, only_children) || added;
    }
    closedir(directory);
    return added;
}

static void look(struct remains *remains, pid_t after)
{
    pid_t newest = after == 0 ? 0 : newest_process();

    remains->recent = newest != 0;
    remains->is_more = false;
    remains->tries = TRIES_OF_LOOK;
    if (remains->recent)
        strangers_begin(&remains->pool->strangers, newest, loop_now(&remains->pool->loop));
    if (after != 0 && newest >= after && newest - after <= FEW) {
        for (pid_t pid = after + 1; pid <= newest; pid++)
            consider(remains, pid, false);
    } else {
        look_at_all(remains, after, newest, false);
    }
    if (list_is_empty(&remains->processes))
        return;
    while (look_at_all(remains, 0, 0, true)) {
    }
}

void remains_refresh(struct pool *pool, struct remains *remains)
{
    (void)pool;
    look(remains, 0);
}

struct remains *remains_find(struct pool *pool, const struct id_list *leases, pid_t after,
                             pid_t root, void (*gone)(struct guard *guard), struct guard *guard)
{
    struct remains *remains = calloc(1, sizeof(*remains));

    if (remains == NULL)
        return NULL;
    *remains = (struct remains){.pool = pool, .root = root, .gone = gone, .guard = guard};
    list_init(&remains->processes);
    if (vector_reserve(&remains->leases, leases->count) < 0) {
        free(remains);
        return NULL;
    }
    for (size_t i = 0; i < leases->count; i++)
        remains->leases.items[remains->leases.count++] = leases->items[i];
    look(remains, after);
    if (!list_is_empty(&remains->processes))
        return remains;
    remains_free(pool, remains);
    return NULL;
}

void remains_free(struct pool *pool, struct remains *remains)
{
    if (remains == NULL)
        return;
    list_for_each (link, &remains->processes)
        remnant_free(pool, container_of(link, struct remnant, in_remains));
    vector_finish(&remains->leases);
    free(remains);
}

void remains_signal(struct remains *remains, int number)
{
    if (number != SIGCONT)
        remains->signal = number;
    if (remains->is_more)
        look(remains, 0);
    list_for_each (link, &remains->processes)
        process_signal(container_of(link, struct remnant, in_remains)->watch.descriptor, number);
}
