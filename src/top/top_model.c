/* SPDX-License-Identifier: Apache-2.0 */
#include "top/top_model.h"

#include <limits.h>
#include <stdlib.h>

#include "base/count.h"
#include "top/row_order.h"

enum { COLUMNS_MAX = 12 };

/* The columns to sort by, from left to right. The first is the order of the pool. */
static const enum view_column columns[PANE_COUNT][COLUMNS_MAX] = {
    [PANE_DEVICES] = {VIEW_COLUMN_DEVICE, VIEW_COLUMN_MODEL, VIEW_COLUMN_LOAD, VIEW_COLUMN_MEMORY,
                      VIEW_COLUMN_TEMPERATURE, VIEW_COLUMN_POWER, VIEW_COLUMN_STATE,
                      VIEW_COLUMN_USER, VIEW_COLUMN_HELD, VIEW_COLUMN_LEFT, VIEW_COLUMN_JOB},
    [PANE_LEASES] = {VIEW_COLUMN_LEASE, VIEW_COLUMN_USER, VIEW_COLUMN_DEVICES, VIEW_COLUMN_HELD,
                     VIEW_COLUMN_LEFT, VIEW_COLUMN_IDLE, VIEW_COLUMN_JOB},
    [PANE_QUEUE] = {VIEW_COLUMN_QUEUE, VIEW_COLUMN_CLAIM, VIEW_COLUMN_USER, VIEW_COLUMN_WAITING,
                    VIEW_COLUMN_STARTS, VIEW_COLUMN_JOB},
};

static size_t count_columns(enum top_pane pane)
{
    size_t count = 0;

    while (count < COLUMNS_MAX && columns[pane][count] != VIEW_COLUMN_NONE)
        count++;
    return count;
}

bool top_model_has_column(enum top_pane pane, enum view_column column)
{
    for (size_t i = 0; i < count_columns(pane); i++) {
        if (columns[pane][i] == column)
            return true;
    }
    return false;
}

bool top_model_is_column_descending(enum view_column column)
{
    switch (column) {
    case VIEW_COLUMN_LOAD:
    case VIEW_COLUMN_MEMORY:
    case VIEW_COLUMN_TEMPERATURE:
    case VIEW_COLUMN_POWER:
    case VIEW_COLUMN_HELD:
    case VIEW_COLUMN_DEVICES:
    case VIEW_COLUMN_IDLE:
    case VIEW_COLUMN_WAITING:
        return true;
    default:
        return false;
    }
}

void top_model_init(struct top_model *model, enum view_column column)
{
    *model = (struct top_model){.pane = PANE_DEVICES};
    for (int pane = 0; pane < PANE_COUNT; pane++)
        model->lists[pane].column = top_model_has_column(pane, column) ? column : columns[pane][0];
    /* Keys go to the first pane that has the column. */
    while (model->pane < PANE_QUEUE && column != VIEW_COLUMN_NONE &&
           !top_model_has_column(model->pane, column))
        model->pane++;
}

void top_model_finish(struct top_model *model)
{
    for (int pane = 0; pane < PANE_COUNT; pane++)
        vector_finish(&model->lists[pane].rows);
}

/* Returns the first row of the item at `place` of a pane; a device may have more. */
static struct top_row row_at(enum top_pane pane, size_t place, const struct pool_view *view)
{
    struct top_row row = {TOP_NOTHING, TOP_NOTHING, TOP_NOTHING, TOP_NOTHING, false};
    size_t use;

    switch (pane) {
    case PANE_LEASES:
        row.lease = place;
        break;
    case PANE_QUEUE:
        row.claim = place;
        break;
    default:
        row.slot = place;
        use = pool_view_first_use(view, place);
        if (use < view->uses.count) {
            row.use = use;
            row.lease = view->uses.items[use].lease;
        }
    }
    return row;
}

static size_t count_items(enum top_pane pane, const struct pool_view *view)
{
    switch (pane) {
    case PANE_LEASES:
        return view->snapshot.leases.count;
    case PANE_QUEUE:
        return view->snapshot.claims.count;
    default:
        return view->snapshot.slots.count;
    }
}

/* Makes the keys of the items that pass the filter. Returns their number. */
static size_t make_keys(const struct top_model *model, enum top_pane pane,
                        const struct pool_view *view, struct user_names *users,
                        struct row_key *keys, bool *ret_failed)
{
    const struct top_list *list = &model->lists[pane];
    size_t total = count_items(pane, view);
    size_t count = 0;

    for (size_t place = 0; place < total; place++) {
        struct top_row row = row_at(pane, place, view);

        if (!row_order_matches_filter(&row, model->filter, view, users, ret_failed))
            continue;
        /* The first column is the order of the pool. */
        keys[count] = list->column == columns[pane][0]
                          ? (struct row_key){.known = true, .number = (int64_t)place}
                          : row_order_key(&row, list->column, view, users, ret_failed);
        keys[count++].place = place;
    }
    return count;
}

