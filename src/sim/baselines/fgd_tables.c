/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/baselines/fgd_tables.h"

#include <berth/error.h>
#include <stdlib.h>

#include "base/count.h"
#include "base/hash.h"

/* The billionths of a device by which fragmentation must fall for a score of 51, 52 and so on: the
 * logarithms of 51/49, 52/48, to 99/1. For scores of 49 down to 1 it may rise as much. */
static const uint64_t falls[] = {
    40005335,   80042708,   120144312,  160342650,  200670695,  241162057,  281851152,
    322773392,  363965377,  405465108,  447312218,  489548225,  532216814,  575364145,
    619039208,  663294217,  708185058,  753771802,  800119300,  847297860,  895384047,
    944461609,  994622575,  1045968555, 1098612289, 1152679510, 1208311206, 1265666373,
    1324925415, 1386294361, 1450010176, 1516347489, 1585627264, 1658228077, 1734601055,
    1815289967, 1900958761, 1992430165, 2090741097, 2197224577, 2313634929, 2442347035,
    2586689344, 2751535313, 2944438979, 3178053830, 3476098690, 3891820298, 4595119850,
};

enum { EVEN_SCORE = 50 };

static void fill_steps(struct fgd_tables *tables)
{
    tables->steps[0] = INT64_MIN;
    for (size_t i = 0; i < COUNT(falls); i++) {
        uint64_t billionths = falls[i] * tables->whole;

        tables->steps[EVEN_SCORE + 1 + i] = (int64_t)((billionths + 999) / 1000);
        tables->steps[EVEN_SCORE - 1 - i] = -(int64_t)(billionths / 1000);
    }
}

/* Returns by how many bits to shift weights right, so that their sum is below 2^31. */
static unsigned excess_bits(const struct policy_environment *around)
{
    uint64_t whole = 0;
    unsigned bits = 0;

    for (size_t i = 0; i < around->typical_count; i++)
        whole += around->typical[i].weight;
    while (whole >> bits > INT32_MAX)
        bits++;
    return bits;
}

/* Returns a number that is the same for devices of the same class. */
static uint64_t signature_of(const struct policy_environment *around, size_t slot)
{
    uint64_t signature = 0;

    for (size_t i = 0; i < around->typical_count; i++) {
        const struct policy_typical *typical = &around->typical[i];

        if (typical->count > 0)
            signature = hash_mix(signature << 1 ^ signature >> 63 ^
                                 (uint64_t)bitset_has(typical->accepts, slot));
    }
    return signature;
}

/* Sorts the slots into classes; `slot_of` gets one slot of each. */
static int classify_slots(struct fgd_tables *tables, const struct policy_environment *around,
                          size_t *slot_of)
{
    size_t slots = around->machine->devices.count;
    uint64_t *signatures = calloc(slots + 1, sizeof(*signatures));

    if (signatures == NULL)
        return BERTH_ERROR_MEMORY;
    for (size_t slot = 0; slot < slots; slot++) {
        uint64_t signature = signature_of(around, slot);
        size_t class = 0;

        while (class < tables->class_count && signatures[class] != signature)
            class ++;
        if (class == tables->class_count) {
            signatures[class] = signature;
            slot_of[tables->class_count++] = slot;
        }
        tables->class_of[slot] = (uint32_t) class;
    }
    free(signatures);
    return 0;
}

static int compare_numbers(uint64_t one, uint64_t other)
{
    return (one > other) - (one < other);
}

static int compare_cpus(const void *one, const void *other)
{
    return compare_numbers(*(const uint64_t *)one, *(const uint64_t *)other);
}

static int compare_shares(const void *one, const void *other)
{
    return compare_numbers(*(const uint32_t *)one, *(const uint32_t *)other);
}

static int compare_several(const void *one, const void *other)
{
    return compare_numbers(((const struct fgd_several *)one)->cpus,
                           ((const struct fgd_several *)other)->cpus);
}

