/* SPDX-License-Identifier: Apache-2.0
 *
 * A shell script as the control program of MPS, in the test's directory, which is the current one.
 * It reads two other scripts: `daemon` is the control daemon, and `client` is the program as a
 * client, whose command is $command. The file "started" has a line with the pid of each control
 * daemon, "commands" has each command, and "environment" that of the last control daemon.
 */
#ifndef TESTS_MPS_SCRIPT_H
#define TESTS_MPS_SCRIPT_H

#include "support/unit.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text/text.h"

#define MPS_SCRIPT_SERVES "exec sleep 600"
#define MPS_SCRIPT_DAEMON ": >\"$CUDA_MPS_PIPE_DIRECTORY/control\"\n" MPS_SCRIPT_SERVES
#define MPS_SCRIPT_CLIENT                       \
    "control=$(tail -n 1 $directory/started)\n" \
    "if [ $command = quit ]; then kill $control; else kill -0 $control; fi"

static inline void mps_script_write(const char *name, const char *content)
{
    FILE *file = fopen("new", "we");

    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename("new", name), 0);
}

/* Appends a file's content; nothing without the file. */
static inline void mps_script_read(const char *name, struct text *out)
{
    FILE *file = fopen(name, "re");
    char bytes[4096];
    size_t length;

    while (file != NULL && (length = fread(bytes, 1, sizeof(bytes), file)) > 0)
        text_append_bytes(out, bytes, length);
    if (file != NULL)
        fclose(file);
}

/* Returns the number of lines of a file, and the last one as a number. */
static inline int mps_script_count(const char *name, pid_t *ret_last)
{
    struct text content = {0};
    int count = 0;

    mps_script_read(name, &content);
    for (const char *line = text_string(&content); *line != '\0'; line = strchr(line, '\n') + 1) {
        if (strchr(line, '\n') == NULL)
            break;
        if (ret_last != NULL)
            *ret_last = (pid_t)strtol(line, NULL, 10);
        count++;
    }
    text_finish(&content);
    return count;
}

static inline void mps_script_install(const char *directory)
{
    struct text script = {0};

    text_append_format(&script,
                       "#!/bin/sh\n"
                       "directory=%s\n"
                       "if [ \"$1\" = -f ]; then\n"
                       "    env >\"$directory/environment\"\n"
                       "    echo $$ >>\"$directory/started\"\n"
                       "    . \"$directory/daemon\"\n"
                       "else\n"
                       "    read -r command words\n"
                       "    echo \"$command $words\" >>\"$directory/commands\"\n"
                       "    . \"$directory/client\"\n"
                       "fi\n",
                       directory);
    mps_script_write("program", text_string(&script));
    assert_int_equal(chmod("program", 0755), 0);
    text_finish(&script);
    mps_script_write("daemon", MPS_SCRIPT_DAEMON);
    mps_script_write("client", MPS_SCRIPT_CLIENT);
}

/* Returns whether the test's child runs. */
static inline bool mps_script_runs(pid_t pid)
{
    siginfo_t info = {0};

    return pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

/* Ends the control daemons of the test that still run. */
static inline void mps_script_end_processes(void)
{
    struct text started = {0};
    char *end;

    mps_script_read("started", &started);
    for (const char *line = text_string(&started); *line != '\0'; line = end + (*end == '\n')) {
        pid_t pid = (pid_t)strtol(line, &end, 10);

        if (end == line)
            break;
        if (mps_script_runs(pid)) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
        }
    }
    text_finish(&started);
}

#endif
