/* SPDX-License-Identifier: Apache-2.0 */
#include "proc_reader/proc_question.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare_numbers(const void *one, const void *other)
{
    uint32_t left = *(const uint32_t *)one;
    uint32_t right = *(const uint32_t *)other;

    return left < right ? -1 : left > right;
}

bool proc_question_lists(const struct reader_numbers *list, pid_t pid)
{
    uint32_t wanted = (uint32_t)pid;

    return list->count > 0 &&
           bsearch(&wanted, list->items, list->count, sizeof(wanted), compare_numbers) != NULL;
}

int proc_question_refresh(struct proc_question *question)
{
    return proc_index_refresh(question->index, question->request->question != READER_LEFTOVERS ||
                                                   question->request->uid != 0);
}

int proc_question_open(struct proc_question *question, pid_t pid, struct proc_entry **ret_entry)
{
    int process = proc_files_open(question->files, pid);

    if (process < 0) {
        struct proc_entry *entry = proc_index_find(question->index, pid);

        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
            question->pages.page.partial = true;
        else if (entry != NULL)
            proc_index_remove(question->index, entry);
        return -1;
    }
    if (proc_index_set(question->index, process, pid) < 0) {
        close(process);
        return BERTH_ERROR_MEMORY;
    }
    *ret_entry = proc_index_find(question->index, pid);
    return process;
}

int proc_question_report(struct proc_question *question, struct reader_process *process)
{
    int code;

    if (proc_files_has_ended(process->descriptor)) {
        close(process->descriptor);
        process->descriptor = -1;
        return 0;
    }
    if (answer_pages_is_full(&question->pages)) {
        question->pages.page.partial = true;
        close(process->descriptor);
        process->descriptor = -1;
        return 0;
    }
    code = answer_pages_add(&question->pages, process);
    return code < 0 ? code : 1;
}
