/* SPDX-License-Identifier: Apache-2.0
 *
 * The process that becomes a control daemon, with shell scripts as control programs.
 */
#include "support/unit.h"

#include "daemon/mps/mps_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/string_list.h"
#include "base/text/text.h"
#include "support/temporary_directory.h"

static const struct launcher_entry programs[LAUNCHER_PROGRAMS] = {
    [LAUNCHER_MPS_CONTROL] = {.run = mps_launch_run},
};

struct stage {
    void *directory; /* of the test, and the current one */
    struct launcher launcher;
    char base[256];
    char program[256];
    struct mps_site site;
    struct mps_child child;
};

static char *name_file(const struct stage *stage, const char *name)
{
    char *path;

    assert_true(asprintf(&path, "%s/%s", (const char *)stage->directory, name) > 0);
    return path;
}

static int begin(void **state)
{
    struct stage *stage = calloc(1, sizeof(*stage));

    if (stage == NULL || temporary_directory_enter(&stage->directory) < 0)
        return -1;
    snprintf(stage->base, sizeof(stage->base), "%s/mps", (const char *)stage->directory);
    snprintf(stage->program, sizeof(stage->program), "%s/program", (const char *)stage->directory);
    stage->site = (struct mps_site){
        .persona = {.uid = getuid(), .gid = getgid()},
        .pipe = name_file(stage, "pipe"),
        .log = name_file(stage, "log"),
        .is_pipe_given = true,
        .is_log_given = true,
    };
    launcher_init(&stage->launcher, programs);
    stage->child = (struct mps_child){.process = -1, .output = -1, .line = -1};
    *state = stage;
    return 0;
}

static int end(void **state)
{
    struct stage *stage = *state;

    if (stage->child.pid > 0)
        mps_undo(&stage->child);
    mps_site_finish(&stage->site);
    temporary_directory_leave(&stage->directory);
    free(stage);
    return 0;
}

/* Makes the process, whose program is a script that runs in the test's directory. */
static void launch(struct stage *stage, const char *script)
{
    struct string_list environment = {0};
    FILE *file = fopen("program", "we");

    assert_non_null(file);
    fprintf(file, "#!/bin/sh\ncd %s\n%s\n", (const char *)stage->directory, script);
    assert_int_equal(fchmod(fileno(file), 0755), 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(string_list_append(&environment, "PATH=/usr/bin:/bin"), 0);
    assert_int_equal(string_list_append(&environment, "WORD=given"), 0);
    assert_int_equal(mps_launch(
                         &(struct mps_launch){
                             .launcher = &stage->launcher,
                             .program = stage->program,
                             .base = stage->base,
                             .site = &stage->site,
                             .environment = &environment,
                         },
                         &stage->child),
                     0);
    string_list_finish(&environment);
    assert_true(stage->child.pid > 0);
}

static void wait_for(int descriptor)
{
    struct pollfd ready = {.fd = descriptor, .events = POLLIN};

    assert_int_equal(poll(&ready, 1, 30000), 1);
}

/* Waits for the end, and checks its description. */
static void check_end(struct stage *stage, const char *expected)
{
    struct text words = {0};

    wait_for(stage->child.process);
    mps_reap(&stage->child, &words);
    mps_append_words(&stage->child, &words);
    assert_string_equal(text_string(&words), expected);
    text_finish(&words);
    mps_child_close(&stage->child);
}

static void read_file(const char *name, char *content, size_t size)
{
    int file = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, content, size - 1);

    assert_true(length >= 0);
    content[length] = '\0';
    close(file);
}

/* ---- The order of things ---- */

static void it_waits_until_it_is_let_go(void **state)
{
    struct stage *stage = *state;
    struct pollfd ends[2];

    launch(stage, "echo >begun; exec sleep 600");
    ends[0] = (struct pollfd){.fd = stage->child.line, .events = POLLIN};
    ends[1] = (struct pollfd){.fd = stage->child.process, .events = POLLIN};
    assert_int_equal(poll(ends, 2, 20), 0);
    assert_false(mps_has_begun(&stage->child));
    assert_int_equal(access("begun", F_OK), -1);
    mps_let_go(&stage->child);
    wait_for(stage->child.line);
    assert_true(mps_has_begun(&stage->child));
    assert_int_equal(kill(stage->child.pid, SIGKILL), 0);
    check_end(stage, "signal 9 (Killed)");
}

static void it_can_be_undone(void **state)
{
    struct stage *stage = *state;
    pid_t pid;

    launch(stage, "echo >begun");
    pid = stage->child.pid;
    mps_undo(&stage->child);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(stage->child.pid, 0);
    assert_int_equal(stage->child.process, -1);
    assert_int_equal(access("begun", F_OK), -1);
}

/* A daemon that is killed has not written the process down, or the next one looks for it. */
static void it_ends_when_the_daemon_does(void **state)
{
    struct stage *stage = *state;
    pid_t pid;
    int status;

    launch(stage, "echo >begun");
    pid = stage->child.pid;
    mps_child_close(&stage->child);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(access("begun", F_OK), -1);
}

static void what_it_is_started_with(void **state)
{
    struct stage *stage = *state;
    char content[512];

    setenv("OF_THE_DAEMON", "x", 1);
    launch(stage,
           "[ \"$(cut -d' ' -f6 /proc/$$/stat)\" = $$ ] && echo leads >facts\n"
           "echo $* $WORD $(umask) >>facts; [ -z \"${OF_THE_DAEMON+x}\" ] && echo bare >>facts\n"
           "readlink /proc/$$/fd/0 >>facts");
    mps_let_go(&stage->child);
    check_end(stage, "exit code 0");
    unsetenv("OF_THE_DAEMON");
    read_file("facts", content, sizeof(content));
    assert_string_equal(content, "leads\n-f given 0077\nbare\n/dev/null\n");
}

