/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/processes/leftovers.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/id_map.h"
#include "base/list.h"

/* The maximum number of watched processes of one search. It is limited, because all users share the
 * daemon's descriptors. */
enum { WATCHED_MAX = 512 };

/* How long the search waits for an undecided process, and the interval between looks. */
#define UNDECIDED_FOR (5 * DURATION_SECOND)
#define LOOK_PERIOD   (DURATION_SECOND / 200)

/* How long a look that found only undecided processes is repeated before it is reported. Most of
 * them finish their exec within a moment. */
#define DECIDE_TIME (DURATION_SECOND / 20)

/* The pause after an answer that could not name all processes. */
#define PARTIAL_PAUSE (DURATION_SECOND / 10)

struct leftover {
    struct id_link by_pid;
    struct list_link in_leftovers;
    struct watch watch; /* pidfd */
    struct leftovers *leftovers;
    struct leftover_process process;
    uint64_t lease;    /* to which it belongs, for messages */
    bool is_mentioned; /* in the last answer */
};

struct leftovers {
    struct loop *loop;
    struct reader_pool *readers;
    struct leftovers_events events;
    char *socket;
    struct signal_right right;
    uint32_t account;
    struct id_list leases;
    uint64_t since;
    pid_t holder;
    pid_t session;
    pid_t root;
    pid_t ended_root; /* of the look that is out; 0: none */
    bool containers_matter;

    struct reader_query *query; /* the look that is out */
    bool is_reported;           /* its end is events.looked */
    bool is_again;              /* another look is wanted after it */
    bool is_again_reported;
    bool wants_exit_code;
    struct optional_number exit_code;
    int64_t decide_until; /* 0: the look that is reported has no answer yet */

    struct list processes;
    struct id_map by_pid;
    size_t count;
    struct spared_processes *spared;
    struct foreign_processes *foreign;
    pid_t asker; /* the spared process that asked for the end; 0: none */
    int64_t asker_at;
    bool has_answer;
    bool is_more;            /* there are more processes than are watched */
    int signal;              /* that was sent last; 0: none */
    int64_t undecided_until; /* 0: none was undecided since one of them ended */
    struct timer look_again;
};

static void ask_readers(struct leftovers *leftovers);

/* ---- Processes ---- */

static struct leftover *find_process(const struct leftovers *leftovers, pid_t pid)
{
    struct id_link *link = id_map_find(&leftovers->by_pid, (uint64_t)pid);

    return link == NULL ? NULL : container_of(link, struct leftover, by_pid);
}

/* Stops watching a process. Returns its pidfd. */
static int take_out_process(struct leftover *leftover)
{
    struct leftovers *leftovers = leftover->leftovers;
    int descriptor = leftover->watch.descriptor;

    loop_remove(leftovers->loop, &leftover->watch);
    id_map_remove(&leftovers->by_pid, &leftover->by_pid);
    list_remove(&leftover->in_leftovers);
    leftovers->count--;
    free(leftover);
    return descriptor;
}

static void remove_process(struct leftover *leftover)
{
    close(take_out_process(leftover));
}

/* Adds a process that this user could not end to those that status names. Takes the pidfd. */
static void add_foreign(struct leftovers *leftovers, pid_t pid, uint64_t lease, uint32_t owner,
                        int descriptor)
{
    const struct foreign_process process = {
        .pid = pid,
        .lease = lease,
        .uid = leftovers->right.uid,
        .owner = owner,
    };

    if (leftovers->foreign == NULL)
        close(descriptor);
    else
        foreign_processes_add(leftovers->foreign, &process, descriptor);
}

/* Signals a process that belongs to the leases. One that has become another user's is removed. */
static void signal_process(struct leftover *leftover, int number)
{
    struct leftovers *leftovers = leftover->leftovers;
    pid_t pid = leftover->process.pid;
    uint64_t lease = leftover->lease;
    uint32_t owner;

    if (leftover->process.is_undecided || number == 0)
        return;
    if (!signal_right_use(&leftovers->right, pid, leftover->watch.descriptor, number, &owner)) {
        add_foreign(leftovers, pid, lease, owner, take_out_process(leftover));
        return;
    }
    if (number == SIGKILL && leftover->process.killed_at == 0)
        leftover->process.killed_at = loop_now(leftovers->loop);
}

