/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of berth top: their order, the filter, the selection, and what keys do.
 */
#include "support/unit.h"

#include <limits.h>
#include <string.h>

#include "support/failing_allocator.h"
#include "support/top_screens.h"

/* The devices' rows in their order, by index; a further line of one is a minus. */
static void check_devices(const struct top_stage *stage, const char *wanted)
{
    const struct top_list *list = &stage->control.model.lists[PANE_DEVICES];
    struct text found = {0};

    for (size_t i = 0; i < list->rows.count; i++) {
        if (list->rows.items[i].continuation)
            text_append_char(&found, '-');
        else
            text_append_number(&found, list->rows.items[i].slot);
    }
    assert_string_equal(text_string(&found), wanted);
    text_finish(&found);
}

static void sort_by(struct top_stage *stage, enum view_column column, bool reversed)
{
    struct top_list *list = &stage->control.model.lists[PANE_DEVICES];

    assert_true(top_model_has_column(PANE_DEVICES, column));
    list->column = column;
    list->reversed = reversed;
    assert_int_equal(control_update(&stage->control, &stage->view, &stage->users), 0);
}

/* Loads are 0 130 260 390 520 650 780 and unknown; slot 2 has two leases. */
static void devices_are_sorted_by_any_column(void **state)
{
    struct top_stage *stage = stage_of(view_of_everything(8));

    (void)state;
    check_devices(stage, "012-34567");
    sort_by(stage, VIEW_COLUMN_LOAD, false);
    check_devices(stage, "65432-107");
    sort_by(stage, VIEW_COLUMN_LOAD, true);
    check_devices(stage, "012-34567");
    sort_by(stage, VIEW_COLUMN_DEVICE, true);
    check_devices(stage, "765432-10");
    sort_by(stage, VIEW_COLUMN_MEMORY, false);
    check_devices(stage, "65432-107");
    sort_by(stage, VIEW_COLUMN_TEMPERATURE, false);
    check_devices(stage, "65432-107");
    sort_by(stage, VIEW_COLUMN_POWER, true);
    check_devices(stage, "012-34567");
    sort_by(stage, VIEW_COLUMN_STATE, false); /* what needs somebody first */
    check_devices(stage, "346012-75");
    sort_by(stage, VIEW_COLUMN_USER, true); /* nobody's stay last */
    check_devices(stage, "2-0134567");
    sort_by(stage, VIEW_COLUMN_JOB, false);
    check_devices(stage, "2-0134567");
    sort_by(stage, VIEW_COLUMN_LEFT, false);
    check_devices(stage, "012-34567");
    sort_by(stage, VIEW_COLUMN_MODEL, false);
    check_devices(stage, "012-34567");
    stage_finish(stage);
}

static void keys_go_through_the_columns(void **state)
{
    struct top_stage *stage = stage_of(view_of_everything(8));
    const struct top_list *list = stage->control.model.lists;

    (void)state;
    assert_int_equal(list[PANE_DEVICES].column, VIEW_COLUMN_DEVICE);
    stage_type(stage, "s>");
    assert_int_equal(list[PANE_DEVICES].column, VIEW_COLUMN_LOAD);
    check_devices(stage, "65432-107");
    stage_type(stage, "r");
    check_devices(stage, "012-34567");
    stage_type(stage, "<<<");
    assert_int_equal(list[PANE_DEVICES].column, VIEW_COLUMN_JOB);
    assert_false(list[PANE_DEVICES].reversed);
    stage_type(stage, "s");
    assert_int_equal(list[PANE_DEVICES].column, VIEW_COLUMN_DEVICE);
    assert_int_equal(list[PANE_LEASES].column, VIEW_COLUMN_LEASE);
    stage_type(stage, "2s");
    assert_int_equal(list[PANE_LEASES].column, VIEW_COLUMN_USER);
    stage_type(stage, "3<");
    assert_int_equal(list[PANE_QUEUE].column, VIEW_COLUMN_JOB);
    stage_finish(stage);
}

