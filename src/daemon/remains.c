/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/remains.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/namespaces.h"
#include "base/system/process_container.h"
#include "base/system/process_stat.h"
#include "base/text/quantity.h"
#include "daemon/mark.h"
#include "daemon/process.h"

enum {
    FEW = 1024,          /* numbers that are tried one by one rather than listed */
    WATCHED_MAX = 512,   /* at once; descriptors are everybody's */
    TRIES_OF_LOOK = 250, /* to read what is just being started, in all */
};

/* How long a process that may yet show to be of a lease is waited for, and how often it is looked
 * at. */
#define UNDECIDED_FOR (5 * DURATION_SECOND)
#define LOOK_PERIOD   (DURATION_SECOND / 200)

enum belonging { NOT_THEIRS, THEIRS, UNDECIDED };

struct remnant {
    struct watch watch;
    struct remains *remains;
    struct list_link in_remains;
    pid_t pid;
    bool is_undecided; /* whether it is of the leases */
};

struct remains {
    struct pool *pool;
    struct id_list leases;
    pid_t root; /* that is of them without saying so; 0: none */
    struct list processes;
    void (*gone)(struct guard *guard);
    struct guard *guard;
    struct timer look_again;
    int64_t undecided_until; /* the loop's; 0: nobody was since one of them ended */
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

/* What a client of ours starts will be marked once it is the command, and so may what begins a
 * container: its runtime has it become the command with other variables than its own. */
static void remember_stranger(struct pool *pool, pid_t pid)
{
    if (id_map_find(&pool->clients, (uint64_t)process_stat_parent(pid)) == NULL &&
        !namespace_pid_is_other(pid))
        strangers_add(&pool->strangers, pid);
}

/* What may yet be of the leases is waited for, but not for ever. */
static enum belonging undecided(struct remains *remains)
{
    int64_t now = loop_now(&remains->pool->loop);

    if (remains->undecided_until == 0)
        remains->undecided_until = now + UNDECIDED_FOR;
    return now < remains->undecided_until ? UNDECIDED : NOT_THEIRS;
}

/* Whether it begins a container that may be of the leases. No container can have a device that is
 * described only. */
static bool may_be_container(const struct remains *remains, pid_t pid)
{
    return remains->pool->settings.inventory == NULL &&
           mark_may_follow(pid, remains->guard->job->holder->started);
}

static enum belonging belonging_by_mark(struct remains *remains, pid_t pid)
{
    uint64_t lease;

    switch (mark_read(remains->pool, pid, &remains->tries, &lease)) {
    case MARK_LEASE:
        return has_lease(&remains->leases, lease) ? THEIRS : NOT_THEIRS;
    case MARK_LATER:
        return undecided(remains);
    case MARK_NONE:
        if (may_be_container(remains, pid))
            return undecided(remains);
        if (remains->recent)
            remember_stranger(remains->pool, pid);
        return NOT_THEIRS;
    case MARK_UNREADABLE:
        return NOT_THEIRS;
    }
    return NOT_THEIRS;
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

static const struct remnant *find_process(const struct remains *remains, pid_t pid)
{
    list_for_each (link, &remains->processes) {
        const struct remnant *remnant = container_of(link, struct remnant, in_remains);

        if (remnant->pid == pid)
            return remnant;
    }
    return NULL;
}

static enum belonging belonging_by_parent(const struct remains *remains, pid_t pid)
{
    const struct remnant *parent = find_process(remains, process_stat_parent(pid));

    return parent != NULL && !parent->is_undecided ? THEIRS : NOT_THEIRS;
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

/* Calls back when none is left. */
static void tell_if_gone(struct remains *remains)
{
    if (!list_is_empty(&remains->processes))
        return;
    remains_refresh(remains->pool, remains);
    if (list_is_empty(&remains->processes))
        remains->gone(remains->guard);
}

static void remnant_ended(struct watch *watch, uint32_t events)
{
    struct remnant *remnant = container_of(watch, struct remnant, watch);
    struct remains *remains = remnant->remains;

    (void)events;
    if (!remnant->is_undecided)
        remains->undecided_until = 0;
    remnant_free(remains->pool, remnant);
    tell_if_gone(remains);
}

/* One that has shown to be of the leases is told what the others were told. */
static void take_in(struct remnant *remnant)
{
    remnant->is_undecided = false;
    process_signal(remnant->watch.descriptor, remnant->remains->signal);
}

static void look_again(struct timer *timer)
{
    struct remains *remains = container_of(timer, struct remains, look_again);
    struct loop *loop = &remains->pool->loop;

    remains->tries = 0;
    remains->recent = false;
    list_for_each (link, &remains->processes) {
        struct remnant *remnant = container_of(link, struct remnant, in_remains);
        enum belonging belonging =
            remnant->is_undecided ? belonging_by_mark(remains, remnant->pid) : THEIRS;

        if (belonging == NOT_THEIRS)
            remnant_free(remains->pool, remnant);
        else if (belonging == UNDECIDED)
            timer_set_at(loop, timer, loop_now(loop) + LOOK_PERIOD);
        else if (remnant->is_undecided)
            take_in(remnant);
    }
    tell_if_gone(remains);
}

/* `belonging` is THEIRS or UNDECIDED. */
static bool add_process(struct remains *remains, int descriptor, pid_t pid,
                        enum belonging belonging)
{
    struct loop *loop = &remains->pool->loop;
    struct remnant *remnant = calloc(1, sizeof(*remnant));

    if (remnant == NULL) {
        close(descriptor);
        return false;
    }
    *remnant = (struct remnant){
        .watch = {.descriptor = descriptor, .ready = remnant_ended},
        .remains = remains,
        .pid = pid,
        .is_undecided = belonging == UNDECIDED,
    };
    if (loop_add(loop, &remnant->watch, EPOLLIN, NULL) < 0) {
        close(descriptor);
        free(remnant);
        return false;
    }
    list_append(&remains->processes, &remnant->in_remains);
    remains->count++;
    if (belonging == UNDECIDED)
        timer_set_at(loop, &remains->look_again, loop_now(loop) + LOOK_PERIOD);
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
    enum belonging belonging;
    int descriptor;

    if (pid == pool->pid || find_process(remains, pid) != NULL ||
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
    if (pid == remains->root)
        belonging = THEIRS;
    else if (only_children)
        belonging = belonging_by_parent(remains, pid);
    else
        belonging = is_of_user(remains, pid) ? belonging_by_mark(remains, pid) : NOT_THEIRS;
    if (belonging == NOT_THEIRS || process_has_ended(descriptor)) {
        close(descriptor);
        return false;
    }
    /* Its end has not begun before: whoever starts more and more would never be through. */
    if (belonging == THEIRS && (remains->signal == SIGKILL || remains->count >= WATCHED_MAX))
        process_signal(descriptor, remains->signal);
    if (remains->count >= WATCHED_MAX) {
        remains->is_more = true;
        close(descriptor);
        return false;
    }
    return add_process(remains, descriptor, pid, belonging);
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
    *remains = (struct remains){
        .pool = pool, .root = root, .gone = gone, .guard = guard, .look_again.fire = look_again};
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
    timer_set_at(&pool->loop, &remains->look_again, LOOP_NEVER);
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
    list_for_each (link, &remains->processes) {
        const struct remnant *remnant = container_of(link, struct remnant, in_remains);

        if (!remnant->is_undecided)
            process_signal(remnant->watch.descriptor, number);
    }
}
