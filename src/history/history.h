/* SPDX-License-Identifier: Apache-2.0
 *
 * Past leases, and those that are held, in an SQLite file: reading. record.h writes. Everything
 * that is read is hostile: somebody may have edited the file. Calls block as long as the disk
 * does; whoever must not wait opens and asks in a thread or a program of its own. One thread at a
 * time for each open history.
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

#include "base/text/choice.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "base/vector.h"
#include "model/device_id.h"
#include "model/optional.h"

/* Times are nanoseconds since 1970 UTC. */
struct history_lease {
    char *pool;      /* whose ids are counted anew by no other */
    uint64_t id;     /* for people, as `status` shows it */
    uint64_t parent; /* the lease that it was within; 0: none */
    char *name;      /* NULL: none was given */
    char *user;      /* as it was called then */
    uint32_t uid;
    char *command;                 /* NULL: unknown */
    struct device_id_list devices; /* replica after replica */
    uint32_t share;                /* millionths of each */
    int64_t claimed;
    int64_t granted;
    int64_t ended; /* 0: it is held */
    int64_t seen;  /* when it was last known to be held; of one that has ended: when that was */
    char *end;     /* why: as lease_end_names has it, "lost" when the daemon and the end were lost;
                      NULL: it is held */
    struct optional_number exit_code;
    uint64_t judged_time; /* nanoseconds for which it is known whether it was used */
    uint64_t idle_time;   /* of them: when it was not */
};

/* How long it waited and was held so far, nanoseconds; never negative. */
int64_t history_lease_waited(const struct history_lease *lease);
int64_t history_lease_held(const struct history_lease *lease, int64_t now);

/* Which leases are meant: all of these conditions. Zeroed memory means all. */
struct history_query {
    int64_t since;      /* held at this time or later; 0: since ever */
    int64_t until;      /* held before this time; 0: up to now */
    const char *user;   /* the name as it was then, or the uid in digits; NULL: everybody's */
    const char *name;   /* a part of the name, in any case; NULL: all, also those without */
    const char *device; /* the id of one that it had; NULL: any */
    uint64_t max;       /* that are told, the newest; 0: all; reports take no notice of it */
    int64_t now;        /* 0: what the clock says */
};

struct history;

/* Opens a file that is there. Fails with BERTH_ERROR_NOT_FOUND when it is not (nothing was recorded
 * yet), _PERMISSION, _IO, _SYNTAX (no database, a damaged one, or one of somebody else),
 * _INVALID (a later version's, or no file), _BUSY or _MEMORY; one line that names the path. */
int history_open_read(const char *path, struct history **ret_history, struct berth_error *error);
/* NULL is nothing to close. */
void history_close(struct history *history);

/* Is told one lease, which is good until it returns. A negative code ends it all. */
typedef int history_visitor(void *context, const struct history_lease *lease,
                            struct berth_error *error);

/* Tells of the leases, the one that was granted last first. Fails as history_open_read, or with
 * what the visitor returned. */
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

/* Of leases that overlap the time that is asked about, only the part inside counts. Those within
 * other leases are left out: the outer one has the devices. */
struct history_row {
    char *key;         /* NULL: leases without a name */
    uint64_t leases;   /* that overlap */
    uint64_t gpu_time; /* nanoseconds; half a device for two hours is one hour */
    uint64_t waited;   /* nanoseconds, of all of them together */
    uint64_t judged;   /* nanoseconds for which it is known whether they were used */
    uint64_t idle;     /* of them: when they were not */
};

struct history_report {
    VECTOR_OF(struct history_row); /* most time first */
    struct history_row total;      /* each lease counts once, however many devices it has */
};

int history_report(struct history *history, const struct history_query *query, enum history_by by,
                   struct history_report *ret_report, struct berth_error *error);
void history_report_finish(struct history_report *report);

/* ---- For programs ---- */

/* Appends the berth.history/1 document. Fails as history_each; the text may hold a part then. */
int history_write_json(struct history *history, const struct history_query *query,
                       enum json_layout layout, struct text *out, struct berth_error *error);
/* Its beginning, one lease and its end, for documents that are too long to be held. */
void history_json_begin(struct json *json);
void history_json_lease(struct json *json, const struct history_lease *lease, int64_t now);
void history_json_end(struct json *json);
/* The same document of no history at all. */
void history_write_json_empty(enum json_layout layout, struct text *out);

/* Appends the berth.report/1 document. */
void history_write_report_json(const struct history_report *report, enum history_by by,
                               enum json_layout layout, struct text *out);

#endif
