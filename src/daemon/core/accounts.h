/* SPDX-License-Identifier: Apache-2.0
 *
 * Accounts: which user each uid counts as. A uid in a range of /etc/subuid counts as the owner of
 * the range, so that limits hold for a person with all of the person's containers. A range without
 * such an owner is one user of its own. Rights are another matter: they depend on the uid itself.
 */
#ifndef DAEMON_CORE_ACCOUNTS_H
#define DAEMON_CORE_ACCOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/system/subordinate_uids.h"
#include "daemon/core/loop.h"

struct account_uids {
    VECTOR_OF(uint32_t);
};

struct accounts {
    struct loop *loop;
    const char *path;
    const char *users_path;
    uint32_t pool_owner;
    struct subordinate_uids ranges;
    struct account_uids local_uids; /* of the users file, sorted */
    char *real_path;                /* without symlinks; NULL: there is no file */
    int real_directory;             /* the inotify watch of its directory */
    struct watch changes;           /* an inotify descriptor; -1: none */
    struct timer settle;            /* set while the file changes */
    void (*changed)(void *context);
    void *context;
};

struct accounts_settings {
    struct loop *loop;
    const char *path;               /* must stay valid; NULL: each uid counts as itself */
    const char *users_path;         /* usually /etc/passwd; must stay valid */
    uint32_t pool_owner;            /* a uid */
    void (*changed)(void *context); /* the file may have changed: accounts_read() is due */
    void *context;
};

/* Initialises the accounts and watches the file, which need not exist and may be a symlink. Without
 * inotify, only accounts_read() notices changes. */
void accounts_init(struct accounts *accounts, const struct accounts_settings *settings);
void accounts_finish(struct accounts *accounts);

/* Reads the file, and the users file for the names in it. Invalid lines are left out. Asks no name
 * service. */
void accounts_read(struct accounts *accounts);

/* Returns the uid of the user that counts for this uid. Root and the pool's owner count as
 * themselves. The uids in one of their ranges count as the first uid of the range, so a container
 * does not get their exemption from limits. The same holds for a range of a name that the users
 * file does not have. Users of the users file count as themselves even within such a range. */
uint32_t accounts_find(const struct accounts *accounts, uint32_t uid);

#endif
