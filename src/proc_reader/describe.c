/* SPDX-License-Identifier: Apache-2.0
 *
 * Describes the processes that a request names.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/namespaces.h"
#include "base/system/process_container.h"
#include "proc_reader/proc_question.h"

enum { ANCESTORS_MAX = 64, TEXT_MAX = 4096 };

/* ---- Facts ---- */

/* Appends the numbers of a line of /proc/PID/status, at most `max`. Returns 0 or
 * BERTH_ERROR_MEMORY. */
static int append_numbers(const char *status, const char *key, size_t max,
                          struct reader_numbers *list)
{
    const char *line = strstr(status, key);
    char *end;

    if (line == NULL)
        return 0;
    line += strlen(key);
    for (size_t i = 0; i < max; i++, line = end) {
        unsigned long number;
        uint32_t *place;

        line += strspn(line, " \t");
        number = strtoul(line, &end, 10);
        if (end == line || *line == '\n' || number > UINT32_MAX)
            break;
        place = vector_append(list);
        if (place == NULL)
            return BERTH_ERROR_MEMORY;
        *place = (uint32_t)number;
    }
    return 0;
}

/* Reads the first number of a line of /proc/PID/status. */
static struct optional_number read_id(const char *status, const char *key)
{
    struct reader_numbers numbers = {0};
    struct optional_number id = {0};

    if (append_numbers(status, key, 1, &numbers) == 0 && numbers.count == 1)
        id = optional_number_of(numbers.items[0]);
    vector_finish(&numbers);
    return id;
}

/* The process chooses its name, which comes before these lines, but the kernel escapes newlines. */
static int describe_credentials(struct proc_question *question, struct reader_process *process,
                                bool groups)
{
    struct text *status = &question->environment;

    if (proc_files_read(question->files, (pid_t)process->pid, "status", status) < 0)
        return 0;
    process->uid = read_id(text_string(status), "\nUid:");
    if (!groups)
        return 0;
    process->gid = read_id(text_string(status), "\nGid:");
    return append_numbers(text_string(status), "\nGroups:", READER_NUMBERS_MAX, &process->groups);
}

static int describe_ancestors(struct proc_question *question, struct reader_process *process)
{
    pid_t pid = (pid_t)process->parent;

    while (pid > 0 && process->ancestors.count < ANCESTORS_MAX) {
        uint32_t *place = vector_append(&process->ancestors);
        int ancestor;

        if (place == NULL)
            return BERTH_ERROR_MEMORY;
        *place = (uint32_t)pid;
        if (proc_question_lists(&question->request->stalled, pid))
            break;
        ancestor = proc_files_open(question->files, pid);
        if (ancestor < 0)
            break;
        pid = proc_files_parent(question->files, ancestor, pid);
        close(ancestor);
    }
    return 0;
}

/* Returns a copy of a text, or NULL for one that is too long for a message. */
static char *copy_text(const char *text)
{
    return text == NULL || strlen(text) > TEXT_MAX ? NULL : strdup(text);
}

static void describe_mark(struct proc_question *question, struct reader_process *process)
{
    struct lease_mark mark;

    if (process_mark_read(question->files, (pid_t)process->pid, &question->tries,
                          &question->environment, &mark) != PROCESS_MARK_FOUND)
        return;
    process->lease = mark.lease;
    process->socket = copy_text(mark.socket);
    process->devices = copy_text(process_mark_variable(&question->environment, "BERTH_DEVICES"));
}

static void describe_namespaces(struct proc_question *question, struct reader_process *process)
{
    struct text container = {0};
    pid_t pid = (pid_t)process->pid;
    uint32_t owner;

    proc_files_touch(question->files, pid);
    if (namespace_user_owner(pid, &owner))
        process->owner = optional_number_of(owner);
    if (process_container_begun(pid, &container))
        process->container = copy_text(text_string(&container));
    proc_files_leave(question->files);
    text_finish(&container);
}

/* ---- Processes ---- */

static int describe_all(struct proc_question *question, struct reader_process *process)
{
    bool is_everything = !question->request->identity_only;
    pid_t pid = (pid_t)process->pid;
    const char *fields = proc_files_stat(question->files, pid, &question->environment);
    uint32_t uid;
    int code = 0;

    if (fields != NULL)
        process->started = proc_files_started(fields);
    process->parent = (uint32_t)proc_files_parent(question->files, process->descriptor, pid);
    if (proc_files_uid(question->files, process->descriptor, pid, &uid))
        process->uid = optional_number_of(uid);
    if (is_everything || question->files->is_old_kernel)
        code = describe_credentials(question, process, is_everything);
    if (code < 0 || !is_everything)
        return code;
    describe_mark(question, process);
    describe_namespaces(question, process);
    return describe_ancestors(question, process);
}

static int describe_one(struct proc_question *question, pid_t pid)
{
    struct reader_process process = {.pid = (uint32_t)pid, .state = READER_FOUND};
    uint32_t uid;
    int code = 0;

    process.descriptor = proc_files_open(question->files, pid);
    if (process.descriptor < 0 && errno != ESRCH && errno != EINVAL && errno != ENOENT)
        return BERTH_ERROR_IO;
    if (process.descriptor >= 0 && proc_question_lists(&question->request->stalled, pid)) {
        process.state = READER_STALLED;
        if (proc_files_uid(question->files, process.descriptor, pid, &uid))
            process.uid = optional_number_of(uid);
    } else if (process.descriptor >= 0) {
        code = describe_all(question, &process);
    }
    if (code < 0)
        return code;
    if (process.descriptor < 0 || proc_files_has_ended(process.descriptor)) {
        if (process.descriptor >= 0)
            close(process.descriptor);
        reader_process_free(&process);
        process.pid = (uint32_t)pid;
        process.state = READER_GONE;
    }
    return answer_pages_add(&question->pages, &process);
}

int proc_question_describe(struct proc_question *question)
{
    const uint32_t *pid;

    vector_for_each (pid, &question->request->pids) {
        int code = *pid == 0 || *pid > INT32_MAX ? 0 : describe_one(question, (pid_t)*pid);

        if (code < 0)
            return code;
    }
    return 0;
}
