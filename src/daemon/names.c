/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/names.h"

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
#include "daemon/bucket.h"
#include "daemon/handover.h"
#include "daemon/hardware.h"
#include "daemon/postponed.h"
#include "daemon/settle.h"

enum { ASKERS_MAX = 64 };

/* A free device's name is kept for so long after the last claim; another pool has so long to say
 * whether it uses a device; a name that nobody answers for is tried again as often. */
#define KEPT_FOR     (DURATION_SECOND / 2)
#define ANSWER_TIME  DURATION_SECOND
#define RETRY_PERIOD DURATION_SECOND
#define PAUSE        (DURATION_SECOND / 50)

/* Answers are waited for in one part of so many of the time, in the long run; after a long rest one
 * may be late. */
#define TIMEOUT_PART 10
#define TIMEOUT      (TIMEOUT_PART * ANSWER_TIME)

/* What the pool that uses a device says to who asks for it. */
static const char in_use = 'u';

struct name {
    struct pool *pool;
    uint32_t slot;
    struct sockaddr_un address;
    socklen_t address_length;
    struct watch held;   /* listens; -1: not ours */
    struct watch asking; /* connected to who has it; -1: nobody */
    bool unanswered;     /* it has not said yet whether it uses it */
    int64_t asked_at;
    struct bucket timeout; /* for its answers */
    int *askers;           /* connections of other pools, until we let go */
    size_t asker_count;
};

struct names {
    struct name *items; /* watched, so never moved */
    size_t count;
    size_t room;
    size_t unanswered;
    bool all_held; /* no name of a free device is missing */
    struct timer let_go;
    struct timer answers;
    struct timer retry;
};

/* "berth/0000:07:00.0", abstract; of an inventory "berth/<its number>/<id>". */
static socklen_t address_of(const struct pool *pool, uint32_t slot, struct sockaddr_un *ret_address)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    char *place = ret_address->sun_path + 1;
    size_t room = sizeof(ret_address->sun_path) - 1;
    struct device_id_text id = device_id_format(device->id);
    const char *own = device->pci.known && device->id.mig == DEVICE_NO_MIG && device->parent == NULL
                          ? NULL
                          : id.text;
    struct pci_text pci = pci_format(device->pci);
    int length;

    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (pool->settings.inventory == NULL)
        length = snprintf(place, room, "berth/%s", own == NULL ? pci.text : own);
    else
        length = snprintf(place, room, "berth/%016llx/%s", (unsigned long long)pool->inventory_key,
                          own == NULL ? pci.text : own);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static void close_watch(struct pool *pool, struct watch *watch)
{
    if (watch->descriptor < 0)
        return;
    loop_remove(&pool->loop, watch);
    close(watch->descriptor);
    watch->descriptor = -1;
}

static bool is_leased(const struct name *name)
{
    struct slot_view view;

    engine_get_slot(name->pool->engine, name->slot, &view);
    /* What is being handed over is not to be had elsewhere either. */
    return view.taken || (view.blocks & BLOCK_DIRTY) != 0;
}

/* Whether somebody of ours may be granted something without asking first. A free device whose name
 * is not ours must then be blocked. Not engine_pending(): that leaves opportunistic claims out. */
static bool anybody_waits(const struct pool *pool)
{
    if (engine_pending(pool->engine) > 0 || !list_is_empty(&pool->postponed))
        return true;
    list_for_each (link, &pool->jobs) {
        if (container_of(link, struct job, in_pool)->by_lease.id == 0)
            return true;
    }
    list_for_each (link, &pool->watchers) {
        if (container_of(link, struct watcher, in_pool)->asked != NULL)
            return true;
    }
    return false;
}

/* ---- Asking another pool ---- */

static void answered(struct name *name)
{
    struct names *names = name->pool->names;

    int64_t now = loop_now(&name->pool->loop);

    if (!name->unanswered)
        return;
    bucket_take(&name->timeout, now, TIMEOUT_PART * (now - name->asked_at));
    name->unanswered = false;
    names->unanswered--;
    if (names->unanswered == 0) {
        timer_set_at(&name->pool->loop, &names->answers, LOOP_NEVER);
        postponed_deal_with(name->pool);
    }
}

static bool take(struct name *name, bool asks);

/* The other side has let go, or says that it uses the device. */
static void other_spoke(struct watch *watch, uint32_t events)
{
    struct name *name = container_of(watch, struct name, asking);
    struct pool *pool = name->pool;
    char said[256];
    ssize_t got = recv(watch->descriptor, said, sizeof(said), MSG_DONTWAIT);

    (void)events;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0) {
        answered(name);
        return;
    }
    close_watch(pool, watch);
    /* Another may have been quicker; not asking it at once keeps two from chasing each other. Or a
     * child of the one that let go has its descriptors for another moment. */
    if (take(name, false))
        answered(name);
    else
        timer_set_at(&pool->loop, &pool->names->retry, loop_now(&pool->loop) + PAUSE);
    pool_settle(pool);
}

/* Whoever has the name is waited for, but not always: anybody can take a name and answer late each
 * time, and all claims would be late with it. */
