/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads past and current leases from an SQLite file; history_record.h writes it. The content is
 * untrusted: a user may have edited the file. Calls block on the disk; a caller that must not block
 * needs a separate thread or process. One thread at a time may use an open history.
 *
 *     history_open_read(path, &history, &error);
 *     history_write_json(history, &(struct history_query){.since = since}, JSON_COMPACT, &text,
 *                        &error);
 *     history_close(history);
 */
#ifndef HISTORY_HISTORY_H
#define HISTORY_HISTORY_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/optional.h"
#include "base/text/choice.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "base/vector.h"
#include "model/machine/device_id.h"

/* Times are nanoseconds since 1970 UTC. */
struct history_lease {
    char *pool;      /* the pool whose ids these are */
    uint64_t id;     /* as `status` shows it */
    uint64_t parent; /* the lease around it; 0: none */
    char *name;      /* NULL: none */
    char *user;      /* the user's name at that time */
    uint32_t uid;
    char *command;                 /* NULL: unknown */
    struct device_id_list devices; /* in the order of the replicas */
    uint32_t share;                /* millionths of each device */
    int64_t claimed;
    int64_t granted;
    int64_t ended; /* 0: still held */
    int64_t seen;  /* the last time at which it was known to be held; for an ended lease: its end */
    char *end; /* the reason, as in lease_end_names, or "lost" if the end was never recorded; NULL:
                  still held */
    struct optional_number exit_code;
    uint64_t judged_time; /* nanoseconds for which the lease's use is known */
    uint64_t idle_time;   /* the part of judged_time without use */
    /* Short leases of one user, name, set of devices and minute can share a record: the other
     * members are then the first lease's, but `ended`, `end` are the last one's, and judged_time
     * and idle_time are sums. */
    uint64_t leases;    /* the number of leases in this record; 0 means 1 */
    uint64_t held_time; /* if more than one: the sums of their times, nanoseconds */
    uint64_t waited_time;
};

/* Returns whether the record is a sum of several leases. */
static inline bool history_lease_is_sum(const struct history_lease *lease)
{
    return lease->leases > 1;
}

/* Return how long the lease waited and was held so far, in nanoseconds; never negative. */
int64_t history_lease_waited(const struct history_lease *lease);
int64_t history_lease_held(const struct history_lease *lease, int64_t now);

/* Selects leases: all conditions must hold. Zeroed memory selects all. */
struct history_query {
    int64_t since;    /* held at this time or later; 0: no limit */
    int64_t until;    /* held before this time; 0: now */
    const char *user; /* the user's name at that time, or the uid in digits; NULL: every user */
    const char *name; /* a part of the name, in upper or lower case; NULL: all, also leases without
                         a name */
    const char *device; /* the id of one of its devices; NULL: any */
    uint64_t max;       /* the maximum number of leases, newest first; 0: all; reports ignore it */
    int64_t now;        /* 0: the current time */
};

struct history;

/* Opens an existing file. Fails with BERTH_ERROR_NOT_FOUND (nothing was recorded yet), _PERMISSION,
 * _IO, _SYNTAX (no database, a damaged one, or another program's), _INVALID (a later version's, or
 * not a file), _BUSY or _MEMORY. The message names the path. */
int history_open_read(const char *path, struct history **ret_history, struct berth_error *error);
/* NULL is allowed. */
void history_close(struct history *history);

/* Receives one lease, which is valid until the function returns. A negative code ends the visit. */
typedef int history_visitor(void *context, const struct history_lease *lease,
                            struct berth_error *error);

/* Visits the leases, the last granted first. Fails like history_open_read, or with the visitor's
 * code. */
int history_each(struct history *history, const struct history_query *query,
                 history_visitor *visitor, void *context, struct berth_error *error);

/* ---- Sums ---- */

enum history_by {
    HISTORY_BY_USER,
    HISTORY_BY_NAME,
    HISTORY_BY_DEVICE,
};
/* user, name, device. */
extern const struct choice history_by_names[];

/* A row of a report. Of a lease that overlaps the period, only the part inside counts. Leases
 * inside other leases are left out: the outer one has the devices. */
struct history_row {
    char *key;         /* NULL: leases without a name */
    uint64_t leases;   /* leases that overlap the period; of a sum, all of its leases */
    uint64_t gpu_time; /* nanoseconds; half a device for two hours is one hour */
    uint64_t waited;   /* nanoseconds, summed over all leases */
    uint64_t judged;   /* nanoseconds for which their use is known */
    uint64_t idle;     /* the part of `judged` without use */
};

struct history_report {
    VECTOR_OF(struct history_row); /* most time first */
    struct history_row total;      /* each lease counts once, however many devices it has */
};

int history_report(struct history *history, const struct history_query *query, enum history_by by,
                   struct history_report *ret_report, struct berth_error *error);
void history_report_finish(struct history_report *report);

/* ---- JSON ---- */

/* Appends the berth.history/1 document. Fails like history_each; the text may then hold a part. */
int history_write_json(struct history *history, const struct history_query *query,
                       enum json_layout layout, struct text *out, struct berth_error *error);
/* Write the document's beginning, one lease and its end, for documents that are too long for
 * memory. */
void history_json_begin(struct json *json);
void history_json_lease(struct json *json, const struct history_lease *lease, int64_t now);
void history_json_end(struct json *json);
/* Appends the same document for an empty history. */
void history_write_json_empty(enum json_layout layout, struct text *out);

/* Appends the berth.report/1 document. */
void history_write_report_json(const struct history_report *report, enum history_by by,
                               enum json_layout layout, struct text *out);

#endif
