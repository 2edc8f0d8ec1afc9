/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/asked.h"

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

/* What makes two askings the same, as bytes. */
static void write_key(const struct request *request, const struct asker *asker, struct text *out)
{
    const struct device_id *id;

    text_clear(out);
    append_number(out, asker->uid);
    append_number(out, asker->parent);
    append_number(out, asker->group_count);
    for (size_t i = 0; i < asker->group_count; i++)
        append_number(out, asker->groups[i]);
    append_number(out, asker->mask == NULL ? UINT64_MAX : asker->mask->count);
    if (asker->mask != NULL) {
        vector_for_each (id, asker->mask)
            append_number(out, (uint64_t)id->vendor << 60 ^ (uint64_t)id->index << 32 ^ id->mig);
    }
    tagged_write(&request_tagged, TAGGED_ALL_TYPES, request, out);
}

static struct asked *find(struct pool *pool, uint64_t hash, const struct text *key)
{
    for (struct id_link *link = id_map_find(&pool->asked, hash); link != NULL; link = link->next) {
        struct asked *asked = container_of(link, struct asked, by_hash);

        if (link->id == hash && asked->key.length == key->length &&
            memcmp(asked->key.bytes, key->bytes, key->length) == 0)
            return asked;
    }
    return NULL;
}

static void use(struct pool *pool, struct asked *asked)
{
    if (asked->users++ > 0)
        return;
    list_remove(&asked->in_spare);
    pool->spare_asked_count--;
}

static void forget(struct pool *pool, struct asked *asked)
{
    if (list_is_linked(&asked->in_spare))
        pool->spare_asked_count--;
    list_remove(&asked->in_spare);
    id_map_remove(&pool->asked, &asked->by_hash);
    engine_request_close(pool->engine, asked->request);
    text_finish(&asked->key);
    free(asked);
}

static int open_new(struct pool *pool, uint64_t hash, const struct request *request,
                    const struct asker *asker, struct asked **ret_asked, struct berth_error *error)
{
    struct party party = {
        .uid = asker->uid,
        .groups = asker->groups,
        .group_count = asker->group_count,
        .mask = asker->mask,
        .parent = asker->parent,
    };
    struct asked *asked = calloc(1, sizeof(*asked));
    int code;

    if (asked == NULL)
        return error_set_memory(error);
    code = engine_request_open(pool->engine, request, &party, NULL, &asked->request, error);
    if (code < 0) {
        free(asked);
        return code;
    }
    asked->key = pool->key;
    pool->key = (struct text){0};
    asked->by_hash.id = hash;
    asked->users = 1;
    id_map_add(&pool->asked, &asked->by_hash);
    *ret_asked = asked;
    return 0;
}

int asked_open(struct pool *pool, const struct request *request, const struct asker *asker,
               struct asked **ret_asked, struct berth_error *error)
{
    struct request alike = *request;
    struct asked *asked;
    uint64_t hash;

    alike.wait = (struct optional_number){0};
    alike.nonblock = false;
    write_key(&alike, asker, &pool->key);
    if (text_failed(&pool->key))
        return error_set_memory(error);
    hash = hash_bytes(pool->key.bytes, pool->key.length);
    asked = find(pool, hash, &pool->key);
    if (asked == NULL)
        return open_new(pool, hash, &alike, asker, ret_asked, error);
    use(pool, asked);
    *ret_asked = asked;
    return 0;
}

void asked_release(struct pool *pool, struct asked *asked)
{
    if (asked == NULL || --asked->users > 0)
        return;
    list_append(&pool->spare_asked, &asked->in_spare);
    if (++pool->spare_asked_count > SPARE_MAX)
        forget(pool, container_of(list_first(&pool->spare_asked), struct asked, in_spare));
}

void asked_forget_spare(struct pool *pool)
{
    list_for_each (link, &pool->spare_asked)
        forget(pool, container_of(link, struct asked, in_spare));
}
