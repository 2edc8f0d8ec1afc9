/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/request_cache.h"
#include "daemon/leases/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "codec/request_tags.h"

enum { SPARE_MAX = 32 };

static void append_number(struct text *out, uint64_t number)
{
    text_append_bytes(out, &number, sizeof(number));
}

/* Writes the key. Two requests share an entry if their keys are equal. */
static void write_key(const struct request *request, const struct requester *requester,
                      struct text *out)
{
    const struct device_id *id;

    text_clear(out);
    append_number(out, requester->uid);
    append_number(out, requester->parent);
    append_number(out, requester->group_count);
    for (size_t i = 0; i < requester->group_count; i++)
        append_number(out, requester->groups[i]);
    append_number(out, requester->mask == NULL ? UINT64_MAX : requester->mask->count);
    if (requester->mask != NULL) {
        vector_for_each (id, requester->mask)
            append_number(out, (uint64_t)id->vendor << 60 ^ (uint64_t)id->index << 32 ^ id->mig);
    }
    tagged_write(&request_tagged, TAGGED_ALL_TYPES, request, out);
}

static struct cached_request *find_cached(struct pool *pool, uint64_t hash, const struct text *key)
{
    for (struct id_link *link = id_map_find(&pool->requests, hash); link != NULL;
         link = link->next) {
        struct cached_request *cached = container_of(link, struct cached_request, by_hash);

        if (link->id == hash && cached->key.length == key->length &&
            memcmp(cached->key.bytes, key->bytes, key->length) == 0)
            return cached;
    }
    return NULL;
}

static void add_reference(struct pool *pool, struct cached_request *cached)
{
    if (cached->users++ > 0)
        return;
    list_remove(&cached->in_spare);
    pool->unused_request_count--;
}

static void close_request(struct pool *pool, struct cached_request *cached)
{
    if (list_is_linked(&cached->in_spare))
        pool->unused_request_count--;
    list_remove(&cached->in_spare);
    id_map_remove(&pool->requests, &cached->by_hash);
    pool->request_count--;
    engine_request_close(pool->engine, cached->request);
    text_finish(&cached->key);
    free(cached);
}

static int open_new(struct pool *pool, uint64_t hash, const struct request *request,
                    const struct requester *requester, struct cached_request **ret_cached,
                    struct berth_error *error)
{
    struct party party = {
        .uid = requester->uid,
        .groups = requester->groups,
        .group_count = requester->group_count,
        .mask = requester->mask,
        .parent = requester->parent,
    };
    struct cached_request *cached = calloc(1, sizeof(*cached));
    int code;

    if (cached == NULL)
        return error_set_memory(error);
    code = engine_request_open(pool->engine, request, &party, NULL, &cached->request, error);
    if (code < 0) {
        free(cached);
        return code;
    }
    cached->key = pool->key;
    pool->key = (struct text){0};
    cached->by_hash.id = hash;
    cached->users = 1;
    id_map_reserve(&pool->requests, ++pool->request_count);
    id_map_add(&pool->requests, &cached->by_hash);
    *ret_cached = cached;
    return 0;
}

int request_cache_open(struct pool *pool, const struct request *request,
                       const struct requester *requester, struct cached_request **ret_cached,
                       struct berth_error *error)
{
    struct request alike = *request;
    struct cached_request *cached;
    uint64_t hash;

    alike.wait = (struct optional_number){0};
    alike.nonblock = false;
    write_key(&alike, requester, &pool->key);
    if (text_failed(&pool->key))
        return error_set_memory(error);
    hash = hash_bytes(pool->key.bytes, pool->key.length);
    cached = find_cached(pool, hash, &pool->key);
    if (cached == NULL)
        return open_new(pool, hash, &alike, requester, ret_cached, error);
    add_reference(pool, cached);
    *ret_cached = cached;
    return 0;
}

void request_cache_release(struct pool *pool, struct cached_request *cached)
{
    if (cached == NULL || --cached->users > 0)
        return;
    list_append(&pool->unused_requests, &cached->in_spare);
    if (++pool->unused_request_count > SPARE_MAX)
        close_request(pool, container_of(list_first(&pool->unused_requests), struct cached_request,
                                         in_spare));
}

void request_cache_drop_unused(struct pool *pool)
{
    list_for_each (link, &pool->unused_requests)
        close_request(pool, container_of(link, struct cached_request, in_spare));
}
