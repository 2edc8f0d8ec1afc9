/* SPDX-License-Identifier: Apache-2.0
 *
 * What is left of a control daemon: it leads a session, which the servers that it starts are in;
 * one that made a session of its own still carries the mark of its environment.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/system/process_stat.h"
#include "daemon/mps_control.h"
#include "daemon/process.h"

enum { STAT_SIZE = 1024, ENVIRONMENT_MAX = 64 * 1024 };

/* Programs of MPS, as the kernel knows them: it keeps 15 characters of a name. */
#define PROGRAM_OF_MPS "(nvidia-cuda-mps"

/* What /proc/PID/stat says that matters here. */
struct glance {
    pid_t session;
    uint64_t started;
    bool has_ended; /* and is only waited for */
    bool is_of_mps; /* by its name */
};

static bool glance_at(pid_t pid, struct glance *ret_glance)
{
    enum { SESSION = 6, STARTED = 22 };
    char buffer[STAT_SIZE];
    const char *fields = process_stat_fields(pid, buffer, sizeof(buffer));

    if (fields == NULL)
        return false;
    *ret_glance = (struct glance){
        .session = (pid_t)process_stat_number(fields, SESSION),
        .started = process_stat_number(fields, STARTED),
        .has_ended = process_stat_has_ended(fields),
        .is_of_mps = strstr(buffer, PROGRAM_OF_MPS) != NULL,
    };
    return true;
}

static bool is_of_user(pid_t pid, uint32_t wanted)
{
    struct number_list groups = {0};
    uint32_t uid;
    bool is_known = process_credentials(pid, &uid, &groups) == 0;

    vector_finish(&groups);
    return is_known && uid == wanted;
}

/* Whether the environment has this variable; value NULL: whatever it is. */
static bool has_entry(const struct text *environment, const char *name, const char *value)
{
    size_t length = strlen(name);

    for (size_t at = 0; at < environment->length; at += strlen(environment->bytes + at) + 1) {
        const char *entry = environment->bytes + at;

        if (strncmp(entry, name, length) == 0 && entry[length] == '=' &&
            (value == NULL || strcmp(entry + length + 1, value) == 0))
            return true;
    }
    return false;
}

/* Whether it was started with the mark of this pool's control daemon in these directories. */
static bool has_mark(const struct control *control, pid_t pid)
{
    struct text environment = {0};
    char path[64];
    bool is_marked;

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    is_marked = file_read(path, ENVIRONMENT_MAX, &environment, NULL) == 0 &&
                environment.length > 0 && has_entry(&environment, "BERTH_MPS", NULL) &&
                has_entry(&environment, "BERTH_SOCKET", control->pool->settings.socket) &&
                has_entry(&environment, "CUDA_MPS_PIPE_DIRECTORY", control->site.pipe);
    text_finish(&environment);
    return is_marked;
}

/* Whether its number has come to mean another process, whose session is none of ours. */
static bool is_used_again(const struct control *control)
{
    struct glance leader;

    return glance_at(control->child.pid, &leader) && leader.started != control->started;
}

/* Whether the process is of it. `has_session`: its number still means it. */
static bool is_of(const struct control *control, pid_t pid, bool has_session,
                  const struct glance *glance)
{
    if (has_session && pid == control->child.pid)
        return true;
    if (glance->started < control->started ||
        !((has_session && glance->session == control->child.pid) || glance->is_of_mps) ||
        !is_of_user(pid, control->site.persona.uid))
        return false;
    return (has_session && glance->session == control->child.pid) ||
           (control->site.pipe != NULL && has_mark(control, pid));
}

size_t mps_signal_processes(const struct control *control, int number)
{
    bool has_session = control->child.pid > 0 && !is_used_again(control);
    DIR *directory = opendir("/proc");
    const struct dirent *entry;
    size_t count = 0;

    /* Where nothing can be seen, nothing is waited for. */
    if (directory == NULL)
        return 0;
    while ((entry = readdir(directory)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        struct glance glance;
        int descriptor;

        if (pid <= 0 || !glance_at(pid, &glance) || glance.has_ended ||
            !is_of(control, pid, has_session, &glance))
            continue;
        descriptor = process_open(pid, glance.started);
        if (descriptor < 0)
            continue;
        count++;
        if (number != 0)
            process_signal(descriptor, number);
        close(descriptor);
    }
    closedir(directory);
    return count;
}