static void process_ended(struct watch *watch, uint32_t events)
{
    struct leftover *leftover = container_of(watch, struct leftover, watch);
    struct leftovers *leftovers = leftover->leftovers;
    int64_t began = loop_processor_time(leftovers->loop);

    (void)events;
    if (!leftover->process.is_undecided) {
        leftovers->undecided_until = 0;
        leftovers->decide_until = 0;
    }
    if (leftover->process.pid == leftovers->root)
        leftovers_root_ended(leftovers);
    remove_process(leftover);
    if (leftovers->count == 0)
        ask_readers(leftovers);
    leftovers->events.spent(leftovers->events.context,
                            loop_processor_time(leftovers->loop) - began);
}

/* Returns whether a process that is new gets the last signal at once. Before SIGKILL it does so
 * only in the first look: a process that ends in an orderly way may start others. */
static bool signals_new(const struct leftovers *leftovers)
{
    return leftovers->signal == SIGKILL || !leftovers->has_answer;
}

/* Watches a process of the answer, whose descriptor it takes. */
static void add_process(struct leftovers *leftovers, struct reader_process *found,
                        bool is_undecided, bool is_container)
{
    struct leftover *leftover =
        leftovers->count >= WATCHED_MAX ? NULL : calloc(1, sizeof(*leftover));
    uint32_t owner;

    if (leftover == NULL) {
        leftovers->is_more = true;
        if (!is_undecided && leftovers->signal != 0)
            signal_right_use(&leftovers->right, (pid_t)found->pid, found->descriptor,
                             leftovers->signal, &owner);
        return;
    }
    *leftover = (struct leftover){
        .by_pid.id = found->pid,
        .watch = {.descriptor = found->descriptor, .ready = process_ended},
        .leftovers = leftovers,
        .lease = found->lease != 0 ? found->lease : leftovers->leases.items[0],
        .process =
            {
                .pid = (pid_t)found->pid,
                .uid = found->uid,
                .since = loop_now(leftovers->loop),
                .is_undecided = is_undecided,
                .is_container = is_container,
            },
        .is_mentioned = true,
    };
    if (loop_add(leftovers->loop, &leftover->watch, EPOLLIN, NULL) < 0) {
        leftovers->is_more = true;
        free(leftover);
        return;
    }
    found->descriptor = -1;
    id_map_add(&leftovers->by_pid, &leftover->by_pid);
    id_map_reserve(&leftovers->by_pid, ++leftovers->count);
    list_append(&leftovers->processes, &leftover->in_leftovers);
    if (signals_new(leftovers))
        signal_process(leftover, leftovers->signal);
}

/* ---- Answers ---- */

static void take_process(struct leftovers *leftovers, struct reader_process *found)
{
    bool is_container = found->state == READER_CONTAINER;
    bool is_undecided = is_container || found->state == READER_LATER;
    struct leftover *known = find_process(leftovers, (pid_t)found->pid);

    if (found->state == READER_FOREIGN && found->descriptor >= 0) {
        add_foreign(leftovers, (pid_t)found->pid, found->lease, 0, found->descriptor);
        found->descriptor = -1;
        return;
    }
    /* A process that does not answer does not count. If it is on a device, the driver lists it. */
    if ((found->state != READER_OURS && !is_undecided) || found->descriptor < 0)
        return;
    /* With a mark, the process would be a leftover anyway. */
    if ((pid_t)found->pid == leftovers->ended_root && found->lease == 0)
        return;
    if ((pid_t)found->pid == leftovers->asker) {
        if (!spared_processes_has(leftovers->spared, leftovers->asker)) {
            spared_processes_add(leftovers->spared, &leftovers->right, leftovers->asker,
                                 found->descriptor, leftovers->asker_at);
            found->descriptor = -1;
        }
        return;
    }
    if (known == NULL) {
        add_process(leftovers, found, is_undecided, is_container);
        return;
    }
    known->is_mentioned = true;
    /* The process may be inside the exec of the container's program. */
    known->process.is_container = known->process.is_container || is_container;
    if (known->process.is_undecided && !is_undecided) {
        known->process.is_undecided = false;
        signal_process(known, leftovers->signal);
    }
}

/* Drops the undecided processes that the answer does not mention any more: they belong to other
 * leases, or to none. Waits for the others, but not for ever. */
static void review_undecided(struct leftovers *leftovers)
{
    int64_t now = loop_now(leftovers->loop);
    bool is_any = false;

    list_for_each (link, &leftovers->processes) {
        struct leftover *leftover = container_of(link, struct leftover, in_leftovers);

        if (!leftover->process.is_undecided)
            continue;
        if (leftovers->undecided_until == 0)
            leftovers->undecided_until = now + UNDECIDED_FOR;
        if (leftover->is_mentioned && now < leftovers->undecided_until)
            is_any = true;
        else
            remove_process(leftover);
    }
    if (is_any)
        loop_set_timer(leftovers->loop, &leftovers->look_again, now + LOOK_PERIOD);
    else if (leftovers->is_more)
        loop_set_timer(leftovers->loop, &leftovers->look_again, now + PARTIAL_PAUSE);
}

