/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/devices/device_locks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/core/rate_limit.h"
#include "daemon/devices/device_askers.h"

/* How long a free device's name is kept after the last claim; how long another pool may take to
 * answer whether it uses a device; how often an unanswered name is tried again; and the pause
 * before a name is tried again that its holder has just let go. */
#define KEPT_FOR     (DURATION_SECOND / 2)
#define ANSWER_TIME  DURATION_SECOND
#define RETRY_PERIOD DURATION_SECOND
#define PAUSE        (DURATION_SECOND / 50)

/* A pool answers about a device whose lease has just ended within this time, which is long enough
 * for a search on a busy machine. */
#define ENDING_TIME (ANSWER_TIME * 3 / 4)

/* At most one in TIMEOUT_PART of the time is spent waiting for answers that come too late. After a
 * long time without one, a single late answer is allowed at once. */
#define TIMEOUT_PART 10
#define TIMEOUT      (TIMEOUT_PART * ANSWER_TIME)

struct device_lock {
    struct device_locks *locks;
    uint32_t slot;
    struct sockaddr_un address;
    socklen_t address_length;
    struct watch held;                /* listens; -1: this pool does not hold the name */
    struct watch asking;              /* connected to the holder; -1: not connected */
    struct device_lock_holder holder; /* while the name is another process's */
    bool is_foreign;                  /* `holder` is valid */
    bool is_unanswered;               /* the holder has not said yet whether it uses the device */
    int64_t asked_at;
    struct rate_limit timeout;   /* for its answers */
    struct device_askers askers; /* answered when this pool lets the name go */
    int64_t owed_at;             /* the time at which the waiting pools get an answer */
};

struct device_locks {
    struct device_locks_settings settings;
    char *scope;
    struct device_lock *items; /* watched, so never moved */
    size_t count;
    size_t unanswered;
    bool all_held; /* no name of a free device is missing */
    struct timer let_go;
    struct timer answers;
    struct timer retry;
    struct timer owed; /* answers to other pools */
};

