/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the processes that are left of some leases: those that carry the mark of one of them, and
 * their descendants. All must pass the user rule (reader/reader_messages.h). Processes of root that
 * the user has started are found, too, but do not belong to the lease.
 */
#include "base/system/clock.h"
#include "base/system/process_stat.h"
#include "base/text/quantity.h"
#include "proc_reader/proc_question.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ROUNDS_MAX = 16,      /* of looking for descendants, each of which may find new ones */
    GENERATIONS_MAX = 64, /* between a process and an ancestor that belongs to the leases */
    STATUS_FIELD = 52,
    BY_SIGNAL = 128,
};

/* Containers start with a process of at most this age. */
#define CONTAINER_START_MAX (5 * DURATION_SECOND)

enum descent {
    DESCENT_NONE,
    DESCENT_OF_LEFTOVER,
    DESCENT_OF_HOLDER, /* of root's lease, whose mark other users' processes may carry, too */
};

/* ---- The rules ---- */

static bool passes_user_rule(const struct reader_request *request, uint32_t uid)
{
    const struct reader_range *range;

    if (uid == request->uid)
        return true;
    vector_for_each (range, &request->ranges) {
        if (uid >= range->first && uid - range->first < range->count)
            return request->uid != 0;
    }
    return false;
}

static bool is_wanted_mark(const struct reader_request *request, const struct lease_mark *mark)
{
    const struct reader_lease *lease;

    if (request->socket == NULL || strcmp(mark->socket, request->socket) != 0)
        return false;
    vector_for_each (lease, &request->leases) {
        if (lease->id == mark->lease)
            return true;
    }
    return false;
}

/* Returns a lower bound of a process's age. */
static int64_t find_age(struct proc_question *question, const struct proc_entry *entry)
{
    int64_t age = clock_read(CLOCK_BOOTTIME) - entry->seen;
    const char *fields =
        age >= PROC_INDEX_SETTLED
            ? NULL
            : proc_files_stat(question->files, (pid_t)entry->by_pid.id, &question->environment);

    /* When the index is new, it has seen old processes only a moment ago. */
    return fields == NULL ? age : process_stat_age(fields);
}

/* Returns the state of a process by its environment, or 0 if it does not belong to the leases. */
static enum reader_state judge_by_mark(struct proc_question *question, struct proc_entry *entry,
                                       uint64_t *ret_lease)
{
    const struct reader_request *request = question->request;
    int64_t age = find_age(question, entry);
    pid_t pid = (pid_t)entry->by_pid.id;
    struct lease_mark mark;

    switch (
        process_mark_read(question->files, pid, &question->tries, &question->environment, &mark)) {
    case PROCESS_MARK_FOUND:
        *ret_lease = mark.lease;
        return is_wanted_mark(request, &mark) ? READER_OURS : 0;
    case PROCESS_MARK_STARTING:
        return READER_LATER;
    case PROCESS_MARK_NONE:
        if (request->containers_matter && age < CONTAINER_START_MAX &&
            process_mark_may_follow(question->files, pid, request->since))
            return READER_CONTAINER;
        break;
    case PROCESS_MARK_UNREADABLE:
        break;
    }
    if (age >= PROC_INDEX_SETTLED)
        proc_index_set_unmarked(entry);
    return 0;
}

/* ---- Single processes ---- */

/* Adds a process that belongs to the leases, or may. Takes the pidfd. Returns 1 if it was added, 0
 * if it has ended, or a code. */
static int report_process(struct proc_question *question, struct proc_entry *entry, int process,
                          enum reader_state state, uint64_t lease)
{
    struct reader_process reported = {
        .pid = (uint32_t)entry->by_pid.id,
        .state = state,
        .descriptor = process,
        .uid = optional_number_of(entry->user->by_uid.id),
        .lease = lease,
    };
    int code = proc_question_report(question, &reported);

    if (code == 1) {
        entry->reported = question->number;
        entry->is_leftover = state == READER_OURS;
    }
    return code;
}

/* Returns whether the process has its place in the answer, or has none. */
static bool is_done(const struct proc_question *question, const struct proc_entry *entry)
{
    pid_t pid = (pid_t)entry->by_pid.id;

    return entry->reported == question->number ||
           proc_question_lists(&question->request->spared, pid) || pid == getpid();
}

/* Looks at one process that passed the user rule at the last look. `state` is known, or 0: by its
 * mark. The entry may be freed. Returns 1 if it was added, 0, or a code. */