static void take_processes(struct leftovers *leftovers, struct reader_answer *answer)
{
    struct reader_process *found;

    list_for_each (link, &leftovers->processes)
        container_of(link, struct leftover, in_leftovers)->is_mentioned = false;
    leftovers->is_more = answer != NULL && answer->partial;
    if (answer != NULL) {
        vector_for_each (found, &answer->processes)
            take_process(leftovers, found);
    }
    leftovers->has_answer = true;
    review_undecided(leftovers);
}

/* Returns whether the next look, in a moment, may show that nothing is left. */
static bool may_be_decided(struct leftovers *leftovers)
{
    int64_t now = loop_now(leftovers->loop);

    list_for_each (link, &leftovers->processes) {
        if (!container_of(link, struct leftover, in_leftovers)->process.is_undecided)
            return false;
    }
    if (leftovers->decide_until == 0)
        leftovers->decide_until = now + DECIDE_TIME;
    return leftovers->count > 0 && !leftovers->is_more && now < leftovers->decide_until;
}

/* Returns whether a process is left that delays the end of the leases. */
static bool is_any_left(const struct leftovers *leftovers)
{
    list_for_each (link, &leftovers->processes) {
        const struct leftover_process *process =
            &container_of(link, struct leftover, in_leftovers)->process;

        if (!process->is_undecided || process->is_container)
            return true;
    }
    return leftovers->is_more;
}

static void take_answer(void *context, struct reader_answer *answer)
{
    struct leftovers *leftovers = context;
    struct leftovers_events events = leftovers->events;
    int64_t began = loop_processor_time(leftovers->loop);
    bool is_reported = leftovers->is_reported;
    bool is_waiting;
    bool is_gone;

    leftovers->query = NULL;
    leftovers->is_reported = false;
    take_processes(leftovers, answer);
    if (answer != NULL && answer->exit_code.known)
        leftovers->exit_code = answer->exit_code;
    is_waiting = !leftovers->is_again && may_be_decided(leftovers);
    is_gone = !leftovers->is_again && !is_waiting && !is_any_left(leftovers);
    if (leftovers->is_again) {
        /* Both looks share one report: only the later one shows which processes are left now. */
        leftovers->is_reported = leftovers->is_again_reported;
        is_reported = is_reported && !leftovers->is_again_reported;
        leftovers->is_again = false;
        leftovers->is_again_reported = false;
        ask_readers(leftovers);
    } else if (is_reported && is_waiting) {
        leftovers->is_reported = true;
        is_reported = false;
    }
    events.spent(events.context, loop_processor_time(leftovers->loop) - began);
    /* The events may free the leftovers. */
    if (is_reported)
        events.looked(events.context, is_gone, leftovers->exit_code);
    else if (is_gone)
        events.gone(events.context);
}

/* ---- Asking ---- */

/* Adds the uids that the system gives this user for containers. */
static int fill_ranges(const struct signal_right *right, struct reader_ranges *ranges)
{
    const struct subordinate_range *range;

    if (right->ranges == NULL)
        return 0;
    vector_for_each (range, right->ranges) {
        struct reader_range *place = range->owner == right->uid ? vector_append(ranges) : NULL;

        if (place != NULL)
            *place = (struct reader_range){range->first, range->last - range->first + 1};
        else if (range->owner == right->uid)
            return BERTH_ERROR_MEMORY;
    }
    return 0;
}

static int fill_request(const struct leftovers *leftovers, struct reader_request *request)
{
    const uint64_t *id;

    request->question = READER_LEFTOVERS;
    request->uid = leftovers->right.uid;
    request->socket = strdup(leftovers->socket);
    request->since = leftovers->since;
    request->root_pid = (uint32_t)leftovers->root;
    request->containers_matter = leftovers->containers_matter;
    request->holder_pid = (uint32_t)leftovers->holder;
    request->session = (uint32_t)leftovers->session;
    request->wants_exit_code = leftovers->wants_exit_code;
    if (request->socket == NULL || vector_reserve(&request->leases, leftovers->leases.count) < 0)
        return BERTH_ERROR_MEMORY;
    vector_for_each (id, &leftovers->leases) {
        if (request->leases.count < READER_NUMBERS_MAX)
            request->leases.items[request->leases.count++].id = *id;
    }
    return fill_ranges(&leftovers->right, &request->ranges);
}