/* Makes "berth/0000:07:00.0", abstract; of an inventory "berth/SCOPE/nvidia0". */
static socklen_t make_address(const struct device_locks *locks, const struct device *device,
                              struct sockaddr_un *ret_address)
{
    char *place = ret_address->sun_path + 1;
    size_t room = sizeof(ret_address->sun_path) - 1;
    struct device_id_text id = device_id_format(device->id);
    bool by_pci = device->pci.known && device->id.mig == DEVICE_NO_MIG && device->parent == NULL;
    struct pci_text pci = pci_format(device->pci);
    const char *name = by_pci ? pci.text : id.text;
    int length;

    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (locks->scope == NULL)
        length = snprintf(place, room, "berth/%s", name);
    else
        length = snprintf(place, room, "berth/%s/%s", locks->scope, name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int64_t now_of(const struct device_locks *locks)
{
    return loop_now(locks->settings.loop);
}

static void set_timer(struct device_locks *locks, struct timer *timer, int64_t after)
{
    loop_set_timer(locks->settings.loop, timer, now_of(locks) + after);
}

static void close_watch(struct device_locks *locks, struct watch *watch)
{
    if (watch->descriptor < 0)
        return;
    loop_remove(locks->settings.loop, watch);
    close(watch->descriptor);
    watch->descriptor = -1;
}

static bool is_leased(const struct device_lock *lock)
{
    const struct device_locks_events *events = &lock->locks->settings.events;

    return events->is_leased(events->context, lock->slot);
}

static bool is_ending(const struct device_lock *lock)
{
    const struct device_locks_events *events = &lock->locks->settings.events;

    return events->is_ending(events->context, lock->slot);
}

static bool is_wanted(const struct device_locks *locks)
{
    return locks->settings.events.is_wanted(locks->settings.events.context);
}

static void unblock_device(const struct device_lock *lock)
{
    const struct device_locks_events *events = &lock->locks->settings.events;

    events->unblock(events->context, lock->slot);
}

static void block_device(const struct device_lock *lock)
{
    const struct device_locks_events *events = &lock->locks->settings.events;

    events->block(events->context, lock->slot);
}

static void report_change(const struct device_locks *locks)
{
    locks->settings.events.changed(locks->settings.events.context);
}

/* ---- The process that holds a name ---- */

/* Returns whether a device whose name this process holds must not be granted. */
static bool holder_blocks(const struct device_lock *lock, const struct device_lock_holder *holder)
{
    const struct device_locks_settings *settings = &lock->locks->settings;

    if (!settings->keeps_all)
        return true;
    if (!holder->is_known)
        return false;
    if (holder->uid == 0 || holder->uid == settings->uid)
        return true;
    return settings->events.is_used_by(settings->events.context, lock->slot, holder->uid);
}

/* Asks the kernel which process listens on the name. A process that was found before and does not
 * listen for a moment stays the holder. */
static struct device_lock_holder find_holder(const struct device_lock *lock)
{
    struct device_lock_holder holder =
        lock->is_foreign ? lock->holder : (struct device_lock_holder){0};
    struct ucred peer;
    socklen_t length = sizeof(peer);

    if (lock->asking.descriptor >= 0 &&
        getsockopt(lock->asking.descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0)
        holder = (struct device_lock_holder){true, peer.uid, peer.pid, false};
    holder.blocks = holder_blocks(lock, &holder);
    return holder;
}

static void forget_holder(struct device_lock *lock)
{
    const struct device_locks_events *events = &lock->locks->settings.events;

    if (!lock->is_foreign)
        return;
    lock->is_foreign = false;
    events->holder_changed(events->context, lock->slot, NULL);
}

/* Notes who holds the name now, and blocks the device or not. */
static void note_holder(struct device_lock *lock)
{
    const struct device_locks_events *events = &lock->locks->settings.events;
    struct device_lock_holder holder = find_holder(lock);
    bool is_new = !lock->is_foreign || lock->holder.uid != holder.uid ||
                  lock->holder.pid != holder.pid || lock->holder.is_known != holder.is_known ||
                  lock->holder.blocks != holder.blocks;

    lock->is_foreign = true;
    lock->holder = holder;
    if (holder.blocks)
        block_device(lock);
    else
        unblock_device(lock);
    if (is_new)
        events->holder_changed(events->context, lock->slot, &holder);
}

/* ---- Asking another pool ---- */

/* The wait is charged to the holder, unless it gave the name to this pool. */
static void note_answer(struct device_lock *lock)
{
    struct device_locks *locks = lock->locks;
    int64_t now = now_of(locks);

    if (!lock->is_unanswered)
        return;
    if (lock->held.descriptor < 0)
        rate_limit_take(&lock->timeout, now, TIMEOUT_PART * (now - lock->asked_at));
    lock->is_unanswered = false;
    locks->unanswered--;
    if (locks->unanswered == 0) {
        loop_set_timer(locks->settings.loop, &locks->answers, LOOP_NEVER);
        locks->settings.events.answered(locks->settings.events.context);
    }
}

static bool take_name(struct device_lock *lock, bool asks);

/* Handles the holder's answer: it has let the name go, or it uses the device. */
static void holder_spoke(struct watch *watch, uint32_t events)
{
    struct device_lock *lock = container_of(watch, struct device_lock, asking);
    struct device_locks *locks = lock->locks;
    char said[256];
    ssize_t got = recv(watch->descriptor, said, sizeof(said), MSG_DONTWAIT);

    (void)events;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0) {
        note_answer(lock);
        return;
    }
    close_watch(locks, watch);
    /* Another pool may have taken the name first; the pause keeps two pools from asking each other
     * in turn. Or a child of the former holder keeps its descriptors open for another moment. */
    if (take_name(lock, false))
        note_answer(lock);
    else
        set_timer(locks, &locks->retry, PAUSE);
    report_change(locks);
}

/* Waits for the holder's answer, within a time budget: any user can take a name and always answer
 * late, which would delay all claims. */
static void await_answer(struct device_lock *lock)
{
    struct device_locks *locks = lock->locks;
    int64_t now = now_of(locks);

    if (locks->settings.keeps_all || lock->is_unanswered ||
        rate_limit_ready_at(&lock->timeout, TIMEOUT) >= now)
        return;
    lock->asked_at = now;
    lock->is_unanswered = true;
    locks->unanswered++;
    set_timer(locks, &locks->answers, ANSWER_TIME);
}

/* Connects to the holder, so that its end is noticed. Returns whether a holder listens. */
static bool ask_holder(struct device_lock *lock)
{
    struct device_locks *locks = lock->locks;
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (descriptor >= 0 &&
        connect(descriptor, (struct sockaddr *)&lock->address, lock->address_length) == 0) {
        lock->asking = (struct watch){.descriptor = descriptor, .ready = holder_spoke};
        if (loop_add(locks->settings.loop, &lock->asking, EPOLLIN, NULL) == 0) {
            await_answer(lock);
            return true;
        }
        lock->asking.descriptor = -1;
    }
    if (descriptor >= 0)
        close(descriptor);
    return false;
}

/* ---- Taking and letting go ---- */

static void let_go(struct device_lock *lock)
{
    close_watch(lock->locks, &lock->held);
    device_askers_finish(&lock->askers);
    lock->locks->all_held = false;
}

/* Releases a free device's name for another pool, until a claim here needs the device. */
static void leave_to_other(struct device_lock *lock)
{
    struct device_locks *locks = lock->locks;

    if (is_wanted(locks)) {
        block_device(lock);
        set_timer(locks, &locks->retry, RETRY_PERIOD);
    }
    let_go(lock);
}

/* Sets the timer for the first answer that is owed. */
static void set_owed_timer(struct device_locks *locks)
{
    int64_t first = LOOP_NEVER;

    for (size_t i = 0; i < locks->count; i++) {
        if (locks->items[i].askers.are_waiting && locks->items[i].owed_at < first)
            first = locks->items[i].owed_at;
    }
    loop_set_timer(locks->settings.loop, &locks->owed, first);
}

static void answers_are_due(struct timer *timer)
{
    struct device_locks *locks = container_of(timer, struct device_locks, owed);
    int64_t now = now_of(locks);

    for (size_t i = 0; i < locks->count; i++) {
        if (locks->items[i].askers.are_waiting && locks->items[i].owed_at <= now)
            device_askers_refuse(&locks->items[i].askers);
    }
    set_owed_timer(locks);
}

/* Accepts a connection of another pool that asks for a name of this pool. */
static void pool_asks(struct watch *watch, uint32_t events)
{
    struct device_lock *lock = container_of(watch, struct device_lock, held);
    struct device_locks *locks = lock->locks;

    (void)events;
    if (!device_askers_accept(&lock->askers, watch->descriptor))
        return;
    if (!locks->settings.keeps_all && !is_leased(lock)) {
        leave_to_other(lock);
        report_change(locks);
    } else if (locks->settings.keeps_all || !is_ending(lock)) {
        device_askers_refuse_last(&lock->askers);
    } else {
        if (!lock->askers.are_waiting)
            lock->owed_at = now_of(locks) + ENDING_TIME;
        lock->askers.are_waiting = true;
        set_owed_timer(locks);
    }
}

/* Takes the name and unblocks its device, if no process has it. */
static bool take_free_name(struct device_lock *lock)
{
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (descriptor >= 0 &&
        bind(descriptor, (struct sockaddr *)&lock->address, lock->address_length) == 0 &&
        listen(descriptor, DEVICE_ASKERS_MAX) == 0) {
        lock->held = (struct watch){.descriptor = descriptor, .ready = pool_asks};
        if (loop_add(lock->locks->settings.loop, &lock->held, EPOLLIN, NULL) == 0) {
            forget_holder(lock);
            unblock_device(lock);
            return true;
        }
        lock->held.descriptor = -1;
    }
    if (descriptor >= 0)
        close(descriptor);
    return false;
}

/* Takes the name, or blocks its device and perhaps asks the process that has it. */
static bool take_name(struct device_lock *lock, bool asks)
{
    struct device_locks *locks = lock->locks;

    if (lock->held.descriptor >= 0)
        return true;
    if (lock->asking.descriptor >= 0)
        return false;
    if (take_free_name(lock))
        return true;
    if (asks && !ask_holder(lock)) {
        /* The holder has just ended, or its queue is full, or it does not listen. */
        if (take_free_name(lock))
            return true;
        if (!list_is_linked(&locks->retry.in_loop))
            set_timer(locks, &locks->retry, RETRY_PERIOD);
    }
    note_holder(lock);
    return false;
}

static void take_all(struct device_locks *locks)
{
    if (locks->all_held)
        return;
    if (!locks->settings.keeps_all && !list_is_linked(&locks->let_go.in_loop))
        set_timer(locks, &locks->let_go, KEPT_FOR);
    locks->all_held = true;
    for (size_t i = 0; i < locks->count; i++) {
        if (!take_name(&locks->items[i], true))
            locks->all_held = false;
    }
}

static void let_go_of_free(struct timer *timer)
{
    struct device_locks *locks = container_of(timer, struct device_locks, let_go);

    if (is_wanted(locks))
        return;
    for (size_t i = 0; i < locks->count; i++) {
        if (locks->items[i].held.descriptor >= 0 && !is_leased(&locks->items[i]))
            let_go(&locks->items[i]);
    }
}

static void answers_are_late(struct timer *timer)
{
    struct device_locks *locks = container_of(timer, struct device_locks, answers);

    for (size_t i = 0; i < locks->count; i++)
        note_answer(&locks->items[i]);
}

static void try_again(struct timer *timer)
{
    struct device_locks *locks = container_of(timer, struct device_locks, retry);

    if (!locks->settings.keeps_all && !is_wanted(locks))
        return;
    take_all(locks);
    /* A name that this pool holds needs no answer any more. */
    for (size_t i = 0; i < locks->count; i++) {
        if (locks->items[i].held.descriptor >= 0)
            note_answer(&locks->items[i]);
    }
    report_change(locks);
}

/* ---- Public functions ---- */

bool device_locks_are_unsettled(struct device_locks *locks)
{
    if (locks->count > 0)
        take_all(locks);
    return device_locks_are_awaited(locks);
}

bool device_locks_are_awaited(const struct device_locks *locks)
{
    return locks->unanswered > 0;
}

/* Answers the pools that asked for a device while it was leased: releases the name of a free
 * device, or reports that a process is left on it. */
static void answer_askers(struct device_lock *lock)
{
    if (lock->askers.count == 0 || lock->held.descriptor < 0)
        return;
    if (!is_leased(lock))
        leave_to_other(lock);
    else if (lock->askers.are_waiting && !is_ending(lock))
        device_askers_refuse(&lock->askers);
}

void device_locks_update(struct device_locks *locks)
{
    bool keeps_all = locks->settings.keeps_all;

    for (size_t i = 0; i < locks->count; i++) {
        struct device_lock *lock = &locks->items[i];

        if (!keeps_all)
            answer_askers(lock);
        else if (lock->is_foreign)
            note_holder(lock);
    }
    if (!keeps_all && locks->count > 0 && !list_is_linked(&locks->let_go.in_loop))
        set_timer(locks, &locks->let_go, KEPT_FOR);
}

bool device_locks_find_holder(const struct device_locks *locks, uint32_t slot,
                              struct device_lock_holder *ret_holder)
{
    if (slot >= locks->count || !locks->items[slot].is_foreign)
        return false;
    *ret_holder = locks->items[slot].holder;
    return true;
}

void device_locks_add(struct device_locks *locks, uint32_t slot, const struct device *device)
{
    struct device_lock *lock;
    struct sockaddr_un address;
    socklen_t length = make_address(locks, device, &address);

    if (locks->items == NULL || slot >= locks->settings.max)
        return;
    lock = &locks->items[slot];
    if (slot < locks->count) {
        if (lock->address_length == length && memcmp(&lock->address, &address, length) == 0)
            return;
        /* Claims that wait for another pool's answer continue when its time is over. */
        close_watch(locks, &lock->asking);
        forget_holder(lock);
        let_go(lock);
    } else {
        *lock = (struct device_lock){
            .locks = locks, .slot = slot, .held.descriptor = -1, .asking.descriptor = -1};
        locks->count = slot + 1; /* devices are added in the order of their slots */
    }
    lock->address = address;
    lock->address_length = length;
    locks->all_held = false;
    /* A free and unblocked device is granted at once to a claim that waits. */
    if (locks->settings.keeps_all || is_leased(lock) || is_wanted(locks))
        take_name(lock, true);
    else
        unblock_device(lock);
}

int device_locks_create(struct device_locks **ret_locks,
                        const struct device_locks_settings *settings, struct berth_error *error)
{
    struct device_locks *locks = calloc(1, sizeof(*locks));

    if (locks == NULL)
        return error_set_memory(error);
    locks->settings = *settings;
    locks->settings.scope = NULL;
    locks->let_go.fire = let_go_of_free;
    locks->answers.fire = answers_are_late;
    locks->retry.fire = try_again;
    locks->owed.fire = answers_are_due;
    if (settings->scope != NULL) {
        locks->scope = strdup(settings->scope);
        if (locks->scope == NULL) {
            device_locks_destroy(locks);
            return error_set_memory(error);
        }
    }
    if (settings->max > 0 && settings->max <= DEVICE_LOCKS_MAX) {
        locks->items = calloc(settings->max, sizeof(*locks->items));
        if (locks->items == NULL) {
            device_locks_destroy(locks);
            return error_set_memory(error);
        }
    }
    *ret_locks = locks;
    return 0;
}

void device_locks_destroy(struct device_locks *locks)
{
    if (locks == NULL)
        return;
    for (size_t i = 0; locks->items != NULL && i < locks->count; i++) {
        close_watch(locks, &locks->items[i].asking);
        let_go(&locks->items[i]);
    }
    loop_set_timer(locks->settings.loop, &locks->let_go, LOOP_NEVER);
    loop_set_timer(locks->settings.loop, &locks->answers, LOOP_NEVER);
    loop_set_timer(locks->settings.loop, &locks->retry, LOOP_NEVER);
    loop_set_timer(locks->settings.loop, &locks->owed, LOOP_NEVER);
    free(locks->items);
    free(locks->scope);
    free(locks);
}
