/* SPDX-License-Identifier: Apache-2.0
 *
 * Accounts: which user each uid counts as. A uid in a range of /etc/subuid counts as the owner of
 * the range, so that limits hold for a person with all of the person's containers. Rights are
 * another matter: they depend on the uid itself.
 */
#ifndef DAEMON_CORE_ACCOUNTS_H
#define DAEMON_CORE_ACCOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/system/subordinate_uids.h"
#include "daemon/core/loop.h"

struct accounts {
    struct loop *loop;
    const char *path;
    uint32_t pool_owner;
    struct subordinate_uids ranges;
    struct watch changes; /* an inotify descriptor; -1: none */
    struct timer settle;  /* set while the file changes */
    void (*changed)(void *context);
    void *context;
};

struct accounts_settings {
    struct loop *loop;
    const char *path;               /* must stay valid; NULL: each uid counts as itself */
    uint32_t pool_owner;            /* a uid */
    void (*changed)(void *context); /* the file may have changed: accounts_read() is due */
    void *context;
};

/* Initialises the accounts and watches the file, which need not exist. Without inotify, only
 * accounts_read() notices changes. */
void accounts_init(struct accounts *accounts, const struct accounts_settings *settings);
void accounts_finish(struct accounts *accounts);

/* Reads the file. Invalid lines, and owners that `find` does not know, are left out. */
void accounts_read(struct accounts *accounts, subordinate_uids_resolver *find, void *context);

/* Returns the uid of the user that counts for this uid. Root, the pool's owner and the uids in
 * their ranges count as themselves: a container does not give their freedom from limits to another
 * user. */
uint32_t accounts_find(const struct accounts *accounts, uint32_t uid);

#endif