static void an_order_that_is_asked_for(void **state)
{
    struct top_model model;

    (void)state;
    for (const struct choice *each = view_column_names; each->name != NULL; each++) {
        bool found = false;

        top_model_init(&model, (enum view_column)each->value);
        assert_int_equal(model.lists[model.pane].column, each->value);
        for (int pane = 0; pane < PANE_COUNT; pane++)
            found |= top_model_has_column((enum top_pane)pane, (enum view_column)each->value);
        if (!found)
            fail_msg("no pane has %s", each->name);
    }
    top_model_init(&model, VIEW_COLUMN_IDLE);
    assert_int_equal(model.pane, PANE_LEASES);
    top_model_init(&model, VIEW_COLUMN_WAITING);
    assert_int_equal(model.pane, PANE_QUEUE);
    top_model_init(&model, VIEW_COLUMN_USER);
    assert_int_equal(model.pane, PANE_DEVICES);
    assert_int_equal(model.lists[PANE_QUEUE].column, VIEW_COLUMN_USER);
}

static void check_filter(struct top_stage *stage, const char *filter, const char *devices,
                         size_t leases, size_t claims)
{
    stage_press(stage, CONTROL_ESCAPE);
    stage_type(stage, "/");
    stage_type(stage, filter);
    stage_press(stage, CONTROL_ENTER);
    check_devices(stage, devices);
    assert_int_equal(stage->control.model.lists[PANE_LEASES].rows.count, leases);
    assert_int_equal(stage->control.model.lists[PANE_QUEUE].rows.count, claims);
}

static void filters_find_words_anywhere(void **state)
{
    struct top_stage *stage = stage_of(view_of_everything(8));

    (void)state;
    check_filter(stage, "train", "01", 1, 0);
    check_filter(stage, "TRAIN nvidia1", "1", 1, 0);
    check_filter(stage, "jupyter", "2-", 2, 0);
    check_filter(stage, "sick", "3", 0, 0);
    check_filter(stage, "mine.py", "4", 0, 0);
    check_filter(stage, "loud", "5", 0, 0);
    check_filter(stage, "eval", "", 0, 1);
    check_filter(stage, "4000000001", "2-", 2, 2);
    check_filter(stage, "trainpython", "", 0, 0); /* not across two texts */
    check_filter(stage, " ", "012-34567", 3, 2);
    assert_shows(stage_draw(stage, 100, 30, true), " with ' ' ");
    stage_press(stage, CONTROL_ESCAPE);
    check_devices(stage, "012-34567");
    stage_finish(stage);
}

static void a_filter_is_typed(void **state)
{
    struct top_stage *stage = stage_of(view_of_everything(8));
    struct top_model *model = &stage->control.model;

    (void)state;
    stage_type(stage, "/sickq");
    assert_shows(stage_draw(stage, 80, 24, true), "Show rows with: sickq_");
    assert_shows(stage_draw(stage, 80, 24, true), "none passes the filter");
    stage_press(stage, CONTROL_BACKSPACE);
    check_devices(stage, "3");
    assert_shows(stage_draw(stage, 80, 24, true), " 1 Devices 1 of 8 ");
    control_press(&stage->control, (struct control_key){CONTROL_CHARACTER, 0xe9}, &stage->view,
                  &stage->users, 0);
    assert_string_equal(model->filter, "sick\xc3\xa9");
    stage_press(stage, CONTROL_BACKSPACE);
    assert_string_equal(model->filter, "sick");
    stage_press(stage, CONTROL_ERASE_LINE);
    assert_string_equal(model->filter, "");
    stage_press(stage, CONTROL_BACKSPACE);
    for (int i = 0; i < 3 * TOP_FILTER_MAX; i++)
        stage_type(stage, "x");
    assert_int_equal(strlen(model->filter), TOP_FILTER_MAX);
    stage_press(stage, CONTROL_ESCAPE);
    assert_int_equal(stage->control.mode, CONTROL_WATCHING);
    assert_string_equal(model->filter, "");
    stage_finish(stage);
}