/* Adds the rows of one item. */
static bool add_rows(struct top_list *list, enum top_pane pane, size_t place,
                     const struct pool_view *view)
{
    struct top_row made = row_at(pane, place, view);

    do {
        struct top_row *row = vector_append(&list->rows);

        if (row == NULL)
            return false;
        *row = made;
        if (made.use == TOP_NOTHING)
            break;
        made.use++;
        made.continuation = true;
        if (made.use < view->uses.count)
            made.lease = view->uses.items[made.use].lease;
    } while (made.use < view->uses.count && view->uses.items[made.use].slot == place);
    return true;
}

static int make_rows(struct top_model *model, enum top_pane pane, const struct pool_view *view,
                     struct user_names *users)
{
    struct top_list *list = &model->lists[pane];
    struct row_key *keys = calloc(count_items(pane, view) + 1, sizeof(*keys));
    bool failed = keys == NULL;
    size_t count = 0;

    list->rows.count = 0;
    list->total = count_items(pane, view);
    if (!failed)
        count = make_keys(model, pane, view, users, keys, &failed);
    row_order_sort(keys, count, top_model_is_column_descending(list->column) != list->reversed);
    for (size_t i = 0; i < count && !failed; i++)
        failed = !add_rows(list, pane, keys[i].place, view);
    for (size_t i = 0; i < count; i++)
        free(keys[i].text);
    free(keys);
    if (failed)
        list->rows.count = 0;
    return failed ? BERTH_ERROR_MEMORY : 0;
}

static struct top_row_key make_row_key(const struct top_row *row, const struct pool_view *view)
{
    struct top_row_key key = {0};

    if (row->slot != TOP_NOTHING)
        key.device = view->snapshot.slots.items[row->slot].device->id;
    if (row->lease != TOP_NOTHING)
        key.id = view->snapshot.leases.items[row->lease].id;
    if (row->claim != TOP_NOTHING)
        key.id = view->snapshot.claims.items[row->claim].id;
    return key;
}

/* Selects the same item again; else a row of the same device; else the row at the same index. */
static void restore_selection(struct top_list *list, enum top_pane pane,
                              const struct pool_view *view)
{
    size_t near = TOP_NOTHING;

    if (list->rows.count == 0) {
        list->selected_row = 0;
        list->first = 0;
        return;
    }
    for (size_t i = 0; list->chosen && i < list->rows.count; i++) {
        struct top_row_key key = make_row_key(&list->rows.items[i], view);
        bool same_device =
            pane == PANE_DEVICES && device_id_equals(key.device, list->selected.device);

        if (key.id == list->selected.id && (same_device || pane != PANE_DEVICES)) {
            list->selected_row = i;
            return;
        }
        if (same_device && near == TOP_NOTHING)
            near = i;
    }
    if (!list->chosen)
        list->selected_row = 0;
    else if (near != TOP_NOTHING)
        list->selected_row = near;
    else if (list->selected_row >= list->rows.count)
        list->selected_row = list->rows.count - 1;
    list->selected = make_row_key(&list->rows.items[list->selected_row], view);
}

int top_model_update(struct top_model *model, const struct pool_view *view,
                     struct user_names *users)
{
    int code = 0;

    for (int pane = 0; pane < PANE_COUNT && code == 0; pane++) {
        code = make_rows(model, pane, view, users);
        restore_selection(&model->lists[pane], pane, view);
    }
    for (int pane = 0; pane < PANE_COUNT && code < 0; pane++)
        model->lists[pane].rows.count = 0;
    return code;
}

void top_model_move(struct top_model *model, const struct pool_view *view, long rows)
{
    struct top_list *list = &model->lists[model->pane];
    size_t distance = rows < 0 ? 0 - (size_t)rows : (size_t)rows;
    size_t room;

    if (list->rows.count == 0)
        return;
    room = rows < 0 ? list->selected_row : list->rows.count - 1 - list->selected_row;
    if (distance > room)
        distance = room;
    list->selected_row = rows < 0 ? list->selected_row - distance : list->selected_row + distance;
    list->chosen = list->selected_row > 0;
    list->selected = make_row_key(&list->rows.items[list->selected_row], view);
}

void top_model_scroll(struct top_list *list, size_t page)
{
    size_t max = list->rows.count > page ? list->rows.count - page : 0;

    list->page = page;
    if (list->first > max)
        list->first = max;
    if (page == 0)
        return;
    if (list->selected_row < list->first)
        list->first = list->selected_row;
    else if (list->selected_row - list->first >= page)
        list->first = list->selected_row - page + 1;
}

const struct top_row *top_model_selected(const struct top_model *model, enum top_pane pane)
{
    const struct top_list *list = &model->lists[pane];

    return list->selected_row < list->rows.count ? &list->rows.items[list->selected_row] : NULL;
}

void top_model_choose_column(struct top_model *model, int direction)
{
    struct top_list *list = &model->lists[model->pane];
    size_t count = count_columns(model->pane);

    for (size_t i = 0; i < count; i++) {
        if (columns[model->pane][i] == list->column) {
            list->column = columns[model->pane][(i + count + (size_t)direction) % count];
            break;
        }
    }
    list->reversed = false;
}
