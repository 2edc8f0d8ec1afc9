/* SPDX-License-Identifier: Apache-2.0 */
#include "libberth/local/compiled_requests.h"

#include <stdlib.h>

#include "base/error.h"
#include "libberth/local/local_pool.h"

enum { INITIAL_ENTRY_COUNT = 8 };

struct request_core *local_request_core_create(void)
{
    struct request_core *core = calloc(1, sizeof(*core));

    if (core != NULL)
        atomic_init(&core->references, 1);
    return core;
}

void local_request_core_release(struct request_core *core)
{
    if (atomic_fetch_sub(&core->references, 1) == 1)
        free(core);
}

static size_t find_entry(const struct compiled_table *table, const struct request_core *core)
{
    /* Addresses of allocations are multiples of 16; the higher bits are nearly random. */
    uintptr_t hash = (uintptr_t)core >> 4;
    size_t index = (hash ^ hash >> 8) & (table->entry_count - 1);

    while (table->entries[index].core != NULL && table->entries[index].core != core)
        index = (index + 1) & (table->entry_count - 1);
    return index;
}

static void close_compiled(struct berth_pool *pool, const struct compiled_request *compiled)
{
    if (pool->last_compiled.core == compiled->core)
        pool->last_compiled = (struct compiled_request){0};
    engine_request_close(pool->engine, compiled->request);
    local_request_core_release(compiled->core);
}

/* Moves the live entries to a table with room for one more. */
static int make_room(struct berth_pool *pool)
{
    struct compiled_table *table = &pool->compiled;
    struct compiled_table larger = {.entry_count = INITIAL_ENTRY_COUNT};
    size_t live = 0;

    if (table->used + 1 <= table->entry_count / 4 * 3)
        return 0;
    for (size_t i = 0; i < table->entry_count; i++)
        live += table->entries[i].core != NULL && !atomic_load(&table->entries[i].core->ended);
    while (live + 1 > larger.entry_count / 2)
        larger.entry_count *= 2;
    larger.entries = calloc(larger.entry_count, sizeof(*larger.entries));
    if (larger.entries == NULL)
        return BERTH_ERROR_MEMORY;
    for (size_t i = 0; i < table->entry_count; i++) {
        struct compiled_request *compiled = &table->entries[i];

        if (compiled->core == NULL)
            continue;
        if (larger.used < live && !atomic_load(&compiled->core->ended)) {
            larger.entries[find_entry(&larger, compiled->core)] = *compiled;
            larger.used++;
        } else {
            close_compiled(pool, compiled);
        }
    }
    free(table->entries);
    *table = larger;
    return 0;
}

/* Copies the request's properties, with this pool's default for the scheduling. */
static int resolve_request(const struct berth_request *request, struct request *ret_what,
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

/* Opens a copy of the request in which each id that is only an index gets a vendor. The program's
 * request stays unchanged, because another pool may use it too. */
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
        code =
            engine_request_open(pool->engine, &copy, &(struct party){0}, NULL, ret_request, error);
    request_finish(&copy);
    vector_finish(&present);
    return code;
}

static int open_request(struct berth_pool *pool, const struct berth_request *request,
                        struct engine_request **ret_request, struct berth_error *error)
{
    struct request what;
    int code = resolve_request(request, &what, error);

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
                         "scheduling: expected a claim for each replica of a best-effort request, "
                         "got %u replicas in one",
                         what.replicas);
    }
    return code;
}

/* Compiles a request that the table does not hold yet. */
static int compile_request(struct berth_pool *pool, const struct berth_request *request,
                           struct request_core *core, struct compiled_request *ret_compiled,
                           struct berth_error *error)
{
    struct compiled_request compiled = {.core = core};
    int code = open_request(pool, request, &compiled.request, error);

    if (code < 0)
        return code;
    if (make_room(pool) < 0) {
        engine_request_close(pool->engine, compiled.request);
        return error_set_memory(error);
    }
    atomic_fetch_add(&core->references, 1);
    pool->compiled.entries[find_entry(&pool->compiled, core)] = compiled;
    pool->compiled.used++;
    *ret_compiled = compiled;
    return 0;
}

int compiled_requests_add(struct berth_pool *pool, const struct berth_request *request,
                          struct engine_request **ret_compiled, struct berth_error *error)
{
    struct request_core *core = request == NULL ? &pool->whole_device : request->core;
    struct compiled_request compiled = {0};
    int code = 0;

    if (pool->compiled.entry_count > 0)
        compiled = pool->compiled.entries[find_entry(&pool->compiled, core)];
    if (compiled.core == NULL)
        code = compile_request(pool, request, core, &compiled, error);
    if (code < 0)
        return code;
    if (!core->has_limit)
        pool->last_compiled = compiled;
    *ret_compiled = compiled.request;
    return 0;
}

void compiled_requests_finish(struct berth_pool *pool)
{
    for (size_t i = 0; i < pool->compiled.entry_count; i++) {
        if (pool->compiled.entries[i].core != NULL)
            close_compiled(pool, &pool->compiled.entries[i]);
    }
    free(pool->compiled.entries);
    pool->compiled = (struct compiled_table){0};
}
