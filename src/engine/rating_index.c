/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches the bids of nodes for a request until a node changes. The bids are the leaves of a
 * tournament tree: each inner place has the winner of the two places below it, and the top has the
 * best bid. A decision rates only the nodes that changed since the last decision for the request.
 */
#include <stdlib.h>

#include "engine/internal.h"

/* With fewer nodes, rating all of them is as fast. */
enum { NODES_MIN = 16 };

struct node_index {
    uint64_t seen;     /* number of changes that the bids include */
    size_t leaves;     /* a power of 2 */
    struct bid *bids;  /* by node */
    uint32_t *winners; /* place 1 is the top; places 2i and 2i + 1 are below place i */
};

void rating_index_finish_changes(struct node_changes *changes)
{
    free(changes->nodes);
    free(changes->latest);
    *changes = (struct node_changes){0};
}

void rating_index_note_change(struct node_changes *changes, uint32_t node)
{
    changes->nodes[changes->count % changes->capacity] = node;
    changes->latest[node] = ++changes->count;
}

void rating_index_free(struct node_index *index)
{
    if (index == NULL)
        return;
    free(index->bids);
    free(index->winners);
    free(index);
}

void rating_index_forget_all(struct engine *engine)
{
    list_for_each (link, &engine->root.requests) {
        struct engine_request *request = container_of(link, struct engine_request, in_scope);

        rating_index_free(request->index);
        request->index = NULL;
    }
}

bool rating_index_applies(const struct node_question *question)
{
    const struct engine_request *request = question->request;
    const struct engine *engine = request->engine;
    size_t nodes = engine->search.groups.node_count;

    return request->policy->cacheable &&
           !(request->policy->sees_ends && request->what.time.known) &&
           request->scope == &engine->root && question->legal == NULL && question->usage == NULL &&
           question->avoided == &request->avoided && question->count == request->min &&
           request->min == request->max && engine->settings.index != INDEX_NEVER &&
           (engine->settings.index == INDEX_ALWAYS || nodes >= NODES_MIN);
}

static int start_changes(struct engine *engine)
{
    struct node_changes *changes = &engine->changes;
    size_t nodes = engine->search.groups.node_count;

    if (changes->latest != NULL)
        return 0;
    changes->capacity = nodes * 2;
    changes->nodes = calloc(changes->capacity, sizeof(*changes->nodes));
    changes->latest = calloc(nodes, sizeof(*changes->latest));
    if (changes->nodes == NULL || changes->latest == NULL) {
        rating_index_finish_changes(changes);
        return BERTH_ERROR_MEMORY;
    }
    /* Claims on the fast path note no changes, so requests must leave it. */
    list_for_each (link, &engine->root.requests)
        container_of(link, struct engine_request, in_scope)->fast_path = false;
    return 0;
}

static struct node_index *create_index(size_t nodes)
{
    struct node_index *index = calloc(1, sizeof(*index));

    if (index == NULL)
        return NULL;
    for (index->leaves = 1; index->leaves < nodes; index->leaves *= 2)
        ;
    index->bids = calloc(index->leaves, sizeof(*index->bids));
    index->winners = calloc(index->leaves * 2, sizeof(*index->winners));
    if (index->bids == NULL || index->winners == NULL) {
        rating_index_free(index);
        return NULL;
    }
    for (size_t i = 0; i < index->leaves; i++) {
        index->bids[i].avoided = UINT32_MAX;
        index->winners[index->leaves + i] = (uint32_t)i;
    }
    return index;
}

static uint32_t winner_of(const struct node_index *index, size_t place,
                          const struct policy_question *equals)
{
    uint32_t one = index->winners[2 * place];
    uint32_t other = index->winners[2 * place + 1];

    if (index->bids[other].avoided == UINT32_MAX)
        return one;
    return index->bids[one].avoided != UINT32_MAX &&
                   !node_view_is_better_bid(&index->bids[other], &index->bids[one], equals)
               ? one
               : other;
}

/* Updates the winners above a node after its bid changed, up to the first that this does not
 * affect. */
static void update_winners(struct node_index *index, uint32_t node,
                           const struct policy_question *equals)
{
    for (size_t place = (index->leaves + node) / 2; place > 0; place /= 2) {
        uint32_t before = index->winners[place];
        uint32_t winner = winner_of(index, place, equals);

        index->winners[place] = winner;
        if (winner == before && winner != node)
            break;
    }
}

static void rate_node(struct node_index *index, const struct node_question *question, size_t node)
{
    struct policy_offer offer;

    index->bids[node] = rate_nodes_bid(question, node, &offer);
}

static void rate_all_nodes(struct node_index *index, const struct node_question *question,
                           const struct policy_question *equals)
{
    for (size_t node = 0; node < question->request->engine->search.groups.node_count; node++)
        rate_node(index, question, node);
    for (size_t place = index->leaves; place-- > 1;)
        index->winners[place] = winner_of(index, place, equals);
}

static void rate_changed_nodes(struct node_index *index, const struct node_question *question,
                               const struct policy_question *equals)
{
    const struct node_changes *changes = &question->request->engine->changes;

    for (uint64_t change = index->seen + 1; change <= changes->count; change++) {
        uint32_t node = changes->nodes[(change - 1) % changes->capacity];

        if (changes->latest[node] != change)
            continue; /* it changed again later */
        rate_node(index, question, node);
        update_winners(index, node, equals);
    }
}

int rating_index_find(const struct node_question *question, size_t *ret_node)
{
    /* The index is a cache, so it may change even in a const request. */
    struct engine_request *request = (struct engine_request *)question->request;
    struct engine *engine = request->engine;
    struct policy_question equals = rate_nodes_tie_breaker(request);
    bool is_new = request->index == NULL;
    uint32_t best;

    if (is_new) {
        if (start_changes(engine) < 0)
            return BERTH_ERROR_MEMORY;
        request->index = create_index(engine->search.groups.node_count);
        if (request->index == NULL)
            return BERTH_ERROR_MEMORY;
    }
    if (is_new || engine->changes.count - request->index->seen > engine->changes.capacity)
        rate_all_nodes(request->index, question, &equals);
    else
        rate_changed_nodes(request->index, question, &equals);
    request->index->seen = engine->changes.count;
    best = request->index->winners[1];
    *ret_node = request->index->bids[best].avoided == UINT32_MAX ? SIZE_MAX : best;
    return 0;
}

void rating_index_prepare(struct engine_request *request)
{
    struct engine *engine = request->engine;
    struct node_question question = {
        .request = request,
        .count = request->min,
        .hosts = request->scope->host_usage,
        .avoided = &request->avoided,
    };
    size_t node;

    if (request->policy->rate == NULL || request->replicas > 1 ||
        engine->search.groups.largest > POLICY_NODE_MAX || !rating_index_applies(&question) ||
        policy_tables_find(engine, request->policy, &question.tables) < 0)
        return;
    rating_index_find(&question, &node);
}
