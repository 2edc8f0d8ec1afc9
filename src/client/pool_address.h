/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the socket of a pool's daemon. In this order:
 *
 *  1. BERTH_SOCKET
 *  2. /run/berth/berth.sock, the machine's daemon, if it exists and there is no inventory
 *  3. the user's own daemon in BERTH_RUNTIME_DIR, by default /tmp/berth-<uid>; with an inventory,
 *     in a subdirectory
 *
 * If another user has created /tmp/berth-<uid>, the default is the directory berth in
 * XDG_RUNTIME_DIR, or else in /run/user/<uid>, if that exists, belongs to the user and has mode
 * 0700. Once the directory berth exists there, it stays the default until /tmp/berth-<uid> belongs
 * to the user. So another user cannot split a pool by creating and removing a directory.
 *
 * Within a lease (BERTH_LEASE), berth itself set BERTH_SOCKET. If it names the socket of the user's
 * own or the machine's daemon, that daemon is handled as in 2 or 3.
 */
#ifndef CLIENT_POOL_ADDRESS_H
#define CLIENT_POOL_ADDRESS_H

#include <berth/error.h>
#include <stdbool.h>

struct pool_address {
    char *directory; /* of the socket */
    char *socket;    /* absolute path */
    char *inventory; /* absolute path without symlinks; NULL: the hardware */
    bool own;        /* the user's own daemon, which is started on demand */
    bool machine; /* the machine's daemon at its usual path: its socket is missing only briefly */
};

#define POOL_SOCKET_NAME    "berth.sock"
#define POOL_MACHINE_SOCKET "/run/berth/" POOL_SOCKET_NAME

/* Finds the address by the rules above. `inventory` is the argument of --inventory, or NULL, which
 * means BERTH_INVENTORY. Empty variables count as unset. Creates no files. The caller finishes
 * *ret_address, which is untouched on failure. Fails with BERTH_ERROR_INVALID (an empty
 * `inventory`, a relative path in BERTH_SOCKET or BERTH_RUNTIME_DIR), _NOT_FOUND (no such
 * inventory), _PERMISSION (also when the directory of the machine's socket is not accessible), _IO
 * or _MEMORY. */
int pool_address_find(const char *inventory, struct pool_address *ret_address,
                      struct berth_error *error);

/* The places of pools. Only tests change them. */
struct pool_places {
    const char *machine_socket;
    const char *temporary; /* /tmp */
    const char *run_user;  /* /run/user */
};

/* Does the same with other places. */
int pool_address_find_in(const struct pool_places *places, const char *inventory,
                         struct pool_address *ret_address, struct berth_error *error);

/* Returns whether this is the machine's pool, also if BERTH_SOCKET names it. */
bool pool_address_is_machine(const struct pool_address *address);

void pool_address_finish(struct pool_address *address);

#endif
