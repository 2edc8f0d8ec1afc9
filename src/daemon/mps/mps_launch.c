/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mps/mps_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"
#include "base/system/child_setup.h"
#include "base/text/quantity.h"
#include "daemon/core/last_line.h"
#include "daemon/core/priority.h"
#include "daemon/mps/mps_rules.h"
#include "model/mps_directories.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* The bytes of its output that are kept, and the maximum length of a reason or a path. */
enum { OUTPUT_MAX = 16 * 1024, REASON_MAX = 512 };

enum { NEVER_SEEN = 127 }; /* the exit code of a child that did not become the program */

/* The daemon may create directories in it by its group. All users pass through it to their own. */
enum { BASE_MODE = 0731, PRIVATE_MODE = 0700 };

/* ---- In the child ---- */

static _Noreturn void give_up(int line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static _Noreturn void give_up(int line, const char *format, ...)
{
    char reason[REASON_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    /* If the daemon has ended, the reason is not needed. */
    if (send(line, reason, strlen(reason), MSG_NOSIGNAL) < 0) {
    }
    _exit(NEVER_SEEN);
}

/* Creates the directory if it is missing, and checks that it is this user's. */
static void want_directory(int line, const char *path, uid_t owner, mode_t mode)
{
    struct stat status;
    bool is_made = mkdir(path, mode) == 0;

    if (!is_made && errno != EEXIST)
        give_up(line, "cannot create %s: %s", path, strerror(errno));
    if (lstat(path, &status) < 0)
        give_up(line, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(status.st_mode))
        give_up(line, "%s: expected a directory, got %s", path,
                S_ISLNK(status.st_mode) ? "a symlink" : "something else");
    if (status.st_uid != owner)
        give_up(line, "%s: expected a directory of user %u, got one of user %u", path,
                (unsigned)owner, (unsigned)status.st_uid);
    if ((status.st_mode & 07777) != mode && chmod(path, mode) < 0)
        give_up(line, "%s: expected mode %04o, got %04o", path, (unsigned)mode,
                (unsigned)(status.st_mode & 07777));
}

/* Creates the pool's directory and the one for the user, as the user with the daemon's group, which
 * may write to the pool's directory. So no right to change owners is needed. */
static void make_own(int line, const struct mps_launch *launch)
{
    uid_t uid = launch->site->persona.uid;
    char path[REASON_MAX];

    want_directory(line, launch->base, geteuid(), BASE_MODE);
    snprintf(path, sizeof(path), "%s/%u", launch->base, (unsigned)uid);
    setfsuid(uid);
    want_directory(line, path, uid, PRIVATE_MODE);
    setfsuid(geteuid());
}

/* Creates a directory with the user's rights alone, and its parent unless the request names it. */
static void make_directory(int line, const char *path, uid_t uid, bool is_given)
{
    char above[REASON_MAX];
    struct stat status;

    if (mkdir(path, PRIVATE_MODE) < 0 && errno == ENOENT && !is_given) {
        snprintf(above, sizeof(above), "%s", path);
        *strrchr(above, '/') = '\0';
        if (mkdir(above, PRIVATE_MODE) < 0 && errno != EEXIST)
            give_up(line, "cannot create %s: %s", above, strerror(errno));
        mkdir(path, PRIVATE_MODE);
    }
    if (stat(path, &status) < 0)
        give_up(line, "cannot create %s: %s", path, strerror(errno));
    if (!S_ISDIR(status.st_mode))
        give_up(line, "%s: expected a directory, got something else", path);
    if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) < 0)
        give_up(line, "%s: expected a directory that user %u may write to, got one of user %u",
                path, (unsigned)uid, (unsigned)status.st_uid);
}

