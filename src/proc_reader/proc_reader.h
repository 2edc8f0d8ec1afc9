/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of berth-reader: answers the requests of one parent program about processes.
 */
#ifndef PROC_READER_PROC_READER_H
#define PROC_READER_PROC_READER_H

#include <berth/error.h>

#include "proc_reader/proc_files.h"

/* Says hello, looks at all processes, and answers requests until the parent closes the socket, a
 * SOCK_SEQPACKET. It has SIGALRM end the process when a request takes longer than 10 s: that also
 * ends a read that would never return, when the parent has ended and cannot kill the process.
 * Returns 0 or a code with a message. */
int proc_reader_run(int socket, const struct proc_files *files, struct berth_error *error);

/* Returns whether the kernel lacks PIDFD_GET_INFO. */
bool proc_reader_is_old_kernel(void);

#endif
