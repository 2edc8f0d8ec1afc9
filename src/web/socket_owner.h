/* SPDX-License-Identifier: Apache-2.0
 *
 * The local users of TCP connections, from the kernel's table of sockets (sock_diag(7)). Call the
 * functions in one thread; none blocks.
 */
#ifndef WEB_SOCKET_OWNER_H
#define WEB_SOCKET_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Opens a socket for questions to the kernel. Returns it, or -1 with errno. The caller closes it.
 */
int socket_owner_open(void);

/* Finds the user that created the other end of a connection between this process's address and the
 * peer's. Returns false if the other end is not a socket of this network namespace, if its process
 * has closed it, or if the kernel cannot tell (`questions` may be -1). */
bool socket_owner_find(int questions, const struct sockaddr *ours, const struct sockaddr *peer,
                       uint32_t *ret_uid);

#endif
