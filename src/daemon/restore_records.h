/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies the records of the last daemon's journal to the pool that is being restored.
 */
#ifndef DAEMON_RESTORE_RECORDS_H
#define DAEMON_RESTORE_RECORDS_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;
struct journal_record;
struct machine;
struct pool;

struct replay {
    struct pool *pool;
    struct engine *engine;   /* the events are replayed in it */
    struct machine *machine; /* gets the devices */
    bool has_pool;           /* the first record was there, and is of this boot */
    bool other_devices;      /* the journal is about other devices than the present ones */
    uint64_t last_id;        /* the largest of all records, also of those that did not fit */
};

/* Applies a record to the pool and the engine. A journal_read_function whose context is a struct
 * replay. Returns 0 if the journal is of another boot. */
int restore_records_apply(void *context, const struct journal_record *record,
                          struct berth_error *error);

/* Applies a record of devices to the machine, and skips the others. Otherwise like
 * restore_records_apply(). */
int restore_records_apply_devices(void *context, const struct journal_record *record,
                                  struct berth_error *error);

#endif
