/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting and filtering of rows.
 */
#ifndef TOP_ROW_ORDER_H
#define TOP_ROW_ORDER_H

#include "top/top_model.h"

/* The sort key of a row. If both keys have a text, the texts are compared, else the numbers. */
struct row_key {
    size_t place; /* the index in the order of the pool; breaks ties */
    bool known;
    int64_t number;
    char *text; /* owned; NULL: none */
};

/* Makes the key of a row. Sets *ret_failed if memory runs out. */
struct row_key row_order_key(const struct top_row *row, enum view_column column,
                             const struct pool_view *view, struct user_names *users,
                             bool *ret_failed);

/* Sorts keys. Unknown ones come last in both directions. */
void row_order_sort(struct row_key *keys, size_t count, bool falling);

/* Returns whether the texts of a row (ids, user, name, command, state, model) contain all words of
 * a filter. Upper and lower case are equal. Sets *ret_failed if memory runs out. */
bool row_order_matches_filter(const struct top_row *row, const char *filter,
                              const struct pool_view *view, struct user_names *users,
                              bool *ret_failed);

#endif