static void collect_several(struct fgd_tables *tables, const struct policy_typical *typical,
                            uint64_t weight)
{
    tables->several[tables->several_count++] = (struct fgd_several){
        .cpus = typical->cpus,
        .count = typical->count,
        .share = typical->share,
        .weight = weight,
        .accepts = typical->accepts,
    };
    if (typical->share < SHARE_WHOLE)
        tables->parts = true;
    /* A request for more devices than a node can have never fits. */
    if (typical->count > tables->widest && typical->count <= POLICY_NODE_MAX)
        tables->widest = typical->count;
}

/* Copies the amounts of the expected requests into the tables and sorts them. */
static void collect_amounts(struct fgd_tables *tables, const struct policy_environment *around)
{
    unsigned excess = excess_bits(around);

    for (size_t i = 0; i < around->typical_count; i++) {
        const struct policy_typical *typical = &around->typical[i];

        tables->whole += typical->weight >> excess;
        if (typical->count > 0)
            tables->cpus[tables->cpus_count++] = typical->cpus;
        if (typical->count == 1)
            tables->shares[tables->shares_count++] = typical->share;
        else if (typical->count > 1)
            collect_several(tables, typical, typical->weight >> excess);
    }
    qsort(tables->cpus, tables->cpus_count, sizeof(*tables->cpus), compare_cpus);
    qsort(tables->shares, tables->shares_count, sizeof(*tables->shares), compare_shares);
    qsort(tables->several, tables->several_count, sizeof(*tables->several), compare_several);
}

/* Removes duplicate amounts. */
static void remove_duplicates(struct fgd_tables *tables)
{
    size_t cpus = 0;
    size_t shares = 0;

    for (size_t i = 0; i < tables->cpus_count; i++) {
        if (cpus == 0 || tables->cpus[cpus - 1] != tables->cpus[i])
            tables->cpus[cpus++] = tables->cpus[i];
    }
    for (size_t i = 0; i < tables->shares_count; i++) {
        if (shares == 0 || tables->shares[shares - 1] != tables->shares[i])
            tables->shares[shares++] = tables->shares[i];
    }
    tables->cpus_count = cpus;
    tables->shares_count = shares;
}

static void fill_share_from(struct fgd_tables *tables)
{
    size_t step = 0;

    for (size_t i = 0; i < COUNT(tables->share_from); i++) {
        while (step < tables->shares_count && tables->shares[step] < i << FGD_SHARE_BITS)
            step++;
        tables->share_from[i] = (uint32_t)step;
    }
}

/* Turns the weight of each cell into the sum over all amounts up to those of the cell. */
static void accumulate_class(struct fgd_tables *tables, size_t class)
{
    for (size_t cpus = 1; cpus <= tables->cpus_count; cpus++) {
        uint64_t alone = 0;
        uint64_t together = 0;

        for (size_t share = 1; share <= tables->shares_count; share++) {
            alone += *fgd_tables_alone(tables, class, cpus, share);
            *fgd_tables_alone(tables, class, cpus, share) =
                alone + *fgd_tables_alone(tables, class, cpus - 1, share);
        }
        for (uint32_t count = 1; count <= tables->widest; count++) {
            together += *fgd_tables_together(tables, class, cpus, count);
            *fgd_tables_together(tables, class, cpus, count) =
                together + *fgd_tables_together(tables, class, cpus - 1, count);
        }
    }
}

/* Fills in the weights of the requests that a device of this class fits; `slot` has such a device.
 */
