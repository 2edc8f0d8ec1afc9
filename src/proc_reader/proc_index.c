/* SPDX-License-Identifier: Apache-2.0 */
#include "proc_reader/proc_index.h"

#include <berth/error.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/text/quantity.h"

enum {
    STEP = 256,          /* processes that are looked up before the next check for a question */
    NUMBERS_MAX = 16384, /* looked up one by one; if more were given out, a sweep finds them */
    LIST_SIZE = 2048,    /* bytes of /proc's list that are read at once: some 60 processes */
    INODE_NONE = 1,      /* the list names it when the kernel is out of memory */
    NUMBERS_FEW = 256,   /* given out between two refreshes without a question */
    PID_FIRST = 300,     /* where the numbers start again */
    PID_MAX_DEFAULT = 32768,
    FORKS_PER_SECOND = 20000,
    COUNT_SPARE = 16384, /* entries of ended processes that are no reason for a sweep */
};

#define APPEARS_WITHIN (DURATION_SECOND / 50) /* a process, after its number was given out */
#define SWEEP_PERIOD   (60 * DURATION_SECOND)

/* Pauses between refreshes without a question. */
#define PAUSE_BUSY (DURATION_SECOND / 4)
#define PAUSE      DURATION_SECOND
#define PAUSE_REST (8 * DURATION_SECOND)

int proc_index_init(struct proc_index *index, const struct proc_files *files)
{
    *index = (struct proc_index){.files = files, .pause = PAUSE};
    list_init(&index->users);
    list_init(&index->unsettled);
    if (id_map_init(&index->entries) == 0 && id_map_init(&index->users_by_uid) == 0)
        return 0;
    id_map_finish(&index->entries);
    return BERTH_ERROR_MEMORY;
}

/* ---- Entries ---- */

struct proc_entry *proc_index_find(const struct proc_index *index, pid_t pid)
{
    struct id_link *link = id_map_find(&index->entries, (uint64_t)pid);

    return link == NULL ? NULL : container_of(link, struct proc_entry, by_pid);
}

static struct proc_user *find_user(struct proc_index *index, uint32_t uid)
{
    struct id_link *link = id_map_find(&index->users_by_uid, uid);
    struct proc_user *user;

    if (link != NULL)
        return container_of(link, struct proc_user, by_uid);
    user = calloc(1, sizeof(*user));
    if (user == NULL)
        return NULL;
    user->by_uid.id = uid;
    list_init(&user->processes);
    id_map_add(&index->users_by_uid, &user->by_uid);
    list_append(&index->users, &user->in_index);
    return user;
}

/* Frees a user that has no other process. */
static void leave_user(struct proc_index *index, struct proc_entry *entry)
{
    struct proc_user *user = entry->user;

    list_remove(&entry->in_user);
    if (!list_is_empty(&user->processes))
        return;
    id_map_remove(&index->users_by_uid, &user->by_uid);
    list_unlink(&user->in_index);
    free(user);
}

static void join_user(struct proc_index *index, struct proc_entry *entry, struct proc_user *user)
{
    entry->user = user;
    entry->joined = clock_read(CLOCK_BOOTTIME);
    list_append(&user->processes, &entry->in_user);
    list_remove(&entry->in_unsettled);
    if (user->by_uid.id == 0)
        list_append(&index->unsettled, &entry->in_unsettled);
}

void proc_index_set_unmarked(struct proc_entry *entry)
{
    entry->is_unmarked = true;
    list_remove(&entry->in_user);
    list_insert_before(entry->user->processes.ends.next, &entry->in_user);
}

void proc_index_remove(struct proc_index *index, struct proc_entry *entry)
{
    leave_user(index, entry);
    list_remove(&entry->in_unsettled);
    id_map_remove(&index->entries, &entry->by_pid);
    index->count--;
    free(entry);
}