static int visit_process(struct proc_question *question, pid_t pid, enum reader_state state,
                         bool any_user)
{
    struct proc_entry *entry;
    int process = proc_question_open(question, pid, &entry);
    uint64_t lease = 0;

    if (process < 0)
        return process == -1 ? 0 : process;
    if (entry != NULL && !is_done(question, entry) &&
        (any_user || passes_user_rule(question->request, (uint32_t)entry->user->by_uid.id))) {
        if (proc_question_lists(&question->request->stalled, pid))
            state = READER_STALLED;
        else if (state == 0)
            state = judge_by_mark(question, entry, &lease);
        if (state != 0)
            return report_process(question, entry, process, state, lease);
    }
    close(process);
    return 0;
}

/* Looks at a process of root. Returns 1 if it was added, 0, or a code. */
static int visit_roots_process(struct proc_question *question, pid_t pid)
{
    struct proc_entry *entry;
    uint64_t lease = 0;
    int process;

    if (getsid(pid) != (pid_t)question->request->session)
        return 0;
    process = proc_question_open(question, pid, &entry);
    if (process < 0)
        return process == -1 ? 0 : process;
    if (entry != NULL && entry->user->by_uid.id == 0 && !is_done(question, entry) &&
        !proc_question_lists(&question->request->stalled, pid) &&
        judge_by_mark(question, entry, &lease) == READER_OURS)
        return report_process(question, entry, process, READER_FOREIGN, lease);
    close(process);
    return 0;
}

static int visit_users_process(struct proc_question *question, pid_t pid)
{
    return visit_process(question, pid, 0, false);
}

/* ---- By marks ---- */

/* Looks at a user's processes, the youngest first, until those that cannot carry a mark. Returns
 * the number that was added, or a code. */
static int visit_user(struct proc_question *question, struct proc_user *user,
                      int (*visit)(struct proc_question *, pid_t))
{
    int64_t since = (int64_t)question->request->since;
    const struct list_link *ends = &user->processes.ends;
    const struct list_link *link = ends->previous;
    int added = 0;

    while (link != ends) {
        const struct proc_entry *entry = container_of(link, const struct proc_entry, in_user);
        int code;

        if (entry->is_unmarked || entry->joined < since)
            break;
        /* The entry may be freed, and its user if it is the last one. */
        link = link->previous;
        code = entry->seen < since || is_done(question, entry)
                   ? 0
                   : visit(question, (pid_t)entry->by_pid.id);
        if (code < 0)
            return code;
        added += code;
    }
    return added;
}

/* Looks at the processes of root in the holder's session: the lease's user may have started them.
 * No other process of root is opened. */
static int visit_root(struct proc_question *question)
{
    const struct reader_request *request = question->request;
    struct id_link *link = id_map_find(&question->index->users_by_uid, 0);

    if (link == NULL || request->session == 0 || request->uid == 0)
        return 0;
    return visit_user(question, container_of(link, struct proc_user, by_uid), visit_roots_process);
}

static int visit_users(struct proc_question *question)
{
    int added = 0;

    list_for_each (link, &question->index->users) {
        struct proc_user *user = container_of(link, struct proc_user, in_index);
        int code = passes_user_rule(question->request, (uint32_t)user->by_uid.id)
                       ? visit_user(question, user, visit_users_process)
                       : 0;

        if (code < 0)
            return code;
        added += code;
    }
    return added;
}

/* ---- By descent ---- */

/* Collects the processes that may descend from leftovers, with their parents. Returns 0 or
 * BERTH_ERROR_MEMORY. */
static int find_parents(struct proc_question *question, uint64_t round, struct reader_numbers *pids)
{
    const struct reader_request *request = question->request;
    const uint32_t *pid;

    list_for_each (user_link, &question->index->users) {
        const struct proc_user *user = container_of(user_link, struct proc_user, in_index);

        if (request->uid != 0 && !passes_user_rule(request, (uint32_t)user->by_uid.id))
            continue;
        list_for_each (link, &user->processes) {
            const struct proc_entry *entry = container_of(link, struct proc_entry, in_user);
            uint32_t *place;

            if (entry->seen < (int64_t)request->since || entry->reported == question->number ||
                proc_question_lists(&request->stalled, (pid_t)entry->by_pid.id))
                continue;
            place = vector_append(pids);
            if (place == NULL)
                return BERTH_ERROR_MEMORY;
            *place = (uint32_t)entry->by_pid.id;
        }
    }
    vector_for_each (pid, pids) {
        struct proc_entry *entry;
        int process;

        proc_files_touch(question->files, 0);
        process = proc_question_open(question, (pid_t)*pid, &entry);
        if (process == BERTH_ERROR_MEMORY)
            return process;
        if (process < 0)
            continue;
        if (entry != NULL) {
            entry->parent = proc_files_parent(question->files, process, (pid_t)*pid);
            entry->round = round;
        }
        close(process);
    }
    return 0;
}

