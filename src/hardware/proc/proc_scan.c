/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/proc/proc_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"

/* The inode of the machine's own pid namespace, which is part of the kernel's ABI. */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCu

enum {
    FDINFO_MAX = 16384,
    DESCRIPTORS_MAX = 65536, /* per process */
    USES_MAX = 65536,        /* of all processes */
};

struct proc_walk {
    struct proc_scan *scan;
    const struct sysroot *root;
    const struct proc_watch *watch;
    struct device_file_list nodes;
    int processes; /* an open descriptor of /proc */
    bool saw_first;
    bool computes; /* the current process has /dev/kfd open */
    char target[PATH_MAX];
    char content[FDINFO_MAX];
};

/* Parses a pid as the kernel writes it. Returns 0 if it is none. */
static uint64_t parse_pid(const char *name)
{
    uint64_t pid = 0;

    if (*name == '0')
        return 0;
    for (; *name >= '0' && *name <= '9' && pid <= INT_MAX; name++)
        pid = pid * 10 + (uint64_t)(*name - '0');
    return *name == '\0' && pid <= INT_MAX ? pid : 0;
}

/* Opens a directory below /proc. Returns NULL with errno set. */
static DIR *open_directory(int at, const char *path)
{
    int descriptor = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = descriptor < 0 ? NULL : fdopendir(descriptor);

    if (directory == NULL && descriptor >= 0)
        close(descriptor);
    return directory;
}

/* Returns the length of the content, or a negative errno. */
static ssize_t read_fdinfo(struct proc_walk *walk, uint64_t pid, const char *name)
{
    char path[sizeof("18446744073709551615/fdinfo/") + NAME_MAX];
    size_t length = 0;
    ssize_t got = 1;
    int descriptor;

    snprintf(path, sizeof(path), "%llu/fdinfo/%s", (unsigned long long)pid, name);
    descriptor = openat(walk->processes, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0)
        return -errno;
    while (got > 0 && length < sizeof(walk->content)) {
        got = read(descriptor, walk->content + length, sizeof(walk->content) - length);
        if (got > 0)
            length += (size_t)got;
        else if (got < 0 && errno == EINTR)
            got = 1;
    }
    if (got < 0)
        got = -errno;
    close(descriptor);
    return got < 0 ? got : (ssize_t)length;
}

static int add_engines(struct proc_scan *scan, const struct use *use, const struct fdinfo *fdinfo)
{
    for (size_t i = 0; i < fdinfo->engine_count; i++) {
        struct use_engine *engine = vector_append(&scan->engines);

        if (engine == NULL)
            return BERTH_ERROR_MEMORY;
        *engine = (struct use_engine){
            .device = use->device,
            .client = use->client.value,
            .read_at = clock_now(),
            .engine = fdinfo->engines[i],
        };
    }
    return 0;
}

static int add_use(struct proc_walk *walk, const struct device_file *node, uint64_t pid,
                   const struct fdinfo *fdinfo)
{
    struct proc_scan *scan = walk->scan;
    struct used_device *device;
    struct use *use;
    size_t place;

    if (scan->uses.count >= USES_MAX) {
        scan->is_whole = false;
        return 0;
    }
    if (device_file_add_device(node, fdinfo->pci, scan, &place) < 0)
        return BERTH_ERROR_MEMORY;
    use = vector_append(&scan->uses);
    if (use == NULL)
        return BERTH_ERROR_MEMORY;
    device = &scan->devices.items[place];
    device->is_open = true;
    device->is_opaque |= !fdinfo->client.known;
    *use = (struct use){.device = place, .pid = pid};
    /* Without its number, other descriptors of the same client cannot be recognised. */
    if (!fdinfo->client.known)
        return 0;
    use->client = fdinfo->client;
    use->memory = fdinfo->memory;
    return add_engines(scan, use, fdinfo);
}

/* Finds the file that a link of /proc leads to. Does not ask a server of the file's file system,
 * which may not answer: an old answer is good enough to recognise a device or a program. */
static bool find_target(int directory, const char *path, struct statx *ret_status)
{
    return statx(directory, path, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, ret_status) == 0;
}

/* Returns whether this descriptor is open on the device file `node`. If the kernel calls it a DRM
 * device, it is. Otherwise the device numbers must agree: any user could have a file with that name
 * in a mount namespace. */
static bool is_device_file(const struct proc_walk *walk, int descriptors, const char *name,
                           const struct device_file *node, const struct fdinfo *fdinfo)
{
    struct statx status;

    if (fdinfo->is_drm || walk->root->recorded)
        return true;
    return node->is_there && find_target(descriptors, name, &status) && S_ISCHR(status.stx_mode) &&
           makedev(status.stx_rdev_major, status.stx_rdev_minor) == node->number;
}

/* Returns whether this process and the other one are both probes, of any user. A probe
 * opens a device only to query its driver. */
