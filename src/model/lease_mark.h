/* SPDX-License-Identifier: Apache-2.0
 *
 * What marks a process as one of a lease: two variables of the environment that it was started
 * with. Anybody can set them.
 */
#ifndef MODEL_LEASE_MARK_H
#define MODEL_LEASE_MARK_H

#include <stddef.h>
#include <stdint.h>

struct lease_mark {
    uint64_t lease;     /* BERTH_LEASE, 0: none */
    const char *socket; /* BERTH_SOCKET of the pool that it is of, within the bytes; NULL: none */
};

/* Reads /proc/PID/environ: strings NAME=VALUE, each ended by a zero byte. After the last of the
 * bytes there must be one. Pure. */
struct lease_mark lease_mark_read(const char *bytes, size_t length);

#endif