static enum descent find_descent(const struct proc_question *question,
                                 const struct proc_entry *entry, uint64_t round)
{
    const struct reader_request *request = question->request;

    for (int i = 0; i < GENERATIONS_MAX && entry != NULL && entry->round == round; i++) {
        pid_t parent = entry->parent;

        if (parent <= 0)
            break;
        if ((uint32_t)parent == request->root_pid)
            return DESCENT_OF_LEFTOVER;
        if ((uint32_t)parent == request->holder_pid && request->uid == 0)
            return DESCENT_OF_HOLDER;
        entry = proc_index_find(question->index, parent);
        if (entry != NULL && entry->reported == question->number && entry->is_leftover)
            return DESCENT_OF_LEFTOVER;
    }
    return DESCENT_NONE;
}

/* Adds the descendants of the leftovers that are known. Returns the number, or a code. */
static int visit_descendants(struct proc_question *question, uint64_t round,
                             const struct reader_numbers *pids)
{
    const uint32_t *pid;
    int added = 0;

    vector_for_each (pid, pids) {
        const struct proc_entry *entry = proc_index_find(question->index, (pid_t)*pid);
        enum descent descent = entry == NULL ? DESCENT_NONE : find_descent(question, entry, round);
        int code = 0;

        if (descent == DESCENT_OF_LEFTOVER)
            code = visit_process(question, (pid_t)*pid, READER_OURS, question->request->uid == 0);
        else if (descent == DESCENT_OF_HOLDER && entry->user->by_uid.id != 0)
            code = visit_process(question, (pid_t)*pid, 0, true);
        if (code < 0)
            return code;
        added += code;
    }
    return added;
}

/* Processes may fork meanwhile, so there are rounds until one finds nothing. */
static int find_descendants(struct proc_question *question)
{
    for (uint64_t i = 0; i < ROUNDS_MAX; i++) {
        struct reader_numbers pids = {0};
        uint64_t round = question->number * ROUNDS_MAX + i;
        int code = i == 0 ? 0 : proc_question_refresh(question);

        if (code == 0)
            code = find_parents(question, round, &pids);
        if (code == 0)
            code = visit_descendants(question, round, &pids);
        vector_finish(&pids);
        if (code <= 0)
            return code;
    }
    question->pages.page.partial = true;
    return 0;
}

/* ---- The holder ---- */

/* Returns whether the process is a zombie whose exit code the kernel shows. Programs without the
 * right to see it read zeros instead. They cannot read the link either, so the error of that
 * differs. */
static bool read_zombie(struct proc_question *question, pid_t pid, int *ret_status)
{
    const struct proc_files *files = question->files;
    const char *fields;

    if (!proc_files_has_no_program(files, pid))
        return false;
    fields = proc_files_stat(files, pid, &question->environment);
    if (fields == NULL || !process_stat_has_ended(fields) ||
        (question->request->holder_started != 0 &&
         proc_files_started(fields) != question->request->holder_started))
        return false;
    *ret_status = (int)process_stat_number(fields, STATUS_FIELD);
    return true;
}

static void find_exit_code(struct proc_question *question)
{
    pid_t pid = (pid_t)question->request->holder_pid;
    int status;

    if (pid == 0 || proc_question_lists(&question->request->stalled, pid) ||
        !read_zombie(question, pid, &status))
        return;
    question->pages.page.exit_code = optional_number_of(
        (uint64_t)(WIFSIGNALED(status) ? BY_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status)));
}

static bool is_alive(const struct proc_question *question, uint32_t pid)
{
    int process = pid == 0 ? -1 : proc_files_open(question->files, (pid_t)pid);
    bool is = process >= 0 && !proc_files_has_ended(process);

    if (process >= 0)
        close(process);
    return is;
}

int proc_question_find_leftovers(struct proc_question *question)
{
    const struct reader_request *request = question->request;
    int added = 0;
    int code = 0;

    if (request->wants_exit_code)
        find_exit_code(question);
    if (request->root_pid != 0)
        code = added = visit_process(question, (pid_t)request->root_pid, READER_OURS, false);
    /* The holder is older than `since`. */
    if (code >= 0 && request->holder_pid != request->root_pid &&
        is_alive(question, request->holder_pid)) {
        code = visit_process(question, (pid_t)request->holder_pid, 0, false);
        added += code;
    }
    if (code >= 0)
        code = visit_users(question);
    if (code < 0)
        return code;
    added += code;
    code = visit_root(question);
    if (code >= 0 && (added > 0 || (request->uid == 0 && is_alive(question, request->holder_pid))))
        code = find_descendants(question);
    return code < 0 ? code : 0;
}
