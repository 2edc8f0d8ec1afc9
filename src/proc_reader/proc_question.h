/* SPDX-License-Identifier: Apache-2.0
 *
 * A question that the reader works on, and the steps that all questions have in common.
 */
#ifndef PROC_READER_PROC_QUESTION_H
#define PROC_READER_PROC_QUESTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proc_reader/answer_pages.h"
#include "proc_reader/proc_index.h"
#include "proc_reader/process_mark.h"
#include "reader/reader_messages.h"

struct proc_question {
    const struct proc_files *files;
    struct proc_index *index;
    const struct reader_request *request; /* `stalled` and `spared` are sorted */
    uint64_t number;                      /* counts the questions */
    struct answer_pages pages;
    int tries; /* to read environments of processes that are becoming programs, in all */
    struct text environment;
};

/* Learns about all processes that the question is about. A lease of root's may have root's
 * processes whatever user they become, so these need not be looked at again. Returns 0 or a code.
 */
int proc_question_refresh(struct proc_question *question);

/* Returns whether a sorted list has the process id. */
bool proc_question_lists(const struct reader_numbers *list, pid_t pid);

/* Opens a process, and updates its entry. Returns a pidfd, and *ret_entry, which may be NULL; or -1
 * if the process is gone, or BERTH_ERROR_MEMORY. A process that cannot be opened for lack of
 * descriptors makes the answer partial. An entry of the process may be freed. */
int proc_question_open(struct proc_question *question, pid_t pid, struct proc_entry **ret_entry);

/* Adds a process to the answer, if it has not ended. Takes the pidfd. Returns 1, 0 if it has ended,
 * or a code, after which the program cannot continue. */
int proc_question_report(struct proc_question *question, struct reader_process *process);

/* Answer the questions. Return 0, or a code after which the program cannot continue. */
int proc_question_find_leftovers(struct proc_question *question);
int proc_question_describe(struct proc_question *question);
int proc_question_find_marked(struct proc_question *question);

#endif
