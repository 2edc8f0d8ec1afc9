/* SPDX-License-Identifier: Apache-2.0 */
#include "promises/shrink.h"

#include <stdlib.h>
#include <string.h>

#include "promises/generate.h"

bool history_make(struct history *history, uint64_t seed, size_t steps,
                  const struct search_terms *terms, struct tally *tally, struct verdict *verdict)
{
    struct run *run = need_memory(malloc(sizeof(*run)));
    struct generator generator;
    bool good = true;

    history_init(history, seed, steps);
    generate_plan(&generator, seed, &history->plan);
    run_init(run, &history->plan, tally);
    run->fault_at = terms->fault_at;
    while (good && history->count < steps) {
        struct operation *operation = &history->operations[history->count];

        history->count++;
        generate_operation(&generator, run, (uint32_t)history->count, operation);
        good = run_step(run, operation);
    }
    *verdict = run->verdict;
    run_finish(run);
    free(run);
    return good;
}

/* Runs a history once. Returns whether all is well. */
static bool run_once(const struct history *history, const struct search_terms *terms,
                     bool other_steps, struct verdict *verdict, uint64_t *ret_fingerprint)
{
    struct run *run = need_memory(malloc(sizeof(*run)));
    struct tally tally = {0};
    bool good = true;

    run_init(run, &history->plan, &tally);
    run->fault_at = terms->fault_at;
    run->trace = terms->trace;
    run->other_steps = other_steps;
    for (size_t i = 0; i < history->count && good; i++)
        good = run_step(run, &history->operations[i]);
    *verdict = run->verdict;
    *ret_fingerprint = run->fingerprint;
    run_finish(run);
    free(run);
    return good;
}

bool history_run(const struct history *history, const struct search_terms *terms,
                 struct verdict *verdict)
{
    uint64_t fingerprint;
    uint64_t other;

    if (!run_once(history, terms, false, verdict, &fingerprint))
        return false;
    if (!terms->twice)
        return true;
    if (!run_once(history, terms, true, verdict, &other))
        return false;
    if (fingerprint == other)
        return true;
    *verdict = (struct verdict){
        .promise = 4,
        .operation = history->count == 0 ? 0 : history->operations[history->count - 1].number,
        .message = "the history has other events when the time advances in other steps",
    };
    return false;
}

/* Removes `count` operations from `first` on if the history still breaks the promise without them.
 * Returns whether it does. */
static bool leave_out(struct history *history, size_t first, size_t count,
                      const struct search_terms *terms, struct verdict *verdict)
{
    struct history shorter = {.seed = history->seed,
                              .plan = history->plan,
                              .count = history->count - count,
                              .capacity = history->capacity};
    struct verdict found;
    bool same;

    shorter.operations = need_memory(calloc(history->capacity, sizeof(*shorter.operations)));
    memcpy(shorter.operations, history->operations, first * sizeof(*shorter.operations));
    memcpy(shorter.operations + first, history->operations + first + count,
           (shorter.count - first) * sizeof(*shorter.operations));
    same = !history_run(&shorter, terms, &found) && found.promise == verdict->promise;
    if (same) {
        free(history->operations);
        history->operations = shorter.operations;
        history->count = shorter.count;
        *verdict = found;
        /* Operations after the failure are not needed. */
        while (history->count > 0 &&
               history->operations[history->count - 1].number != found.operation)
            history->count--;
    } else {
        free(shorter.operations);
    }
    return same;
}

void history_shrink(struct history *history, const struct search_terms *terms,
                    struct verdict *verdict)
{
    bool again = true;

    for (size_t chunk = history->count / 2; chunk > 0 || again;) {
        again = false;
        if (chunk == 0)
            chunk = 1;
        for (size_t end = history->count; end > 0;) {
            size_t count = chunk < end ? chunk : end;

            if (leave_out(history, end - count, count, terms, verdict))
                again = true;
            end = end - count < history->count ? end - count : history->count;
        }
        /* Try single operations again as long as one of them could be removed. */
        chunk = chunk > 1 ? chunk / 2 : again ? 1 : 0;
    }
}