static void await_answer(struct name *name)
{
    struct pool *pool = name->pool;
    int64_t now = loop_now(&pool->loop);

    if (name->unanswered || bucket_ready_at(&name->timeout, TIMEOUT) >= now)
        return;
    name->asked_at = now;
    name->unanswered = true;
    pool->names->unanswered++;
    timer_set_at(&pool->loop, &pool->names->answers, now + ANSWER_TIME);
}

/* Connects to who has the name, to hear of its end. Returns whether there was somebody. */
static bool ask_other(struct name *name)
{
    struct pool *pool = name->pool;
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (descriptor >= 0 &&
        connect(descriptor, (struct sockaddr *)&name->address, name->address_length) == 0) {
        name->asking = (struct watch){.descriptor = descriptor, .ready = other_spoke};
        if (loop_add(&pool->loop, &name->asking, EPOLLIN, NULL) == 0) {
            await_answer(name);
            return true;
        }
        name->asking.descriptor = -1;
    }
    if (descriptor >= 0)
        close(descriptor);
    return false;
}

/* ---- Taking and letting go ---- */

static void let_go(struct name *name)
{
    close_watch(name->pool, &name->held);
    for (size_t i = 0; i < name->asker_count; i++)
        close(name->askers[i]);
    free(name->askers);
    name->askers = NULL;
    name->asker_count = 0;
    name->pool->names->all_held = false;
}

/* Lets another pool have a free device. Ours wait for something else; until they may want it, it is
 * the other's. */
static void leave_to_other(struct name *name)
{
    struct pool *pool = name->pool;

    if (anybody_waits(pool)) {
        engine_block(pool->engine, name->slot, BLOCK_ELSEWHERE);
        timer_set_at(&pool->loop, &pool->names->retry, loop_now(&pool->loop) + RETRY_PERIOD);
    }
    let_go(name);
}

/* Pools that asked and are gone. */
static void drop_gone_askers(struct name *name)
{
    size_t kept = 0;

    for (size_t i = 0; i < name->asker_count; i++) {
        char nothing;

        if (recv(name->askers[i], &nothing, sizeof(nothing), MSG_DONTWAIT | MSG_PEEK) == 0)
            close(name->askers[i]);
        else
            name->askers[kept++] = name->askers[i];
    }
    name->asker_count = kept;
}

