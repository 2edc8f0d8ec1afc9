/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds all processes that carry a mark of the pool.
 */
#include <string.h>
#include <unistd.h>

#include "proc_reader/proc_question.h"

enum { TEXT_MAX = 4096 };

/* Reads the mark of an open process. Returns whether it is one of the pool's. */
static bool read_mark(struct proc_question *question, struct reader_process *process)
{
    struct lease_mark mark;
    const char *devices;

    if (process_mark_read(question->files, (pid_t)process->pid, &question->tries,
                          &question->environment, &mark) != PROCESS_MARK_FOUND ||
        question->request->socket == NULL || strcmp(mark.socket, question->request->socket) != 0)
        return false;
    process->lease = mark.lease;
    devices = process_mark_variable(&question->environment, "BERTH_DEVICES");
    if (devices != NULL && strlen(devices) <= TEXT_MAX)
        process->devices = strdup(devices);
    return true;
}

static int visit_process(struct proc_question *question, pid_t pid)
{
    struct proc_entry *entry;
    struct reader_process process = {.pid = (uint32_t)pid, .state = READER_FOUND};
    bool is_stalled = proc_question_lists(&question->request->stalled, pid);
    int code;

    process.descriptor = pid == getpid() ? -1 : proc_question_open(question, pid, &entry);
    if (process.descriptor < 0)
        return process.descriptor == -1 ? 0 : process.descriptor;
    if (entry == NULL || (!is_stalled && !read_mark(question, &process))) {
        close(process.descriptor);
        return 0;
    }
    if (is_stalled)
        process.state = READER_STALLED;
    process.uid = optional_number_of(entry->user->by_uid.id);
    code = proc_question_report(question, &process);
    return code < 0 ? code : 0;
}

int proc_question_find_marked(struct proc_question *question)
{
    struct reader_numbers pids = {0};
    const uint32_t *pid;
    int code = 0;

    list_for_each (user_link, &question->index->users) {
        const struct proc_user *user = container_of(user_link, struct proc_user, in_index);

        list_for_each (link, &user->processes) {
            uint32_t *place = vector_append(&pids);

            if (place == NULL) {
                vector_finish(&pids);
                return BERTH_ERROR_MEMORY;
            }
            *place = (uint32_t)container_of(link, struct proc_entry, in_user)->by_pid.id;
        }
    }
    vector_for_each (pid, &pids) {
        code = visit_process(question, (pid_t)*pid);
        if (code < 0)
            break;
    }
    vector_finish(&pids);
    return code;
}
