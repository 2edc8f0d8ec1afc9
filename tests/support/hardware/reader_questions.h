/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions of a reader about a made-up /proc (made_up_processes.h), and the files that it opened
 * to answer them. A test program calls the functions of proc_reader/proc_question.h directly.
 */
#ifndef TESTS_READER_QUESTIONS_H
#define TESTS_READER_QUESTIONS_H

#include "support/unit.h"

#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <linux/sched.h>

#include "base/system/clock.h"
#include "proc_reader/proc_question.h"
#include "reader/reader.h"
#include "support/hardware/made_up_processes.h"
#include "support/temporary_directory.h"

/* Users. */
enum { USER = 1000, OTHER = 1001, SUBORDINATE = 300000 };
/* Process ids that no process of the machine has: Linux gives out 4194304 at most. */
enum { FIRST = 5000001, LEASE = 4711 };

static const char question_socket[] = "/run/test/berth.sock";

/* Flags of a process in its stat file. */
enum { FORKED_WITHOUT_EXEC = 0x00000040, KERNEL_THREAD = 0x00200000 };

struct watched_process {
    int pid;
    int watch;
    char
        files[64]; /* that were opened, each followed by a space, in the order of their first use */
};

struct question_world {
    struct proc_files files;
    struct proc_index index;
    struct reader_request request;
    struct proc_question question;
    struct watched_process watched[16];
    size_t watched_count;
    int watch; /* inotify */
    void *directory;
    _Atomic uint64_t progress;
};

/* ---- Processes ---- */

static inline void put_process(struct question_world *world, int pid, uid_t uid,
                               const char *variables)
{
    struct watched_process *watched = &world->watched[world->watched_count++];
    char name[16];

    assert_true(world->watched_count <= sizeof(world->watched) / sizeof(*world->watched));
    made_up_process(pid, uid);
    if (variables != NULL)
        made_up_environment(pid, variables);
    snprintf(name, sizeof(name), "%d", pid);
    *watched = (struct watched_process){
        .pid = pid,
        .watch = inotify_add_watch(world->watch, name, IN_OPEN),
    };
    assert_true(watched->watch >= 0);
    made_up_machine(pid < FIRST ? FIRST : pid, 1000);
    made_up_write("sys/kernel/pid_max", "8000000\n");
}

/* Adds a process that carries the mark of a lease of the pool. */
static inline void put_marked(struct question_world *world, int pid, uid_t uid, unsigned int lease)
{
    char variables[128];

    snprintf(variables, sizeof(variables), "BERTH_LEASE=%u\nBERTH_SOCKET=%s\n", lease,
             question_socket);
    put_process(world, pid, uid, variables);
}

static inline void put_status(int pid, const char *text)
{
    char path[32];

    snprintf(path, sizeof(path), "%d/status", pid);
    made_up_write(path, text);
}

static inline void put_parent(int pid, int parent)
{
    char text[64];

    made_up_stat(pid, &(struct made_up_stat){.parent = parent, .environment_end = 1});
    snprintf(text, sizeof(text), "Name:\tsh\nPPid:\t%d\n", parent);
    put_status(pid, text);
}

/* ---- Files that were opened ---- */

static inline void note_open(struct question_world *world, int watch, const char *file)
{
    for (size_t i = 0; i < world->watched_count; i++) {
        struct watched_process *watched = &world->watched[i];
        size_t length = strlen(watched->files);

        if (watched->watch == watch && strstr(watched->files, file) == NULL)
            snprintf(watched->files + length, sizeof(watched->files) - length, "%s ", file);
    }
}

static inline void read_opens(struct question_world *world)
{
    _Alignas(struct inotify_event) char events[16384];
    ssize_t length = read(world->watch, events, sizeof(events));

    for (ssize_t at = 0; at < length;) {
        const struct inotify_event *event = (const struct inotify_event *)(events + at);

        if (event->len > 0)
            note_open(world, event->wd, event->name);
        at += (ssize_t)sizeof(*event) + event->len;
    }
}

