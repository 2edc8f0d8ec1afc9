/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a journal that may be damaged: a record with one wrong byte is repaired; another record
 * that cannot be decoded or does not fit is left out, and reading goes on with the next one.
 *
 * A daemon that is killed while it writes leaves the beginning of a record. This is not damage,
 * because no client was notified of it. Everything else that cannot be read is damage.
 */
#ifndef DAEMON_JOURNAL_JOURNAL_READ_H
#define DAEMON_JOURNAL_JOURNAL_READ_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"
#include "engine/journal/journal.h"

/* Takes one record. Returns 1 to continue, 0 to ignore the rest, BERTH_ERROR_MEMORY to give up, or
 * another code if the record does not fit. */
typedef int journal_read_function(void *context, const struct journal_record *record,
                                  struct berth_error *error);

/* The result of reading a journal. */
struct journal_contents {
    size_t records;            /* that were taken */
    bool is_torn;              /* the end of the last record is missing */
    bool is_empty;             /* there are no bytes, or only zeros */
    size_t repairs;            /* records that were repaired */
    size_t damages;            /* places that could not be read, and records that did not fit */
    size_t first_damage;       /* the byte where the first of repairs and damages begins */
    struct berth_error reason; /* of the first */
};

/* Reads all records in the bytes. Has no effects but those of `take`. Fails only with
 * BERTH_ERROR_MEMORY. */
int journal_read_all(const struct text *bytes, journal_read_function *take, void *context,
                     struct journal_contents *ret_contents, struct berth_error *error);

#endif