static void fill_class(struct fgd_tables *tables, const struct policy_environment *around,
                       size_t class, size_t slot)
{
    unsigned excess = excess_bits(around);

    for (size_t i = 0; i < around->typical_count; i++) {
        const struct policy_typical *typical = &around->typical[i];

        if (typical->count == 1 && bitset_has(typical->accepts, slot))
            *fgd_tables_alone(tables, class, fgd_tables_cpus(tables, typical->cpus),
                              fgd_tables_share(tables, typical->share)) +=
                typical->weight >> excess;
    }
    for (size_t i = 0; i < tables->several_count; i++) {
        const struct fgd_several *several = &tables->several[i];
        bool accepted = bitset_has(several->accepts, slot);

        tables->accepted[class * tables->several_count + i] = accepted;
        if (accepted && several->share >= SHARE_WHOLE && several->count <= tables->widest)
            *fgd_tables_together(tables, class, fgd_tables_cpus(tables, several->cpus),
                                 several->count) += several->weight;
    }
    accumulate_class(tables, class);
}

static int fill_tables(struct fgd_tables *tables, const struct policy_environment *around,
                       size_t *slot_of)
{
    size_t rows;

    if (classify_slots(tables, around, slot_of) < 0)
        return BERTH_ERROR_MEMORY;
    rows = tables->class_count * (tables->cpus_count + 1);
    tables->alone = calloc(rows + 1, (tables->shares_count + 1) * sizeof(*tables->alone));
    tables->together = calloc(rows + 1, (tables->widest + 1) * sizeof(*tables->together));
    tables->accepted =
        calloc(tables->class_count + 1, (tables->several_count + 1) * sizeof(*tables->accepted));
    if (tables->alone == NULL || tables->together == NULL || tables->accepted == NULL)
        return BERTH_ERROR_MEMORY;
    fill_share_from(tables);
    for (size_t class = 0; class < tables->class_count; class ++)
        fill_class(tables, around, class, slot_of[class]);
    fill_steps(tables);
    return 0;
}

int fgd_tables_prepare(const struct policy *policy, const struct policy_environment *around,
                       void **ret_tables)
{
    size_t slots = around->machine->devices.count + 1;
    size_t expected = around->typical_count + 1;
    struct fgd_tables *tables = calloc(1, sizeof(*tables));
    size_t *slot_of = calloc(slots, sizeof(*slot_of)); /* by class */
    int code = BERTH_ERROR_MEMORY;

    (void)policy;
    if (tables != NULL && slot_of != NULL) {
        tables->class_of = calloc(slots, sizeof(*tables->class_of));
        tables->cpus = calloc(expected, sizeof(*tables->cpus));
        tables->shares = calloc(expected, sizeof(*tables->shares));
        tables->several = calloc(expected, sizeof(*tables->several));
        if (tables->class_of != NULL && tables->cpus != NULL && tables->shares != NULL &&
            tables->several != NULL) {
            collect_amounts(tables, around);
            remove_duplicates(tables);
            code = fill_tables(tables, around, slot_of);
        }
    }
    free(slot_of);
    if (code < 0)
        fgd_tables_forget(tables);
    else
        *ret_tables = tables;
    return code;
}

void fgd_tables_forget(void *tables)
{
    struct fgd_tables *mine = tables;

    if (mine == NULL)
        return;
    free(mine->class_of);
    free(mine->cpus);
    free(mine->shares);
    free(mine->alone);
    free(mine->together);
    free(mine->several);
    free(mine->accepted);
    free(mine);
}

size_t fgd_tables_cpus(const struct fgd_tables *tables, uint64_t cpus)
{
    size_t below = 0;

    for (size_t above = tables->cpus_count; below < above;) {
        size_t middle = below + (above - below) / 2;

        if (tables->cpus[middle] <= cpus)
            below = middle + 1;
        else
            above = middle;
    }
    return below;
}

int64_t fgd_tables_score(const struct fgd_tables *tables, int64_t fall)
{
    size_t below = 1;

    for (size_t above = COUNT(tables->steps); below < above;) {
        size_t middle = below + (above - below) / 2;

        if (tables->steps[middle] <= fall)
            below = middle + 1;
        else
            above = middle;
    }
    return (int64_t)below - 1;
}