static bool is_probe(const struct proc_walk *walk, uint64_t pid)
{
    static const char program[] = "/berth-probe";
    char path[PATH_MAX];
    struct statx theirs;
    struct statx own;
    ssize_t length = readlinkat(walk->processes, "self/exe", path, sizeof(path));

    if (length < (ssize_t)strlen(program) ||
        memcmp(path + length - strlen(program), program, strlen(program)) != 0)
        return false;
    snprintf(path, sizeof(path), "%llu/exe", (unsigned long long)pid);
    return find_target(walk->processes, "self/exe", &own) &&
           find_target(walk->processes, path, &theirs) &&
           own.stx_dev_major == theirs.stx_dev_major && own.stx_dev_minor == theirs.stx_dev_minor &&
           own.stx_ino == theirs.stx_ino;
}

static int scan_descriptor(struct proc_walk *walk, int descriptors, uint64_t pid, const char *name)
{
    ssize_t length = readlinkat(descriptors, name, walk->target, sizeof(walk->target) - 1);
    struct fdinfo fdinfo;
    struct device_file *node;
    int code;

    if (length <= 0)
        return 0;
    walk->target[length] = '\0';
    walk->computes = walk->computes || strcmp(walk->target, "/dev/kfd") == 0;
    code = device_file_list_get(&walk->nodes, walk->root, walk->target, &node);
    if (code < 0 || node == NULL)
        return code;
    length = read_fdinfo(walk, pid, name);
    if (length == -EACCES)
        walk->scan->is_whole = false;
    else if ((length == -ENOENT || length == -ESRCH) && !walk->root->recorded)
        return 0; /* it was closed in the meantime */
    fdinfo_parse(walk->content, length < 0 ? 0 : (size_t)length, &fdinfo);
    if (!is_device_file(walk, descriptors, name, node, &fdinfo) || is_probe(walk, pid))
        return 0;
    return add_use(walk, node, pid, &fdinfo);
}

/* Does the same without the link, from the kernel's facts about the descriptor (fdinfo). */
static int scan_avoided_descriptor(struct proc_walk *walk, uint64_t pid, const char *name)
{
    static const struct device_file unnamed = {0};
    ssize_t length = read_fdinfo(walk, pid, name);
    struct fdinfo fdinfo;

    walk->computes = true;
    if (length <= 0)
        return 0;
    fdinfo_parse(walk->content, (size_t)length, &fdinfo);
    return fdinfo.is_drm && fdinfo.pci.known ? add_use(walk, &unnamed, pid, &fdinfo) : 0;
}

/* Returns whether only the kernel's own figures of the process are read. */
static bool is_avoided(const struct proc_walk *walk, uint64_t pid)
{
    struct stat status;
    char name[24];

    if (proc_watch_find_avoided(walk->watch, pid) != NULL)
        return true;
    if (!proc_watch_avoids_users(walk->watch))
        return false;
    snprintf(name, sizeof(name), "%llu", (unsigned long long)pid);
    return fstatat(walk->processes, name, &status, 0) == 0 &&
           proc_watch_avoids_user(walk->watch, status.st_uid);
}

static int scan_process(struct proc_walk *walk, uint64_t pid)
{
    const struct avoided_process *avoided = proc_watch_find_avoided(walk->watch, pid);
    char path[sizeof("18446744073709551615/fd")];
    size_t first = walk->scan->uses.count;
    bool is_known_to_stall = is_avoided(walk, pid);
    struct dirent *entry;
    DIR *directory;
    int code = 0;

    if (avoided != NULL && avoided->wholly) {
        walk->scan->is_whole = false;
        return 0;
    }
    snprintf(path, sizeof(path), "%llu/fd", (unsigned long long)pid);
    proc_watch_touch(walk->watch, pid);
    directory = open_directory(walk->processes, path);
    proc_watch_leave(walk->watch);
    if (directory == NULL) {
        walk->scan->is_whole &= errno == ENOENT || errno == ESRCH || errno == ENOTDIR;
        return errno == ENOMEM ? BERTH_ERROR_MEMORY : 0;
    }
    walk->saw_first |= pid == 1;
    walk->computes = false;
    for (size_t count = 0; code == 0 && (entry = readdir(directory)) != NULL; count++) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
            continue;
        if (count == DESCRIPTORS_MAX) {
            walk->scan->is_whole = false;
            break;
        }
        proc_watch_touch(walk->watch, pid);
        code = is_known_to_stall ? scan_avoided_descriptor(walk, pid, entry->d_name)
                                 : scan_descriptor(walk, dirfd(directory), pid, entry->d_name);
        proc_watch_leave(walk->watch);
    }
    closedir(directory);
    for (size_t i = first; i < walk->scan->uses.count; i++)
        walk->scan->uses.items[i].computes = walk->computes;
    return code;
}

/* Returns whether /proc shows all processes of the machine: not only those of a container, and not
 * only our own because others are hidden (hidepid). For a recorded machine, all were recorded. */
static bool sees_all_processes(const struct proc_walk *walk)
{
    struct stat status;

    return walk->root->recorded ||
           (walk->saw_first && fstatat(walk->processes, "self/ns/pid", &status, 0) == 0 &&
            status.st_ino == INITIAL_PID_NAMESPACE);
}

