/* SPDX-License-Identifier: Apache-2.0
 *
 * Families: requests that differ only in time limit, class and descriptive members. If one request
 * does not fit, no request of the family with the same or a longer time limit fits. So a walk
 * through thousands of claims has to place only a few.
 */
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/hash.h"
#include "engine/internal.h"

static uint64_t hash_request(const struct engine_request *request)
{
    const struct request *what = &request->what;
    uint64_t facts[] = {
        request->uid,       request->parent,  request->group_count,    what->gpus.min,
        what->gpus.max,     what->replicas,   what->sharing,           request->share,
        what->memory.value, what->cpus.value, what->host_memory.value, what->min_free.value,
        what->scheduling,
    };

    uint64_t hash = 0;

    for (size_t i = 0; i < COUNT(facts); i++)
        hash = hash_mix(hash ^ facts[i]);
    return hash;
}

/* Returns the request without the members that do not influence its placement. */
static struct request without_times(const struct request *what)
{
    struct request request = *what;

    request.time = request.wait = (struct optional_number){0};
    request.priority = PRIORITY_UNSAID;
    request.nonblock = request.or_cpu = false;
    request.name = NULL;
    return request;
}

static bool is_same_family(const struct engine_request *one, const struct engine_request *other)
{
    struct request first = without_times(&one->what);
    struct request second = without_times(&other->what);

    return one->scope == other->scope && one->parent == other->parent && one->uid == other->uid &&
           one->policy == other->policy && one->default_policy == other->default_policy &&
           one->share == other->share && one->group_count == other->group_count &&
           (one->group_count == 0 ||
            memcmp(one->groups, other->groups, one->group_count * sizeof(*one->groups)) == 0) &&
           one->has_mask == other->has_mask && device_id_list_equals(&one->mask, &other->mask) &&
           request_equals(&first, &second);
}

/* Returns the family with this hash that the request belongs to; NULL: there is none yet. */
static struct request_family *find_family(const struct engine_request *request, uint64_t number)
{
    struct id_link *link = id_map_find(&request->engine->families, number);

    for (; link != NULL; link = link->next) {
        struct request_family *family = (struct request_family *)(void *)link;

        if (link->id == number &&
            is_same_family(request, container_of(list_first(&family->members),
                                                 struct engine_request, in_family)))
            return family;
    }
    return NULL;
}

int request_family_join(struct engine_request *request)
{
    struct engine *engine = request->engine;
    uint64_t number = hash_request(request);
    struct request_family *family = find_family(request, number);

    if (family == NULL) {
        family = calloc(1, sizeof(*family));
        if (family == NULL)
            return BERTH_ERROR_MEMORY;
        family->link.id = number;
        list_init(&family->members);
        id_map_reserve(&engine->families, ++engine->family_count);
        id_map_add(&engine->families, &family->link);
    }
    list_append(&family->members, &request->in_family);
    request->family = family;
    return 0;
}

const struct engine_request *request_family_other(const struct engine_request *request)
{
    const struct engine_request *first =
        container_of(list_first(&request->family->members), struct engine_request, in_family);

    return first != request ? first : NULL;
}

void request_family_leave(struct engine_request *request)
{
    struct request_family *family = request->family;

    if (family == NULL)
        return;
    list_remove(&request->in_family);
    request->family = NULL;
    if (!list_is_empty(&family->members))
        return;
    id_map_remove(&request->engine->families, &family->link);
    request->engine->family_count--;
    free(family);
}
