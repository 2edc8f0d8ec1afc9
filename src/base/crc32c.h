/* SPDX-License-Identifier: Apache-2.0
 *
 * CRC-32C (Castagnoli, as in iSCSI and ext4). It detects every change within 32 adjacent bits, and
 * all but one in 2^32 of other changes. It does not protect against forgery. Any thread may call
 * these.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Returns the checksum of some data followed by these bytes, where `before` is the checksum of the
 * data (0: no data). So a checksum can be computed piece by piece. */
uint32_t crc32c(uint32_t before, const void *bytes, size_t length);

/* Does the same without the processor's CRC-32C instruction, which crc32c() uses if there is
 * one. */
uint32_t crc32c_by_table(uint32_t before, const void *bytes, size_t length);

#endif
