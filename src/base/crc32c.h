/* SPDX-License-Identifier: Apache-2.0
 *
 * CRC-32C (Castagnoli, as in iSCSI and ext4): sees every change within 32 adjacent bits and all
 * others but one in four thousand million. No protection against forgery. Pure; any thread may
 * call it.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of what has the checksum `before` (0: nothing) and then these bytes, so that pieces
 * can be summed one after the other. */
uint32_t crc32c(uint32_t before, const void *bytes, size_t length);

/* The same on any processor; the other may use an instruction for it. */
uint32_t crc32c_by_table(uint32_t before, const void *bytes, size_t length);

#endif