static void a_long_filter_is_cut_between_characters(void **state)
{
    struct control control;
    char filter[3 * TOP_FILTER_MAX];

    (void)state;
    memset(filter, 0, sizeof(filter));
    for (size_t i = 0; i + 3 < sizeof(filter); i += 2)
        memcpy(filter + i, "é", 2);
    control_init(&control, VIEW_COLUMN_NONE, filter);
    assert_int_equal(strlen(control.model.filter), TOP_FILTER_MAX / 2 * 2);
    control_finish(&control);
}

static size_t selected(const struct top_stage *stage, enum top_pane pane)
{
    return stage->control.model.lists[pane].selected_row;
}

static void the_selection_moves_and_stops_at_the_ends(void **state)
{
    struct top_stage *stage = stage_of(view_of(8));

    (void)state;
    stage_draw(stage, 60, 8, true); /* five rows */
    stage_press(stage, CONTROL_UP);
    assert_int_equal(selected(stage, PANE_DEVICES), 0);
    stage_press(stage, CONTROL_DOWN);
    stage_type(stage, "jk");
    assert_int_equal(selected(stage, PANE_DEVICES), 1);
    stage_press(stage, CONTROL_PAGE_DOWN);
    assert_int_equal(selected(stage, PANE_DEVICES), 5);
    stage_press(stage, CONTROL_PAGE_DOWN);
    assert_int_equal(selected(stage, PANE_DEVICES), 7);
    stage_press(stage, CONTROL_PAGE_UP);
    assert_int_equal(selected(stage, PANE_DEVICES), 3);
    stage_press(stage, CONTROL_HOME);
    assert_int_equal(selected(stage, PANE_DEVICES), 0);
    stage_press(stage, CONTROL_END);
    assert_int_equal(selected(stage, PANE_DEVICES), 7);
    stage_press(stage, CONTROL_TAB);
    assert_int_equal(stage->control.model.pane, PANE_LEASES);
    stage_press(stage, CONTROL_DOWN); /* nothing there */
    stage_press(stage, CONTROL_BACK_TAB);
    stage_press(stage, CONTROL_BACK_TAB);
    assert_int_equal(stage->control.model.pane, PANE_QUEUE);
    top_model_move(&stage->control.model, &stage->view, LONG_MIN);
    stage_finish(stage);
}

/* Puts another view in the place of the first. */
static void change_view(struct top_stage *stage, struct pool_view view)
{
    pool_view_finish(&stage->view);
    stage->view = view;
    assert_int_equal(pool_view_index(&stage->view, NULL), 0);
    assert_int_equal(control_update(&stage->control, &stage->view, &stage->users), 0);
}

static void the_selection_stays_with_what_was_selected(void **state)
{
    struct top_stage *stage = stage_of(view_of_everything(8));
    struct pool_view other = view_of(8);
    const struct top_row *row;

    (void)state;
    stage_type(stage, "jjj"); /* lease 15 on nvidia2 */
    sort_by(stage, VIEW_COLUMN_LOAD, false);
    row = top_model_selected(&stage->control.model, PANE_DEVICES);
    assert_int_equal(row->slot, 2);
    assert_int_equal(stage->view.snapshot.leases.items[row->lease].id, 15);
    stage_type(stage, "2j"); /* lease 14 */
    view_lease(&other, 11, 0, 1);
    view_lease(&other, 13, 1, 2);
    view_lease(&other, 14, 2, 3);
    change_view(stage, other);
    assert_int_equal(selected(stage, PANE_LEASES), 2);
    /* Its lease has ended: the device is still the selected one. */
    row = top_model_selected(&stage->control.model, PANE_DEVICES);
    assert_int_equal(row->slot, 2);
    change_view(stage, view_of(1));
    assert_int_equal(selected(stage, PANE_DEVICES), 0);
    assert_null(top_model_selected(&stage->control.model, PANE_LEASES));
    change_view(stage, view_of(0));
    assert_null(top_model_selected(&stage->control.model, PANE_DEVICES));
    stage_finish(stage);
}