static int add_entry(struct proc_index *index, pid_t pid, uint64_t identity, uint32_t uid)
{
    struct proc_entry *entry = calloc(1, sizeof(*entry));
    struct proc_user *user = entry == NULL ? NULL : find_user(index, uid);

    if (user == NULL) {
        free(entry);
        return BERTH_ERROR_MEMORY;
    }
    *entry = (struct proc_entry){
        .by_pid.id = (uint64_t)pid,
        .identity = identity,
        .seen = clock_read(CLOCK_BOOTTIME),
        .sweep = index->sweep,
    };
    id_map_reserve(&index->entries, ++index->count);
    id_map_add(&index->entries, &entry->by_pid);
    join_user(index, entry, user);
    return 0;
}

int proc_index_set(struct proc_index *index, int process, pid_t pid)
{
    struct proc_entry *entry = proc_index_find(index, pid);
    uint64_t identity = proc_files_identity(index->files, process);
    struct proc_user *user;
    uint32_t uid;
    bool is_there = proc_files_uid(index->files, process, pid, &uid);

    if (entry != NULL && (!is_there || entry->identity != identity)) {
        proc_index_remove(index, entry);
        entry = NULL;
    }
    if (!is_there)
        return 0;
    if (entry == NULL)
        return add_entry(index, pid, identity, uid);
    entry->sweep = index->sweep;
    if (entry->user->by_uid.id == uid)
        return 0;
    user = find_user(index, uid);
    if (user == NULL)
        return BERTH_ERROR_MEMORY;
    leave_user(index, entry);
    join_user(index, entry, user);
    entry->is_unmarked = false;
    return 0;
}

/* Removes the entries that the sweep `sweep` has not found. */
static void remove_others(struct proc_index *index, uint32_t sweep)
{
    list_for_each (user_link, &index->users) {
        struct proc_user *user = container_of(user_link, struct proc_user, in_index);
        bool is_last = false; /* the user is freed with its last process */

        for (struct list_link *link = user->processes.ends.next; !is_last;) {
            struct proc_entry *entry = container_of(link, struct proc_entry, in_user);

            link = link->next;
            is_last = link == &user->processes.ends;
            if (entry->sweep != sweep)
                proc_index_remove(index, entry);
        }
    }
}

static void stop_sweep(struct proc_index *index)
{
    if (index->directory != NULL)
        closedir(index->directory);
    index->directory = NULL;
}

void proc_index_finish(struct proc_index *index)
{
    remove_others(index, index->sweep + 1);
    stop_sweep(index);
    id_map_finish(&index->entries);
    id_map_finish(&index->users_by_uid);
    text_finish(&index->text);
}

/* ---- Looking up ---- */

/* Looks up whose a process is. `is_new`: the number was given out since the last time. Returns 0 or
 * BERTH_ERROR_MEMORY. */
static int look_up(struct proc_index *index, pid_t pid, bool is_new)
{
    struct proc_entry *entry = proc_index_find(index, pid);
    int process = proc_files_open(index->files, pid);
    int code;

    if (entry != NULL && (process < 0 || (is_new && entry->identity == 0)))
        proc_index_remove(index, entry);
    if (process < 0)
        return 0;
    code = proc_index_set(index, process, pid);
    close(process);
    return code;
}

/* Looks up root's processes that are not settled, at most `max`, the oldest first. Returns 0 or
 * BERTH_ERROR_MEMORY. */
static int settle_entries(struct proc_index *index, size_t max)
{
    int64_t now = clock_read(CLOCK_BOOTTIME);
    size_t count = 0;

    list_for_each (link, &index->unsettled) {
        struct proc_entry *entry = container_of(link, struct proc_entry, in_unsettled);
        bool is_old = now - entry->seen >= PROC_INDEX_SETTLED;
        pid_t pid = (pid_t)entry->by_pid.id;

        if (count++ >= max)
            break;
        if (look_up(index, pid, false) < 0)
            return BERTH_ERROR_MEMORY;
        entry = proc_index_find(index, pid);
        if (entry != NULL && is_old)
            list_remove(&entry->in_unsettled);
    }
    return 0;
}