/* Somebody asks for a name that we hold. */
static void somebody_asks(struct watch *watch, uint32_t events)
{
    struct name *name = container_of(watch, struct name, held);
    struct pool *pool = name->pool;
    // cppcheck-suppress nullPointer ; as accept(2) has it
    int descriptor = accept4(watch->descriptor, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int *askers;

    (void)events;
    if (descriptor < 0)
        return;
    drop_gone_askers(name);
    askers = name->asker_count < ASKERS_MAX
                 ? reallocarray(name->askers, name->asker_count + 1, sizeof(*askers))
                 : NULL;
    if (askers == NULL) {
        close(descriptor);
        return;
    }
    name->askers = askers;
    name->askers[name->asker_count++] = descriptor;
    if (is_leased(name)) {
        send(descriptor, &in_use, sizeof(in_use), MSG_NOSIGNAL | MSG_DONTWAIT);
        return;
    }
    leave_to_other(name);
    pool_settle(pool);
}

/* Another pool's lease has been on it: who is there now is looked at before it is granted. */
static void look_after_other(const struct name *name)
{
    struct slot_view view;

    engine_get_slot(name->pool->engine, name->slot, &view);
    if ((view.blocks & BLOCK_ELSEWHERE) != 0 && hardware_answers(name->pool))
        handover_need(name->pool, name->slot, HANDOVER_LOOK);
}

/* Takes the name and unblocks its device, if nobody has it. */
static bool take_unheld(struct name *name)
{
    struct pool *pool = name->pool;
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (descriptor >= 0 &&
        bind(descriptor, (struct sockaddr *)&name->address, name->address_length) == 0 &&
        listen(descriptor, ASKERS_MAX) == 0) {
        name->held = (struct watch){.descriptor = descriptor, .ready = somebody_asks};
        if (loop_add(&pool->loop, &name->held, EPOLLIN, NULL) == 0) {
            look_after_other(name);
            engine_unblock(pool->engine, name->slot, BLOCK_ELSEWHERE);
            return true;
        }
        name->held.descriptor = -1;
    }
    if (descriptor >= 0)
        close(descriptor);
    return false;
}

/* Takes the name, or blocks its device and perhaps asks who has it. */
static bool take(struct name *name, bool asks)
{
    struct pool *pool = name->pool;

    if (name->held.descriptor >= 0)
        return true;
    if (name->asking.descriptor >= 0)
        return false;
    if (take_unheld(name))
        return true;
    if (asks && !ask_other(name)) {
        /* It has just gone; or its queue is full, or it does not listen. */
        if (take_unheld(name))
            return true;
        if (!list_is_linked(&pool->names->retry.in_loop))
            timer_set_at(&pool->loop, &pool->names->retry, loop_now(&pool->loop) + RETRY_PERIOD);
    }
    engine_block(pool->engine, name->slot, BLOCK_ELSEWHERE);
    return false;
}

static void take_all(struct pool *pool)
{
    struct names *names = pool->names;

    if (names->all_held)
        return;
    if (!list_is_linked(&names->let_go.in_loop))
        timer_set_at(&pool->loop, &names->let_go, loop_now(&pool->loop) + KEPT_FOR);
    names->all_held = true;
    for (size_t i = 0; i < names->count; i++) {
        if (!take(&names->items[i], true))
            names->all_held = false;
    }
}

static void let_go_of_free(struct timer *timer)
{
    struct names *names = container_of(timer, struct names, let_go);
    struct pool *pool = names->count == 0 ? NULL : names->items[0].pool;

    /* Somebody of ours may want them. */
    if (pool == NULL || anybody_waits(pool))
        return;
    for (size_t i = 0; i < names->count; i++) {
        if (names->items[i].held.descriptor >= 0 && !is_leased(&names->items[i]))
            let_go(&names->items[i]);
    }
}

static void answers_are_late(struct timer *timer)
{
    struct names *names = container_of(timer, struct names, answers);

    for (size_t i = 0; i < names->count; i++)
        answered(&names->items[i]);
}

static void try_again(struct timer *timer)
{
    struct names *names = container_of(timer, struct names, retry);
    struct pool *pool = names->items[0].pool;

    if (!anybody_waits(pool))
        return;
    take_all(pool);
    /* What is ours needs no answer any more. */
    for (size_t i = 0; i < names->count; i++) {
        if (names->items[i].held.descriptor >= 0)
            answered(&names->items[i]);
    }
    pool_settle(pool);
}

/* ---- What the rest of the daemon calls ---- */

bool names_are_unsettled(struct pool *pool)
{
    if (pool->names->count > 0)
        take_all(pool);
    return names_are_awaited(pool);
}

bool names_are_awaited(const struct pool *pool)
{
    return pool->names->unanswered > 0;
}

void names_update(struct pool *pool)
{
    struct names *names = pool->names;

    if (names->count == 0)
        return;
    for (size_t i = 0; i < names->count; i++) {
        struct name *name = &names->items[i];

        if (name->asker_count > 0 && name->held.descriptor >= 0 && !is_leased(name))
            leave_to_other(name);
    }
    if (!list_is_linked(&names->let_go.in_loop))
        timer_set_at(&pool->loop, &names->let_go, loop_now(&pool->loop) + KEPT_FOR);
}

/* What is free and unblocked is granted at once to who waits, so the name comes first. */
static void begin(struct name *name)
{
    if (is_leased(name) || anybody_waits(name->pool))
        take(name, true);
    else
        engine_unblock(name->pool->engine, name->slot, BLOCK_ELSEWHERE);
}

void names_add(struct pool *pool, uint32_t slot)
{
    struct names *names = pool->names;
    struct name *name;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length = address_of(pool, slot, &address);

    if (names == NULL || slot >= names->room)
        return;
    name = &names->items[slot];
    if (slot < names->count) {
        if (name->address_length == length && memcmp(&name->address, &address, length) == 0)
            return;
        /* Under its old address it is nobody's any more. Claims that wait for another pool's answer
         * are dealt with when the time for that is over. */
        close_watch(pool, &name->asking);
        let_go(name);
    } else {
        *name = (struct name){
            .pool = pool, .slot = slot, .held.descriptor = -1, .asking.descriptor = -1};
        names->count = slot + 1; /* they come in the order of their slots */
    }
    name->address = address;
    name->address_length = length;
    names->all_held = false;
    begin(name);
}

int names_init(struct pool *pool, struct berth_error *error)
{
    size_t count = engine_machine(pool->engine)->devices.count;
    size_t room = engine_slots_max(pool->engine);
    struct names *names = calloc(1, sizeof(*names));

    if (names == NULL)
        return error_set_memory(error);
    pool->names = names;
    names->let_go.fire = let_go_of_free;
    names->answers.fire = answers_are_late;
    names->retry.fire = try_again;
    if (pool->settings.inventory != NULL)
        room = count;
    if (room > NAMES_MAX)
        return 0;
    names->items = calloc(room, sizeof(*names->items));
    if (names->items == NULL && room > 0)
        return error_set_memory(error);
    names->room = room;
    for (size_t slot = 0; slot < count; slot++)
        names_add(pool, (uint32_t)slot);
    return 0;
}

void names_finish(struct pool *pool)
{
    struct names *names = pool->names;

    if (names == NULL)
        return;
    for (size_t i = 0; i < names->count; i++) {
        close_watch(pool, &names->items[i].asking);
        let_go(&names->items[i]);
    }
    timer_set_at(&pool->loop, &names->let_go, LOOP_NEVER);
    timer_set_at(&pool->loop, &names->answers, LOOP_NEVER);
    timer_set_at(&pool->loop, &names->retry, LOOP_NEVER);
    free(names->items);
    free(names);
    pool->names = NULL;
}
