/* SPDX-License-Identifier: Apache-2.0 */
#include "libberth/local/compiled_requests.h"

#include <stdlib.h>

#include "base/error.h"
#include "libberth/local/local_pool.h"

enum { FIRST_PLACES = 8 };

struct request_core *request_core_create(void)
{
    struct request_core *core = calloc(1, sizeof(*core));

    if (core != NULL)
        atomic_init(&core->references, 1);
    return core;
}

void request_core_release(struct request_core *core)
{
    if (atomic_fetch_sub(&core->references, 1) == 1)
        free(core);
}

static size_t place_of(const struct compiled_table *table, const struct request_core *core)
{
    /* Allocations lie at multiples of 16; what is above is as good as random. */
    uintptr_t hash = (uintptr_t)core >> 4;
    size_t place = (hash ^ hash >> 8) & (table->place_count - 1);

    while (table->places[place].core != NULL && table->places[place].core != core)
        place = (place + 1) & (table->place_count - 1);
    return place;
}

static void forget(struct berth_pool *pool, const struct compiled *compiled)
{
    if (pool->swift.core == compiled->core)
        pool->swift = (struct compiled){0};
    engine_request_close(pool->engine, compiled->request);
    request_core_release(compiled->core);
}

/* Moves what has not ended to a table with room for one more. */
static int make_place(struct berth_pool *pool)
{
    struct compiled_table *table = &pool->compiled;
    struct compiled_table larger = {.place_count = FIRST_PLACES};
    size_t live = 0;

    if (table->used + 1 <= table->place_count / 4 * 3)
        return 0;
    for (size_t i = 0; i < table->place_count; i++)
        live += table->places[i].core != NULL && !atomic_load(&table->places[i].core->ended);
    while (live + 1 > larger.place_count / 2)
        larger.place_count *= 2;
    larger.places = calloc(larger.place_count, sizeof(*larger.places));
    if (larger.places == NULL)
        return BERTH_ERROR_MEMORY;
    for (size_t i = 0; i < table->place_count; i++) {
        struct compiled *compiled = &table->places[i];

        if (compiled->core == NULL)
            continue;
        if (larger.used < live && !atomic_load(&compiled->core->ended)) {
            larger.places[place_of(&larger, compiled->core)] = *compiled;
            larger.used++;
        } else {
            forget(pool, compiled);
        }
    }
    free(table->places);
    *table = larger;
    return 0;
}

/* What the request says, for this door. */
static int resolve(const struct berth_request *request, struct request *ret_what,
                   struct berth_error *error)
{
    int code = 0;

    if (request == NULL)
        request_init(ret_what);
    else
        code = request_options_resolve(&request->options, ret_what, error);
    if (code == 0 && ret_what->scheduling == SCHEDULING_UNSAID)
        ret_what->scheduling = SCHEDULING_GANG;
    return code;
}

/* Opens a copy of the request in which the ids that are only an index have their vendor: the
 * program's request may be used with another pool too. */
static int open_resolved(struct berth_pool *pool, const struct request *what,
                         struct engine_request **ret_request, struct berth_error *error)
{
    struct device_id_list present = {0};
    struct request copy = {0};
    int code = device_list_ids(&engine_machine(pool->engine)->devices, &present);

    if (code == 0)
        code = request_copy(&copy, what);
    if (code < 0)
        error_set_memory(error);
    if (code == 0)
        code = request_resolve_devices(&copy, &present, error);
    if (code == 0)
        code = engine_request_open(pool->engine, &copy, &(struct party){0}, NULL, ret_request,
                                   error);
    request_finish(&copy);
    vector_finish(&present);
    return code;
}

static int open_request(struct berth_pool *pool, const struct berth_request *request,
                        struct engine_request **ret_request, struct berth_error *error)
{
    struct request what;
    int code = resolve(request, &what, error);

    if (code < 0)
        return code;
    if (request_is_unresolved(&what))
        code = open_resolved(pool, &what, ret_request, error);
    else
        code =
            engine_request_open(pool->engine, &what, &(struct party){0}, NULL, ret_request, error);
    if (code == 0 && engine_request_claims(*ret_request) > 1) {
        engine_request_close(pool->engine, *ret_request);
        code = error_set(error, BERTH_ERROR_INVALID,
                         "scheduling: wanted a claim for each replica of a best-effort request, "
                         "found %u replicas in one",
                         what.replicas);
    }
    return code;
}

/* Compiles a request that the table does not hold yet. */
static int compile(struct berth_pool *pool, const struct berth_request *request,
                   struct request_core *core, struct compiled *ret_compiled,
                   struct berth_error *error)
{
    struct compiled compiled = {.core = core};
    int code = open_request(pool, request, &compiled.request, error);

    if (code < 0)
        return code;
    if (make_place(pool) < 0) {
        engine_request_close(pool->engine, compiled.request);
        return error_set_memory(error);
    }
    atomic_fetch_add(&core->references, 1);
    pool->compiled.places[place_of(&pool->compiled, core)] = compiled;
    pool->compiled.used++;
    *ret_compiled = compiled;
    return 0;
}

int compiled_add(struct berth_pool *pool, const struct berth_request *request,
                 struct engine_request **ret_compiled, struct berth_error *error)
{
    struct request_core *core = request == NULL ? &pool->whole_device : request->core;
    struct compiled compiled = {0};
    int code = 0;

    if (pool->compiled.place_count > 0)
        compiled = pool->compiled.places[place_of(&pool->compiled, core)];
    if (compiled.core == NULL)
        code = compile(pool, request, core, &compiled, error);
    if (code < 0)
        return code;
    if (!core->has_limit)
        pool->swift = compiled;
    *ret_compiled = compiled.request;
    return 0;
}

void compiled_finish(struct berth_pool *pool)
{
    for (size_t i = 0; i < pool->compiled.place_count; i++) {
        if (pool->compiled.places[i].core != NULL)
            forget(pool, &pool->compiled.places[i]);
    }
    free(pool->compiled.places);
    pool->compiled = (struct compiled_table){0};
}
