/* SPDX-License-Identifier: Apache-2.0 */
#include "record/short_leases.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/list.h"
#include "base/text/quantity.h"
#include "base/text/text.h"
#include "model/request.h"

/* The short leases of one user within a minute. */
struct short_leases_user {
    struct id_link by_uid;
    int64_t minute;
    uint32_t alone; /* leases of the minute that were recorded on their own */
    struct {
        VECTOR_OF(struct short_lease_sum);
    } sums; /* also of earlier minutes, until they are written */
};

int short_leases_init(struct short_leases *all, uint32_t alone_max, size_t bytes_max,
                      struct berth_error *error)
{
    *all = (struct short_leases){.alone_max = alone_max, .bytes_max = bytes_max};
    return id_map_init(&all->by_uid) < 0 ? error_set_memory(error) : 0;
}

static void free_user(struct short_leases_user *user)
{
    struct short_lease_sum *sum;

    vector_for_each (sum, &user->sums)
        pool_info_finish_ended(&sum->first);
    vector_finish(&user->sums);
    free(user);
}

void short_leases_finish(struct short_leases *all)
{
    struct short_leases_user **user;

    vector_for_each (user, &all->users)
        free_user(*user);
    vector_finish(&all->users);
    id_map_finish(&all->by_uid);
}

/* ---- Adding ---- */

static size_t size_of_lease(const struct lease_info *lease)
{
    return sizeof(struct short_lease_sum) + sizeof(*lease) +
           (lease->name == NULL ? 0 : strlen(lease->name)) +
           (lease->command == NULL ? 0 : strlen(lease->command)) +
           lease->devices.count * sizeof(*lease->devices.items);
}

static struct short_leases_user *find_user(struct short_leases *all, uint32_t uid)
{
    struct id_link *link = id_map_find(&all->by_uid, uid);
    struct short_leases_user *user;
    struct short_leases_user **place;

    if (link != NULL)
        return container_of(link, struct short_leases_user, by_uid);
    user = calloc(1, sizeof(*user));
    place = user == NULL ? NULL : vector_append(&all->users);
    if (place == NULL) {
        free(user);
        return NULL;
    }
    *place = user;
    user->by_uid.id = uid;
    id_map_reserve(&all->by_uid, all->users.count);
    id_map_add(&all->by_uid, &user->by_uid);
    return user;
}

static bool has_device(const struct device_id_list *list, struct device_id id)
{
    const struct device_id *found;

    vector_for_each (found, list) {
        if (device_id_equals(*found, id))
            return true;
    }
    return false;
}

static bool is_alike(const struct short_lease_sum *sum, const struct lease_info *lease)
{
    const struct lease_info *first = sum->first.lease;

    return !sum->is_rest && (first->parent != 0) == (lease->parent != 0) &&
           first->share == lease->share && first->sharing == lease->sharing &&
           text_equals(first->name, lease->name) &&
           device_id_list_equals(&first->devices, &lease->devices);
}

/* Finds the sum for this lease; NULL: there is none yet. Returns in *ret_rest whether the lease
 * belongs to the rest. */
static struct short_lease_sum *find_sum(struct short_leases_user *user,
                                        const struct lease_info *lease, bool *ret_rest)
{
    struct short_lease_sum *rest = NULL;
    struct short_lease_sum *sum;
    size_t count = 0;

    vector_for_each (sum, &user->sums) {
        if (sum->minute != user->minute)
            continue;
        if (is_alike(sum, lease))
            return sum;
        if (sum->is_rest && (sum->first.lease->parent != 0) == (lease->parent != 0))
            rest = sum;
        count += !sum->is_rest;
    }
    *ret_rest = count >= SHORT_LEASES_SUMS;
    return *ret_rest ? rest : NULL;
}

static uint64_t time_between(int64_t from, int64_t to)
{
    return to > from ? (uint64_t)to - (uint64_t)from : 0;
}

/* Adds the lease's devices to those of the rest. Without memory they stay unnamed. */
static void add_devices(struct short_leases *all, struct lease_info *rest,
                        const struct lease_info *lease)
{
    const struct device_id *id;

    vector_for_each (id, &lease->devices) {
        struct device_id *added;

        if (has_device(&rest->devices, *id) || rest->devices.count == DEVICE_ID_LIST_MAX)
            continue;
        added = vector_append(&rest->devices);
        if (added == NULL)
            return;
        *added = *id;
        all->bytes += sizeof(*added);
    }
}

