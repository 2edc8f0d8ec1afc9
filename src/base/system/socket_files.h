/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of the daemon's files, which are beside its socket.
 */
#ifndef BASE_SYSTEM_SOCKET_FILES_H
#define BASE_SYSTEM_SOCKET_FILES_H

struct text;

/* Appends the path of a file beside the socket: (".../berth.sock", ".lock") is ".../berth.lock". */
void socket_files_append(const char *socket, const char *ending, struct text *out);

#endif