static void who_chose_nothing_sees_the_first_row(void **state)
{
    struct top_stage *stage = stage_of(view_of_everything(8));

    (void)state;
    sort_by(stage, VIEW_COLUMN_LOAD, false);
    assert_int_equal(selected(stage, PANE_DEVICES), 0);
    assert_int_equal(top_model_selected(&stage->control.model, PANE_DEVICES)->slot, 6);
    stage_type(stage, "jjk");
    sort_by(stage, VIEW_COLUMN_LOAD, true);
    assert_int_equal(top_model_selected(&stage->control.model, PANE_DEVICES)->slot, 5);
    stage_press(stage, CONTROL_HOME);
    sort_by(stage, VIEW_COLUMN_LOAD, false);
    assert_int_equal(selected(stage, PANE_DEVICES), 0);
    stage_finish(stage);
}

static void releasing_is_asked_first(void **state)
{
    struct top_stage *stage = stage_of(view_of_everything(8));
    struct control *control = &stage->control;

    (void)state;
    assert_int_equal(stage_type(stage, "x"), CONTROL_RESULT_NONE);
    assert_shows(stage_draw(stage, 80, 24, true),
                 "\nRelease lease 12? y/N  (train, 4000000000, nvidia0,nvidia1)\n");
    assert_shows(stage_draw(stage, 26, 8, true), "\nRelease lease 12? y/N  (t…\n");
    assert_int_equal(stage_type(stage, "n"), CONTROL_RESULT_NONE);
    assert_shows(stage_draw(stage, 80, 24, true), "nothing was done to lease 12");
    stage_type(stage, "x");
    assert_int_equal(stage_press(stage, CONTROL_ENTER), CONTROL_RESULT_NONE);
    stage_type(stage, "x");
    assert_int_equal(stage_type(stage, "y"), CONTROL_RESULT_EXECUTE);
    assert_int_equal(control->command.type, WIRE_STOP);
    assert_int_equal(control->command.id, 12);
    assert_int_equal(control->mode, CONTROL_WATCHING);
    stage_type(stage, "jjx");
    assert_shows(text_string(&control->prompt),
                 "Release 4000000001's lease 14, not yours? y/N  (jupyter-lab, ");
    stage_type(stage, "n3jc");
    assert_shows(text_string(&control->prompt),
                 "Cancel 4000000001's claim 18, not yours? y/N  (eval, 4000000001, 1 device)");
    assert_int_equal(stage_type(stage, "Y"), CONTROL_RESULT_EXECUTE);
    assert_int_equal(control->command.type, WIRE_CANCEL);
    assert_int_equal(control->command.id, 18);
    stage_finish(stage);
}

static void what_cannot_be_released_says_so(void **state)
{
    struct top_stage *stage = stage_of(view_of_everything(8));
    struct control *control = &stage->control;

    (void)state;
    stage_type(stage, "c");
    assert_shows(text_string(&control->message), "x releases it");
    stage_type(stage, "Gx"); /* nvidia7 is free */
    assert_shows(text_string(&control->message), "no lease is selected");
    stage_type(stage, "3x");
    assert_shows(text_string(&control->message), "c cancels it");
    stage->view.snapshot.leases.items[0].end = LEASE_END_STOPPED;
    stage_type(stage, "2x");
    assert_shows(text_string(&control->message), "lease 12 is ending already");
    assert_int_equal(control->mode, CONTROL_WATCHING);
    stage_finish(stage);
}