/* Asks the readers for a look, or for another one after the look that runs. */
static void ask_readers(struct leftovers *leftovers)
{
    struct reader_request request = {0};

    if (leftovers->query != NULL) {
        leftovers->is_again = true;
        return;
    }
    loop_set_timer(leftovers->loop, &leftovers->look_again, LOOP_NEVER);
    leftovers->ended_root = 0;
    if (fill_request(leftovers, &request) == 0)
        leftovers->query = reader_pool_ask(leftovers->readers, leftovers->account, &request,
                                           take_answer, leftovers);
    else
        reader_request_finish(&request);
    if (leftovers->query == NULL)
        loop_set_timer(leftovers->loop, &leftovers->look_again,
                       loop_now(leftovers->loop) + PARTIAL_PAUSE);
}

static void look_again(struct timer *timer)
{
    ask_readers(container_of(timer, struct leftovers, look_again));
}

void leftovers_look(struct leftovers *leftovers, bool wants_exit_code)
{
    leftovers->wants_exit_code = wants_exit_code;
    leftovers->decide_until = 0;
    if (leftovers->query != NULL)
        leftovers->is_again_reported = true;
    else
        leftovers->is_reported = true;
    ask_readers(leftovers);
}

void leftovers_signal(struct leftovers *leftovers, int number)
{
    bool had_processes = leftovers->count > 0;

    if (leftovers->signal == SIGKILL && number != SIGKILL)
        return;
    if (number != SIGCONT)
        leftovers->signal = number;
    list_for_each (link, &leftovers->processes)
        signal_process(container_of(link, struct leftover, in_leftovers), number);
    if (leftovers->has_answer
            ? number == SIGKILL || leftovers->is_more || (had_processes && leftovers->count == 0)
            : leftovers->query == NULL)
        ask_readers(leftovers);
}

void leftovers_root_ended(struct leftovers *leftovers)
{
    if (leftovers->query != NULL && leftovers->root != 0)
        leftovers->ended_root = leftovers->root;
    leftovers->root = 0;
}

void leftovers_spare(struct leftovers *leftovers, pid_t pid, int64_t at)
{
    leftovers->asker = pid;
    leftovers->asker_at = at;
}

/* ---- Making and freeing ---- */

struct leftovers *leftovers_new(const struct leftovers_settings *settings,
                                const struct leftovers_events *events)
{
    struct leftovers *leftovers = calloc(1, sizeof(*leftovers));

    if (leftovers == NULL)
        return NULL;
    *leftovers = (struct leftovers){
        .loop = settings->loop,
        .readers = settings->readers,
        .spared = settings->spared,
        .foreign = settings->foreign,
        .events = *events,
        .socket = strdup(settings->socket),
        .right = {settings->uid, settings->ranges},
        .account = settings->account,
        .since = settings->since,
        .holder = settings->holder,
        .session = settings->session,
        .root = settings->root,
        .containers_matter = settings->containers_matter,
        .look_again.fire = look_again,
    };
    list_init(&leftovers->processes);
    if (leftovers->socket == NULL || id_map_init(&leftovers->by_pid) < 0 ||
        vector_reserve(&leftovers->leases, settings->leases->count) < 0) {
        leftovers_free(leftovers);
        return NULL;
    }
    for (size_t i = 0; i < settings->leases->count; i++)
        leftovers->leases.items[leftovers->leases.count++] = settings->leases->items[i];
    return leftovers;
}

void leftovers_set_events(struct leftovers *leftovers, const struct leftovers_events *events)
{
    leftovers->events = *events;
}

void leftovers_free(struct leftovers *leftovers)
{
    if (leftovers == NULL)
        return;
    reader_pool_cancel(leftovers->query);
    loop_set_timer(leftovers->loop, &leftovers->look_again, LOOP_NEVER);
    list_for_each (link, &leftovers->processes)
        remove_process(container_of(link, struct leftover, in_leftovers));
    id_map_finish(&leftovers->by_pid);
    vector_finish(&leftovers->leases);
    free(leftovers->socket);
    free(leftovers);
}

bool leftovers_has_answer(const struct leftovers *leftovers)
{
    return leftovers != NULL && leftovers->has_answer;
}

size_t leftovers_count(const struct leftovers *leftovers)
{
    return leftovers->count;
}

void leftovers_each(const struct leftovers *leftovers,
                    void (*call)(void *context, const struct leftover_process *process),
                    void *context)
{
    list_for_each (link, &leftovers->processes)
        call(context, &container_of(link, struct leftover, in_leftovers)->process);
}
