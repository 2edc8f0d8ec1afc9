/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/accounts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/file.h"
#include "base/text/quantity.h"
#include "base/text/text.h"
#include "daemon/core/local_users.h"

enum { EVENTS_SIZE = 4096, FILE_SIZE_MAX = 4 << 20 };

/* Changes within this time are read together. */
#define SETTLE (DURATION_SECOND / 20)

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

static bool has_base_name(const char *path, const char *name)
{
    return path != NULL && strcmp(base_name(path), name) == 0;
}

/* Returns whether one of the events is about the file. */
static bool concerns_file(const struct accounts *accounts, const char *events, size_t length)
{
    for (size_t at = 0; at + sizeof(struct inotify_event) <= length;) {
        struct inotify_event event;

        memcpy(&event, events + at, sizeof(event));
        if ((event.mask & IN_Q_OVERFLOW) != 0 ||
            (event.len > 0 && (has_base_name(accounts->path, events + at + sizeof(event)) ||
                               has_base_name(accounts->real_path, events + at + sizeof(event)))))
            return true;
        at += sizeof(event) + event.len;
    }
    return false;
}

static void receive_changes(struct watch *watch, uint32_t events)
{
    struct accounts *accounts = container_of(watch, struct accounts, changes);
    char bytes[EVENTS_SIZE];
    ssize_t length = read(watch->descriptor, bytes, sizeof(bytes));

    (void)events;
    if (length > 0 && concerns_file(accounts, bytes, (size_t)length) &&
        !list_is_linked(&accounts->settle.in_loop))
        loop_set_timer(accounts->loop, &accounts->settle, loop_now(accounts->loop) + SETTLE);
}

static void report_change(struct timer *timer)
{
    struct accounts *accounts = container_of(timer, struct accounts, settle);

    accounts->changed(accounts->context);
}

/* Watches the file's directory, because programs replace the file. Returns the inotify watch, the
 * same one for the same directory; -1: none. */
static int watch_directory(int descriptor, const char *path)
{
    const char *name = base_name(path);
    char *directory = name == path ? strdup(".") : strndup(path, (size_t)(name - path));
    int number = directory == NULL
                     ? -1
                     : inotify_add_watch(descriptor, directory,
                                         IN_CLOSE_WRITE | IN_MOVE | IN_DELETE | IN_ATTRIB);

    free(directory);
    return number;
}

static int open_changes(const struct accounts *accounts)
{
    int descriptor = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (descriptor >= 0 && watch_directory(descriptor, accounts->path) < 0) {
        close(descriptor);
        descriptor = -1;
    }
    return descriptor;
}

/* Watches the directory of the file that a symlink leads to, too. */
static void watch_real_file(struct accounts *accounts)
{
    int descriptor = accounts->changes.descriptor;
    int before = accounts->real_directory;

    free(accounts->real_path);
    accounts->real_path = realpath(accounts->path, NULL);
    if (descriptor < 0)
        return;
    accounts->real_directory =
        accounts->real_path == NULL ? -1 : watch_directory(descriptor, accounts->real_path);
    if (before >= 0 && before != accounts->real_directory &&
        before != watch_directory(descriptor, accounts->path))
        inotify_rm_watch(descriptor, before);
}

void accounts_init(struct accounts *accounts, const struct accounts_settings *settings)
{
    *accounts = (struct accounts){
        .loop = settings->loop,
        .path = settings->path,
        .users_path = settings->users_path,
        .real_directory = -1,
        .pool_owner = settings->pool_owner,
        .changes = {.descriptor = -1, .ready = receive_changes},
        .settle.fire = report_change,
        .changed = settings->changed,
        .context = settings->context,
    };
    if (accounts->path == NULL)
        return;
    accounts->changes.descriptor = open_changes(accounts);
    if (accounts->changes.descriptor >= 0 &&
        loop_add(accounts->loop, &accounts->changes, EPOLLIN, NULL) < 0) {
        close(accounts->changes.descriptor);
        accounts->changes.descriptor = -1;
    }
}

void accounts_finish(struct accounts *accounts)
{
    if (accounts->loop == NULL)
        return;
    loop_set_timer(accounts->loop, &accounts->settle, LOOP_NEVER);
    if (accounts->changes.descriptor >= 0) {
        loop_remove(accounts->loop, &accounts->changes);
        close(accounts->changes.descriptor);
    }
    subordinate_uids_finish(&accounts->ranges);
    vector_finish(&accounts->local_uids);
    free(accounts->real_path);
}

static bool find_user(void *context, const char *name, uint32_t *ret_uid)
{
    return local_users_find(context, name, ret_uid);
}

static int compare_uids(const void *one, const void *other)
{
    uint32_t first = *(const uint32_t *)one;
    uint32_t second = *(const uint32_t *)other;

    return (first > second) - (first < second);
}

static void keep_uids(struct accounts *accounts, const struct local_users *users)
{
    const struct local_user *user;
    uint32_t *item;

    vector_finish(&accounts->local_uids);
    vector_for_each (user, users) {
        if ((item = vector_append(&accounts->local_uids)) != NULL)
            *item = user->number;
    }
    if (accounts->local_uids.count > 0)
        qsort(accounts->local_uids.items, accounts->local_uids.count, sizeof(uint32_t),
              compare_uids);
}

void accounts_read(struct accounts *accounts)
{
    struct text content = {0};
    struct local_users users = {0};

    subordinate_uids_finish(&accounts->ranges);
    if (accounts->path == NULL)
        return;
    watch_real_file(accounts);
    local_users_read(&users, accounts->users_path);
    keep_uids(accounts, &users);
    if (file_read(accounts->path, FILE_SIZE_MAX, &content, NULL) == 0)
        subordinate_uids_parse(&accounts->ranges,
                               (struct span){text_string(&content), content.length}, find_user,
                               &users);
    text_finish(&content);
    local_users_finish(&users);
}

static bool is_unlimited(const struct accounts *accounts, uint32_t uid)
{
    return uid == 0 || uid == accounts->pool_owner;
}

static bool is_local_user(const struct accounts *accounts, uint32_t uid)
{
    return accounts->local_uids.count > 0 &&
           bsearch(&uid, accounts->local_uids.items, accounts->local_uids.count, sizeof(uid),
                   compare_uids) != NULL;
}

uint32_t accounts_find(const struct accounts *accounts, uint32_t uid)
{
    const struct subordinate_range *range =
        is_unlimited(accounts, uid) ? NULL : subordinate_uids_find(&accounts->ranges, uid);

    if (range == NULL)
        return uid;
    if (range->owner != SUBORDINATE_NO_OWNER && !is_unlimited(accounts, range->owner))
        return range->owner;
    return is_local_user(accounts, uid) || is_unlimited(accounts, range->first) ? uid
                                                                                : range->first;
}