static int scan_all_processes(struct proc_walk *walk, struct berth_error *error)
{
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *directory;
    int code = 0;

    if (snprintf(path, sizeof(path), "%s/proc", walk->root->prefix) >= (int)sizeof(path))
        return error_set_errno(error, ENAMETOOLONG, "cannot list %s/proc", walk->root->prefix);
    directory = open_directory(AT_FDCWD, path);
    if (directory == NULL)
        return walk->root->recorded && errno == ENOENT
                   ? 0 /* no processes were recorded */
                   : error_set_errno(error, errno, "cannot list %s", path);
    walk->processes = dirfd(directory);
    while (code == 0 && (entry = readdir(directory)) != NULL) {
        uint64_t pid = parse_pid(entry->d_name);

        if (pid != 0)
            code = scan_process(walk, pid);
    }
    walk->scan->is_whole &= sees_all_processes(walk);
    closedir(directory);
    return code < 0 ? error_set_memory(error) : 0;
}

static int compare_numbers(uint64_t one, uint64_t other)
{
    return (one > other) - (one < other);
}

static int compare_uses_by_client(const void *one, const void *other)
{
    const struct use *left = one, *right = other;
    int order = compare_numbers(left->device, right->device);

    if (order == 0)
        order = compare_numbers(left->client.known, right->client.known);
    if (order == 0 && left->client.known)
        order = compare_numbers(left->client.value, right->client.value);
    return order != 0 ? order : compare_numbers(left->pid, right->pid);
}

static int compare_uses_by_pid(const void *one, const void *other)
{
    const struct use *left = one, *right = other;
    int order = compare_numbers(left->device, right->device);

    return order != 0 ? order : compare_numbers(left->pid, right->pid);
}

static int compare_engines(const void *one, const void *other)
{
    const struct use_engine *left = one, *right = other;
    int order = compare_numbers(left->device, right->device);

    if (order == 0)
        order = compare_numbers(left->client, right->client);
    return order != 0 ? order : strcmp(left->engine.name, right->engine.name);
}

/* Orders the uses. A client that several descriptors share counts for the process with the lowest
 * pid. */
static void sort_uses(struct proc_scan *scan)
{
    struct use *uses = scan->uses.items;

    qsort(uses, scan->uses.count, sizeof(*uses), compare_uses_by_client);
    for (size_t i = 0; i < scan->uses.count; i++)
        uses[i].counts = i == 0 || !uses[i].client.known || uses[i].device != uses[i - 1].device ||
                         !uses[i - 1].client.known ||
                         uses[i].client.value != uses[i - 1].client.value;
    qsort(uses, scan->uses.count, sizeof(*uses), compare_uses_by_pid);
}

static void raise_number(struct optional_number *number, struct optional_number other)
{
    if (other.known && (!number->known || other.value > number->value))
        *number = other;
}

/* Keeps the largest counters of a client that was read several times: they were read last. */
static void merge_engines(struct proc_scan *scan)
{
    struct use_engine *engines = scan->engines.items;
    size_t kept = 0;

    qsort(engines, scan->engines.count, sizeof(*engines), compare_engines);
    for (size_t i = 0; i < scan->engines.count; i++) {
        struct use_engine *last = kept == 0 ? NULL : &engines[kept - 1];

        if (last == NULL || compare_engines(last, &engines[i]) != 0) {
            engines[kept++] = engines[i];
            continue;
        }
        raise_number(&last->engine.busy, engines[i].engine.busy);
        raise_number(&last->engine.cycles, engines[i].engine.cycles);
        raise_number(&last->engine.total_cycles, engines[i].engine.total_cycles);
        if (engines[i].read_at > last->read_at)
            last->read_at = engines[i].read_at;
    }
    scan->engines.count = kept;
}

int proc_scan_run(struct proc_scan *scan, const struct sysroot *root,
                  const struct proc_watch *watch, struct berth_error *error)
{
    struct proc_walk *walk = calloc(1, sizeof(*walk));
    int code;

    if (walk == NULL)
        return error_set_memory(error);
    *scan = (struct proc_scan){.began_at = clock_now(), .is_whole = true};
    walk->scan = scan;
    walk->root = root;
    walk->watch = watch;
    code = device_files_are_absent(root) ? 0 : scan_all_processes(walk, error);
    if (code == 0 && device_file_list_add_present(&walk->nodes, root, scan) < 0)
        code = error_set_memory(error);
    if (scan->uses.count > 0)
        sort_uses(scan);
    if (scan->engines.count > 0)
        merge_engines(scan);
    device_file_list_finish(&walk->nodes);
    free(walk);
    return code;
}

void proc_scan_finish(struct proc_scan *scan)
{
    struct used_device *device;

    vector_for_each (device, &scan->devices) {
        free(device->path);
        string_list_finish(&device->nodes);
    }
    vector_finish(&scan->devices);
    vector_finish(&scan->uses);
    vector_finish(&scan->engines);
    *scan = (struct proc_scan){0};
}
