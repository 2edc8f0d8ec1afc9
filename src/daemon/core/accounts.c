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

enum { EVENTS_SIZE = 4096, FILE_SIZE_MAX = 4 << 20 };

/* Changes within this time are read together. */
#define SETTLE (DURATION_SECOND / 20)

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

/* Returns whether one of the events is about the file. */
static bool concerns_file(const struct accounts *accounts, const char *events, size_t length)
{
    const char *name = base_name(accounts->path);

    for (size_t at = 0; at + sizeof(struct inotify_event) <= length;) {
        struct inotify_event event;

        memcpy(&event, events + at, sizeof(event));
        if ((event.mask & IN_Q_OVERFLOW) != 0 ||
            (event.len > 0 && strcmp(events + at + sizeof(event), name) == 0))
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

/* Watches the directory, because programs replace the file. */
static int watch_directory(const struct accounts *accounts)
{
    const char *name = base_name(accounts->path);
    char *directory = name == accounts->path
                          ? strdup(".")
                          : strndup(accounts->path, (size_t)(name - accounts->path));
    int descriptor = directory == NULL ? -1 : inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (descriptor >= 0 &&
        inotify_add_watch(descriptor, directory, IN_CLOSE_WRITE | IN_MOVE | IN_DELETE | IN_ATTRIB) <
            0) {
        close(descriptor);
        descriptor = -1;
    }
    free(directory);
    return descriptor;
}

void accounts_init(struct accounts *accounts, const struct accounts_settings *settings)
{
    *accounts = (struct accounts){
        .loop = settings->loop,
        .path = settings->path,
        .pool_owner = settings->pool_owner,
        .changes = {.descriptor = -1, .ready = receive_changes},
        .settle.fire = report_change,
        .changed = settings->changed,
        .context = settings->context,
    };
    if (accounts->path == NULL)
        return;
    accounts->changes.descriptor = watch_directory(accounts);
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
}

void accounts_read(struct accounts *accounts, subordinate_uids_resolver *find, void *context)
{
    struct text content = {0};

    subordinate_uids_finish(&accounts->ranges);
    if (accounts->path != NULL && file_read(accounts->path, FILE_SIZE_MAX, &content, NULL) == 0)
        subordinate_uids_parse(&accounts->ranges,
                               (struct span){text_string(&content), content.length}, find, context);
    text_finish(&content);
}

static bool is_unlimited(const struct accounts *accounts, uint32_t uid)
{
    return uid == 0 || uid == accounts->pool_owner;
}

uint32_t accounts_find(const struct accounts *accounts, uint32_t uid)
{
    uint32_t owner = subordinate_uids_owner(&accounts->ranges, uid);

    return is_unlimited(accounts, uid) || is_unlimited(accounts, owner) ? uid : owner;
}