/* Returns the files of the process that were opened for the last question: "environ stat ". */
static inline const char *opened_files(struct question_world *world, int pid)
{
    for (size_t i = 0; i < world->watched_count; i++) {
        if (world->watched[i].pid == pid)
            return world->watched[i].files;
    }
    fail_msg("process %d is not watched", pid);
    return NULL;
}

/* ---- Questions ---- */

static inline void add_number(struct reader_numbers *list, int number)
{
    uint32_t *place = vector_append(list);

    assert_non_null(place);
    *place = (uint32_t)number;
}

static inline void forget_answer(struct question_world *world)
{
    reader_answer_finish(&world->question.pages.page);
    text_finish(&world->question.environment);
}

/* Answers the request. */
static inline void ask(struct question_world *world, int (*answer)(struct proc_question *))
{
    uint64_t number = world->question.number + 1;

    forget_answer(world);
    world->question = (struct proc_question){
        .files = &world->files,
        .index = &world->index,
        .request = &world->request,
        .number = number,
        .pages = {.socket = -1},
        .tries = 3,
    };
    assert_int_equal(proc_index_refresh(&world->index, true), 0);
    read_opens(world);
    for (size_t i = 0; i < world->watched_count; i++)
        world->watched[i].files[0] = '\0';
    assert_int_equal(answer(&world->question), 0);
    read_opens(world);
}

static inline size_t count_answers(const struct question_world *world)
{
    return world->question.pages.page.processes.count;
}

/* Returns the process in the answer, or NULL. */
static inline const struct reader_process *find_answer(const struct question_world *world, int pid)
{
    const struct reader_process *process;

    vector_for_each (process, &world->question.pages.page.processes) {
        if (process->pid == (uint32_t)pid)
            return process;
    }
    return NULL;
}

/* Returns the state of the process in the answer; 0: it is not there. */
static inline int state_of(const struct question_world *world, int pid)
{
    const struct reader_process *process = find_answer(world, pid);

    return process == NULL ? 0 : (int)process->state;
}

/* ---- Set-up and tear-down for cmocka ---- */

static inline int question_world_begin(void **state)
{
    struct question_world *world = calloc(1, sizeof(*world));
    struct reader_lease *lease;

    assert_non_null(world);
    *state = world;
    assert_int_equal(temporary_directory_enter(&world->directory), 0);
    world->files = (struct proc_files){
        .directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        .progress = &world->progress,
        .is_old_kernel = true,
        .open_process = made_up_open,
    };
    world->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    assert_true(world->files.directory >= 0 && world->watch >= 0);
    made_up_machine(FIRST, 1000);
    made_up_write("sys/kernel/pid_max", "8000000\n");
    assert_int_equal(proc_index_init(&world->index, &world->files), 0);
    world->request.uid = USER;
    world->request.socket = strdup(question_socket);
    lease = vector_append(&world->request.leases);
    assert_true(lease != NULL && world->request.socket != NULL);
    lease->id = LEASE;
    return 0;
}

static inline int question_world_end(void **state)
{
    struct question_world *world = *state;
    int result;

    forget_answer(world);
    reader_request_finish(&world->request);
    proc_index_finish(&world->index);
    close(world->files.directory);
    close(world->watch);
    result = temporary_directory_leave(&world->directory);
    free(world);
    return result;
}

#define ON_QUESTION(test) \
    cmocka_unit_test_setup_teardown(test, question_world_begin, question_world_end)

/* ---- Real processes, whose sessions and namespaces the code under test looks up ---- */

/* Forks with these flags of clone(2). The child waits until it is killed. Returns 0 when the kernel
 * does not allow that here. */
static inline pid_t fork_child(unsigned long long flags)
{
    struct clone_args arguments = {.flags = flags, .exit_signal = SIGCHLD};
    pid_t pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return pid < 0 ? 0 : pid;
}

static inline void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Starts a child in another pid namespace, or skips the test. */
static inline pid_t start_in_namespace(void)
{
    pid_t pid = fork_child(geteuid() == 0 ? CLONE_NEWPID : CLONE_NEWPID | CLONE_NEWUSER);

    if (pid == 0) {
        print_message("skipped: no pid namespaces here\n");
        skip();
    }
    return pid;
}

#endif
