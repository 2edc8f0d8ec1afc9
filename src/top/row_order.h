/* SPDX-License-Identifier: Apache-2.0
 *
 * What rows are sorted by.
 */
#ifndef TOP_ROW_ORDER_H
#define TOP_ROW_ORDER_H

#include "top/top_model.h"

/* What a row is compared by; a text counts before the number. */
struct row_key {
    size_t place; /* among the rows as the pool has them: the last word */
    bool known;
    int64_t number;
    char *text; /* owned; NULL: there is none */
};

/* The key of a row. A failed allocation of a text is *ret_failed. */
struct row_key row_order_key(const struct top_row *row, enum view_column column,
                             const struct pool_view *view, struct user_names *users,
                             bool *ret_failed);

/* Sorts keys: unknown ones last, whichever way it goes. */
void row_order_sort(struct row_key *keys, size_t count, bool falling);

/* Whether a row has all words of a filter, in any case, in the texts that belong to it: ids, user,
 * name, command, state, model. A failed allocation is *ret_failed. */
bool row_order_matches_filter(const struct top_row *row, const char *filter,
                              const struct pool_view *view, struct user_names *users,
                              bool *ret_failed);

#endif
