/* SPDX-License-Identifier: Apache-2.0
 *
 * SEQPACKET sockets at paths of any length. Both functions return 0 or a positive errno, and
 * sockets that are close-on-exec and blocking. Neither blocks; any thread may call them.
 */
#ifndef CLIENT_UNIX_SOCKET_H
#define CLIENT_UNIX_SOCKET_H

/* EAGAIN: somebody listens, and has no room for one more now. */
int unix_socket_connect(const char *path, int *ret_socket);

/* Makes the socket `name` in the open directory, for our user only, and listens. */
int unix_socket_listen(int directory, const char *name, int *ret_socket);

#endif
