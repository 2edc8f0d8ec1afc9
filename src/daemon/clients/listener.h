/* SPDX-License-Identifier: Apache-2.0
 *
 * The socket that clients connect to, its lock and its directory.
 */
#ifndef DAEMON_CLIENTS_LISTENER_H
#define DAEMON_CLIENTS_LISTENER_H

#include <berth/error.h>
#include <stdbool.h>
#include <sys/types.h>

#include "daemon/core/loop.h"

struct listener {
    struct watch watch; /* of the socket; -1: none */
    const char *path;
    bool is_own;         /* a user's private daemon */
    bool has_parent;     /* a private daemon of an inventory: its directory is in another one */
    bool owns_path;      /* the path is removed at the end */
    ino_t inode;         /* of the path */
    int lock;            /* a descriptor; -1: none */
    int directory;       /* of the socket, locked against cleaners; -1: none */
    int outer_directory; /* around that one; -1: none */
};

/* Initialises the listener. `path` must stay valid. `descriptor` is a listening socket from a
 * service manager or a starting command; -1: none. `owns_path`: the path of that socket is removed
 * at the end. */
void listener_init(struct listener *listener, const char *path, int descriptor, bool owns_path);

/* Ensures that this is the only daemon of the socket, and keeps cleaners of temporary files away
 * from the directory. Blocks a few seconds for an earlier daemon that is ending. Fails with
 * BERTH_ERROR_BUSY when there is another daemon, or _IO, _PERMISSION, _NOT_FOUND. */
int listener_lock(struct listener *listener, struct berth_error *error);

/* Listens, unless the socket came from outside. Fails with BERTH_ERROR_INVALID or _IO. */
int listener_open(struct listener *listener, struct berth_error *error);

/* For a daemon without clients: closes the socket, unless a client connects at this moment. Returns
 * whether it is closed. */
bool listener_close_unused(struct listener *listener);

/* Closes all descriptors and removes the path if it is the listener's. */
void listener_finish(struct listener *listener);

#endif