/* ---- Numbers that were given out ---- */

/* Returns the number after `key` in a file of /proc, 0: unknown. */
static uint64_t read_number(struct proc_index *index, const char *name, const char *key)
{
    const char *found;

    if (proc_files_read_common(index->files, name, &index->text) < 0)
        return 0;
    found = strstr(text_string(&index->text), key);
    return found == NULL ? 0 : strtoull(found + strlen(key), NULL, 10);
}

/* Returns the number that was given out last, 0: unknown. */
static pid_t read_newest(struct proc_index *index)
{
    const char *last;

    if (proc_files_read_common(index->files, "loadavg", &index->text) < 0)
        return 0;
    last = strrchr(text_string(&index->text), ' ');
    return last == NULL ? 0 : (pid_t)strtol(last + 1, NULL, 10);
}

static uint64_t read_forks(struct proc_index *index)
{
    return read_number(index, "stat", "\nprocesses ");
}

/* Returns whether the numbers may have started again since the last time. Counts the forks only if
 * the result depends on them, because that is slow on large machines. */
static bool may_have_gone_round(struct proc_index *index, int64_t now)
{
    uint64_t seconds = (uint64_t)(now - index->refreshed_at) / DURATION_SECOND;
    uint64_t used = PID_FIRST + index->count;
    uint64_t unused = (uint64_t)index->pid_max > used ? (uint64_t)index->pid_max - used : 0;
    uint64_t before = index->forks;

    if ((seconds + 1) * FORKS_PER_SECOND < unused)
        return false;
    index->forks = read_forks(index);
    /* The estimate may be too high: it includes numbers that were in use. */
    return index->forks == 0 || (int64_t)(index->forks - before) >= (int64_t)(unused / 2);
}

/* Returns how many numbers come after `first` up to `last`. */
static int64_t count_numbers(const struct proc_index *index, pid_t first, pid_t last)
{
    if (last >= first)
        return last - first;
    return (int64_t)index->pid_max - 1 - first + last - PID_FIRST + 1;
}

/* Looks up a number after `checked`. An entry that is older is of an earlier process with this
 * number, or of one that has lived since the numbers went round. /proc's list names the same inode
 * (0: unknown) for the same process, as long as the kernel remembers it. The kernel forgets it
 * shortly after the end of the process, which is why the numbers are looked at twice. */
static int look_up_number(struct proc_index *index, pid_t pid, uint64_t inode)
{
    struct proc_entry *entry = proc_index_find(index, pid);

    if (entry != NULL &&
        (entry->seen >= index->checked_at || (inode > INODE_NONE && entry->listed == inode)))
        return 0;
    if (look_up(index, pid, true) < 0)
        return BERTH_ERROR_MEMORY;
    entry = proc_index_find(index, pid);
    if (entry != NULL)
        entry->listed = inode;
    return 0;
}

/* Looks up the processes in a part of /proc's list that have the numbers after *first up to `last`.
 * Returns 1 if there may be more after the new *first, 0, or BERTH_ERROR_MEMORY or _IO. */
static int look_up_list(struct proc_index *index, const char *list, size_t length, pid_t *first,
                        pid_t last)
{
    for (size_t at = 0; at < length;) {
        const struct dirent64 *found = (const void *)(list + at);
        long pid = strtol(found->d_name, NULL, 10);

        if (pid <= *first)
            return BERTH_ERROR_IO;
        if (pid > last)
            return 0;
        *first = (pid_t)pid;
        if (look_up_number(index, *first, found->d_ino) < 0)
            return BERTH_ERROR_MEMORY;
        at += found->d_reclen;
    }
    return length > 0;
}

/* Looks up the processes with the numbers after `first` up to `last`. Returns 0, or
 * BERTH_ERROR_MEMORY or _IO: /proc's list is not in the order of the numbers. */
