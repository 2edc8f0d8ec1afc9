/* SPDX-License-Identifier: Apache-2.0
 *
 * SEQPACKET sockets with paths of any length. Both functions return 0 or a positive errno, and a
 * socket that is close-on-exec and blocking. Neither function blocks; any thread may call them.
 */
#ifndef CLIENT_UNIX_SOCKET_H
#define CLIENT_UNIX_SOCKET_H

/* Connects. EAGAIN means that a process listens, but its queue of connections is full. */
int unix_socket_connect(const char *path, int *ret_socket);

/* Creates the socket `name` in the open directory with mode 0600, and listens on it. */
int unix_socket_listen(int directory, const char *name, int *ret_socket);

#endif
