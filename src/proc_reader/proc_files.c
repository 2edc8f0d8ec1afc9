/* SPDX-License-Identifier: Apache-2.0 */
#include "proc_reader/proc_files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/system/pidfd_info.h"
#include "base/system/process_stat.h"
#include "base/system/process_status.h"

enum { FILE_MAX = 1024 * 1024, CHUNK = 4096, STARTED_FIELD = 22 };

/* ---- Progress ---- */

static void set_progress(const struct proc_files *files, pid_t pid, bool is_new)
{
    uint64_t before = atomic_load_explicit(files->progress, memory_order_relaxed);
    uint64_t count = (before >> 32) + (is_new ? 1 : 0);

    atomic_store_explicit(files->progress, count << 32 | (uint32_t)pid, memory_order_relaxed);
}

void proc_files_touch(const struct proc_files *files, pid_t pid)
{
    set_progress(files, pid, true);
}

void proc_files_leave(const struct proc_files *files)
{
    set_progress(files, 0, false);
}

/* ---- Pidfds ---- */

int proc_files_open(const struct proc_files *files, pid_t pid)
{
    if (files->open_process != NULL)
        return files->open_process(files, pid);
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool proc_files_has_ended(int process)
{
    struct pollfd poller = {.fd = process, .events = POLLIN};

    return poll(&poller, 1, 0) > 0;
}

static bool read_info(const struct proc_files *files, int process, struct pidfd_facts *ret_facts)
{
    return !files->is_old_kernel && pidfd_info_read(process, ret_facts);
}

bool proc_files_uid(const struct proc_files *files, int process, pid_t pid, uint32_t *ret_uid)
{
    struct pidfd_facts facts;
    struct stat status;
    char name[16];

    if (read_info(files, process, &facts)) {
        *ret_uid = facts.real_uid;
        return true;
    }
    snprintf(name, sizeof(name), "%d", (int)pid);
    if (fstatat(files->directory, name, &status, 0) < 0)
        return false;
    *ret_uid = status.st_uid;
    return true;
}

uint64_t proc_files_identity(const struct proc_files *files, int process)
{
    struct stat status;

    /* All pidfds are one anonymous file before Linux 6.9. */
    return files->is_old_kernel || fstat(process, &status) < 0 ? 0 : status.st_ino;
}

pid_t proc_files_parent(const struct proc_files *files, int process, pid_t pid)
{
    struct pidfd_facts facts;
    struct text status = {0};
    pid_t parent = 0;

    if (read_info(files, process, &facts))
        return facts.parent;
    if (proc_files_read(files, pid, "status", &status) == 0)
        parent = process_status_parent((struct span){text_string(&status), status.length});
    text_finish(&status);
    return parent;
}

/* ---- Files ---- */

/* Reads to the end. `ends_short`: a read that fills less than its buffer is the last one, as for an
 * environment, which saves a call. */
static int read_all(int file, bool ends_short, struct text *out)
{
    size_t room;
    ssize_t got;

    text_clear(out);
    do {
        char *place;

        room = out->length < CHUNK ? CHUNK : (size_t)CHUNK * 16;
        place = text_reserve(out, room);
        if (place == NULL)
            return -1;
        got = read(file, place, room);
        text_commit(out, got > 0 ? (size_t)got : 0);
    } while ((got > 0 && out->length < FILE_MAX && !(ends_short && (size_t)got < room)) ||
             (got < 0 && errno == EINTR));
    return text_failed(out) || got < 0 ? -1 : 0;
}

static int read_file(const struct proc_files *files, const char *path, bool ends_short,
                     struct text *out)
{
    int file = openat(files->directory, path, O_RDONLY | O_CLOEXEC);
    int code;

    text_clear(out);
    if (file < 0)
        return -1;
    code = read_all(file, ends_short, out);
    close(file);
    return code;
}

int proc_files_read_common(const struct proc_files *files, const char *name, struct text *out)
{
    return read_file(files, name, false, out);
}

int proc_files_read(const struct proc_files *files, pid_t pid, const char *name, struct text *out)
{
    char path[64];
    int code;

    snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
    proc_files_touch(files, pid);
    code = read_file(files, path, strcmp(name, "environ") == 0, out);
    proc_files_leave(files);
    return code;
}

bool proc_files_has_no_program(const struct proc_files *files, pid_t pid)
{
    char path[64];
    char target[1];
    bool has_none;

    snprintf(path, sizeof(path), "%d/exe", (int)pid);
    proc_files_touch(files, pid);
    has_none = readlinkat(files->directory, path, target, sizeof(target)) < 0 && errno == ENOENT;
    proc_files_leave(files);
    return has_none;
}

const char *proc_files_stat(const struct proc_files *files, pid_t pid, struct text *out)
{
    const char *name_end;

    if (proc_files_read(files, pid, "stat", out) < 0)
        return NULL;
    /* The name may contain anything. */
    name_end = strrchr(text_string(out), ')');
    return name_end == NULL ? NULL : name_end + 1;
}

uint64_t proc_files_started(const char *fields)
{
    uint64_t ticks = process_stat_number(fields, STARTED_FIELD);
    uint64_t hertz = (uint64_t)sysconf(_SC_CLK_TCK);

    return ticks / hertz * 1000000000 + ticks % hertz * 1000000000 / hertz;
}