/* The program may go on to print when its output is not read. */
static void only_the_begin_of_its_output_is_kept(void **state)
{
    struct stage *stage = *state;
    struct stat status;

    launch(stage, "yes letters | head -n 100000; exit 3");
    mps_let_go(&stage->child);
    wait_for(stage->child.process);
    assert_int_equal(fstat(stage->child.output, &status), 0);
    assert_int_equal(status.st_size, 16 * 1024);
    check_end(stage, "exit code 3: letters");
}

/* ---- Directories ---- */

static void check_directory(const char *name, mode_t mode)
{
    struct stat status;

    assert_int_equal(lstat(name, &status), 0);
    assert_true(S_ISDIR(status.st_mode));
    assert_int_equal(status.st_uid, getuid());
    assert_int_equal(status.st_mode & 07777, mode);
}

/* Makes the site one below the pool's directory. */
static void use_own_directories(struct stage *stage)
{
    char name[64];

    mps_site_finish(&stage->site);
    stage->site.persona.uid = getuid();
    stage->site.persona.gid = getgid();
    snprintf(name, sizeof(name), "mps/%u/nvidia0/pipe", (unsigned)getuid());
    stage->site.pipe = name_file(stage, name);
    snprintf(name, sizeof(name), "mps/%u/nvidia0/log", (unsigned)getuid());
    stage->site.log = name_file(stage, name);
}

static void its_directories_are_made(void **state)
{
    struct stage *stage = *state;

    use_own_directories(stage);
    launch(stage, "exit 4");
    mps_let_go(&stage->child);
    check_end(stage, "exit code 4");
    check_directory("mps", 0731);
    check_directory(stage->site.pipe, 0700);
    check_directory(stage->site.log, 0700);
}

static void check_refusal(struct stage *stage, const char *before, const char *path,
                          const char *after)
{
    char wanted[512];

    launch(stage, "echo >begun");
    mps_let_go(&stage->child);
    snprintf(wanted, sizeof(wanted), "%s%s%s", before, path, after);
    check_end(stage, wanted);
    assert_int_equal(access("begun", F_OK), -1);
}

static void a_symlink_in_the_place_of_a_directory(void **state)
{
    struct stage *stage = *state;
    char root[64];
    char *path;

    use_own_directories(stage);
    assert_int_equal(mkdir("mps", 0700), 0);
    assert_int_equal(mkdir("elsewhere", 0700), 0);
    snprintf(root, sizeof(root), "mps/%u", (unsigned)getuid());
    assert_int_equal(symlink("../elsewhere", root), 0);
    path = name_file(stage, root);
    check_refusal(stage, "", path, ": expected a directory, got a symlink");
    free(path);
}

static void parents_of_a_named_directory_are_not_made(void **state)
{
    struct stage *stage = *state;

    free(stage->site.pipe);
    stage->site.pipe = name_file(stage, "missing/pipe");
    check_refusal(stage, "cannot create ", stage->site.pipe, ": No such file or directory");
    assert_int_equal(access("missing", F_OK), -1);
}

static void a_file_in_the_place_of_a_named_directory(void **state)
{
    struct stage *stage = *state;

    close(open("log", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    check_refusal(stage, "", stage->site.log, ": expected a directory, got something else");
}

/* ---- Files of earlier control daemons ---- */

/* Binds a socket where a control daemon has one. */
static int bind_socket(const struct stage *stage)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "pipe/control"};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(mkdir(stage->site.pipe, 0700), 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    return listener;
}

static void another_control_daemon_lives_there(void **state)
{
    struct stage *stage = *state;
    int listener = bind_socket(stage);

    assert_int_equal(listen(listener, 1), 0);
    check_refusal(stage, "", stage->site.pipe, ": in use by another MPS control daemon");
    assert_int_equal(access("pipe/control", F_OK), 0);
    close(listener);
}

static void files_of_one_that_was_killed_are_removed(void **state)
{
    struct stage *stage = *state;

    close(bind_socket(stage));
    launch(stage, "ls pipe; exit 5");
    mps_let_go(&stage->child);
    check_end(stage, "exit code 5");
    assert_int_equal(access("pipe/control", F_OK), -1);
}

static void a_program_that_cannot_be_executed(void **state)
{
    struct stage *stage = *state;
    char wanted[512];

    launch(stage, "");
    assert_int_equal(chmod("program", 0600), 0);
    mps_let_go(&stage->child);
    wait_for(stage->child.line);
    assert_false(mps_has_begun(&stage->child));
    snprintf(wanted, sizeof(wanted), "%s: Permission denied", stage->program);
    check_end(stage, wanted);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_waits_until_it_is_let_go),
        TEST(it_can_be_undone),
        TEST(it_ends_when_the_daemon_does),
        TEST(what_it_is_started_with),
        TEST(only_the_begin_of_its_output_is_kept),
        TEST(its_directories_are_made),
        TEST(a_symlink_in_the_place_of_a_directory),
        TEST(parents_of_a_named_directory_are_not_made),
        TEST(a_file_in_the_place_of_a_named_directory),
        TEST(another_control_daemon_lives_there),
        TEST(files_of_one_that_was_killed_are_removed),
        TEST(a_program_that_cannot_be_executed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