/* Returns whether a process listens at the socket: 1, 0, or -1 if that cannot be known. */
static int is_alive(const char *path)
{
    static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    int number = EPROTOTYPE;

    if (strlen(path) >= sizeof(address.sun_path) ||
        (lstat(path, &status) == 0 && !S_ISSOCK(status.st_mode)))
        return -1;
    strcpy(address.sun_path, path);
    for (size_t i = 0; i < COUNT(types) && number == EPROTOTYPE; i++) {
        int client = socket(AF_UNIX, types[i] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (client < 0)
            return -1;
        number = connect(client, (struct sockaddr *)&address, sizeof(address)) < 0 ? errno : 0;
        close(client);
    }
    /* EAGAIN: its queue is full. */
    if (number == 0 || number == EAGAIN)
        return 1;
    return number == ECONNREFUSED || number == ENOENT ? 0 : -1;
}

/* Removes the files of a control daemon that was killed. Fails if one runs there, which would
 * answer instead of this one. */
static void clear_place(int line, const char *pipe)
{
    static const char *const names[] = {"control", "control_lock", "control_privileged",
                                        "nvidia-cuda-mps-control.pid"};
    char path[REASON_MAX];
    int alive;

    snprintf(path, sizeof(path), "%s/%s", pipe, names[0]);
    alive = is_alive(path);
    if (alive > 0)
        give_up(line, "%s: in use by another MPS control daemon", pipe);
    for (size_t i = 0; alive == 0 && i < COUNT(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", pipe, names[i]);
        unlink(path);
    }
}

/* Returns the given environment with the home of the user. */
static char **make_environment(int line, const struct mps_launch *launch, const char *home)
{
    const struct string_list *given = launch->environment;
    char **environment = calloc(given->count + 2, sizeof(*environment));
    size_t count = 0;

    if (environment == NULL)
        give_up(line, "%s", strerror(ENOMEM));
    for (; count < given->count && given->items[count] != NULL; count++)
        environment[count] = given->items[count];
    /* It runs without a home, too. */
    if (home != NULL && asprintf(&environment[count], "HOME=%s", home) < 0)
        environment[count] = NULL;
    return environment;
}

static _Noreturn void be_child(const struct mps_launch *launch, const struct mps_rules *rules,
                               int line, int output)
{
    const struct mps_site *site = launch->site;
    const uid_t uid = site->persona.uid;
    char *words[] = {(char *)launch->program, (char *)"-f", NULL};
    const char *home = NULL;
    char **environment;
    char byte;
    int number;

    setsid();
    umask(S_IRWXG | S_IRWXO);
    if (child_setup_descriptors(-1, output, &line) < 0)
        _exit(NEVER_SEEN);
    child_setup_reset_signals();
    /* The end of file means that the daemon has ended. */
    if (recv(line, &byte, sizeof(byte), 0) != sizeof(byte) || chdir("/") < 0)
        _exit(NEVER_SEEN);
    number = mps_rules_check(rules, &(struct mps_rules_order){
                                        .program = launch->program,
                                        .base = launch->base,
                                        .uid = uid,
                                        .gid = site->persona.gid,
                                        .environment = launch->environment->items,
                                    });
    if (number != 0)
        give_up(line, "%s: %s", launch->program, strerror(number));
    if (!site->is_pipe_given || !site->is_log_given)
        make_own(line, launch);
    priority_reset();
    number = become_user_apply(&site->persona, &home);
    if (number != 0)
        give_up(line, "cannot become user %u: %s", (unsigned)uid,
                number == ESRCH ? "no such user" : strerror(number));
    make_directory(line, site->pipe, uid, site->is_pipe_given);
    make_directory(line, site->log, uid, site->is_log_given);
    clear_place(line, site->pipe);
    environment = make_environment(line, launch, home);
    execve(words[0], words, environment);
    give_up(line, "%s: %s", words[0], strerror(errno));
}

/* ---- The order ---- */

enum {
    WORD_PROGRAM,
    WORD_BASE,
    WORD_UID,
    WORD_GID,
    WORD_PIPE_GIVEN,
    WORD_LOG_GIVEN,
    WORD_PIPE,
    WORD_LOG,
    WORDS_FIXED
};

static void encode_order(const struct mps_launch *launch, struct text *bytes)
{
    const struct mps_site *site = launch->site;
    char *const *variable;

    launcher_append_word(bytes, launch->program);
    launcher_append_word(bytes, launch->base);
    launcher_append_number(bytes, site->persona.uid);
    launcher_append_number(bytes, site->persona.gid);
    launcher_append_number(bytes, site->is_pipe_given);
    launcher_append_number(bytes, site->is_log_given);
    launcher_append_word(bytes, site->pipe);
    launcher_append_word(bytes, site->log);
    vector_for_each (variable, launch->environment)
        launcher_append_word(bytes, *variable);
}

static uint32_t read_number(char *const *words, size_t index, uint64_t max)
{
    uint64_t number;

    if (quantity_parse_number(words[index], 0, max, &number, NULL) < 0)
        _exit(NEVER_SEEN);
    return (uint32_t)number;
}

void mps_launch_run(const struct launcher_work *work)
{
    struct string_list words = {0};
    struct string_list environment;
    char **end;

    if (launcher_read_words(work, &words) != 0 || words.count < WORDS_FIXED ||
        work->descriptor_count != 2)
        return;
    end = vector_append(&words);
    if (end == NULL)
        return;
    *end = NULL;
    environment = (struct string_list){
        .items = words.items + WORDS_FIXED,
        .count = words.count - WORDS_FIXED,
    };
    be_child(
        &(struct mps_launch){
            .program = words.items[WORD_PROGRAM],
            .base = words.items[WORD_BASE],
            .environment = &environment,
            .site =
                &(struct mps_site){
                    .persona = {.uid = read_number(words.items, WORD_UID, UINT32_MAX),
                                .gid = read_number(words.items, WORD_GID, UINT32_MAX)},
                    .is_pipe_given = read_number(words.items, WORD_PIPE_GIVEN, 1) != 0,
                    .is_log_given = read_number(words.items, WORD_LOG_GIVEN, 1) != 0,
                    .pipe = words.items[WORD_PIPE],
                    .log = words.items[WORD_LOG],
                },
        },
        work->context, work->descriptors[0], work->descriptors[1]);
}

/* ---- Around it ---- */

/* Opens a file in memory for its output. Its size is fixed, so the output cannot fill the memory,
 * and it needs no reader. Returns -1 with errno on failure. */
static int open_output(void)
{
    int output = memfd_create("mps", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (output < 0 || (ftruncate(output, OUTPUT_MAX) == 0 &&
                       fcntl(output, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0))
        return output;
    close(output);
    return -1;
}

/* It has not executed a program, so it ends at once. */
static void kill_and_reap(const struct mps_child *child)
{
    kill(child->pid, SIGKILL);
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Makes the process. Returns 0 or an errno. */
static int make_process(const struct mps_launch *launch, int line, struct mps_child *child)
{
    const int descriptors[] = {line, child->output};
    struct text bytes = {0};
    int number;

    encode_order(launch, &bytes);
    number = launcher_fork(launch->launcher, LAUNCHER_MPS_CONTROL, &bytes, descriptors,
                           COUNT(descriptors), &child->pid, &child->process);
    text_finish(&bytes);
    return number;
}

int mps_launch(const struct mps_launch *launch, struct mps_child *ret_child)
{
    struct mps_child child = {.process = -1, .output = open_output(), .line = -1};
    int ends[2] = {-1, -1};
    int number = child.output < 0 ? errno : 0;

    if (number == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        number = errno;
    if (number == 0)
        number = make_process(launch, ends[1], &child);
    if (ends[1] >= 0)
        close(ends[1]);
    child.line = ends[0];
    if (number != 0)
        mps_child_close(&child);
    else
        *ret_child = child;
    return number;
}

void mps_undo(struct mps_child *child)
{
    kill_and_reap(child);
    mps_child_close(child);
}

void mps_let_go(const struct mps_child *child)
{
    /* The end of a process that is gone is noticed by its pidfd. */
    if (send(child->line, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    }
}

bool mps_has_begun(const struct mps_child *child)
{
    char byte;

    return recv(child->line, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) == 0;
}

void mps_reap(const struct mps_child *child, struct text *out)
{
    siginfo_t info = {0};

    /* A process of an earlier daemon is no child of this one. */
    if (waitid((idtype_t)P_PIDFD, (id_t)child->process, &info, WEXITED | WNOHANG) < 0 ||
        info.si_pid == 0)
        text_append(out, "it ended");
    else if (info.si_code == CLD_EXITED)
        text_append_format(out, "exit code %d", info.si_status);
    else
        text_append_format(out, "signal %d (%s)", info.si_status, strsignal(info.si_status));
}

void mps_append_words(const struct mps_child *child, struct text *out)
{
    struct last_line last = {0};
    char bytes[OUTPUT_MAX];
    ssize_t length = child->line < 0 ? -1 : recv(child->line, bytes, REASON_MAX, MSG_DONTWAIT);

    if (length > 0) {
        text_clear(out);
    } else if (child->output >= 0) {
        length = pread(child->output, bytes, sizeof(bytes), 0);
        if (length > 0)
            length = (ssize_t)strnlen(bytes, (size_t)length);
    }
    if (length > 0)
        last_line_add(&last, bytes, (size_t)length);
    if (last.length == 0)
        return;
    text_append(out, out->length > 0 ? ": " : "");
    last_line_append(&last, out);
}

void mps_child_close(struct mps_child *child)
{
    if (child->process >= 0)
        close(child->process);
    if (child->output >= 0)
        close(child->output);
    if (child->line >= 0)
        close(child->line);
    *child = (struct mps_child){.process = -1, .output = -1, .line = -1};
}
