/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the pool lives: BERTH_SOCKET; else /run/berth/berth.sock if it exists; else the user's own
 * daemon in BERTH_RUNTIME_DIR, by default /tmp/berth-<uid>. With an inventory and no BERTH_SOCKET
 * it is always the user's own, in a directory for that inventory below that one. Within a lease
 * (BERTH_LEASE) BERTH_SOCKET may be our own doing: where it is that of the user's own daemon or of
 * the machine's, it counts as such.
 */
#ifndef CLIENT_POOL_ADDRESS_H
#define CLIENT_POOL_ADDRESS_H

#include <berth/error.h>
#include <stdbool.h>

struct pool_address {
    char *directory; /* of the socket; for our own, in what BERTH_RUNTIME_DIR names */
    char *socket;    /* the whole path */
    char *inventory; /* the file, absolute and without symlinks; NULL: the hardware */
    bool own;        /* the user's own daemon: started on demand */
    bool machine;    /* the machine's, found where it always is: absent for a moment at most */
};

#define POOL_SOCKET_NAME    "berth.sock"
#define POOL_MACHINE_SOCKET "/run/berth/" POOL_SOCKET_NAME

/* Finds it by the rules above. `inventory` is --inventory's, NULL: none was given (then
 * BERTH_INVENTORY counts). Empty variables count as unset. Makes nothing. The caller finishes
 * *ret_address, which is untouched on failure. Fails with BERTH_ERROR_INVALID (an empty
 * `inventory`, a relative path in BERTH_SOCKET or BERTH_RUNTIME_DIR), _NOT_FOUND (no such
 * inventory), _PERMISSION (also where we may not see whether there is a machine's), _IO or
 * _MEMORY. */
int pool_address_find(const char *inventory, struct pool_address *ret_address,
                      struct berth_error *error);

/* The same where the machine's socket is another one, for tests. */
int pool_address_find_with_machine_socket(const char *machine_socket, const char *inventory,
                                          struct pool_address *ret_address,
                                          struct berth_error *error);

void pool_address_finish(struct pool_address *address);

#endif
