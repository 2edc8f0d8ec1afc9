/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/placement/expected.h"

#include <stdlib.h>

#include "base/count.h"

static const struct {
    uint32_t count;
    uint32_t share;
} defaults[] = {
    {1, SHARE_WHOLE / 8}, {1, SHARE_WHOLE / 4}, {1, SHARE_WHOLE / 2}, {1, SHARE_WHOLE},
    {2, SHARE_WHOLE},     {4, SHARE_WHOLE},     {8, SHARE_WHOLE},
};

void expected_list_finish(struct expected_list *list)
{
    struct expected_request *typical;

    vector_for_each (typical, list) {
        request_finish(&typical->what);
        bitset_finish(&typical->accepts);
    }
    vector_finish(list);
}

int expected_append(struct expected_list *list, const struct request *what, uint32_t weight)
{
    struct expected_request *typical = vector_append(list);

    if (typical == NULL)
        return BERTH_ERROR_MEMORY;
    request_init(&typical->what);
    typical->weight = weight;
    return request_copy(&typical->what, what);
}

int expected_append_defaults(struct expected_list *list)
{
    int code = 0;

    for (size_t i = 0; i < COUNT(defaults) && code == 0; i++) {
        struct request what;

        request_init(&what);
        what.gpus = (struct device_count){.min = defaults[i].count, .max = defaults[i].count};
        if (defaults[i].share < SHARE_WHOLE) {
            what.sharing = SHARING_TIME_SLICE;
            what.share = optional_number_of(defaults[i].share);
        }
        code = expected_append(list, &what, 1);
    }
    return code;
}

/* Finds the slots that fit the request, by permanent facts. */
static int find_accepted(struct expected_request *typical, const struct machine *machine,
                         const struct filter_terms *terms, const struct bitset *gone)
{
    size_t size = gone != NULL ? gone->size : machine->devices.count;

    if (typical->accepts.size < size) {
        bitset_finish(&typical->accepts);
        if (bitset_init(&typical->accepts, size) < 0)
            return BERTH_ERROR_MEMORY;
    }
    bitset_clear(&typical->accepts);
    for (size_t slot = 0; slot < machine->devices.count; slot++) {
        if ((gone == NULL || !bitset_has(gone, slot)) &&
            filter_facts(&typical->what, &machine->devices.items[slot], terms) == FILTER_PASSES)
            bitset_add(&typical->accepts, slot);
    }
    return 0;
}

static struct policy_typical view_of(const struct expected_request *typical,
                                     const struct filter_terms *terms)
{
    const struct request *what = &typical->what;

    return (struct policy_typical){
        .weight = typical->weight,
        .count = what->gpus.max,
        .share = filter_share(what, terms),
        .cpus = what->cpus.known ? what->cpus.value : 0,
        .memory = what->host_memory.known ? what->host_memory.value : 0,
        .accepts = &typical->accepts,
    };
}

int expected_prepare_tables(const struct policy *policy, const struct machine *machine,
                            struct expected_list *list, const struct filter_terms *terms,
                            const struct bitset *gone, void **ret_tables)
{
    struct policy_typical *views = calloc(list->count + 1, sizeof(*views));
    struct policy_environment around = {
        .machine = machine,
        .typical = views,
        .typical_count = list->count,
    };
    int code = views == NULL ? BERTH_ERROR_MEMORY : 0;

    for (size_t i = 0; i < list->count && code == 0; i++) {
        code = find_accepted(&list->items[i], machine, terms, gone);
        if (code == 0)
            views[i] = view_of(&list->items[i], terms);
    }
    if (code == 0)
        code = policy->prepare(policy, &around, ret_tables);
    free(views);
    return code;
}
