/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/suggest.h"

#include <string.h>

enum { LENGTH_MAX = 64 };

/* All of berth's names are ASCII, and the result must not depend on the locale. */
static char lower_case(char character)
{
    return character >= 'A' && character <= 'Z' ? (char)(character - 'A' + 'a') : character;
}

static size_t smaller_of(size_t one, size_t other)
{
    return one < other ? one : other;
}

/* Returns the edit distance with swaps of neighbours (optimal string alignment). Only the last
 * three rows of the table are kept: row i has the distances of the first i bytes of `one` from
 * every prefix of `other`. */
static size_t edit_distance(const char *one, size_t one_length, const char *other,
                            size_t other_length)
{
    size_t rows[3][LENGTH_MAX + 1];

    for (size_t j = 0; j <= other_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= one_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *two_above = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= other_length; j++) {
            char left = lower_case(one[i - 1]);
            char right = lower_case(other[j - 1]);

            row[j] =
                smaller_of(above[j - 1] + (left != right), smaller_of(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && left == lower_case(other[j - 2]) &&
                lower_case(one[i - 2]) == right)
                row[j] = smaller_of(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[one_length % 3][other_length];
}

void suggest_compare(struct suggestion *nearest, const char *name)
{
    size_t wanted_length = strnlen(nearest->wanted, LENGTH_MAX + 1);
    size_t name_length = strnlen(name, LENGTH_MAX + 1);
    size_t longer = wanted_length > name_length ? wanted_length : name_length;
    size_t distance;

    if (longer > LENGTH_MAX)
        return;
    distance = edit_distance(nearest->wanted, wanted_length, name, name_length);
    if (distance > (longer + 2) / 3 || (nearest->best != NULL && distance >= nearest->distance))
        return;
    nearest->best = name;
    nearest->distance = distance;
}
