/* SPDX-License-Identifier: Apache-2.0
 *
 * Repairs a record of a journal in which one byte is wrong. The checksum of a record tells which
 * byte that is, and its right value: each wrong byte changes the checksum in its own way. Pure
 * functions; any thread may call them.
 */
#ifndef DAEMON_JOURNAL_JOURNAL_REPAIR_H
#define DAEMON_JOURNAL_JOURNAL_REPAIR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/text.h"

/* Appends the record at the beginning of `length` bytes with its wrong byte put right. Returns
 * false, with an unchanged text, if more than one byte is wrong, if no single byte is the only
 * possible one, or without memory. Takes time proportional to the record. */
bool journal_repair(const char *bytes, size_t length, struct text *out);

#endif