static void add_times(struct short_lease_sum *sum, const struct ended_lease *ended)
{
    const struct lease_info *lease = ended->lease;
    uint64_t held = time_between(lease->granted, ended->time);
    uint64_t share = lease->sharing == SHARING_EXCLUSIVE ? SHARE_WHOLE : lease->share;

    sum->leases++;
    sum->held_time += held;
    sum->waited_time += time_between(lease->since, lease->granted);
    sum->device_time +=
        (uint64_t)((unsigned __int128)held * lease->devices.count * share / SHARE_WHOLE);
    sum->ended = ended->time;
    sum->end = ended->end;
    sum->has_changed = true;
}

/* Starts a sum with this lease, and takes over the lease. */
static struct short_lease_sum *start_sum(struct short_leases *all, struct short_leases_user *user,
                                         struct ended_lease *ended, bool is_rest)
{
    size_t size = size_of_lease(ended->lease);
    struct short_lease_sum *sum = NULL;
    struct lease_info *lease = ended->lease;

    if (size <= all->bytes_max - all->bytes)
        sum = vector_append(&user->sums);
    if (sum == NULL)
        return NULL;
    all->bytes += size;
    if (is_rest) {
        free(lease->name);
        free(lease->command);
        lease->name = lease->command = NULL;
    }
    *sum = (struct short_lease_sum){.first = *ended, .minute = user->minute, .is_rest = is_rest};
    *ended = (struct ended_lease){0};
    return sum;
}

bool short_leases_add(struct short_leases *all, struct ended_lease *ended)
{
    const struct lease_info *lease = ended->lease;
    int64_t minute = ended->time / DURATION_MINUTE;
    struct short_leases_user *user;
    struct short_lease_sum *sum;
    bool is_rest = false;

    if (ended->time - lease->granted >= DURATION_SECOND)
        return false;
    user = find_user(all, lease->uid);
    if (user == NULL)
        return false;
    if (user->minute != minute) {
        user->minute = minute;
        user->alone = 0;
    }
    if (user->alone < all->alone_max) {
        user->alone++;
        return false;
    }
    sum = find_sum(user, lease, &is_rest);
    if (sum == NULL) {
        sum = start_sum(all, user, ended, is_rest);
        if (sum == NULL)
            return false;
        add_times(sum, &sum->first);
        return true;
    }
    if (sum->is_rest)
        add_devices(all, sum->first.lease, lease);
    sum->first.lease->judged_time += lease->judged_time;
    sum->first.lease->idle_time += lease->idle_time;
    add_times(sum, ended);
    pool_info_finish_ended(ended);
    return true;
}

/* ---- Writing ---- */

int short_leases_each_changed(const struct short_leases *all, short_leases_visitor *visitor,
                              void *context, struct berth_error *error)
{
    struct short_leases_user *const *user;
    const struct short_lease_sum *sum;
    int code = 0;

    vector_for_each (user, &all->users) {
        vector_for_each (sum, &(*user)->sums) {
            if (sum->has_changed && code == 0)
                code = visitor(context, sum, error);
        }
    }
    return code;
}

uint32_t short_leases_share(const struct short_lease_sum *sum)
{
    const struct lease_info *lease = sum->first.lease;
    unsigned __int128 whole = (unsigned __int128)sum->held_time * lease->devices.count;
    unsigned __int128 share;

    if (!sum->is_rest || whole == 0)
        return lease->sharing == SHARING_EXCLUSIVE ? SHARE_WHOLE : lease->share;
    share = ((unsigned __int128)sum->device_time * SHARE_WHOLE + whole / 2) / whole;
    return share > SHARE_WHOLE ? SHARE_WHOLE : (uint32_t)share;
}

/* Forgets the user's sums of earlier minutes. */
static void forget_sums(struct short_leases *all, struct short_leases_user *user, int64_t minute)
{
    size_t kept = 0;

    for (size_t i = 0; i < user->sums.count; i++) {
        struct short_lease_sum *sum = &user->sums.items[i];

        sum->has_changed = false;
        if (sum->minute == user->minute && sum->minute >= minute) {
            user->sums.items[kept++] = *sum;
            all->bytes += size_of_lease(sum->first.lease);
        } else {
            pool_info_finish_ended(&sum->first);
        }
    }
    user->sums.count = kept;
}

void short_leases_written(struct short_leases *all, int64_t now)
{
    int64_t minute = now / DURATION_MINUTE;
    size_t kept = 0;

    all->bytes = 0;
    for (size_t i = 0; i < all->users.count; i++) {
        struct short_leases_user *user = all->users.items[i];

        forget_sums(all, user, minute - 1);
        if (user->minute >= minute - 1) {
            all->users.items[kept++] = user;
        } else {
            id_map_remove(&all->by_uid, &user->by_uid);
            free_user(user);
        }
    }
    all->users.count = kept;
}