static int look_up_range(struct proc_index *index, pid_t first, pid_t last)
{
    int directory = index->files->directory;
    _Alignas(struct dirent64) char list[LIST_SIZE];
    int code = 1;

    if (first >= last)
        return 0;
    if (index->offset <= 0 || lseek(directory, first + 1 + index->offset, SEEK_SET) < 0)
        return BERTH_ERROR_IO;
    while (code == 1) {
        ssize_t length = getdents64(directory, list, sizeof(list));

        proc_files_touch(index->files, 0);
        code =
            length < 0 ? BERTH_ERROR_IO : look_up_list(index, list, (size_t)length, &first, last);
    }
    return code;
}

/* Looks up the numbers after `checked` up to `newest`, one by one. Returns 0 or BERTH_ERROR_MEMORY.
 */
static int look_up_each(struct proc_index *index, pid_t newest)
{
    int64_t count = count_numbers(index, index->checked, newest);
    pid_t pid = index->checked;

    for (int64_t i = 0; i < count; i++) {
        pid = pid + 1 >= index->pid_max ? PID_FIRST : pid + 1;
        if (look_up_number(index, pid, 0) < 0)
            return BERTH_ERROR_MEMORY;
    }
    return 0;
}

/* Looks up the numbers after `checked` up to `newest`. Returns 0 or BERTH_ERROR_MEMORY. */
static int look_up_numbers(struct proc_index *index, pid_t newest, int64_t now)
{
    bool is_round = newest < index->checked;
    int code = look_up_range(index, index->checked, is_round ? index->pid_max : newest);

    if (code == 0 && is_round)
        code = look_up_range(index, PID_FIRST - 1, newest);
    if (code == BERTH_ERROR_IO) {
        index->offset = 0;
        code = look_up_each(index, newest);
    }
    if (code < 0)
        return code;
    index->forks = newest < index->newest ? read_forks(index)
                                          : index->forks + (uint64_t)(newest - index->newest);
    index->newest = newest;
    index->refreshed_at = now;
    if (now - index->pending_at >= APPEARS_WITHIN) {
        index->checked = index->pending;
        index->checked_at = index->pending_at;
        index->pending = newest;
        index->pending_at = now;
    }
    return 0;
}

/* ---- Sweeps ---- */

