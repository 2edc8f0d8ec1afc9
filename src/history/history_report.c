/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports: sums over leases.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/id_map.h"
#include "base/list.h"
#include "base/text/text.h"
#include "history/history_internal.h"
#include "model/request.h"

/* A row under construction. */
struct sum {
    struct id_link by_hash;
    struct history_row row;
    uint64_t counted; /* number of the last lease that was added: a lease may have a device twice */
};

struct sums {
    enum history_by by;
    int64_t since;
    int64_t until;
    int64_t now;
    uint64_t leases; /* leases so far */
    struct id_map by_hash;
    struct {
        VECTOR_OF(struct sum *);
    } all;
    struct history_row total;
};

/* The part of a lease that counts. */
struct lease_part {
    uint64_t leases;
    uint64_t time; /* of one whole device */
    uint64_t waited;
    uint64_t judged;
    uint64_t idle;
};

static uint64_t time_inside(const struct sums *sums, int64_t from, int64_t to)
{
    if (from < sums->since)
        from = sums->since;
    if (to > sums->until)
        to = sums->until;
    return to > from ? (uint64_t)to - (uint64_t)from : 0;
}

static uint64_t share_of(uint64_t amount, uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (uint64_t)((unsigned __int128)amount * part / whole);
}

static struct lease_part part_of(const struct sums *sums, const struct history_lease *lease)
{
    int64_t last = history_lease_last(lease, sums->now);
    uint64_t held = last > lease->granted ? (uint64_t)last - (uint64_t)lease->granted : 0;
    uint64_t inside = time_inside(sums, lease->granted, last);
    uint64_t time = inside;
    uint64_t waited = time_inside(sums, lease->claimed, lease->granted);

    /* The times of a sum are spread evenly from the first to the last of its leases. */
    if (history_lease_is_sum(lease)) {
        time = inside == held ? lease->held_time : share_of(lease->held_time, inside, held);
        waited = inside == held ? lease->waited_time : share_of(lease->waited_time, inside, held);
    }
    /* The history has only the length of the idle time: spread it evenly over the lease. */
    return (struct lease_part){
        .leases = lease->leases == 0 ? 1 : lease->leases,
        .time = share_of(time, lease->share, SHARE_WHOLE),
        .waited = waited,
        .judged = share_of(lease->judged_time, inside, held),
        .idle = share_of(lease->idle_time, inside, held),
    };
}

static void add_to(uint64_t *sum, uint64_t amount)
{
    if (__builtin_add_overflow(*sum, amount, sum))
        *sum = UINT64_MAX;
}

/* Adds the figures of a lease that count once for each row. */
static void add_lease(struct history_row *row, const struct lease_part *part)
{
    add_to(&row->leases, part->leases);
    add_to(&row->waited, part->waited);
    add_to(&row->judged, part->judged);
    add_to(&row->idle, part->idle);
}

static int add_sum(struct sums *sums, uint64_t hash, const char *key, struct sum **ret_sum,
                   struct berth_error *error)
{
    struct sum *sum = calloc(1, sizeof(*sum));
    struct sum **place = sum == NULL ? NULL : vector_append(&sums->all);

    if (place == NULL) {
        free(sum);
        return error_set_memory(error);
    }
    *place = sum;
    if (key != NULL && (sum->row.key = strdup(key)) == NULL)
        return error_set_memory(error);
    sum->by_hash.id = hash;
    id_map_reserve(&sums->by_hash, sums->all.count);
    id_map_add(&sums->by_hash, &sum->by_hash);
    *ret_sum = sum;
    return 0;
}

static int find_sum(struct sums *sums, const char *key, struct sum **ret_sum,
                    struct berth_error *error)
{
    uint64_t hash = key == NULL ? 0 : hash_mix(hash_bytes(key, strlen(key)));
    struct id_link *link = id_map_find(&sums->by_hash, hash);

    for (; link != NULL; link = link->next) {
        struct sum *sum = container_of(link, struct sum, by_hash);

        if (link->id == hash && text_equals(sum->row.key, key)) {
            *ret_sum = sum;
            return 0;
        }
    }
    return add_sum(sums, hash, key, ret_sum, error);
}

static int count_device(struct sums *sums, const char *key, const struct lease_part *part,
                        struct berth_error *error)
{
    struct sum *sum = NULL;
    int code = find_sum(sums, key, &sum, error);

    if (sum == NULL)
        return code;
    add_to(&sum->row.gpu_time, part->time);
    if (sum->counted != sums->leases)
        add_lease(&sum->row, part);
    sum->counted = sums->leases;
    return 0;
}

static int count_lease(void *context, const struct history_lease *lease, struct berth_error *error)
{
    struct sums *sums = context;
    struct lease_part part = part_of(sums, lease);
    const char *key = sums->by == HISTORY_BY_USER ? lease->user : lease->name;
    const struct device_id *id;
    int code = 0;

    if (lease->parent != 0)
        return 0;
    sums->leases++;
    add_lease(&sums->total, &part);
    vector_for_each (id, &lease->devices) {
        add_to(&sums->total.gpu_time, part.time);
        if (code == 0)
            code =
                count_device(sums, sums->by == HISTORY_BY_DEVICE ? device_id_format(*id).text : key,
                             &part, error);
    }
    return code;
}

static int compare_rows(const void *one, const void *other)
{
    const struct history_row *a = one;
    const struct history_row *b = other;

    if (a->gpu_time != b->gpu_time)
        return a->gpu_time < b->gpu_time ? 1 : -1;
    if (a->key == NULL || b->key == NULL)
        return (a->key == NULL) - (b->key == NULL);
    return strcmp(a->key, b->key);
}

/* Moves the rows into the report and sorts them. */
static int make_report(struct sums *sums, struct history_report *ret_report,
                       struct berth_error *error)
{
    struct history_report report = {.total = sums->total};
    struct sum **sum;

    if (vector_reserve(&report, sums->all.count) < 0)
        return error_set_memory(error);
    vector_for_each (sum, &sums->all) {
        report.items[report.count++] = (*sum)->row;
        (*sum)->row.key = NULL;
    }
    if (report.count > 1)
        qsort(report.items, report.count, sizeof(*report.items), compare_rows);
    *ret_report = report;
    return 0;
}

static void finish_sums(struct sums *sums)
{
    struct sum **sum;

    vector_for_each (sum, &sums->all) {
        free((*sum)->row.key);
        free(*sum);
    }
    vector_finish(&sums->all);
    id_map_finish(&sums->by_hash);
}

int history_report(struct history *history, const struct history_query *query, enum history_by by,
                   struct history_report *ret_report, struct berth_error *error)
{
    struct history_query all = *query;
    struct sums sums = {
        .by = by,
        .since = query->since,
        .until = query->until == 0 ? INT64_MAX : query->until,
        .now = history_query_now(query),
    };
    int code;

    if (id_map_init(&sums.by_hash) < 0)
        return error_set_memory(error);
    all.max = 0;
    all.now = sums.now;
    code = history_each(history, &all, count_lease, &sums, error);
    if (code == 0)
        code = make_report(&sums, ret_report, error);
    finish_sums(&sums);
    return code;
}

void history_report_finish(struct history_report *report)
{
    struct history_row *row;

    vector_for_each (row, report)
        free(row->key);
    vector_finish(report);
    report->total = (struct history_row){0};
}