/* While somebody thinks about it, it may end by itself. */
static void a_question_is_withdrawn(void **state)
{
    struct top_stage *stage = stage_of(view_of_everything(8));

    (void)state;
    stage_type(stage, "x");
    change_view(stage, view_of(8));
    assert_int_equal(stage->control.mode, CONTROL_WATCHING);
    assert_shows(text_string(&stage->control.message), "lease 12 has ended");
    assert_int_equal(stage_type(stage, "y"), CONTROL_RESULT_NONE);
    change_view(stage, view_of_everything(8));
    stage_type(stage, "3c");
    change_view(stage, view_of(8));
    assert_shows(text_string(&stage->control.message), "claim 17 waits no more");
    stage_finish(stage);
}

static void the_other_keys(void **state)
{
    struct top_stage *stage = stage_of(view_of_everything(8));

    (void)state;
    assert_int_equal(stage_type(stage, "q"), CONTROL_RESULT_QUIT);
    assert_int_equal(stage_type(stage, "p"), CONTROL_RESULT_PAUSE);
    assert_true(stage->control.paused);
    assert_int_equal(stage_type(stage, " "), CONTROL_RESULT_PAUSE);
    assert_false(stage->control.paused);
    assert_int_equal(stage_press(stage, CONTROL_INTERRUPT), CONTROL_RESULT_QUIT);
    assert_int_equal(stage_press(stage, CONTROL_SUSPEND), CONTROL_RESULT_SUSPEND);
    assert_int_equal(stage_press(stage, CONTROL_REDRAW), CONTROL_RESULT_REDRAW);
    stage_type(stage, "?");
    assert_shows(stage_draw(stage, 80, 24, true), "berth top: keys");
    assert_shows(stage_draw(stage, 80, 24, true), "release the selected lease");
    for (int i = 0; i < 100; i++)
        stage_press(stage, CONTROL_DOWN);
    assert_shows(stage_draw(stage, 80, 24, true), "nobody knows");
    stage_press(stage, CONTROL_UP);
    assert_int_equal(stage_type(stage, "q"), CONTROL_RESULT_NONE); /* closes the help */
    assert_hides(stage_draw(stage, 80, 24, true), "berth top: keys");
    stage_press(stage, CONTROL_HELP);
    assert_int_equal(stage_press(stage, CONTROL_INTERRUPT), CONTROL_RESULT_QUIT);
    stage_press(stage, CONTROL_UNKNOWN);
    stage_type(stage, "Z~\x7f");
    stage_finish(stage);
}

static void without_memory_there_are_no_rows(void **state)
{
    bool refused = true;

    (void)state;
    for (unsigned long n = 1; refused; n++) {
        struct top_stage *stage = stage_of(view_of_everything(8));
        int code;

        stage->control.model.lists[PANE_DEVICES].column = VIEW_COLUMN_USER;
        stage->control.model.filter[0] = 'n';
        failing_allocator_start(n);
        code = control_update(&stage->control, &stage->view, &stage->users);
        refused = failing_allocator_stop();
        assert_int_equal(code, refused ? BERTH_ERROR_MEMORY : 0);
        if (refused)
            check_devices(stage, "");
        stage_finish(stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_sorted_by_any_column),
        cmocka_unit_test(keys_go_through_the_columns),
        cmocka_unit_test(an_order_that_is_asked_for),
        cmocka_unit_test(filters_find_words_anywhere),
        cmocka_unit_test(a_filter_is_typed),
        cmocka_unit_test(a_long_filter_is_cut_between_characters),
        cmocka_unit_test(the_selection_moves_and_stops_at_the_ends),
        cmocka_unit_test(the_selection_stays_with_what_was_selected),
        cmocka_unit_test(who_chose_nothing_sees_the_first_row),
        cmocka_unit_test(releasing_is_asked_first),
        cmocka_unit_test(what_cannot_be_released_says_so),
        cmocka_unit_test(a_question_is_withdrawn),
        cmocka_unit_test(the_other_keys),
        cmocka_unit_test(without_memory_there_are_no_rows),
    };

    return cmocka_run_group_tests_name("top_model", tests, NULL, NULL);
}