static int begin_sweep(struct proc_index *index)
{
    int again = openat(index->files->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    stop_sweep(index);
    index->directory = again < 0 ? NULL : fdopendir(again);
    if (index->directory == NULL) {
        if (again >= 0)
            close(again);
        return BERTH_ERROR_IO;
    }
    index->sweep++;
    return 0;
}

/* Begins a sweep that looks at all processes anew. Returns 0 or BERTH_ERROR_IO. */
static int begin_sweep_of_stale(struct proc_index *index)
{
    uint64_t pid_max = read_number(index, "sys/kernel/pid_max", "");

    index->pid_max = pid_max == 0 || pid_max > INT32_MAX ? PID_MAX_DEFAULT : (pid_t)pid_max;
    index->forks = read_forks(index);
    index->newest_before = read_newest(index);
    index->sweep_began = clock_read(CLOCK_BOOTTIME);
    index->is_stale = true;
    return begin_sweep(index);
}

static void end_sweep(struct proc_index *index)
{
    stop_sweep(index);
    remove_others(index, index->sweep);
    index->swept_at = clock_read(CLOCK_BOOTTIME);
    index->count_swept = index->count;
    if (!index->is_stale)
        return;
    index->is_stale = false;
    /* Processes that began meanwhile have later numbers. */
    index->checked = index->pending = index->newest = index->newest_before;
    index->checked_at = index->pending_at = index->swept_at;
    index->refreshed_at = index->sweep_began;
}

/* Returns 1 if there is more, 0 after the last process, or BERTH_ERROR_MEMORY. */
static int step_sweep(struct proc_index *index)
{
    struct proc_entry *entry;
    pid_t self = getpid();

    proc_files_touch(index->files, 0);
    for (int i = 0; i < STEP; i++) {
        long place = telldir(index->directory);
        const struct dirent *found = readdir(index->directory);
        long pid = found == NULL ? 0 : strtol(found->d_name, NULL, 10);

        if (found == NULL) {
            end_sweep(index);
            return 0;
        }
        /* This process does not end meanwhile, so its place is certain. */
        if (pid == self)
            index->offset = place - pid;
        if (pid > 0 && look_up(index, (pid_t)pid, index->is_stale) < 0)
            return BERTH_ERROR_MEMORY;
        entry = pid > 0 ? proc_index_find(index, (pid_t)pid) : NULL;
        if (entry != NULL)
            entry->listed = found->d_ino;
    }
    return 1;
}

/* Looks up all processes. Returns 0, BERTH_ERROR_IO or _MEMORY. */
static int sweep_all(struct proc_index *index)
{
    int code = begin_sweep_of_stale(index);

    if (code < 0)
        return code;
    do
        code = step_sweep(index);
    while (code == 1);
    stop_sweep(index);
    return code;
}

/* ---- Calls ---- */

/* Returns whether there are too many numbers up to `newest` to look them up, or they are unknown.
 */
static bool is_too_far(const struct proc_index *index, pid_t newest)
{
    int64_t count = count_numbers(index, index->checked, newest);

    return newest <= 0 || count < 0 || (count > NUMBERS_MAX && index->offset <= 0);
}

int proc_index_refresh(struct proc_index *index, bool settles_root)
{
    int64_t now = clock_read(CLOCK_BOOTTIME);
    bool is_whole = index->newest == 0 || index->is_stale || may_have_gone_round(index, now);
    pid_t newest = read_newest(index);
    int code = 0;

    proc_files_touch(index->files, 0);
    if (is_whole || is_too_far(index, newest)) {
        code = sweep_all(index);
        newest = read_newest(index);
        if (code < 0 || is_too_far(index, newest))
            return code;
    }
    code = look_up_numbers(index, newest, now);
    return code < 0 || !settles_root ? code : settle_entries(index, index->count);
}

static bool is_sweep_due(const struct proc_index *index, int64_t now)
{
    return now - index->swept_at >= SWEEP_PERIOD ||
           index->count > 2 * index->count_swept + COUNT_SPARE;
}

/* Learns about new processes, so that the next question finds few numbers to look up. */
static void refresh_numbers(struct proc_index *index, int64_t now)
{
    pid_t before = index->newest;
    pid_t newest = read_newest(index);
    int64_t count = count_numbers(index, before, newest);

    if (newest <= 0)
        count = 0;
    else if (index->is_stale || may_have_gone_round(index, now) || is_too_far(index, newest))
        (void)begin_sweep_of_stale(index);
    else
        (void)look_up_numbers(index, newest, now);
    index->refreshed_at = now;
    if (count >= NUMBERS_FEW)
        index->pause = PAUSE_BUSY;
    else if (count > 0 || !list_is_empty(&index->unsettled))
        index->pause = PAUSE;
    else
        index->pause = index->pause < PAUSE_REST / 2 ? 2 * index->pause : PAUSE_REST;
}

int proc_index_work(struct proc_index *index)
{
    int64_t now = clock_read(CLOCK_BOOTTIME);
    const struct list_link *oldest = list_first(&index->unsettled);
    const struct proc_entry *entry =
        oldest == NULL ? NULL : container_of(oldest, const struct proc_entry, in_unsettled);
    int64_t due;

    if (index->directory == NULL && is_sweep_due(index, now) && begin_sweep(index) < 0)
        return -1;
    if (index->directory == NULL && now - index->refreshed_at >= index->pause) {
        refresh_numbers(index, now);
        return 0;
    }
    if (index->directory != NULL) {
        if (step_sweep(index) < 0)
            stop_sweep(index);
        return 0;
    }
    if (entry != NULL && now - entry->seen >= PROC_INDEX_SETTLED)
        return settle_entries(index, STEP) < 0 ? -1 : 0;
    due = index->refreshed_at + index->pause;
    return due > now ? (int)((due - now) / 1000000 + 1) : 0;
}
