/* SPDX-License-Identifier: Apache-2.0
 *
 * The mark of a process that belongs to a lease: two variables of its initial environment. Any user
 * can set them, so they are a hint, never a credential.
 */
#ifndef MODEL_LEASE_MARK_H
#define MODEL_LEASE_MARK_H

#include <stddef.h>
#include <stdint.h>

struct lease_mark {
    uint64_t lease;     /* BERTH_LEASE, 0: none */
    const char *socket; /* BERTH_SOCKET of its pool; points into the parsed bytes; NULL: none */
};

/* Parses the text of /proc/PID/environ: strings NAME=VALUE, each terminated by a zero byte. A zero
 * byte must follow the last of the bytes. */
struct lease_mark lease_mark_read(const char *bytes, size_t length);

#endif
